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

    /// Its constants on a device.
    pub(crate) fn on(&self, device: &Device) -> SlopeConstants {
        let constant = |values: &[f64]| {
            Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
        };
        SlopeConstants {
            log_radius: constant(&self.log_radius),
            scale: constant(&self.scale),
        }
    }
}

/// What the variances are made of besides the slope.
#[derive(Debug, Clone)]
pub(crate) struct SlopeConstants {
    log_radius: Tensor<1>,
    scale: Tensor<1>,
}

impl SlopeConstants {
    /// The variances at `alpha = softplus(z)`, differentiable in `z: [1]`.
    pub(crate) fn variances(&self, z: Tensor<1>) -> Tensor<1> {
        let alpha = burn::tensor::activation::softplus(z, 1.0);
        let falls = (alpha * self.log_radius.clone()).exp();
        self.scale.clone() / falls.add_scalar(1.0)
    }

    pub(crate) fn to_device(&self, device: &Device) -> Self {
        let moved = |constant: &Tensor<1>| constant.clone().to_device(device);
        Self {
            log_radius: moved(&self.log_radius),
            scale: moved(&self.scale),
        }
    }
}
