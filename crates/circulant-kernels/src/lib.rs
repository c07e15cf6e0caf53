//! Kernels without a framework: batched circulant operators with their gradients, and what a training
//! step needs around them, in f32 and f64, on all cores. Slices in, slices out.
//!
//! A circulant layer is `y = IRFFT(h * RFFT(x)) + b`; the 2D one mixes channels per frequency. The
//! parameters are the free real coordinates `a` of the half spectrum, `h = T(a)`:
//! [`HalfSpectrum`] and [`HalfPlane`] define T, [`CirculantPlan`] applies the operator to batches.
//!
//! The source is rooms; each imports only from those above it, which `tests/kernels/rooms.rs` checks.
//!
//! | room | |
//! | --- | --- |
//! | `vector` | registers, instruction sets, elementary functions |
//! | `runtime` | threads, chunks of work, reused buffers |
//! | `random` | counter-based noise |
//! | `elements` | element by element: activations, the loss, examples from memory, ensembles |
//! | `transform` | blocks of rows to spectra and back |
//! | `dense` | matrix products, linear layers, convolutions |
//! | `operator` | circulant operators: plans and the ways they run |
//! | `norms`, `gaussian`, `transformer`, `optimisers` | operator norms; posteriors; attention and what goes with it; Adam, Adan |
//!
//! [`Real`] names every kernel, so that each is compiled once, here; it stands outside the order.
//!
//! Most users want the crate `circulant`, which wraps this one in Burn layers.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the rooms are not part of the documentation"
)]

// What is promised is re-exported below. The rooms themselves are open to this crate's own tests alone, which
// turn the feature `internals` on: inside, soundness rests on fields that nobody else can set.
macro_rules! rooms {
    ($($room:ident)*) => {$(
        #[cfg(feature = "internals")]
        #[doc(hidden)]
        pub mod $room;
        #[cfg(not(feature = "internals"))]
        mod $room;
    )*};
}

rooms!(dense elements gaussian norms operator optimisers random real runtime transform transformer vector);

mod error;
mod kernels;

pub use circulant_core::random::seed_for;
pub use circulant_core::{Bin, HalfPlane, HalfSpectrum, Scalar, SizeError};
pub use dense::convolution::{Convolution, ConvolutionGradients};
pub use dense::linear::{LinearGradients, LinearOutput, linear_backward, linear_into};
pub use dense::linear_stack::{linear_stack_backward, linear_stack_into, matrix_product_into};
pub use elements::activation::Activation;
pub use elements::cross_entropy::cross_entropy;
pub use elements::elementwise::{bias_tanh, column_sums, tanh_backward, tanh_into};
pub use elements::ensemble::ensemble_statistics;
pub use elements::examples::{Examples, Inputs};
pub use elements::gather::{ByteScale, gather_bytes, gather_rows};
pub use error::{KernelError, volume};
pub use gaussian::{KlGradients, LowRank, SampleGradients};
pub use norms::{
    NormEnclosure, clip_norm_1d, clip_norm_2d, convolution_norm_bound, gram_bound_2d,
    gram_bound_2d_with_gradient, gram_bound_matrix, gram_bound_matrix_with_gradient, matrix_norm,
    operator_norm_1d, operator_norm_2d, singular_values_2d,
};
pub use num_complex::Complex;
pub use operator::filter_transform::FilterTransform;
pub use operator::isometries::Isometries;
pub use operator::plan::{
    CirculantPlan, Filters, Gradients, KeptReadout, KeptSpectrum, Readout, ReadoutGradients,
};
pub use optimisers::adam::{AdamSettings, adam_step};
pub use optimisers::adan::{AdanSettings, adan_step};
pub use random::normal::standard_normal;
pub use random::philox::{NoiseKey, uniform_u64};
pub use real::Real;
pub use runtime::threads::{join_awake, join_pool};
pub use transformer::attention::{Attention, QueryKeyValue};
pub use transformer::dropout::{Dropout, GROUP as DROPOUT_GROUP, dropout_into};
pub use transformer::gelu::{
    bias_gelu_dropout_backward, bias_gelu_dropout_into, gelu_backward, gelu_into,
};
pub use transformer::layer_norm::{
    LayerNorm, LayerNormGradients, RowStatistics, layer_norm_backward, layer_norm_into,
};
pub use transformer::residual::residual_into;
pub use vector::instruction_set;
