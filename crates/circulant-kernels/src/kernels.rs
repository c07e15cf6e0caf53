//! The kernels as ordinary functions per number type, so that they are compiled once, here, with
//! this crate's optimisation, and not again in every crate that uses a generic plan.

use crate::dense::large_product::{BlockProduct, PackLines};
use crate::operator::blocks::{ChannelPass, GroupCorrelation, GroupProduct};
use crate::operator::channels::{Mix, MixBackward};
use crate::transform::{BlockPass, WeightGradient};
use crate::vector::{Isa, Promised};

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident($job:ty);)*) => {
        /// Entry points into the vector code.
        pub trait Kernels: Sized {
            $($(#[$doc])* fn $name(isa: Isa, job: $job);)*
        }
        kernels!(@impl f32 $($name($job);)*);
        kernels!(@impl f64 $($name($job);)*);
    };
    (@impl $type:ident $($name:ident($job:ty);)*) => {
        impl Kernels for $type {
            $(
                #[inline(never)]
                fn $name(isa: Isa, job: $job) {
                    isa.run::<$type, _>(job);
                }
            )*
        }
    };
}

kernels! {
    /// Rows of a block to its spectrum and back.
    block_pass(Promised<BlockPass<'_, Self>>);
    /// The gradient of a read-out's weights.
    weight_gradient(Promised<WeightGradient<Self>>);
    /// Channel mixing.
    mix(Promised<Mix<'_, Self>>);
    /// The gradients of the channel mixing.
    mix_backward(Promised<MixBackward<'_, Self>>);
    /// The channels of a group of rows to spectra and back.
    channel_pass(Promised<ChannelPass<'_, Self>>);
    /// A group of rows through the matrices of its frequencies.
    group_product(Promised<GroupProduct<'_, Self>>);
    /// The gradient of those matrices.
    group_correlation(Promised<GroupCorrelation<'_, Self>>);
    /// Lines of a matrix into a panel.
    pack_lines(Promised<PackLines<Self>>);
    /// A block of a large matrix product.
    block_product(Promised<BlockProduct<Self>>);
}
