//! Batches through circulant operators and back: one plan per layer, one way per kind of operator.

use circulant_core::Bin;

pub mod batch;
pub mod blocks;
pub mod by_row;
pub mod channels;
pub mod complex_product;
pub mod filter_transform;
pub mod isometries;
pub mod one_channel;
pub mod padded;
pub mod plan;

/// The bins in the order of a transformed block; a gap is as good as a masked bin.
pub(crate) fn in_order(order: &[Option<usize>], full: &[Bin]) -> Vec<Bin> {
    order
        .iter()
        .map(|frequency| frequency.map_or(Bin::Masked, |f| full[f]))
        .collect()
}
