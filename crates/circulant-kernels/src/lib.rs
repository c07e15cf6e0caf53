//! Numbers only, no framework: the layout of half spectra, FFT plans, and batched circulant
//! operators with their gradients, in f32 and f64, on all cores.
//!
//! A circulant layer is `y = IRFFT(h * RFFT(x)) + b`; the 2D one mixes channels per frequency. The
//! parameters are the free real coordinates `a` of the half spectrum, `h = T(a)`:
//! [`HalfSpectrum`] and [`HalfPlane`] define T, [`CirculantPlan`] applies the operator to batches.
//!
//! Most users want the crate `circulant`, which wraps this one in Burn layers.

mod adam;
mod adan;
mod attention;
mod bins;
mod blocks;
mod butterfly;
mod chunks;
mod convolution;
mod cross_entropy;
mod dropout;
mod element_kernels;
mod elementary;
mod elementwise;
mod ensemble;
mod error;
mod filters;
mod gather;
mod gaussian;
mod gelu;
mod gelu_dropout;
mod half_plane;
mod half_spectrum;
mod kernels;
mod lane_fft;
mod lane_sums;
mod large_product;
mod layer_norm;
mod linear;
mod linear_stack;
mod mixing;
mod negative_exponential;
mod noise;
mod normal_tail;
mod norms;
#[cfg(test)]
mod oracle;
mod padded;
mod partial_sums;
mod philox;
mod plan;
#[cfg(test)]
mod plan_tests;
mod product;
mod real;
mod residual;
mod rows;
mod scratch;
mod simd;
mod single;
mod small_product;
mod threads;

pub use adam::{AdamSettings, AdamState, adam_step};
pub use adan::{AdanSettings, AdanState, adan_step};
pub use attention::{Attention, QueryKeyValue};
pub use bins::Bin;
pub use convolution::{Convolution, ConvolutionGradients};
pub use cross_entropy::cross_entropy;
pub use dropout::{Dropout, dropout_into};
pub use elementwise::{bias_tanh, column_sums, tanh_backward, tanh_into};
pub use ensemble::ensemble_statistics;
pub use error::KernelError;
pub use filters::FilterTransform;
pub use gather::{ByteScale, gather_bytes, gather_rows};
pub use gaussian::{KlGradients, LowRank, SampleGradients};
pub use gelu::{bias_gelu_backward, bias_gelu_into, gelu_backward, gelu_into};
pub use gelu_dropout::{bias_gelu_dropout_backward, bias_gelu_dropout_into};
pub use half_plane::HalfPlane;
pub use half_spectrum::HalfSpectrum;
pub use layer_norm::{
    LayerNorm, LayerNormGradients, RowStatistics, layer_norm_backward, layer_norm_into,
    residual_layer_norm_into,
};
pub use linear::{LinearGradients, LinearOutput, linear_backward, linear_into};
pub use linear_stack::{linear_stack_backward, linear_stack_into, matrix_product_into};
pub use noise::standard_normal;
pub use norms::{
    NormEnclosure, clip_norm_1d, clip_norm_2d, convolution_norm_bound, gram_bound_2d,
    gram_bound_2d_with_gradient, gram_bound_matrix, gram_bound_matrix_with_gradient, matrix_norm,
    operator_norm_1d, operator_norm_2d, singular_values_2d,
};
pub use num_complex::Complex;
pub use philox::{NoiseKey, uniform_u64};
pub use plan::{
    Activation, CirculantPlan, Examples, Filters, Gradients, Inputs, KeptReadout, KeptSpectrum,
    Readout, ReadoutGradients,
};
pub use real::Real;
pub use residual::residual_into;
pub use threads::{join_awake, join_pool};
