//! Numbers only, no framework: the layout of half spectra, FFT plans, and batched circulant
//! operators with their gradients, in f32 and f64, on all cores.
//!
//! A circulant layer is `y = IRFFT(h * RFFT(x)) + b`; the 2D one mixes channels per frequency. The
//! parameters are the free real coordinates `a` of the half spectrum, `h = T(a)`:
//! [`HalfSpectrum`] and [`HalfPlane`] define T, [`CirculantPlan`] applies the operator to batches.
//!
//! Most users want the crate `circulant`, which wraps this one in Burn layers.

mod dense;
mod element_kernels;
mod elements;
mod error;
mod gaussian;
mod kernels;
mod norms;
mod operator;
mod optimisers;
#[cfg(test)]
mod oracle;
mod random;
mod real;
mod runtime;
mod transform;
mod transformer;
mod vector;

pub use circulant_core::{Bin, HalfPlane, HalfSpectrum, Scalar, SizeError};
pub use dense::convolution::{Convolution, ConvolutionGradients};
pub use dense::linear::{LinearGradients, LinearOutput, linear_backward, linear_into};
pub use dense::linear_stack::{linear_stack_backward, linear_stack_into, matrix_product_into};
pub use elements::cross_entropy::cross_entropy;
pub use elements::elementwise::{bias_tanh, column_sums, tanh_backward, tanh_into};
pub use elements::ensemble::ensemble_statistics;
pub use elements::gather::{ByteScale, gather_bytes, gather_rows};
pub use error::KernelError;
pub use gaussian::{KlGradients, LowRank, SampleGradients};
pub use norms::{
    NormEnclosure, clip_norm_1d, clip_norm_2d, convolution_norm_bound, gram_bound_2d,
    gram_bound_2d_with_gradient, gram_bound_matrix, gram_bound_matrix_with_gradient, matrix_norm,
    operator_norm_1d, operator_norm_2d, singular_values_2d,
};
pub use num_complex::Complex;
pub use operator::filter_transform::FilterTransform;
pub use operator::plan::{
    Activation, CirculantPlan, Examples, Filters, Gradients, Inputs, KeptReadout, KeptSpectrum,
    Readout, ReadoutGradients,
};
pub use optimisers::adam::{AdamSettings, AdamState, adam_step};
pub use optimisers::adan::{AdanSettings, AdanState, adan_step};
pub use random::normal::standard_normal;
pub use random::philox::{NoiseKey, uniform_u64};
pub use real::Real;
pub use runtime::threads::{join_awake, join_pool};
pub use transformer::attention::{Attention, QueryKeyValue};
pub use transformer::dropout::{Dropout, dropout_into};
pub use transformer::gelu::{bias_gelu_backward, bias_gelu_into, gelu_backward, gelu_into};
pub use transformer::gelu_dropout::{bias_gelu_dropout_backward, bias_gelu_dropout_into};
pub use transformer::layer_norm::{
    LayerNorm, LayerNormGradients, RowStatistics, layer_norm_backward, layer_norm_into,
    residual_layer_norm_into,
};
pub use transformer::residual::residual_into;
pub use vector::instruction_set;
