//! What a transformer needs beside its linear layers.

pub(crate) mod attention;
pub(crate) mod dropout;
pub(crate) mod gelu;
pub(crate) mod gelu_dropout;
pub(crate) mod layer_norm;
pub(crate) mod residual;
