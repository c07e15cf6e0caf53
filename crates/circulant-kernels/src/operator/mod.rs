//! Batches through circulant operators and back: one plan per layer, one way per kind of operator.

use circulant_core::Bin;

pub(crate) mod batch;
pub(crate) mod by_row;
pub(crate) mod channels;
pub(crate) mod complex_product;
pub(crate) mod filter_transform;
pub(crate) mod one_channel;
pub(crate) mod padded;
pub(crate) mod plan;

/// The bins in the order of a transformed block; a gap is as good as a masked bin.
pub(crate) fn in_order(order: &[Option<usize>], full: &[Bin]) -> Vec<Bin> {
    order
        .iter()
        .map(|frequency| frequency.map_or(Bin::Masked, |f| full[f]))
        .collect()
}

#[cfg(test)]
mod plan_tests;
