//! Images with zeros around them, in memory that vectors can be read from without a check.
//!
//! A row of a plane is `left` zeros, the row of the image, and zeros up to a multiple of the lanes;
//! `left` is the least multiple of the lanes that holds the halo. The zeros to the right of a row
//! are its own rest and the `left` of the next one, and the last row has `left` zeros behind it, so
//! that a vector may begin at every column of the image, moved by up to half a kernel:
//!
//! ```text
//! left | image ... image rest |        rows - k_h/2 of zeros above and below the image
//! left | image ... image rest |
//! left
//! ```

use super::Convolution;
use crate::real::Real;

/// The layout of the planes.
#[derive(Debug)]
pub struct PaddedPlanes {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) lanes: usize,
    kernel: [usize; 2],
    left: usize,
    /// From a row to the next.
    pub(super) stride: usize,
    /// Values of one plane.
    pub(super) size: usize,
}

/// Where a vector of outputs is computed from and written to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    /// Within a plane: what the first tap reads.
    pub(super) from: usize,
    /// Within an image.
    pub(super) to: usize,
}

impl PaddedPlanes {
    pub(super) fn new(convolution: &Convolution, lanes: usize) -> Self {
        let (height, width) = (convolution.height, convolution.width);
        let kernel = convolution.kernel;
        let left = (kernel[1] / 2).next_multiple_of(lanes);
        let stride = left + width.next_multiple_of(lanes);
        let size = (height + kernel[0] - 1) * stride + left;
        Self {
            height,
            width,
            lanes,
            kernel,
            left,
            stride,
            size,
        }
    }

    /// Values of all planes of an image.
    pub(super) fn len(&self, channels: usize) -> usize {
        self.size * channels
    }

    /// Where the image begins within its plane.
    pub(super) fn interior(&self) -> usize {
        self.kernel[0] / 2 * self.stride + self.left
    }

    /// What the first tap of the kernel reads for the first output.
    pub(super) fn corner(&self) -> usize {
        self.left - self.kernel[1] / 2
    }

    /// How far every tap reads from the first one, in the order of the weights `[C, k_h, k_w]`.
    pub(super) fn taps(&self, channels: usize) -> Vec<usize> {
        let mut taps = Vec::with_capacity(channels * self.kernel[0] * self.kernel[1]);
        for channel in 0..channels {
            for row in 0..self.kernel[0] {
                let start = channel * self.size + row * self.stride;
                taps.extend(start..start + self.kernel[1]);
            }
        }
        taps
    }

    /// Vectors that cover an image. The last vector of a row ends with the row, over a part of the
    /// one before it; only in an image narrower than a vector does it reach over the end.
    pub(super) fn spots(&self) -> Vec<Spot> {
        let last = self.width.saturating_sub(self.lanes);
        let mut spots = Vec::with_capacity(self.height * self.width.div_ceil(self.lanes));
        for row in 0..self.height {
            for column in (0..self.width).step_by(self.lanes) {
                let column = column.min(last);
                spots.push(Spot {
                    from: self.corner() + row * self.stride + column,
                    to: row * self.width + column,
                });
            }
        }
        spots
    }

    /// Copies an image of any number of channels into planes whose borders are zero.
    #[inline(always)]
    pub(super) fn fill<T: Real>(&self, image: &[T], planes: &mut [T]) {
        let images = image.chunks_exact(self.height * self.width);
        for (image, plane) in images.zip(planes.chunks_exact_mut(self.size)) {
            let rows = plane[self.interior()..].chunks_mut(self.stride);
            for (from, to) in image.chunks_exact(self.width).zip(rows) {
                to[..self.width].copy_from_slice(from);
            }
        }
    }
}
