//! What stands for `plain.rs` where there is no CPU backend: nothing is ever off the tape.

use burn::tensor::Tensor;
use circulant_kernels::{AdamSettings, NoiseKey};

/// There is none.
#[derive(Debug)]
pub(crate) enum PlainGaussian {}

/// There is none.
#[derive(Debug)]
pub(crate) enum PlainNoise {}

/// There are none.
#[derive(Debug)]
pub(crate) enum PlainGradients {}

/// There are none.
#[derive(Debug, Clone)]
pub(crate) enum PlainMoments {}

#[derive(Debug)]
pub(crate) struct PlainTensors {
    pub(crate) mean: Tensor<1>,
    pub(crate) low_rank: Option<(Tensor<2>, Tensor<1>)>,
    pub(crate) log_deviation: Tensor<1>,
}

impl PlainGradients {
    pub(crate) fn into_tensors(self) -> PlainTensors {
        match self {}
    }
}

impl PlainMoments {
    pub(crate) fn zero(q: &PlainGaussian) -> Self {
        match *q {}
    }

    pub(crate) fn write(&self, _: &mut Vec<u8>) {
        match *self {}
    }

    pub(crate) fn read(q: &PlainGaussian, _: &mut &[u8]) -> Option<Self> {
        match *q {}
    }
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

    pub(crate) fn tensors(&self) -> PlainTensors {
        match *self {}
    }

    pub(crate) fn noise(&self, _: NoiseKey) -> PlainNoise {
        match *self {}
    }

    pub(crate) fn draw(&self, _: &PlainNoise) -> Tensor<1> {
        match *self {}
    }

    pub(crate) fn gradients(
        &self,
        _: Tensor<1>,
        _: f64,
        _: &[PlainNoise],
        _: Vec<Tensor<1>>,
        _: f64,
    ) -> (f64, PlainGradients) {
        match *self {}
    }

    pub(crate) fn adam(
        &self,
        _: &PlainGradients,
        _: &PlainMoments,
        _: AdamSettings,
    ) -> (Self, PlainMoments) {
        match *self {}
    }
}
