//! What stands for `plain.rs` where there is no CPU backend: nothing is ever off the tape.

use burn::tensor::Tensor;
use circulant_kernels::NoiseKey;

/// There is none.
#[derive(Debug)]
pub(crate) enum PlainGaussian {}

/// There is none.
#[derive(Debug)]
pub(crate) enum PlainNoise {}

/// There is none.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoiseShape {}

impl NoiseShape {
    pub(crate) fn noise(self, _: NoiseKey) -> PlainNoise {
        match self {}
    }
}

#[derive(Debug)]
pub(crate) struct PlainGradients {
    pub(crate) mean: Tensor<1>,
    pub(crate) low_rank: Option<(Tensor<2>, Tensor<1>)>,
    pub(crate) log_deviation: Tensor<1>,
}

impl PlainGaussian {
    pub(crate) fn new(
        _: Tensor<1>,
        _: Option<(Tensor<2>, Tensor<1>)>,
        _: Tensor<1>,
        _: f64,
    ) -> Option<Self> {
        None
    }

    pub(crate) fn noise_shape(&self) -> NoiseShape {
        match *self {}
    }

    pub(crate) fn draw(&self, _: &PlainNoise) -> Tensor<1> {
        match *self {}
    }

    pub(crate) fn gradients(
        &self,
        _: Tensor<1>,
        _: f64,
        _: Vec<(PlainNoise, Tensor<1>)>,
        _: f64,
    ) -> (f64, PlainGradients) {
        match *self {}
    }
}
