//! The dense 2D convolution of deep learning, `y = act(w * x + b)`: stride 1, an odd kernel, zeros
//! around the image, so that the output has the sides of the input.
//!
//! | tensor | shape, row-major |
//! | --- | --- |
//! | `x`, its gradient | `[batch, C_in, height, width]` |
//! | `w` | `[C_out, C_in, k_h, k_w]` |
//! | `b` | `[C_out]` |
//! | `y`, its gradient `g` | `[batch, C_out, height, width]` |
//!
//! `(w * x)[o, i, j] = sum over c, u, v of w[o, c, u, v] x[c, i + u - k_h/2, j + v - k_w/2]`, the
//! cross-correlation. With `g' = g` or, behind tanh, `g' = g (1 - y^2)`: the gradient of `w` pairs
//! `g'` with the shifted `x`, that of `b` sums `g'`, and that of `x` is the convolution of `g'` with
//! the kernel turned by half a turn and `C_in`, `C_out` exchanged.
//!
//! Every number of the batch is read or written once: an image is copied into zero-padded planes
//! that stay in the L1 or L2 cache ([`planes`]), bias and tanh are applied in registers on the way out
//! ([`forward`]), and `g'` only ever exists for one image ([`backward`]).

#[allow(
    clippy::needless_range_loop,
    reason = "registers are indexed, which the compiler unrolls"
)]
mod backward;
#[allow(
    clippy::needless_range_loop,
    reason = "registers are indexed, which the compiler unrolls"
)]
mod forward;
mod planes;

pub use backward::BackwardChunk;
pub use forward::ForwardChunk;

use backward::TapRuns;
use forward::Stencil;
use planes::PaddedPlanes;

use crate::elements::activation::Activation;
use crate::error::{
    KernelError, expect_len, expect_positive, expect_volume, rows_of, volume,
};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, run_all};
use crate::vector::{Isa, MAX_LANES};

/// Chunks that the images of one job fill together: planes are zeroed and sums are added once per
/// job.
const JOB_CHUNKS: usize = 4;

/// The sizes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convolution {
    channels_in: usize,
    channels_out: usize,
    height: usize,
    width: usize,
    kernel: [usize; 2],
}

/// What a backward pass writes; what is `None` is not computed.
#[derive(Debug)]
pub struct ConvolutionGradients<'a, T> {
    /// `[batch, C_in, height, width]`.
    pub x: Option<&'a mut [T]>,
    /// `[C_out, C_in, k_h, k_w]`.
    pub weight: Option<&'a mut [T]>,
    /// `[C_out]`.
    pub bias: Option<&'a mut [T]>,
}

impl Convolution {
    /// `kernel` is `[k_h, k_w]`, both odd; it may be larger than the image.
    pub fn new(
        channels_in: usize,
        channels_out: usize,
        height: usize,
        width: usize,
        kernel: [usize; 2],
    ) -> Result<Self, KernelError> {
        expect_positive(&[
            ("the number of input channels", channels_in),
            ("the number of output channels", channels_out),
            ("the height of an image", height),
            ("the width of an image", width),
            ("the height of the kernel", kernel[0]),
            ("the width of the kernel", kernel[1]),
        ])?;
        for (what, side) in [
            ("the height of the kernel, which must be odd", kernel[0]),
            ("the width of the kernel, which must be odd", kernel[1]),
        ] {
            if side % 2 == 0 {
                return Err(KernelError::Length {
                    what,
                    expected: side + 1,
                    got: side,
                });
            }
        }
        let weights = [channels_out, channels_in, kernel[0], kernel[1]];
        volume("the weights", &weights)?;
        // Rows are rounded up to whole vectors on both sides.
        let padded = [
            channels_in.max(channels_out),
            height.saturating_add(kernel[0]),
            width
                .saturating_add(kernel[1])
                .saturating_add(2 * MAX_LANES),
        ];
        volume("an image with its border", &padded)?;
        Ok(Self {
            channels_in,
            channels_out,
            height,
            width,
            kernel,
        })
    }

    /// `C_in`.
    pub fn channels_in(&self) -> usize {
        self.channels_in
    }

    /// `C_out`.
    pub fn channels_out(&self) -> usize {
        self.channels_out
    }

    /// Rows of an image.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns of an image.
    pub fn width(&self) -> usize {
        self.width
    }

    /// `[k_h, k_w]`.
    pub fn kernel(&self) -> [usize; 2] {
        self.kernel
    }

    /// `y = act(w * x + b)`; the batch is as large as `x` says.
    pub fn forward<T: Real>(
        &self,
        x: &[T],
        weight: &[T],
        bias: &[T],
        activation: Activation,
        y: &mut [T],
    ) -> Result<(), KernelError> {
        self.forward_on(best_isa(), x, weight, bias, activation, y)
    }

    /// The gradients of [`forward`](Self::forward) from `grad`, that of its output. Behind tanh,
    /// `y` is that output; otherwise it is not looked at.
    #[allow(
        clippy::too_many_arguments,
        reason = "the arguments of `forward` and what it returned"
    )]
    pub fn backward<T: Real>(
        &self,
        x: &[T],
        weight: &[T],
        activation: Activation,
        y: &[T],
        grad: &[T],
        gradients: ConvolutionGradients<'_, T>,
    ) -> Result<(), KernelError> {
        self.backward_on(best_isa(), x, weight, activation, y, grad, gradients)
    }

    #[doc(hidden)]
    pub fn forward_on<T: Real>(
        &self,
        isa: Isa,
        x: &[T],
        weight: &[T],
        bias: &[T],
        activation: Activation,
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let batch = rows_of("x", x.len(), self.input_len())?;
        expect_len("w", weight.len(), self.weight_len())?;
        expect_len("b", bias.len(), self.channels_out)?;
        expect_volume("y", y.len(), &[batch, self.output_len()])?;
        if batch == 0 {
            return Ok(());
        }
        let planes = PaddedPlanes::new(self, isa.lanes::<T>());
        let stencil = Stencil::new(self, &planes, weight);
        let images = self.images_per_job();
        let numbers = x.len() + y.len();
        let jobs = x
            .chunks(images * self.input_len())
            .zip(y.chunks_mut(images * self.output_len()))
            .map(|(x, y)| ForwardChunk {
                planes: &planes,
                stencil: &stencil,
                bias,
                activation,
                x,
                y,
            });
        run_all(numbers, jobs, |job| T::convolution_forward_chunk(isa, job));
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "as `backward`")]
    #[doc(hidden)]
    pub fn backward_on<T: Real>(
        &self,
        isa: Isa,
        x: &[T],
        weight: &[T],
        activation: Activation,
        y: &[T],
        grad: &[T],
        gradients: ConvolutionGradients<'_, T>,
    ) -> Result<(), KernelError> {
        let batch = rows_of("x", x.len(), self.input_len())?;
        let output_len = self.output_len();
        expect_len("w", weight.len(), self.weight_len())?;
        expect_volume("the gradient of y", grad.len(), &[batch, output_len])?;
        let y = match activation {
            Activation::Identity => None,
            Activation::Tanh => Some(y),
        };
        if let Some(y) = y {
            expect_len("y", y.len(), grad.len())?;
        }
        if let Some(out) = &gradients.x {
            expect_len("the gradient of x", out.len(), x.len())?;
        }
        if let Some(out) = &gradients.weight {
            expect_len("the gradient of w", out.len(), weight.len())?;
        }
        if let Some(out) = &gradients.bias {
            expect_len("the gradient of b", out.len(), self.channels_out)?;
        }

        let mut totals = vec![0.0; weight.len() + self.channels_out];
        if batch > 0 {
            let planes = PaddedPlanes::new(self, isa.lanes::<T>());
            let runs = TapRuns::new(self, &planes);
            let turned = Stencil::turned(self, &planes, weight);
            let images = self.images_per_job();
            let mut slices_of_y = y.map(|y| y.chunks(images * output_len));
            let weight_wanted = gradients.weight.is_some();
            let bias_wanted = gradients.bias.is_some();
            let mut slices_of_x = gradients
                .x
                .map(|out| out.chunks_mut(images * self.input_len()));
            let jobs = x
                .chunks(images * self.input_len())
                .zip(grad.chunks(images * output_len))
                .map(|(x, grad)| BackwardChunk {
                    planes: &planes,
                    runs: &runs,
                    turned: &turned,
                    x,
                    y: slices_of_y.as_mut().and_then(Iterator::next),
                    grad,
                    weight_wanted,
                    bias_wanted,
                    grad_x: slices_of_x.as_mut().and_then(Iterator::next),
                });
            let parts = run_all(x.len() + grad.len(), jobs, |job| {
                T::convolution_backward_chunk(isa, job)
            });
            for part in parts {
                for (total, sum) in totals.iter_mut().zip(part) {
                    *total += sum;
                }
            }
        }
        let (of_weight, of_bias) = totals.split_at(weight.len());
        for (out, totals) in [(gradients.weight, of_weight), (gradients.bias, of_bias)] {
            for (out, total) in out.into_iter().flatten().zip(totals) {
                *out = T::of(*total);
            }
        }
        Ok(())
    }

    #[doc(hidden)]
    pub fn image_len(&self) -> usize {
        self.height * self.width
    }

    #[doc(hidden)]
    pub fn input_len(&self) -> usize {
        self.channels_in * self.image_len()
    }

    #[doc(hidden)]
    pub fn output_len(&self) -> usize {
        self.channels_out * self.image_len()
    }

    #[doc(hidden)]
    pub fn weight_len(&self) -> usize {
        self.channels_out * self.channels_in * self.kernel[0] * self.kernel[1]
    }

    fn images_per_job(&self) -> usize {
        let numbers = self.input_len().max(self.output_len());
        (JOB_CHUNKS * CHUNK / numbers).max(1)
    }
}
