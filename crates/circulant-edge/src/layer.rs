//! One layer of a model, as the file has it, and the memory that it needs.

use circulant_core::{HalfPlane, HalfSpectrum};

use crate::bytes::Cursor;
use crate::gaussian::{Gaussian, Shape};
use crate::sums;
use crate::{EdgeError, PADDING};

/// Values of a layer at most.
pub(crate) const MAX_SIZE: usize = 1 << 20;
/// Products of a transform at most, so that no file makes a device compute for minutes.
const MAX_WORK: usize = 1 << 24;

/// What follows a linear map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// Hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`.
    Relu,
    /// Sorts every two neighbours, the smaller first.
    MaxMin,
}

/// Which linear map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Circulant {
        length: usize,
        modes: usize,
    },
    Bccb {
        channels: [usize; 2],
        grid: [usize; 2],
        limit: u64,
    },
    Dense {
        inputs: usize,
        outputs: usize,
    },
}

impl Kind {
    /// Values of an input and of an output, with padding.
    pub(crate) fn sizes(self) -> [usize; 2] {
        match self {
            Self::Circulant { length, .. } => [length; 2],
            Self::Bccb { channels, grid, .. } => channels.map(|count| count * grid[0] * grid[1]),
            Self::Dense { inputs, outputs } => [inputs, outputs],
        }
    }
}

/// One layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer<'a> {
    pub(crate) kind: Kind,
    pub(crate) activation: Activation,
    /// Values of an input and of an output: those of the kind, but for padding behind the input and what is left out of the output.
    pub(crate) sizes: [usize; 2],
    pub(crate) weights: Gaussian<'a>,
    pub(crate) bias: Gaussian<'a>,
}

/// Complex numbers that a layer needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    pub(crate) input: usize,
    pub(crate) spectrum: usize,
    pub(crate) output: usize,
}

impl<'a> Layer<'a> {
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<Self, EdgeError> {
        let kind = cursor.u8()?;
        let activation = match cursor.u8()? {
            0 => Activation::Identity,
            1 => Activation::Tanh,
            2 => Activation::Relu,
            3 => Activation::MaxMin,
            other => return Err(value("an activation", other)),
        };
        let padded = cursor.u16()?;
        if padded > u16::from(kind == 2) {
            return Err(value("the padding of a layer", padded));
        }
        if !PADDING && padded > 0 {
            return Err(EdgeError::LeftOut { what: "padding" });
        }
        let mut size = |what| cursor.size(what, MAX_SIZE);
        let mut padding = None;
        let (kind, weights, biases, shape) = match kind {
            1 => {
                let (length, modes) = (size("a length")?, size("the modes")?);
                let layout = HalfSpectrum::with_modes(length, modes)?;
                short(length)?;
                let kind = Kind::Circulant { length, modes };
                let biases = [1, length];
                (kind, layout.coordinates(), biases, Shape::Vector)
            }
            2 => {
                let channels = [size("the channels")?, size("the channels")?];
                let grid = [size("a height")?, size("a width")?];
                let limit = cursor.u64()?;
                let whole = [
                    limited(&[channels[0], grid[0], grid[1]])?,
                    limited(&[channels[1], grid[0], grid[1]])?,
                ];
                let sizes = if !PADDING || padded == 0 {
                    whole
                } else {
                    let mut size = |what, whole| padded_size(cursor, what, whole, grid);
                    [
                        size("the inputs of a layer", whole[0])?,
                        size("the outputs of a layer", whole[1])?,
                    ]
                };
                padding = Some(sizes);
                short(grid[0])?;
                short(grid[1])?;
                let plane = HalfPlane::with_limit(grid[0], grid[1], limit)?;
                let weights = limited(&[channels[0], channels[1], plane.coordinates()])?;
                // Masked bins cost as much time as others.
                limited(&[channels[0], channels[1], plane.bins()])?;
                let kind = Kind::Bccb {
                    channels,
                    grid,
                    limit,
                };
                let biases = [channels[1], sizes[1]];
                let shape = Shape::Coordinates(channels[0] * channels[1]);
                (kind, weights, biases, shape)
            }
            3 => {
                let (inputs, outputs) = (size("the inputs")?, size("the outputs")?);
                let weights = limited(&[inputs, outputs])?;
                let kind = Kind::Dense { inputs, outputs };
                (kind, weights, [outputs; 2], Shape::Matrix(outputs))
            }
            other => return Err(value("the kind of a layer", other)),
        };
        let weights = Gaussian::read(cursor, "the weights of a layer", weights, shape)?;
        let biases = {
            // One bias for all, or one each: the count says which.
            let count = cursor.rest().get(4..8).and_then(<[u8]>::first_chunk);
            let count = count.map_or(0, |count| u32::from_le_bytes(*count) as usize);
            if count == biases[1] {
                biases[1]
            } else {
                biases[0]
            }
        };
        let bias = Gaussian::read(cursor, "the bias of a layer", biases, Shape::Vector)?;
        Ok(Self {
            kind,
            activation,
            sizes: padding.unwrap_or(kind.sizes()),
            weights,
            bias,
        })
    }

    /// Values of an input.
    pub(crate) fn inputs(&self) -> usize {
        self.sizes[0]
    }

    /// Values of an output.
    pub(crate) fn outputs(&self) -> usize {
        self.sizes[1]
    }

    /// Memory of the sums that this layer has as the first one, or zero.
    pub(crate) fn sums_len(&self) -> usize {
        match self.kind {
            Kind::Bccb { channels, grid, .. } if sums::pay(channels, self.weights.rank) => {
                let bins = grid[0] * (grid[1] / 2 + 1);
                channels[1] * bins * sums::parts(self.weights.rank)
            }
            _ => 0,
        }
    }

    /// What the layer needs, as the first one or behind others.
    pub(crate) fn sizes(&self, first: bool) -> Sizes {
        let values = self.kind.sizes()[1].div_ceil(2);
        match self.kind {
            Kind::Circulant { length, .. } => {
                let transform = transform_len(length);
                let bins = length / 2 + 1;
                Sizes {
                    input: bins,
                    spectrum: bins,
                    output: transform.max(values),
                }
            }
            Kind::Bccb { channels, grid, .. } => {
                let [height, width] = grid;
                let bins = height * (width / 2 + 1);
                let column = height + odd_prime(height);
                // Spectra of inputs behind the first layer, the one at hand, and a line.
                let spectra = if first { 1 } else { channels[0] + 1 };
                Sizes {
                    input: channels[0] * bins,
                    spectrum: spectra * bins + column.max(transform_len(width)),
                    output: values,
                }
            }
            Kind::Dense { inputs, .. } => Sizes {
                input: inputs.div_ceil(2),
                output: values,
                ..Sizes::default()
            },
        }
    }

    /// Roots of unity.
    pub(crate) fn roots_len(&self) -> usize {
        match self.kind {
            Kind::Circulant { length, .. } => length / 2 + 1,
            Kind::Bccb { grid, .. } => grid[1] / 2 + grid[0] / 2 + 2,
            Kind::Dense { .. } => 0,
        }
    }
}

/// Scratch of a real transform, as `RealTransform::scratch_len` says.
fn transform_len(length: usize) -> usize {
    let complex = if length.is_multiple_of(2) {
        length / 2
    } else {
        length
    };
    complex + odd_prime(complex)
}

/// The largest odd prime factor, or zero.
fn odd_prime(mut n: usize) -> usize {
    let (mut largest, mut p) = (0, 3);
    while n > 1 && n.is_multiple_of(2) {
        n /= 2;
    }
    while p * p <= n {
        if n.is_multiple_of(p) {
            n /= p;
            largest = p;
        } else {
            p += 2;
        }
    }
    if n > 1 { n } else { largest }
}

/// Refuses lengths whose transform takes too long.
fn short(length: usize) -> Result<(), EdgeError> {
    let work = length.saturating_mul(odd_prime(length).max(1));
    if work <= MAX_WORK {
        return Ok(());
    }
    Err(value(
        "a length with so large a prime factor",
        length as u64,
    ))
}

/// Values of an input or output with padding: no channel is all padding.
fn padded_size(
    cursor: &mut Cursor<'_>,
    what: &'static str,
    whole: usize,
    grid: [usize; 2],
) -> Result<usize, EdgeError> {
    let found = cursor.size(what, whole)?;
    if whole - found < grid[0] * grid[1] {
        return Ok(found);
    }
    Err(value(what, found as u64))
}

/// The product of sizes, within the limit of a layer.
pub(crate) fn limited(sizes: &[usize]) -> Result<usize, EdgeError> {
    let product = sizes
        .iter()
        .try_fold(1_usize, |product, &size| product.checked_mul(size));
    match product {
        Some(product) if product <= MAX_SIZE => Ok(product),
        other => Err(EdgeError::Value {
            what: "the size of a layer",
            found: other.map_or(u64::MAX, |product| product as u64),
        }),
    }
}

pub(crate) fn value(what: &'static str, found: impl Into<u64>) -> EdgeError {
    EdgeError::Value {
        what,
        found: found.into(),
    }
}

#[cfg(test)]
mod tests {
    use circulant_core::{BccbOperator, CirculantOperator, RealTransform};

    use super::*;

    #[test]
    fn sizes_are_those_of_the_operators() {
        extern crate std;
        use std::vec;
        let zero = circulant_core::Complex::new(0.0_f32, 0.0);
        for length in 1..300 {
            let mut roots = vec![zero; length / 2 + 1];
            let transform = RealTransform::new(length, &mut roots).unwrap();
            assert_eq!(transform_len(length), transform.scratch_len(), "{length}");
            let layout = HalfSpectrum::new(length).unwrap();
            assert_eq!(CirculantOperator::<f32>::roots_len(&layout), length / 2 + 1);
        }
        for (height, width) in [(1, 1), (28, 28), (5, 7), (11, 4), (4, 9)] {
            let plane = HalfPlane::new(height, width).unwrap();
            let count = BccbOperator::<f32>::roots_len(&plane);
            assert_eq!(count, width / 2 + height / 2 + 2);
            let mut roots = vec![zero; count];
            let operator = BccbOperator::new(&plane, [2, 3], &mut roots).unwrap();
            let column = height + odd_prime(height);
            assert_eq!(operator.line_len(), column.max(transform_len(width)));
        }
    }
}
