//! The kernels of the Bayesian part as ordinary functions per number type, for the reason given in
//! `kernels.rs`: they are compiled once, here, with this crate's optimisation.

use crate::dense::convolution::{BackwardChunk, ForwardChunk};
use crate::elements::cross_entropy::CrossEntropyChunk;
use crate::elements::elementwise::{BiasTanhChunk, ColumnSumChunk, TanhBackwardChunk, TanhChunk};
use crate::elements::gather::ByteRow;
use crate::gaussian::{
    DiagonalChunk, GramChunk, KlChunk, KlSums, LogVarianceChunk, ResidualChunk,
    SampleBackwardChunk, SampleChunk,
};
use crate::optimisers::adam::AdamChunk;
use crate::optimisers::adan::AdanChunk;
use crate::random::normal::NormalChunk;
use crate::transformer::attention::{HeadBackward, HeadForward};
use crate::transformer::dropout::DropoutChunk;
use crate::transformer::gelu::{GeluBackwardChunk, GeluChunk};
use crate::transformer::layer_norm::{LayerNormBackwardChunk, LayerNormChunk};
use crate::transformer::residual::ResidualSumChunk;
use crate::vector::{Isa, Promised};

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident($job:ty) -> $output:ty;)*) => {
        /// Entry points into the vector code.
        pub trait ElementKernels: Sized {
            $($(#[$doc])* fn $name(isa: Isa, job: $job) -> $output;)*
        }
        kernels!(@impl f32 $($name($job) -> $output;)*);
        kernels!(@impl f64 $($name($job) -> $output;)*);
    };
    (@impl $type:ident $($name:ident($job:ty) -> $output:ty;)*) => {
        impl ElementKernels for $type {
            $(
                #[inline(never)]
                fn $name(isa: Isa, job: $job) -> $output {
                    isa.run::<$type, _>(job)
                }
            )*
        }
    };
}

kernels! {
    /// Standard normal values.
    normal_chunk(NormalChunk<'_, Self>) -> ();
    /// The Gram matrix of the low-rank part.
    gram_chunk(GramChunk<'_, Self>) -> Vec<f64>;
    /// The KL and its gradients.
    kl_chunk(KlChunk<'_, Self>) -> KlSums;
    /// The sum of the log variances.
    log_variance_chunk(LogVarianceChunk<'_, Self>) -> f64;
    /// The quadratic form of the log density.
    residual_chunk(ResidualChunk<'_, Self>) -> (f64, Vec<f64>);
    /// The diagonal of the covariance.
    diagonal_chunk(DiagonalChunk<'_, Self>) -> ();
    /// A sample.
    sample_chunk(SampleChunk<'_, Self>) -> ();
    /// The gradients of a sample.
    sample_backward_chunk(SampleBackwardChunk<'_, Self>) -> Vec<f64>;
    /// `tanh`.
    tanh_chunk(TanhChunk<'_, Self>) -> ();
    /// The gradient of `tanh`.
    tanh_backward_chunk(TanhBackwardChunk<'_, Self>) -> ();
    /// `tanh` of rows with a bias.
    bias_tanh_chunk(BiasTanhChunk<'_, Self>) -> ();
    /// Sums over rows.
    column_sum_chunk(ColumnSumChunk<'_, Self>) -> Vec<f64>;
    /// Softmax cross-entropy and its gradient.
    cross_entropy_chunk(CrossEntropyChunk<'_, Self>) -> f64;
    /// One step of Adam.
    adam_chunk(AdamChunk<'_, Self>) -> ();
    /// One step of Adan.
    adan_chunk(AdanChunk<'_, Self>) -> ();
    /// One head of attention.
    attention_forward(Promised<HeadForward<'_, Self>>) -> ();
    /// The gradients of one head of attention.
    attention_backward(Promised<HeadBackward<'_, Self>>) -> ();
    /// A row of bytes as values.
    byte_row(ByteRow<'_, Self>) -> ();
    /// Dropout.
    dropout_chunk(DropoutChunk<'_, Self>) -> ();
    /// A residual connection.
    residual_sum_chunk(ResidualSumChunk<'_, Self>) -> ();
    /// GELU.
    gelu_chunk(GeluChunk<'_, Self>) -> ();
    /// The gradient of GELU.
    gelu_backward_chunk(GeluBackwardChunk<'_, Self>) -> ();
    /// Layer normalisation.
    layer_norm_chunk(LayerNormChunk<'_, Self>) -> ();
    /// The gradients of layer normalisation.
    layer_norm_backward_chunk(LayerNormBackwardChunk<'_, Self>) -> ();
    /// A convolution.
    convolution_forward_chunk(ForwardChunk<'_, Self>) -> ();
    /// The gradients of a convolution.
    convolution_backward_chunk(BackwardChunk<'_, Self>) -> Vec<f64>;
}
