//! Element by element or row by row: activations, the loss, examples from memory, ensembles.

pub(crate) mod cross_entropy;
pub(crate) mod elementwise;
pub(crate) mod ensemble;
pub(crate) mod gather;
