//! Which bias a 1D layer has.

use burn::config::Config;
use burn::module::Param;
use burn::tensor::{Device, Tensor};

use super::parameter;

/// The bias of a 1D layer.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BiasKind {
    /// No bias.
    None,
    /// One number for all outputs: the layer stays equivariant to circular shifts.
    Scalar,
    /// One number per output, as in a dense layer.
    Vector,
}

impl BiasKind {
    /// Zeros: a bias must not shift the mean at the start.
    pub(super) fn init(self, d_out: usize, device: &Device) -> Option<Param<Tensor<1>>> {
        let len = match self {
            Self::None => return None,
            Self::Scalar => 1,
            Self::Vector => d_out,
        };
        Some(parameter(vec![0.0; len], [len], device))
    }
}

/// `none`, `scalar` or `vector`, for display.
pub(super) fn name(bias: Option<&Param<Tensor<1>>>) -> String {
    match bias.map(|bias| bias.shape()[0]) {
        None => "none",
        Some(1) => "scalar",
        Some(_) => "vector",
    }
    .into()
}
