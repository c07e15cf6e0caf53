//! All singular values of a layer, as estimates in falling order: what [`OperatorNorm`](super::OperatorNorm) bounds the first of.
//!
//! A circulant matrix is normal, so they are `|h_k|`; a layer of several channels or blocks has those of the matrices of
//! its bins; a dense matrix is a BCCB layer on images of one pixel.

use burn::nn::Linear;
use circulant_kernels::singular_values_2d;

use super::{GeometryError, SameConvolution};
use crate::models::{HiddenLayer, ImageClassifier};
use crate::nn::{
    Bccb2d, BlockCirculant1d, Circulant1d, LayerValues, OrthogonalBccb2d, OrthogonalBlock1d,
    OrthogonalCirculant1d, OrthogonalConv2d, SpectralBccb2d, SpectralCirculant1d, to_host,
};
use crate::operator::{Complex, HalfPlane, Layout, Operator};

/// A linear layer whose singular values can be computed.
///
/// ```
/// use circulant::geometry::{OperatorNorm, SingularValues};
/// use circulant::nn::SpectralCirculant1dConfig;
///
/// let layer = SpectralCirculant1dConfig::new(12).init(&circulant::cpu());
/// let values = layer.singular_values()?;
/// assert_eq!(values.len(), 12);
/// assert!(values[0] <= layer.norm_bounds()?.upper().get());
/// # Ok::<(), circulant::geometry::GeometryError>(())
/// ```
pub trait SingularValues {
    /// All of them, in falling order.
    fn singular_values(&self) -> Result<Vec<f64>, GeometryError>;
}

fn of_plane(
    plane: &HalfPlane,
    [inputs, outputs]: [usize; 2],
    coordinates: &[f64],
) -> Result<Vec<f64>, GeometryError> {
    Ok(singular_values_2d(plane, inputs, outputs, coordinates)?)
}

/// Of a matrix `[inputs, outputs]`.
pub(super) fn of_matrix(
    [inputs, outputs]: [usize; 2],
    weights: &[f64],
) -> Result<Vec<f64>, GeometryError> {
    of_plane(&HalfPlane::new(1, 1)?, [inputs, outputs], weights)
}

/// Of a circulant matrix with these bins.
fn of_signal(length: usize, bins: &[Complex<f64>]) -> Vec<f64> {
    let mirrored = |k: usize| k != 0 && 2 * k != length;
    let bins = bins.iter().enumerate();
    let mut values: Vec<f64> = bins
        .flat_map(|(k, bin)| std::iter::repeat_n(bin.norm(), 1 + usize::from(mirrored(k))))
        .collect();
    values.sort_by(|one, other| other.total_cmp(one));
    values
}

macro_rules! circulant {
    ($($layer:ty),*) => {$(
        impl SingularValues for $layer {
            fn singular_values(&self) -> Result<Vec<f64>, GeometryError> {
                match self.layer_map().exact_operator().map(Operator::layout) {
                    // Cropped or padded: some matrix.
                    None => {
                        let matrix = self.dense_matrix();
                        of_matrix(matrix.dims(), &to_host(matrix))
                    }
                    Some(Layout::Signal(half)) => {
                        Ok(of_signal(half.length(), &self.half_spectrum()))
                    }
                    Some(Layout::Image { plane, channels_in, channels_out }) => {
                        of_plane(plane, [*channels_in, *channels_out], &self.host_coordinates())
                    }
                }
            }
        }
    )*};
}

circulant!(
    SpectralCirculant1d,
    BlockCirculant1d,
    SpectralBccb2d,
    OrthogonalCirculant1d,
    OrthogonalBlock1d,
    OrthogonalBccb2d,
    OrthogonalConv2d,
    Circulant1d,
    Bccb2d
);

impl SingularValues for Linear {
    fn singular_values(&self) -> Result<Vec<f64>, GeometryError> {
        of_matrix(self.weight.dims(), &to_host(self.weight.val()))
    }
}

/// Those of the circular convolution with the same kernel.
impl SingularValues for SameConvolution<'_> {
    fn singular_values(&self) -> Result<Vec<f64>, GeometryError> {
        let weight = &self.layer.weight;
        let ([outputs, inputs, rows, columns], weights) = (weight.dims(), to_host(weight.val()));
        let [height, width] = self.grid;
        let plane = HalfPlane::new(height, width)?;
        let pairs = inputs * outputs;
        let mut bins = vec![Complex::new(0.0, 0.0); plane.bins() * pairs];
        for (bin, values) in bins.chunks_exact_mut(pairs).enumerate() {
            let (u, v) = (bin / plane.columns(), bin % plane.columns());
            for tap in 0..rows * columns {
                let (row, column) = (tap / columns, tap % columns);
                let turn = (u * row) as f64 / height as f64 + (v * column) as f64 / width as f64;
                let wave = Complex::from_polar(1.0, -std::f64::consts::TAU * turn);
                for (pair, value) in values.iter_mut().enumerate() {
                    let (input, output) = (pair / outputs, pair % outputs);
                    *value += wave * weights[(output * inputs + input) * rows * columns + tap];
                }
            }
        }
        let mut coordinates = vec![0.0; plane.coordinates() * pairs];
        plane.pack(&bins, pairs, &mut coordinates)?;
        of_plane(&plane, [inputs, outputs], &coordinates)
    }
}

impl HiddenLayer {
    /// All singular values on images `[height, width]`, in falling order; of a convolution, those of the circular one.
    pub fn singular_values(&self, grid: [usize; 2]) -> Result<Vec<f64>, GeometryError> {
        match self {
            Self::SpectralCirculant(layer) => layer.singular_values(),
            Self::SpatialCirculant(layer) => layer.singular_values(),
            Self::BlockCirculant(layer) => layer.singular_values(),
            Self::SpectralBccb(layer) => layer.singular_values(),
            Self::SpatialBccb(layer) => layer.singular_values(),
            Self::Convolution(layer) => SameConvolution::new(layer, grid).singular_values(),
            Self::Dense(layer) => layer.singular_values(),
        }
    }
}

impl ImageClassifier {
    /// Names and singular values of all layers, the read-out last.
    pub fn singular_values(&self) -> Result<Vec<(String, Vec<f64>)>, GeometryError> {
        let hidden = self
            .hidden_layers()
            .map(|(name, layer)| Ok((name, layer.singular_values(self.grid())?)));
        let output = self.output.singular_values();
        hidden
            .chain([output.map(|values| ("output".to_owned(), values))])
            .collect()
    }
}
