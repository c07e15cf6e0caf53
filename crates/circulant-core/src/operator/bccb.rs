//! The block-circulant operator with circulant blocks (BCCB) on one image of several channels:
//! `y_o = IRFFT2(sum_i K_io * RFFT2(x_i)) + b_o` with `K = T(a)`.
//!
//! Images are `[C, H, W]`, coordinates `[coordinate, C_in, C_out]`.

use num_complex::Complex;

use super::expect_bias;
use crate::error::{SizeError, expect_len, expect_positive, product};
use crate::layout::HalfPlane;
use crate::scalar::Scalar;
use crate::transform::{RealTransform, Roots, Signal, swapped, transform, work_len};

/// A BCCB operator, given by the coordinates of its half plane.
///
/// ```
/// use circulant_core::{BccbOperator, Complex, HalfPlane};
///
/// let plane = HalfPlane::new(2, 2)?;
/// let mut roots = vec![Complex::new(0.0, 0.0); BccbOperator::<f64>::roots_len(&plane)];
/// let operator = BccbOperator::new(&plane, [1, 1], &mut roots)?;
/// let mut scratch = vec![Complex::new(0.0, 0.0); operator.scratch_len()];
///
/// // Only the mean is kept.
/// let mut y = [0.0; 4];
/// operator.forward(&[1.0, 0.0, 0.0, 0.0], None, &[1.0, 2.0, 3.0, 4.0], &mut y, &mut scratch)?;
/// assert_eq!(y, [2.5; 4]);
/// # Ok::<(), circulant_core::SizeError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct BccbOperator<'a, T> {
    plane: &'a HalfPlane,
    channels: [usize; 2],
    rows: RealTransform<'a, T>,
    column_roots: Roots<'a, T>,
    sizes: Sizes,
}

/// Numbers of values, all of which fit into memory.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    coordinates: usize,
    input: usize,
    output: usize,
    spectra: usize,
    line: usize,
    scratch: usize,
}

impl<'a, T: Scalar> BccbOperator<'a, T> {
    /// Values of memory that the operator keeps: roots for rows and for columns.
    pub fn roots_len(plane: &HalfPlane) -> usize {
        plane.width() / 2 + plane.height() / 2 + 2
    }

    /// The operator from `channels[0]` to `channels[1]` channels; `roots` has [`Self::roots_len`] values and
    /// is filled here.
    pub fn new(
        plane: &'a HalfPlane,
        channels: [usize; 2],
        roots: &'a mut [Complex<T>],
    ) -> Result<Self, SizeError> {
        expect_len("roots", roots.len(), Self::roots_len(plane))?;
        let (row_roots, column_roots) = roots.split_at_mut(plane.width() / 2 + 1);
        let rows = RealTransform::new(plane.width(), row_roots)?;
        let columns = Roots::new(plane.height(), column_roots)?;
        Self::of(plane, channels, rows, columns)
    }

    /// The same with roots that were made before: `exp(-2 pi i k/W)` for `k = 0..=W/2`, then those of `H`.
    pub fn with_roots(
        plane: &'a HalfPlane,
        channels: [usize; 2],
        roots: &'a [Complex<T>],
    ) -> Result<Self, SizeError> {
        expect_len("roots", roots.len(), Self::roots_len(plane))?;
        let (row_roots, column_roots) = roots.split_at(plane.width() / 2 + 1);
        let rows = RealTransform::with_roots(plane.width(), row_roots)?;
        let columns = Roots::given(plane.height(), column_roots)?;
        Self::of(plane, channels, rows, columns)
    }

    fn of(
        plane: &'a HalfPlane,
        channels: [usize; 2],
        rows: RealTransform<'a, T>,
        column_roots: Roots<'a, T>,
    ) -> Result<Self, SizeError> {
        let [inputs, outputs] = channels;
        expect_positive(&[("C_in", inputs), ("C_out", outputs)])?;
        let pixels = product("a grid", plane.height(), plane.width())?;
        let pairs = product("channel pairs", inputs, outputs)?;
        // Spectra of all inputs and of one output; then a column with its work space, or what a row needs.
        let spectra = product("spectra", inputs, plane.bins())?;
        let column = plane.height() + work_len(plane.height());
        let line = column.max(rows.scratch_len());
        Ok(Self {
            plane,
            channels,
            rows,
            column_roots,
            sizes: Sizes {
                coordinates: product("coordinates", plane.coordinates(), pairs)?,
                input: product("an input", inputs, pixels)?,
                output: product("an output", outputs, pixels)?,
                spectra,
                line,
                scratch: product("scratch", spectra + plane.bins() + line, 1)?,
            },
        })
    }

    /// The layout of the coordinates of one channel pair.
    pub fn layout(&self) -> &HalfPlane {
        self.plane
    }

    /// Free real coordinates, `d_eff`.
    pub fn coordinates(&self) -> usize {
        self.sizes.coordinates
    }

    /// Values of scratch memory of a call: the spectra of all inputs and of one output, and a line.
    pub fn scratch_len(&self) -> usize {
        self.sizes.scratch
    }

    /// `y_o = IRFFT2(sum_i K_io * RFFT2(x_i)) + bias_o`, with a bias of `C_out` values or of one for every
    /// output.
    pub fn forward(
        &self,
        coordinates: &[T],
        bias: Option<&[T]>,
        x: &[T],
        y: &mut [T],
        scratch: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        let [inputs, outputs] = self.channels;
        expect_len("coordinates", coordinates.len(), self.sizes.coordinates)?;
        expect_bias(bias, outputs, self.sizes.output)?;
        expect_len("x", x.len(), self.sizes.input)?;
        expect_len("y", y.len(), self.sizes.output)?;
        expect_len("scratch", scratch.len(), self.sizes.scratch)?;

        let (spectra, scratch) = scratch.split_at_mut(self.sizes.spectra);
        let (sum, line) = scratch.split_at_mut(self.plane.bins());
        let (pixels, bins) = (self.sizes.input / inputs, self.plane.bins());
        for (image, spectrum) in x.chunks_exact(pixels).zip(spectra.chunks_exact_mut(bins)) {
            self.spectrum_of(&|pixel| image[pixel], 0, spectrum, line)?;
        }
        for (output, image) in y.chunks_exact_mut(pixels).enumerate() {
            self.mix(output, |coordinate| coordinates[coordinate], spectra, sum);
            self.invert(sum, image, line)?;
            if let Some(bias) = bias {
                let own = bias.len() / outputs;
                let bias = &bias[output * own..(output + 1) * own];
                for (value, bias) in image.iter_mut().zip(bias.iter().cycle()) {
                    *value = *value + *bias;
                }
            }
        }
        Ok(())
    }

    /// The transform of a row of the grid.
    pub fn rows(&self) -> &RealTransform<'a, T> {
        &self.rows
    }

    /// Values of scratch memory of the single steps below.
    pub fn line_len(&self) -> usize {
        self.sizes.line
    }

    /// The half plane of the image with the values `value(first), value(first + 1), ...`.
    pub fn spectrum_of(
        &self,
        value: &dyn Fn(usize) -> T,
        first: usize,
        spectrum: &mut [Complex<T>],
        line: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        expect_len("spectrum", spectrum.len(), self.plane.bins())?;
        expect_len("line", line.len(), self.sizes.line)?;
        let width = self.plane.width();
        let halves = spectrum.chunks_exact_mut(self.plane.columns());
        for (row, half) in halves.enumerate() {
            let line = &mut line[..self.rows.scratch_len()];
            let first = first + row * width;
            self.rows.forward_of(value, first, half, line)?;
        }
        self.columns(spectrum, line, false);
        Ok(())
    }

    /// `sum = sum_i K_io * spectra_i` with the coordinates that `coordinate` looks up, for spectra one after the other.
    ///
    /// # Panics
    ///
    /// Panics if a slice is shorter than that.
    pub fn mix(
        &self,
        output: usize,
        coordinate: impl Fn(usize) -> T,
        spectra: &[Complex<T>],
        sum: &mut [Complex<T>],
    ) {
        let [inputs, outputs] = self.channels;
        let bins = self.plane.bins();
        for (index, (bin, sum)) in self.plane.iter().zip(sum.iter_mut()).enumerate() {
            *sum = Complex::new(T::zero(), T::zero());
            for input in 0..inputs {
                let pair = input * outputs + output;
                let at = |index: usize| coordinate(index * inputs * outputs + pair);
                *sum = *sum + bin.value(at) * spectra[input * bins + index];
            }
        }
    }

    /// `H W` times the image of a half plane, handed to `emit(pixel, value)` in order. The half plane is used up.
    pub fn image_of(
        &self,
        spectrum: &mut [Complex<T>],
        line: &mut [Complex<T>],
        mut emit: impl FnMut(usize, T),
    ) -> Result<(), SizeError> {
        expect_len("spectrum", spectrum.len(), self.plane.bins())?;
        expect_len("line", line.len(), self.sizes.line)?;
        self.columns(spectrum, line, true);
        let width = self.plane.width();
        for (row, half) in spectrum.chunks_exact_mut(self.plane.columns()).enumerate() {
            let line = &mut line[..self.rows.scratch_len()];
            self.rows.inverse_in_place(half, line)?;
            for t in 0..width {
                let pair = line[t / 2];
                emit(row * width + t, if t % 2 == 0 { pair.re } else { pair.im });
            }
        }
        Ok(())
    }

    /// The image of a half plane, whose memory is used up.
    fn invert(
        &self,
        spectrum: &mut [Complex<T>],
        image: &mut [T],
        line: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        self.columns(spectrum, line, true);
        let rows = image.chunks_exact_mut(self.plane.width());
        for (row, half) in rows.zip(spectrum.chunks_exact(self.plane.columns())) {
            self.rows
                .inverse(half, row, &mut line[..self.rows.scratch_len()])?;
        }
        let scale = T::of(1.0 / self.plane.height() as f64);
        for value in image {
            *value = *value * scale;
        }
        Ok(())
    }

    /// Transforms every column, forward or inverse.
    fn columns(&self, spectrum: &mut [Complex<T>], line: &mut [Complex<T>], inverse: bool) {
        let swap = |value| if inverse { swapped(value) } else { value };
        let columns = self.plane.columns();
        if self.plane.height() == 1 {
            return;
        }
        let (out, work) = line[..self.sizes.line].split_at_mut(self.plane.height());
        for v in 0..columns {
            let at = |u: usize| swap(spectrum[u * columns + v]);
            transform(self.column_roots, Signal::new(&at), out, work);
            for (u, value) in out.iter().enumerate() {
                spectrum[u * columns + v] = swap(*value);
            }
        }
    }
}
