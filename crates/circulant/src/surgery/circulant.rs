//! The circulant matrix and the matrix of circulant blocks nearest to a dense one, and the way back.

use burn::nn::Linear;
use burn::tensor::Tensor;

use super::SurgeryError;
use super::projection::{KeptBias, Projection, finite, like};
use crate::nn::{
    BiasKind, BlockCirculant1d, BlockCirculant1dConfig, Circulant1d, DiagonalCirculant1d,
    LayerValues, SpectralCirculant1d, SpectralCirculant1dConfig, to_host,
};

/// A structured layer in the place of a dense one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Nearest<L> {
    /// The layer.
    pub layer: L,
    /// `norm(W - C)/norm(W)` of the matrices, in the Frobenius norm: 0 is exact, 1 keeps nothing.
    pub relative_error: f64,
    /// The same of the biases.
    pub bias_error: f64,
}

/// The circulant layer nearest to `linear`. A vector bias keeps all of the bias, a scalar one its mean, [`BiasKind::None`]
/// nothing; a layer without a bias stays without one.
///
/// ```
/// use burn::nn::LinearConfig;
/// use circulant::nn::BiasKind;
/// use circulant::surgery::{nearest_circulant, to_dense};
///
/// let linear = LinearConfig::new(8, 8).init(&circulant::cpu());
/// let nearest = nearest_circulant(&linear, BiasKind::Vector)?;
/// assert!(nearest.relative_error > 0.0 && nearest.relative_error <= 1.0);
/// assert_eq!(nearest.bias_error, 0.0);
/// // The way back is exact up to rounding: a circulant matrix is its own projection.
/// let again = nearest_circulant(&to_dense(&nearest.layer), BiasKind::Vector)?;
/// assert!(again.relative_error < 1e-6);
/// # Ok::<(), circulant::surgery::SurgeryError>(())
/// ```
pub fn nearest_circulant(
    linear: &Linear,
    bias: BiasKind,
) -> Result<Nearest<SpectralCirculant1d>, SurgeryError> {
    let weight = linear.weight.val();
    let [d_in, d_out] = weight.dims();
    let kept = KeptBias::of(linear, bias)?;
    let config = SpectralCirculant1dConfig::new(d_in)
        .with_d_out(Some(d_out))
        .with_bias(kept.kind);
    let mut layer = config.try_init(&weight.device())?;
    let values = finite(to_host(weight.clone()))?;
    let length = d_in.max(d_out);
    let projection = Projection::of(&values, [d_in, d_out], length);
    let coordinates = layer.layer_map().coordinates(&projection.filters);
    layer.coordinates = like(&weight, coordinates, [length]);
    layer.bias = kept.values;
    Ok(Nearest {
        layer,
        relative_error: projection.relative_error,
        bias_error: kept.error,
    })
}

/// The layer of circulant blocks of length `block` nearest to `linear` in the Frobenius norm. A vector bias keeps all of the bias, a
/// scalar one its mean, [`BiasKind::None`] nothing; a layer without a bias stays without one.
///
/// ```
/// use burn::nn::LinearConfig;
/// use circulant::nn::BiasKind;
/// use circulant::surgery::{nearest_blocks, to_dense};
///
/// let linear = LinearConfig::new(12, 8).init(&circulant::cpu());
/// let nearest = nearest_blocks(&linear, 4, BiasKind::Vector)?;
/// assert_eq!(nearest.layer.degrees_of_freedom(), 24);
/// // The way back is exact up to rounding: such a matrix is its own projection.
/// let again = nearest_blocks(&to_dense(&nearest.layer), 4, BiasKind::Vector)?;
/// assert!(again.relative_error < 1e-6);
/// // Blocks of one keep everything.
/// assert!(nearest_blocks(&linear, 1, BiasKind::Vector)?.relative_error < 1e-6);
/// # Ok::<(), circulant::surgery::SurgeryError>(())
/// ```
pub fn nearest_blocks(
    linear: &Linear,
    block: usize,
    bias: BiasKind,
) -> Result<Nearest<BlockCirculant1d>, SurgeryError> {
    let weight = linear.weight.val();
    let [d_in, d_out] = weight.dims();
    let kept = KeptBias::of(linear, bias)?;
    let config = BlockCirculant1dConfig::new(d_in, d_out, block).with_bias(kept.kind);
    let mut layer = config.try_init(&weight.device())?;
    let values = finite(to_host(weight.clone()))?;
    let projection = Projection::of(&values, [d_in, d_out], block);
    let [channels_in, channels_out] = layer.blocks();
    let coordinates = layer.layer_map().coordinates(&projection.filters);
    layer.coordinates = like(&weight, coordinates, [block, channels_in, channels_out]);
    layer.bias = kept.values;
    Ok(Nearest {
        layer,
        relative_error: projection.relative_error,
        bias_error: kept.error,
    })
}

/// A structured layer over the last axis that is some matrix and some bias.
pub trait Structured {
    /// `[d_in, d_out]`.
    fn matrix(&self) -> Tensor<2>;

    /// `[1]` or `[d_out]`.
    fn bias(&self) -> Option<Tensor<1>>;

    /// A parameter, for device, number type and whether the layer is trained.
    fn example(&self) -> Tensor<1>;
}

macro_rules! structured {
    ($($layer:ty, $layer_name:ident => $example:expr;)*) => {$(
        impl Structured for $layer {
            fn matrix(&self) -> Tensor<2> {
                self.dense_matrix()
            }

            fn bias(&self) -> Option<Tensor<1>> {
                self.bias.as_ref().map(|bias| bias.val())
            }

            fn example(&self) -> Tensor<1> {
                let $layer_name = self;
                $example
            }
        }
    )*};
}

structured! {
    SpectralCirculant1d, layer => layer.coordinates.val();
    BlockCirculant1d, layer => layer.coordinates.val().flatten(0, 2);
    Circulant1d, layer => layer.filter.val();
    DiagonalCirculant1d, layer => layer.terms[0].circulant.coordinates.val();
}

/// The dense layer that computes the same as `layer`.
pub fn to_dense(layer: &impl Structured) -> Linear {
    let (matrix, example) = (layer.matrix(), layer.example());
    let shape = matrix.dims();
    let bias = layer.bias().map(|bias| {
        let values = to_host(bias.clone());
        let repeated = (0..shape[1]).map(|t| values[t % values.len()]).collect();
        like(&bias, repeated, [shape[1]])
    });
    Linear {
        weight: like(&example, to_host(matrix), shape),
        bias,
    }
}
