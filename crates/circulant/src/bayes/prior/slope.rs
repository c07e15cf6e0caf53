//! The prior variances as a function of a learned slope:
//! `tau^2(alpha) = c / (1 + exp(alpha ln rho))` with `c = sigma0^2` for a real bin and `sigma0^2/2` for each part
//! of a complex one.

use burn::tensor::{Device, Tensor, TensorData};

use super::{frequencies, per_coordinate};
use crate::operator::Layout;

/// Stands for `ln 0` at the mean: `exp(alpha * this)` is 0 for every alpha that training can
/// reach, and its derivative is 0 instead of `0 * inf`.
const LN_ZERO: f64 = -1e6;

#[derive(Debug, Clone)]
pub(crate) struct LearnedSlope {
    log_radius: Vec<f64>,
    scale: Vec<f64>,
}

impl LearnedSlope {
    pub(super) fn new(layout: &Layout, deviation: f64) -> Self {
        let grid = frequencies(layout);
        Self {
            log_radius: per_coordinate(layout, |bin, _| grid[bin].radius.ln().max(LN_ZERO)),
            scale: per_coordinate(layout, |_, parts| deviation * deviation / parts),
        }
    }

    /// The variances at `alpha = softplus(z)`, differentiable in `z: [1]`.
    pub(crate) fn variances(&self, z: Tensor<1>, device: &Device) -> Tensor<1> {
        let constant = |values: &[f64]| {
            Tensor::<1>::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
        };
        let alpha = burn::tensor::activation::softplus(z, 1.0);
        constant(&self.scale) / (alpha * constant(&self.log_radius)).exp().add_scalar(1.0)
    }
}
