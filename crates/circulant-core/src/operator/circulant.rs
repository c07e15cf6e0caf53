//! The circulant operator on one signal, `y = IRFFT(T(a) * RFFT(x)) + b`.

use num_complex::Complex;

use super::expect_bias;
use crate::error::{SizeError, expect_len};
use crate::layout::HalfSpectrum;
use crate::scalar::Scalar;
use crate::transform::RealTransform;

/// A circulant matrix of `d x d`, given by the coordinates of its half spectrum. The example of the crate
/// runs one.
#[derive(Debug, Clone, Copy)]
pub struct CirculantOperator<'a, T> {
    layout: HalfSpectrum,
    transform: RealTransform<'a, T>,
}

impl<'a, T: Scalar> CirculantOperator<'a, T> {
    /// Values of memory that the operator keeps, `d/2 + 1`.
    pub fn roots_len(layout: &HalfSpectrum) -> usize {
        RealTransform::<T>::roots_len(layout.length())
    }

    /// The operator; `roots` has [`Self::roots_len`] values and is filled here.
    pub fn new(layout: HalfSpectrum, roots: &'a mut [Complex<T>]) -> Result<Self, SizeError> {
        let transform = RealTransform::new(layout.length(), roots)?;
        Ok(Self { layout, transform })
    }

    /// The layout of the coordinates.
    pub fn layout(&self) -> &HalfSpectrum {
        &self.layout
    }

    /// Values of scratch memory of a call: the half spectrum and the transform's own.
    pub fn scratch_len(&self) -> usize {
        self.transform.bins() + self.transform.scratch_len()
    }

    /// `y = IRFFT(T(coordinates) * RFFT(x)) + bias`, with a bias of one value or of `d`.
    pub fn forward(
        &self,
        coordinates: &[T],
        bias: Option<&[T]>,
        x: &[T],
        y: &mut [T],
        scratch: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        let d = self.layout.length();
        expect_len("coordinates", coordinates.len(), self.layout.coordinates())?;
        expect_bias(bias, 1, d)?;
        expect_len("x", x.len(), d)?;
        expect_len("y", y.len(), d)?;
        expect_len("scratch", scratch.len(), self.scratch_len())?;
        let (half, scratch) = scratch.split_at_mut(self.transform.bins());
        self.transform.forward(x, half, scratch)?;
        for (bin, value) in self.layout.iter().zip(half.iter_mut()) {
            *value = *value * bin.value(|coordinate| coordinates[coordinate]);
        }
        self.transform.inverse(half, y, scratch)?;
        if let Some(bias) = bias {
            for (value, bias) in y.iter_mut().zip(bias.iter().cycle()) {
                *value = *value + *bias;
            }
        }
        Ok(())
    }
}
