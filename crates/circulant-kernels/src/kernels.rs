//! The kernels as ordinary functions per number type, so that they are compiled once, here, with
//! this crate's optimisation, and not again in every crate that uses a generic plan.

use crate::dense::convolution::{BackwardChunk, ForwardChunk};
use crate::dense::large_product::{BlockProduct, PackLines};
use crate::elements::cross_entropy::CrossEntropyChunk;
use crate::elements::elementwise::{BiasTanhChunk, ColumnSumChunk, TanhBackwardChunk, TanhChunk};
use crate::elements::gather::ByteRow;
use crate::gaussian::{
    DiagonalChunk, GramChunk, KlChunk, KlSums, LogVarianceChunk, ResidualChunk,
    SampleBackwardChunk, SampleChunk,
};
use crate::operator::blocks::{ChannelPass, GroupCorrelation, GroupProduct};
use crate::operator::channels::{Mix, MixBackward};
use crate::operator::isometries::{IsometryGradient, IsometryGroup};
use crate::optimisers::adam::AdamChunk;
use crate::optimisers::adan::AdanChunk;
use crate::random::normal::NormalChunk;
use crate::transform::{BlockPass, WeightGradient};
use crate::transformer::attention::{HeadBackward, HeadForward};
use crate::transformer::dropout::DropoutChunk;
use crate::transformer::gelu::{GeluBackwardChunk, GeluChunk};
use crate::transformer::layer_norm::{LayerNormBackwardChunk, LayerNormChunk};
use crate::transformer::residual::ResidualSumChunk;
use crate::vector::{Isa, Promised};

macro_rules! kernels {
    ($($name:ident($job:ty) $(-> $output:ty)?;)*) => {
        /// Entry points into the vector code.
        pub trait Kernels: Sized {
            $(fn $name(isa: Isa, job: $job) $(-> $output)?;)*
        }
        kernels!(@impl f32 $($name($job) $(-> $output)?;)*);
        kernels!(@impl f64 $($name($job) $(-> $output)?;)*);
    };
    (@impl $type:ident $($name:ident($job:ty) $(-> $output:ty)?;)*) => {
        impl Kernels for $type {
            $(
                #[inline(never)]
                fn $name(isa: Isa, job: $job) $(-> $output)? {
                    isa.run::<$type, _>(job)
                }
            )*
        }
    };
}

kernels! {
    block_pass(Promised<BlockPass<'_, Self>>);
    weight_gradient(Promised<WeightGradient<Self>>);
    mix(Promised<Mix<'_, Self>>);
    mix_backward(Promised<MixBackward<'_, Self>>);
    channel_pass(Promised<ChannelPass<'_, Self>>);
    group_product(Promised<GroupProduct<'_, Self>>);
    group_correlation(Promised<GroupCorrelation<'_, Self>>);
    isometry_group(IsometryGroup<'_, Self>);
    isometry_gradient(IsometryGradient<'_, Self>);
    pack_lines(Promised<PackLines<Self>>);
    block_product(Promised<BlockProduct<Self>>);
    normal_chunk(NormalChunk<'_, Self>);
    gram_chunk(GramChunk<'_, Self>) -> Vec<f64>;
    kl_chunk(KlChunk<'_, Self>) -> KlSums;
    log_variance_chunk(LogVarianceChunk<'_, Self>) -> f64;
    residual_chunk(ResidualChunk<'_, Self>) -> (f64, Vec<f64>);
    diagonal_chunk(DiagonalChunk<'_, Self>);
    sample_chunk(SampleChunk<'_, Self>);
    sample_backward_chunk(SampleBackwardChunk<'_, Self>) -> Vec<f64>;
    tanh_chunk(TanhChunk<'_, Self>);
    tanh_backward_chunk(TanhBackwardChunk<'_, Self>);
    bias_tanh_chunk(BiasTanhChunk<'_, Self>);
    column_sum_chunk(ColumnSumChunk<'_, Self>) -> Vec<f64>;
    cross_entropy_chunk(CrossEntropyChunk<'_, Self>) -> f64;
    adam_chunk(AdamChunk<'_, Self>);
    adan_chunk(AdanChunk<'_, Self>);
    attention_forward(Promised<HeadForward<'_, Self>>);
    attention_backward(Promised<HeadBackward<'_, Self>>);
    byte_row(ByteRow<'_, Self>);
    dropout_chunk(DropoutChunk<'_, Self>);
    residual_sum_chunk(ResidualSumChunk<'_, Self>);
    gelu_chunk(GeluChunk<'_, Self>);
    gelu_backward_chunk(GeluBackwardChunk<'_, Self>);
    layer_norm_chunk(LayerNormChunk<'_, Self>);
    layer_norm_backward_chunk(LayerNormBackwardChunk<'_, Self>);
    convolution_forward_chunk(ForwardChunk<'_, Self>);
    convolution_backward_chunk(BackwardChunk<'_, Self>) -> Vec<f64>;
}
