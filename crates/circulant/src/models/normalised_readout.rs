//! `z = s x W / norms(W) + b`: a read-out whose columns have norm one before the scale `s`, which training leaves alone. A margin over
//! `s norm(w_y - w_k) <= 2 s` is a radius, whatever `s` is: `s` is the reciprocal of a temperature, and
//! [`Bayesian::with_scaled`](crate::bayes::Bayesian::with_scaled) sets it.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::module::linear as linear_rows;
use burn::tensor::{Device, Tensor};

use super::seeds::linear;
use crate::nn::parameter;

/// A read-out with columns of one norm. Part of an [`OrthogonalNetwork`](super::OrthogonalNetwork).
#[derive(Module, Debug)]
pub struct NormalisedReadout {
    /// `[features, classes]`, before columns are divided by their norms.
    pub weight: Param<Tensor<2>>,
    /// `[classes]`.
    pub bias: Param<Tensor<1>>,
    /// `[1]`, positive and frozen: what the columns are multiplied by.
    pub scale: Param<Tensor<1>>,
}

impl NormalisedReadout {
    pub(super) fn new(sizes: [usize; 2], seed: u64, device: &Device) -> Self {
        let dense = linear(sizes[0], sizes[1], seed, device);
        Self {
            weight: dense.weight,
            bias: dense.bias.expect("dense layers of seeds have one"),
            scale: parameter(vec![1.0], [1], device).set_require_grad(false),
        }
    }

    /// The logits.
    ///
    /// # Shapes
    ///
    /// - features: `[batch, features]`
    /// - output: `[batch, classes]`
    pub fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        let (weight, bias) = self.applied();
        linear_rows(features, weight, Some(bias))
    }

    /// The dense layer that is applied. Gradients do not pass through it.
    pub fn linear(&self) -> Linear {
        let (weight, bias) = self.applied();
        Linear {
            weight: Param::from_tensor(weight.detach()),
            bias: Some(Param::from_tensor(bias.detach())),
        }
    }

    fn applied(&self) -> (Tensor<2>, Tensor<1>) {
        let (weight, scale) = (self.weight.val(), self.scale.val());
        let norms = weight.clone().square().sum_dim(0).sqrt();
        let weight = weight / norms * scale.unsqueeze::<2>();
        (weight, self.bias.val())
    }
}
