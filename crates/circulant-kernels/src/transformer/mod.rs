//! What a transformer needs beside its linear layers.

pub mod attention;
pub mod dropout;
pub mod gelu;
pub mod layer_norm;
pub mod residual;
