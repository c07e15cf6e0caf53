//! One linear layer of a transformer, dense or structured: the projections of its attention and of its MLP.
//!
//! | kind | in files and flags | weights from `d_in` to `d_out` |
//! | --- | --- | --- |
//! | dense | `dense` | `d_in d_out` |
//! | circulant | `spectral` | `max(d_in, d_out)` |
//! | diagonals around a circulant | `diagonal` | `max(d_in, d_out) + d_in + d_out` |
//! | circulant blocks of length `b` | `block-b` | `b ceil(d_in/b) ceil(d_out/b)` |

use std::str::FromStr;

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use circulant_kernels::Activation;

use super::seeds::linear;
use crate::LayerError;
use crate::functional;
use crate::nn::{
    BiasKind, BlockCirculant1d, BlockCirculant1dConfig, CirculantLayer, DiagonalCirculant1d,
    DiagonalCirculant1dConfig, SpectralCirculant1d, SpectralCirculant1dConfig,
};
use crate::operator::Operator;

/// What a projection is.
///
/// ```
/// use circulant::models::ProjectionKind;
///
/// let kind: ProjectionKind = "block-16".parse()?;
/// assert_eq!(kind, ProjectionKind::Blocks(16));
/// assert_eq!(kind.name(), "block-16");
/// assert!("block-0".parse::<ProjectionKind>().unwrap_err().to_string().contains("`block-16`"));
/// # Ok::<(), circulant::LayerError>(())
/// ```
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum ProjectionKind {
    /// `Linear`.
    Dense,
    /// [`SpectralCirculant1d`]; square ones have a scalar bias, as the paper's, others a vector.
    Spectral,
    /// [`DiagonalCirculant1d`] with a diagonal on either side.
    Diagonal,
    /// [`BlockCirculant1d`] with blocks of this length.
    Blocks(usize),
}

impl ProjectionKind {
    /// As in files and flags.
    pub fn name(self) -> String {
        match self {
            Self::Dense => "dense".to_owned(),
            Self::Spectral => "spectral".to_owned(),
            Self::Diagonal => "diagonal".to_owned(),
            Self::Blocks(block) => format!("block-{block}"),
        }
    }
}

impl FromStr for ProjectionKind {
    type Err = LayerError;

    fn from_str(text: &str) -> Result<Self, LayerError> {
        let block = |text: &str| text.parse().ok().filter(|block| *block > 0);
        match text {
            "dense" => Some(Self::Dense),
            "spectral" => Some(Self::Spectral),
            "diagonal" => Some(Self::Diagonal),
            _ => text
                .strip_prefix("block-")
                .and_then(block)
                .map(Self::Blocks),
        }
        .ok_or_else(|| LayerError::Projection {
            got: text.to_owned(),
        })
    }
}

/// One projection.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are few per model, and a Box is no Burn module"
)]
pub enum Projection {
    /// A dense matrix.
    Dense(Linear),
    /// A circulant matrix.
    Spectral(SpectralCirculant1d),
    /// A circulant matrix between diagonals.
    Diagonal(DiagonalCirculant1d),
    /// A matrix of circulant blocks.
    Blocks(BlockCirculant1d),
}

impl Projection {
    /// A projection with fresh values from a seed.
    pub fn new(
        kind: ProjectionKind,
        [d_in, d_out]: [usize; 2],
        seed: u64,
        device: &Device,
    ) -> Result<Self, LayerError> {
        Ok(match kind {
            ProjectionKind::Dense => Self::Dense(linear(d_in, d_out, seed, device)),
            ProjectionKind::Spectral => {
                let bias = if d_in == d_out {
                    BiasKind::Scalar
                } else {
                    BiasKind::Vector
                };
                let config = SpectralCirculant1dConfig::new(d_in)
                    .with_d_out(Some(d_out))
                    .with_bias(bias)
                    .with_seed(Some(seed));
                Self::Spectral(config.try_init(device)?)
            }
            ProjectionKind::Diagonal => {
                let config = DiagonalCirculant1dConfig::new(d_in)
                    .with_d_out(Some(d_out))
                    .with_seed(Some(seed));
                Self::Diagonal(config.try_init(device)?)
            }
            ProjectionKind::Blocks(block) => {
                let config = BlockCirculant1dConfig::new(d_in, d_out, block).with_seed(Some(seed));
                Self::Blocks(config.try_init(device)?)
            }
        })
    }

    /// Applies the projection over the last axis.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Dense(layer) => functional::linear(layer, x, Activation::Identity),
            Self::Spectral(layer) => layer.forward(x),
            Self::Diagonal(layer) => layer.forward(x),
            Self::Blocks(layer) => layer.forward(x),
        }
    }

    /// What a fused operation needs of one circulant operator: itself, its coordinates, its bias.
    pub(super) fn circulant(&self) -> Option<(&Operator, Tensor<1>, Tensor<1>)> {
        fn parts<L: CirculantLayer<2>>(layer: &L) -> Option<(&Operator, Tensor<1>, Tensor<1>)> {
            let operator = layer.exact_operator()?;
            Some((operator, layer.spectrum_coordinates(), layer.bias()?))
        }
        match self {
            Self::Spectral(layer) => parts(layer),
            Self::Blocks(layer) => parts(layer),
            Self::Dense(_) | Self::Diagonal(_) => None,
        }
    }
}
