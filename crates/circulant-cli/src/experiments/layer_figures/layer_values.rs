//! The values behind the figures of one layer: magnitudes, filters, singular values, whatever its kind.

use burn::module::Param;
use burn::tensor::{Tensor, TensorData};
use circulant::models::HiddenLayer;
use circulant::operator::{Complex, HalfPlane};

use crate::report::figure::Filter;

/// What is the same for all draws of a layer.
pub(super) enum Shape {
    /// Circulant: the length of the signals.
    Signal(usize),
    /// BCCB or blocks: the half plane and `[in, out]` channels.
    Plane(HalfPlane, [usize; 2]),
    /// A convolution.
    Convolution,
    /// A matrix from images `[height, width]`.
    Dense([usize; 2]),
}

/// The values of a tensor.
pub(super) fn to_host<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    let data = tensor.into_data().convert::<f64>();
    data.try_into_vec().expect("converted to f64 just before")
}

/// The field that holds the weights.
pub(super) fn parameter(layer: &HiddenLayer) -> &'static str {
    match layer {
        HiddenLayer::SpectralCirculant(_)
        | HiddenLayer::BlockCirculant(_)
        | HiddenLayer::SpectralBccb(_) => "coordinates",
        HiddenLayer::SpatialCirculant(_) | HiddenLayer::SpatialBccb(_) => "filter",
        HiddenLayer::Convolution(_) | HiddenLayer::Dense(_) => "weight",
    }
}

/// The same layer with other weights, in the order of its parameter.
pub(super) fn with_values(layer: &HiddenLayer, values: Vec<f64>) -> HiddenLayer {
    fn set<const D: usize>(parameter: &mut Param<Tensor<D>>, values: Vec<f64>) {
        let (shape, device) = (parameter.shape(), parameter.val().device());
        let data = TensorData::new(values, shape);
        *parameter = Param::from_tensor(Tensor::from_data(data, &device));
    }
    let mut layer = layer.clone();
    match &mut layer {
        HiddenLayer::SpectralCirculant(layer) => set(&mut layer.coordinates, values),
        HiddenLayer::BlockCirculant(layer) => set(&mut layer.coordinates, values),
        HiddenLayer::SpectralBccb(layer) => set(&mut layer.coordinates, values),
        HiddenLayer::SpatialCirculant(layer) => set(&mut layer.filter, values),
        HiddenLayer::SpatialBccb(layer) => set(&mut layer.filter, values),
        HiddenLayer::Convolution(layer) => set(&mut layer.weight, values),
        HiddenLayer::Dense(layer) => set(&mut layer.weight, values),
    }
    layer
}

impl Shape {
    pub(super) fn of(layer: &HiddenLayer, grid: [usize; 2]) -> Self {
        const MADE: &str = "the layer was made with these sizes";
        let plane = || HalfPlane::new(grid[0], grid[1]).expect(MADE);
        match layer {
            HiddenLayer::SpectralCirculant(layer) => Self::Signal(layer.d_in()),
            HiddenLayer::SpatialCirculant(layer) => Self::Signal(layer.d_in()),
            HiddenLayer::BlockCirculant(layer) => {
                Self::Plane(layer.layout().clone(), layer.blocks())
            }
            HiddenLayer::SpectralBccb(layer) => {
                Self::Plane(layer.layout().clone(), layer.channels())
            }
            HiddenLayer::SpatialBccb(layer) => Self::Plane(plane(), layer.channels()),
            HiddenLayer::Convolution(_) => Self::Convolution,
            HiddenLayer::Dense(_) => Self::Dense(grid),
        }
    }

    pub(super) fn is_signal(&self) -> bool {
        matches!(self, Self::Signal(_))
    }

    pub(super) fn signal_length(&self) -> Option<usize> {
        match self {
            Self::Signal(length) => Some(*length),
            _ => None,
        }
    }

    /// The radii of the rings that [`Self::magnitudes`] gives for a plane.
    pub(super) fn radii(&self) -> Option<Vec<f64>> {
        let Self::Plane(plane, _) = self else {
            return None;
        };
        let rings = self.rings(plane);
        let scale = ring_scale(plane);
        Some(rings.iter().map(|(ring, _)| *ring as f64 / scale).collect())
    }

    /// `|h_k|` per bin, or the mean of `|K|` per ring.
    pub(super) fn magnitudes(&self, layer: &HiddenLayer) -> Option<Vec<f64>> {
        let bins = match layer {
            HiddenLayer::SpectralCirculant(layer) => layer.half_spectrum(),
            HiddenLayer::SpatialCirculant(layer) => layer.half_spectrum(),
            HiddenLayer::BlockCirculant(layer) => layer.half_spectrum(),
            HiddenLayer::SpectralBccb(layer) => layer.half_spectrum(),
            HiddenLayer::SpatialBccb(layer) => layer.half_spectrum(),
            HiddenLayer::Convolution(_) | HiddenLayer::Dense(_) => return None,
        };
        let Self::Plane(plane, [channels_in, channels_out]) = self else {
            return Some(bins.iter().map(|bin| bin.norm()).collect());
        };
        let pairs = channels_in * channels_out;
        let of_bin = |bin: usize| -> f64 {
            let channels: &[Complex<f64>] = &bins[bin * pairs..][..pairs];
            channels.iter().map(|value| value.norm()).sum::<f64>() / pairs as f64
        };
        let mean = |(_, members): (usize, Vec<(usize, f64)>)| {
            let weight: f64 = members.iter().map(|(_, weight)| weight).sum();
            let sum: f64 = members
                .iter()
                .map(|(bin, weight)| weight * of_bin(*bin))
                .sum();
            sum / weight
        };
        Some(self.rings(plane).into_iter().map(mean).collect())
    }

    /// Rings that have bins: their number, and the stored bins with how often they occur in the full plane.
    fn rings(&self, plane: &HalfPlane) -> Vec<(usize, Vec<(usize, f64)>)> {
        let scale = ring_scale(plane);
        let mut rings: Vec<Vec<(usize, f64)>> = Vec::new();
        for u in 0..plane.height() {
            for v in 0..plane.columns() {
                let ring = (plane.radius(u, v) * scale).round() as usize;
                if rings.len() <= ring {
                    rings.resize_with(ring + 1, Vec::new);
                }
                let weight = plane.multiplicity(u, v) as f64;
                rings[ring].push((u * plane.columns() + v, weight));
            }
        }
        let rings = rings.into_iter().enumerate();
        rings.filter(|(_, members)| !members.is_empty()).collect()
    }

    /// At most `most` filters, offset 0 in the middle; kernels of convolutions and rows of matrices as they are.
    pub(super) fn filters(&self, layer: &HiddenLayer, most: usize) -> Vec<Filter> {
        let (values, [height, width], circular) = match (self, layer) {
            (Self::Signal(length), HiddenLayer::SpectralCirculant(layer)) => {
                (to_host(layer.spatial_filter()), [1, *length], true)
            }
            (Self::Signal(length), HiddenLayer::SpatialCirculant(layer)) => {
                (to_host(layer.filter.val()), [1, *length], true)
            }
            (_, HiddenLayer::BlockCirculant(layer)) => {
                (to_host(layer.spatial_filter()), [1, layer.block()], true)
            }
            (_, HiddenLayer::SpectralBccb(layer)) => {
                (to_host(layer.spatial_filter()), layer.grid(), true)
            }
            (_, HiddenLayer::SpatialBccb(layer)) => {
                (to_host(layer.spatial_filter()), layer.grid(), true)
            }
            (_, HiddenLayer::Convolution(layer)) => {
                let [_, _, rows, columns] = layer.weight.dims();
                (to_host(layer.weight.val()), [rows, columns], false)
            }
            (Self::Dense(grid), HiddenLayer::Dense(layer)) => {
                let [inputs, _] = layer.weight.dims();
                // Behind a layer with a width of its own there is no image.
                let grid = match inputs % (grid[0] * grid[1]) {
                    0 => *grid,
                    _ => [1, inputs],
                };
                // `[in, out]`: an output's weights are a column.
                (to_host(layer.weight.val().transpose()), grid, false)
            }
            _ => return Vec::new(),
        };
        let parts = values.chunks_exact(height * width).take(most).enumerate();
        parts
            .map(|(index, part)| Filter {
                name: format!("filter {}", index + 1),
                width,
                values: if circular {
                    centred(part, [height, width])
                } else {
                    part.to_vec()
                },
            })
            .collect()
    }
}

/// Rings are one bin of the longer side apart.
fn ring_scale(plane: &HalfPlane) -> f64 {
    (plane.height().max(plane.width()) / 2).max(1) as f64
}

/// Offset 0 from the corner into the middle.
fn centred(values: &[f64], [height, width]: [usize; 2]) -> Vec<f64> {
    let from = |at: usize, size: usize| (at + size - size / 2) % size;
    let index = |at: usize| from(at / width, height) * width + from(at % width, width);
    (0..values.len()).map(|at| values[index(at)]).collect()
}
