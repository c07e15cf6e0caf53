//! A few images of a batch: the gradients of `y = act(w * x + b)`.
//!
//! `g'` of one output channel is written into a padded plane. Its pairs with the shifted `x` are
//! summed for up to nine taps at a time, a register each, so that a vector of `g'` is loaded once
//! for a kernel of 3 x 3. When the gradient of `x` is wanted too, the planes of all channels are kept and
//! convolved with the turned kernel.
//!
//! Sums over one image are in `T`, those over images in f64.
//!
//! `unsafe`: vectors are read from planes through pointers. `PairSums::new` checks that the last
//! read ends within its plane.

use circulant_core::Scalar;

use super::Convolution;
use super::forward::Stencil;
use super::planes::PaddedPlanes;
use crate::elements::activation::Activation;
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::vector::{Kernel, Lanes, MAX_LANES, Present, Vector};

/// Whole images.
pub struct BackwardChunk<'a, T> {
    pub(super) planes: &'a PaddedPlanes,
    pub(super) runs: &'a TapRuns,
    pub(super) turned: &'a Stencil<T>,
    pub(super) x: &'a [T],
    /// The outputs, behind tanh.
    pub(super) y: Option<&'a [T]>,
    pub(super) grad: &'a [T],
    pub(super) weight_wanted: bool,
    pub(super) bias_wanted: bool,
    pub(super) grad_x: Option<&'a mut [T]>,
}

impl<T: Real> Kernel<T> for BackwardChunk<'_, T> {
    /// The gradient of `w`, then that of `b`; zero where it is not wanted.
    type Output = Vec<f64>;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, there: Present<V>) -> Vec<f64> {
        let Self { planes, runs, .. } = self;
        let taps = runs.taps.len();
        let (channels_in, channels_out) = (self.turned.channels_out, self.turned.channels_in);
        let image_len = planes.height * planes.width;
        let (input_len, output_len) = (channels_in * image_len, channels_out * image_len);
        let mut sums = vec![0.0; channels_out * taps + channels_out];
        let (of_weight, of_bias) = sums.split_at_mut(channels_out * taps);
        let mut grad_x = self.grad_x;

        let mut padded_x = Scratch::zeroed(planes.len(channels_in));
        // Without a gradient of `x`, one plane after the other takes the same memory.
        let kept = if grad_x.is_some() { channels_out } else { 1 };
        let mut padded_grad = Scratch::zeroed(planes.len(kept));
        for (image, x) in self.x.chunks_exact(input_len).enumerate() {
            if self.weight_wanted {
                planes.fill(x, &mut padded_x);
            }
            for channel in 0..channels_out {
                let at = image * output_len + channel * image_len;
                let plane = &mut padded_grad[channel % kept * planes.size..][..planes.size];
                let y = self.y.map(|y| &y[at..at + image_len]);
                inner_gradient(there, planes, &self.grad[at..at + image_len], y, plane);
                let pairs = PairSums::new::<V>(planes, plane, &padded_x, runs);
                let mut total = None;
                if self.weight_wanted {
                    let out = &mut of_weight[channel * taps..][..taps];
                    total = Some(pairs.add_to(there, out));
                }
                if self.bias_wanted {
                    of_bias[channel] += match total {
                        Some(total) => total,
                        None => pairs.add_runs::<V, 0, 0>(there, [], &mut []),
                    };
                }
            }
            if let Some(out) = &mut grad_x {
                let out = &mut out[image * input_len..][..input_len];
                self.turned
                    .convolve(there, planes, &padded_grad, None, Activation::Identity, out);
            }
        }
        sums
    }
}

/// Writes `g'` of one channel into its plane.
#[inline(always)]
fn inner_gradient<V: Vector>(
    there: Present<V>,
    planes: &PaddedPlanes,
    grad: &[V::Scalar],
    y: Option<&[V::Scalar]>,
    plane: &mut [V::Scalar],
) {
    let Some(y) = y else {
        planes.fill(grad, plane);
        return;
    };
    let width = planes.width;
    let one = there.splat(<V::Scalar as num_traits::One>::one());
    let rows = plane[planes.interior()..].chunks_mut(planes.stride);
    let inputs = grad.chunks_exact(width).zip(y.chunks_exact(width));
    for ((grad, y), to) in inputs.zip(rows) {
        let to = &mut to[..width];
        if width < V::LANES {
            for ((to, &g), &y) in to.iter_mut().zip(grad).zip(y) {
                *to = g * (<V::Scalar as num_traits::One>::one() - y * y);
            }
            continue;
        }
        // The last vector ends with the row, over a part of the one before it.
        for column in (0..width).step_by(V::LANES) {
            let column = column.min(width - V::LANES);
            // SAFETY: `column + LANES <= width`, the length of all three.
            unsafe {
                let y = V::load(y.as_ptr().add(column));
                let g = V::load(grad.as_ptr().add(column)).mul(y.neg_mul_add(y, one));
                g.store(to.as_mut_ptr().add(column));
            }
        }
    }
}

/// The taps of the gradient of `w`, cut into runs of consecutive numbers of a plane.
#[derive(Debug)]
pub struct TapRuns {
    taps: Vec<usize>,
    /// The first taps of runs of three.
    triples: Vec<usize>,
    /// What is left of the rows of the kernel.
    singles: Vec<usize>,
}

impl TapRuns {
    pub(super) fn new(sizes: &Convolution, planes: &PaddedPlanes) -> Self {
        let taps = planes.taps(sizes.channels_in);
        let columns = sizes.kernel[1];
        let (mut triples, mut singles) = (Vec::new(), Vec::new());
        for row in (0..taps.len()).step_by(columns) {
            let rest = row + columns - columns % 3;
            triples.extend((row..rest).step_by(3));
            singles.extend(rest..row + columns);
        }
        Self {
            taps,
            triples,
            singles,
        }
    }
}

/// The pairs of one plane of `g'` with all taps of `x`.
struct PairSums<'a, T> {
    planes: &'a PaddedPlanes,
    grad: *const T,
    x: *const T,
    runs: &'a TapRuns,
}

impl<'a, T: Real> PairSums<'a, T> {
    #[inline(always)]
    fn new<V: Vector<Scalar = T>>(
        planes: &'a PaddedPlanes,
        grad: &'a [T],
        x: &'a [T],
        runs: &'a TapRuns,
    ) -> Self {
        let last = (planes.height - 1) * planes.stride + planes.width.next_multiple_of(V::LANES);
        assert!(
            planes.interior() + last <= grad.len()
                && planes.corner() + last + runs.taps[runs.taps.len() - 1] <= x.len(),
            "the planes hold all that is read"
        );
        Self {
            planes,
            grad: grad[planes.interior()..].as_ptr(),
            x: x[planes.corner()..].as_ptr(),
            runs,
        }
    }

    /// Adds the sum of every tap to `out` and returns that of `g'`.
    #[inline(always)]
    fn add_to<V: Vector<Scalar = T>>(&self, there: Present<V>, out: &mut [f64]) -> f64 {
        let mut total = 0.0;
        let (groups, rest) = self.runs.triples.as_chunks::<3>();
        for &runs in groups {
            total = self.add_runs::<V, 3, 3>(there, runs, out);
        }
        for &run in rest {
            total = self.add_runs::<V, 1, 3>(there, [run], out);
        }
        let (groups, rest) = self.runs.singles.as_chunks::<8>();
        for &runs in groups {
            total = self.add_runs::<V, 8, 1>(there, runs, out);
        }
        for &run in rest {
            total = self.add_runs::<V, 1, 1>(there, [run], out);
        }
        total
    }

    /// `add_to` for `R` runs of `M` taps each, given by their first taps.
    #[inline(always)]
    fn add_runs<V: Vector<Scalar = T>, const R: usize, const M: usize>(
        &self,
        there: Present<V>,
        first: [usize; R],
        out: &mut [f64],
    ) -> f64 {
        let mut rows = [self.x; R];
        for r in 0..R {
            // SAFETY: `new` has checked the last tap, which is the largest.
            rows[r] = unsafe { self.x.add(self.runs.taps[first[r]]) };
        }
        let mut sums = [[there.splat(T::zero()); M]; R];
        let mut total = there.splat(T::zero());
        let mut start = 0;
        for _ in 0..self.planes.height {
            let (mut at, end) = (start, start + self.planes.width);
            while at < end {
                // SAFETY: `new` has checked the last row, column and tap, which are the largest.
                // Beyond the width, `g'` is zero.
                unsafe {
                    let g = V::load(self.grad.add(at));
                    total = total.add(g);
                    for r in 0..R {
                        for m in 0..M {
                            sums[r][m] = V::load(rows[r].add(at + m)).mul_add(g, sums[r][m]);
                        }
                    }
                }
                at += V::LANES;
            }
            start += self.planes.stride;
        }
        for r in 0..R {
            for m in 0..M {
                out[first[r] + m] += lane_sum(sums[r][m]);
            }
        }
        lane_sum(total)
    }
}

#[inline(always)]
fn lane_sum<V: Vector>(lanes: V) -> f64 {
    let mut buffer = Lanes::<V::Scalar, MAX_LANES>::zero();
    // SAFETY: the buffer holds the widest vector.
    unsafe { lanes.store(buffer.0.as_mut_ptr()) };
    let mut half = V::LANES / 2;
    while half > 0 {
        for i in 0..half {
            buffer.0[i] = buffer.0[i] + buffer.0[i + half];
        }
        half /= 2;
    }
    buffer.0[0].wide()
}
