//! Circulant and block-circulant layers for [Burn](https://burn.dev), with the free real
//! coordinates of the spectrum as parameters.
//!
//! | layer | map | parameters |
//! | --- | --- | --- |
//! | [`nn::SpectralCirculant1d`] | `y = IRFFT(h * RFFT(x)) + b` | coordinates of `h` |
//! | [`nn::BlockCirculant1d`] | `Y[o] = IRFFT(sum_c K[o,c] * RFFT(X[c])) + b` over blocks of the last axis | coordinates of `K` |
//! | [`nn::DiagonalCirculant1d`] | `y = sum_j D2_j C_j D1_j x + b` | diagonals, coordinates of `C` |
//! | [`nn::SpectralBccb2d`] | `Y[o] = IRFFT2(sum_c K[o,c] * RFFT2(X[c])) + b[o]` | coordinates of `K` |
//! | [`nn::Circulant1d`] | `y = w (*) x + b`, circular convolution | the filter `w` |
//! | [`nn::Bccb2d`] | `Y[o] = sum_c W[o,c] (*) X[c] + b[o]` | the filters `W` |
//!
//! All transforms are unitary, so a spectral coefficient is an eigenvalue of the layer. On the
//! CPU backend Flex the operators run in the fused kernels of `circulant-kernels`; Burn's other
//! backends, a feature each, compose them of ordinary tensor operations ([`device`]).
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`nn`], [`functional`], [`operator`] | the layers, the operations behind them, and what describes one |
//! | [`data`], [`task`], [`train`] | examples and batches, what a network is for, deterministic training and checkpoints |
//! | [`device`], [`parallel`] | other backends than the processor, training on several processes |
//! | [`bayes`] | posteriors in the place of parameters: priors, variational inference, predictions, calibration |
//! | [`metrics`] | accuracy, calibration, out-of-distribution detection, intervals |
//! | [`baselines`] | what others do on the same models: ensembles, dropout, Laplace, feature densities |
//! | [`conformal`] | sets of classes and intervals that hold the truth as often as asked |
//! | [`geometry`] | what a network can do at most: norms, Lipschitz bounds, certified radii |
//! | [`curvature`] | the loss around trained parameters |
//! | [`surgery`], [`pretrained`] | circulant layers in the place of dense ones, weights of PyTorch models |
//! | [`models`] | the models of the paper |
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use circulant::nn::SpectralCirculant1dConfig;
//!
//! let device = Device::flex();
//! let layer = SpectralCirculant1dConfig::new(784).init(&device);
//! assert_eq!(layer.degrees_of_freedom(), 784);
//! let y = layer.forward(Tensor::<2>::ones([16, 784], &device));
//! assert_eq!(y.dims(), [16, 784]);
//! ```
#![forbid(unsafe_code)]

mod backend;
pub mod baselines;
pub mod bayes;
pub mod conformal;
pub mod curvature;
pub mod data;
pub mod device;
mod error;
pub mod functional;
pub mod geometry;
pub mod metrics;
pub mod models;
pub mod nn;
pub mod noise;
pub mod operator;
pub mod parallel;
mod parameters;
pub mod pretrained;
pub mod record;
pub mod surgery;
pub mod task;
pub mod train;

pub use circulant_kernels::join_pool;
pub use error::LayerError;

/// The CPU device that the native kernels run on.
pub fn cpu() -> burn::tensor::Device {
    burn::tensor::Device::flex()
}

/// The examples of the pages are tests too. What lies in `doc` are links into the repository, which packaging follows.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Package;
    #[doc = include_str!("../doc/repository.md")]
    struct Repository;
    #[doc = include_str!("../doc/guide.md")]
    struct Guide;
}
