//! Element by element or row by row: activations, the loss, examples from memory, ensembles.

pub mod activation;
pub mod cross_entropy;
pub mod elementwise;
pub mod ensemble;
pub mod examples;
pub mod gather;
