//! Batches through circulant operators and back: one plan per layer, one way per kind of operator.

pub(crate) mod batch;
pub(crate) mod by_row;
pub(crate) mod channels;
pub(crate) mod complex_product;
pub(crate) mod filter_transform;
pub(crate) mod one_channel;
pub(crate) mod padded;
pub(crate) mod plan;
#[cfg(test)]
mod plan_tests;
