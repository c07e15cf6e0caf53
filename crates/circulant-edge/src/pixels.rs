//! An input, normalised value by value.

use circulant_core::Complex;

use crate::model::Model;
use crate::number::Number;

/// Bits of an integer that suffice for bytes of any range.
const FINE: u32 = 20;

/// One input, `[channels, height, width]`.
#[derive(Debug, Clone, Copy)]
pub enum Input<'i> {
    /// Pixels, which the model scales and normalises.
    Bytes(&'i [u8]),
    /// Floats, which the model normalises.
    Floats(&'i [f32]),
}

/// Normalised values of an input of the model's size.
pub(crate) struct Pixels<'a, 'i> {
    model: Model<'a>,
    source: Input<'i>,
    /// Scale and offset of a byte, if all values have the same.
    common: Option<[f32; 2]>,
}

impl<'a, 'i> Pixels<'a, 'i> {
    pub(crate) fn new(model: &Model<'a>, source: Input<'i>) -> Self {
        let mut pixels = Self {
            model: *model,
            source,
            common: None,
        };
        if model.is_normalised_alike() {
            pixels.common = Some(pixels.affine(0));
        }
        pixels
    }

    /// Scale and offset of a byte.
    fn affine(&self, index: usize) -> [f32; 2] {
        let (mean, deviation) = self.model.normalisation(index);
        let divisor = if self.model.unit { 255.0 } else { 1.0 };
        [1.0 / (divisor * deviation), -mean / deviation]
    }

    /// Value `index`; zero behind the last one, where layers are padded.
    pub(crate) fn at<T: Number>(&self, index: usize) -> T {
        match self.source {
            Input::Bytes(bytes) => {
                let Some(byte) = bytes.get(index) else {
                    return T::zero();
                };
                let [scale, offset] = self.common.unwrap_or_else(|| self.affine(index));
                T::pixel(*byte, scale, offset)
            }
            Input::Floats(floats) => {
                let Some(value) = floats.get(index) else {
                    return T::zero();
                };
                let (mean, deviation) = self.model.normalisation(index);
                T::single((value - mean) / deviation)
            }
        }
    }

    /// Bytes that are all normalised by the same numbers, with these.
    fn plain(&self, first: usize, count: usize) -> Option<(&'i [u8], [f32; 2])> {
        match (self.source, self.common) {
            (Input::Bytes(bytes), Some(common)) => Some((bytes.get(first..first + count)?, common)),
            _ => None,
        }
    }

    /// `count` values from `first` on, two after each other in every complex number.
    pub(crate) fn fill<T: Number>(&self, first: usize, count: usize, out: &mut [Complex<T>]) {
        let last = first + count - 1;
        if let Some((bytes, [scale, offset])) = self.plain(first, count) {
            for (pair, bytes) in out.iter_mut().zip(bytes.chunks(2)) {
                let pixel = |byte| T::pixel(byte, scale, offset);
                *pair = Complex::new(pixel(bytes[0]), pixel(bytes[bytes.len() - 1]));
            }
            return;
        }
        for (pair, index) in out.iter_mut().zip((first..=last).step_by(2)) {
            *pair = Complex::new(self.at(index), self.at(last.min(index + 1)));
        }
    }

    /// The value that `count` bytes from `first` on all have, if they do.
    pub(crate) fn constant<T: Number>(&self, first: usize, count: usize) -> Option<T> {
        let (bytes, [scale, offset]) = self.plain(first, count)?;
        let (one, others) = bytes.split_first()?;
        let alike = others.iter().all(|other| other == one);
        alike.then(|| T::pixel(*one, scale, offset))
    }

    /// No value is larger; not zero.
    pub(crate) fn bound<T: Number>(&self) -> f32 {
        let size = |x: f32| if x < 0.0 { -x } else { x };
        let bound = match (self.source, self.common) {
            (Input::Bytes(bytes), Some([scale, offset])) => {
                // Few bits must not be wasted on bytes that there are not.
                let (mut low, mut high) = (0, u8::MAX);
                if T::FRACTION < FINE {
                    low = bytes.iter().copied().min().unwrap_or(low);
                    high = bytes.iter().copied().max().unwrap_or(high);
                }
                let at = |byte: u8| size(f32::from(byte) * scale + offset);
                at(low).max(at(high))
            }
            _ => {
                let sizes =
                    (0..self.model.inputs()).map(|index| size(self.at::<T>(index).to_single()));
                sizes.fold(0.0, f32::max)
            }
        };
        if bound > 0.0 { bound } else { 1.0 }
    }
}
