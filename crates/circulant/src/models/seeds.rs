//! Dense layers with eager, seeded parameters: uniform in `+-1/sqrt(fan_in)`, Burn's default
//! distribution.

use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, PaddingConfig2d};
use burn::tensor::Device;

use crate::nn::{InitialNumbers, parameter};

/// Hands out one seed per layer, so that layers of the same shape start differently.
#[derive(Debug)]
pub(super) struct Seeds(InitialNumbers);

impl Seeds {
    pub(super) fn new(seed: u64) -> Self {
        Self(InitialNumbers::new(seed))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.seed()
    }
}

pub(super) fn linear(d_in: usize, d_out: usize, seed: u64, device: &Device) -> Linear {
    let bound = (d_in as f64).sqrt().recip();
    let mut numbers = InitialNumbers::new(seed);
    let weight = parameter(numbers.uniform(d_in * d_out, bound), [d_in, d_out], device);
    let bias = parameter(numbers.uniform(d_out, bound), [d_out], device);
    Linear {
        weight,
        bias: Some(bias),
    }
}

/// A convolution with odd kernels that keeps the size of its input.
pub(super) fn same_convolution(
    channels: [usize; 2],
    kernel: usize,
    seed: u64,
    device: &Device,
) -> Conv2d {
    let fan_in = channels[0] * kernel * kernel;
    let bound = (fan_in as f64).sqrt().recip();
    let mut numbers = InitialNumbers::new(seed);
    let shape = [channels[1], channels[0], kernel, kernel];
    let weight = parameter(numbers.uniform(fan_in * channels[1], bound), shape, device);
    let bias = parameter(numbers.uniform(channels[1], bound), [channels[1]], device);
    let config = Conv2dConfig::new(channels, [kernel, kernel]).with_padding(PaddingConfig2d::Same);
    Conv2d {
        weight,
        bias: Some(bias),
        ..config.init(device)
    }
}
