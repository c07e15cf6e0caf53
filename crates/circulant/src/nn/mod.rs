//! The layers.
//!
//! | layer | parameters | degrees of freedom |
//! | --- | --- | --- |
//! | [`SpectralCirculant1d`] | free real coordinates of the half spectrum | `d`, less with a mask |
//! | [`BlockCirculant1d`] | the same, per block of a matrix of blocks of length `b` | `b ceil(d_in/b) ceil(d_out/b)`, less with a mask |
//! | [`DiagonalCirculant1d`] | diagonals around one or several circulant matrices | `m (d + d_in + d_out)`, less with a mask |
//! | [`SpectralBccb2d`] | the same on the half plane, per channel pair | `C_out*C_in*H*W`, less with a mask |
//! | [`OrthogonalCirculant1d`] | phases: `abs(h_k) = 1` | `(d - 1)/2`, rounded down |
//! | [`OrthogonalBlock1d`], [`OrthogonalBccb2d`] | generators of a matrix with orthonormal columns or rows per frequency | `H*W*(n*q - q*q/2)` about, `n` and `q` the larger and the smaller number of channels |
//! | [`OrthogonalConv2d`] | local generators, `k x k` kernels | `k*k*(n*q - q*q/2)` about |
//! | [`Circulant1d`] | a spatial filter | `d` |
//! | [`Bccb2d`] | spatial filters, one per channel pair | `C_out*C_in*H*W` |

mod bccb_2d;
mod bias;
mod block_circulant_1d;
mod circulant_1d;
mod circulant_layer;
mod diagonal_circulant_1d;
mod initial;
mod layer_map;
mod layers;
mod orthogonal_bccb_2d;
mod orthogonal_block_1d;
mod orthogonal_circulant_1d;
mod orthogonal_conv_2d;
mod spectral_bccb_2d;
mod spectral_circulant_1d;
mod spectrum_mark;

pub use bccb_2d::{Bccb2d, Bccb2dConfig};
pub use bias::BiasKind;
pub use block_circulant_1d::{BlockCirculant1d, BlockCirculant1dConfig};
pub use circulant_1d::{Circulant1d, Circulant1dConfig};
pub use circulant_layer::CirculantLayer;
pub use diagonal_circulant_1d::{DiagonalCirculant1d, DiagonalCirculant1dConfig, DiagonalTerm};
pub(crate) use initial::InitialNumbers;
pub(crate) use layers::LayerValues;
pub use orthogonal_bccb_2d::{OrthogonalBccb2d, OrthogonalBccb2dConfig};
pub use orthogonal_block_1d::{OrthogonalBlock1d, OrthogonalBlock1dConfig};
pub use orthogonal_circulant_1d::{OrthogonalCirculant1d, OrthogonalCirculant1dConfig};
pub use orthogonal_conv_2d::{OrthogonalConv2d, OrthogonalConv2dConfig};
pub use spectral_bccb_2d::{SpectralBccb2d, SpectralBccb2dConfig};
pub use spectral_circulant_1d::{SpectralCirculant1d, SpectralCirculant1dConfig};
pub(crate) use spectrum_mark::{COORDINATES, SpectrumMark};

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};

/// An initialised parameter. Burn's own initialisers are lazy: their values depend on when a
/// parameter is first read.
pub(crate) fn parameter<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
) -> Param<Tensor<D>> {
    Param::from_tensor(tensor(values, shape, device))
}

pub(crate) fn tensor<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// The same parameter with other values, on the same device and as trainable as before.
pub(crate) fn with_values<const D: usize>(
    param: &Param<Tensor<D>>,
    values: Vec<f64>,
) -> Param<Tensor<D>> {
    param.clone().map(|tensor| {
        let data = TensorData::new(values, tensor.shape());
        let new = Tensor::from_data(data, (&tensor.device(), tensor.dtype()));
        if tensor.is_require_grad() {
            new.require_grad()
        } else {
            new
        }
    })
}

/// One tensor per layer as one tensor with the layers as first dimension.
fn stacked<L>(members: &[&L], part: impl Fn(&L) -> Tensor<1>) -> Tensor<2> {
    Tensor::stack(members.iter().map(|member| part(member)).collect(), 0)
}

/// The biases of layers, which all have one or all have none.
fn stacked_bias<L>(
    members: &[&L],
    bias: impl Fn(&L) -> Option<&Param<Tensor<1>>>,
) -> Option<Tensor<2>> {
    let biases: Option<Vec<Tensor<1>>> = members
        .iter()
        .map(|member| bias(member).map(Param::val))
        .collect();
    biases.map(|biases| Tensor::stack(biases, 0))
}

/// The values of a tensor in f64, on the host.
pub(crate) fn to_host<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor
        .into_data()
        .convert::<f64>()
        .try_into_vec()
        .expect("converted to f64 just before")
}
