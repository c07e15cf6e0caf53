//! An upper bound on the norm of a convolution with zero padding ("same", stride 1, dilation 1): that of the circular
//! convolution on a grid of `(H + kh - 1) x (W + kw - 1)`, and the rounding of its blocks (`docs/mathematics.md`, section 7).

use std::f64::consts::FRAC_PI_4;

use circulant_core::{Bin, HalfPlane};

use crate::error::{KernelError, expect_positive, expect_volume, volume};
use crate::real::Real;

use super::expect_finite;
use super::matrix::{Matrix, Scale};
use super::search::{Bins, Search};

/// A certified upper bound on the norm of a zero-padded convolution with weights
/// `[C_out, C_in, kh, kw]` on images of `grid = [H, W]`.
///
/// The bound is the norm of the circular operator, so it is loose only at the border: by 7 percent
/// for a random 3 x 3 kernel on 8 x 8 pixels, by half or more only where the kernel is larger than
/// the grid.
///
/// ```
/// use circulant_kernels::convolution_norm_bound;
///
/// // A blur keeps constants, except at the border: the norm is just below 1.
/// let bound = convolution_norm_bound(&[1.0 / 9.0; 9], 1, 1, [3, 3], [28, 28])?;
/// assert!(0.99 < bound && bound < 1.0 + 1e-12);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn convolution_norm_bound(
    weights: &[f64],
    channels_in: usize,
    channels_out: usize,
    kernel: [usize; 2],
    grid: [usize; 2],
) -> Result<f64, KernelError> {
    expect_positive(&[
        ("the number of input channels", channels_in),
        ("the number of output channels", channels_out),
        ("the height of the kernel", kernel[0]),
        ("the width of the kernel", kernel[1]),
        ("the height of the grid", grid[0]),
        ("the width of the grid", grid[1]),
    ])?;
    let sizes = [channels_out, channels_in, kernel[0], kernel[1]];
    expect_volume("weights", weights.len(), &sizes)?;
    expect_finite("the weights", weights)?;
    let padded = [
        grid[0].saturating_add(kernel[0] - 1),
        grid[1].saturating_add(kernel[1] - 1),
    ];
    if volume("the grid padded by the kernel", &padded)? > LARGEST_GRID {
        return Err(KernelError::TooLarge {
            what: "the grid padded by the kernel",
            sizes: padded.to_vec(),
            most: LARGEST_GRID,
        });
    }
    let Some(scale) = Scale::of(weights) else {
        return Ok(0.0);
    };
    let blocks = TapBlocks::new(weights, (channels_in, channels_out), kernel, padded, scale)?;
    let largest = Search::new(&blocks)?.largest();
    let bound = (largest.upper + blocks.rounding(weights)) * (1.0 + 4.0 * f64::EPSILON);
    Ok(scale.undo_up(bound))
}

/// Pixels of a padded grid that are a mistake, not an image.
const LARGEST_GRID: usize = 1 << 30;

/// The blocks of the circular operator, made when they are asked for.
struct TapBlocks {
    /// `[C_out, C_in]`.
    channels: (usize, usize),
    /// `[kh, kw, C_out, C_in]`, scaled.
    taps: Vec<f64>,
    kernel: [usize; 2],
    /// `u`, `v` and whether the block is complex.
    frequencies: Vec<(usize, usize, bool)>,
    roots: [Vec<[f64; 2]>; 2],
    scale: Scale,
}

impl TapBlocks {
    fn new(
        weights: &[f64],
        (channels_in, channels_out): (usize, usize),
        kernel: [usize; 2],
        [height, width]: [usize; 2],
        scale: Scale,
    ) -> Result<Self, KernelError> {
        let plane = HalfPlane::new(height, width)?;
        let frequencies = (0..plane.bins())
            .filter_map(|i| {
                let (u, v) = (i / plane.columns(), i % plane.columns());
                match plane.bin(u, v) {
                    Bin::Real { .. } => Some((u, v, false)),
                    Bin::Complex { .. } => Some((u, v, true)),
                    Bin::Conjugate { .. } | Bin::Masked => None,
                }
            })
            .collect();
        let (pairs, size) = (channels_in * channels_out, kernel[0] * kernel[1]);
        let taps = (0..size * pairs)
            .map(|i| scale.apply(weights[i % pairs * size + i / pairs]))
            .collect();
        let roots = |n: usize| (0..n).map(|k| unit_root(k, n)).collect();
        Ok(Self {
            channels: (channels_out, channels_in),
            taps,
            kernel,
            frequencies,
            roots: [roots(height), roots(width)],
            scale,
        })
    }

    /// Twice the error of a block, see the head of the file.
    fn rounding(&self, weights: &[f64]) -> f64 {
        let size = self.kernel[0] * self.kernel[1];
        let squares: f64 = weights
            .chunks_exact(size)
            .map(|taps| {
                let sum: f64 = taps.iter().map(|&w| self.scale.apply(w).abs()).sum();
                sum * sum
            })
            .sum();
        (2 * size + 32) as f64 * f64::EPSILON * squares.sqrt()
    }
}

impl Bins for TapBlocks {
    fn shape(&self) -> (usize, usize) {
        let (a, b) = self.channels;
        (a.max(b), a.min(b))
    }

    /// Scattered over the plane: the blocks change smoothly from frequency to frequency, and a few
    /// of every region soon give a good lower bound.
    fn order(&self) -> Vec<usize> {
        let n = self.frequencies.len();
        let mut step = (0.618 * n as f64) as usize;
        while greatest_common_divisor(step, n) != 1 {
            step += 1;
        }
        (0..n).map(|i| i * step % n).collect()
    }

    fn complex(&self, index: usize) -> bool {
        self.frequencies[index].2
    }

    fn load<T: Real>(&self, index: usize, into: &mut Matrix<T>) {
        let (u, v, complex) = self.frequencies[index];
        let (rows, columns) = self.channels;
        let pairs = rows * columns;
        let mut sums = vec![0.0; pairs * (1 + usize::from(complex))];
        let (re, im) = sums.split_at_mut(pairs);
        for (tap, values) in self.taps.chunks_exact(pairs).enumerate() {
            let (a, b) = (tap / self.kernel[1], tap % self.kernel[1]);
            let [down, across] = &self.roots;
            let [c0, s0] = down[u * a % down.len()];
            let [c1, s1] = across[v * b % across.len()];
            let (cosine, sine) = (c0 * c1 - s0 * s1, s0 * c1 + c0 * s1);
            for (sum, w) in re.iter_mut().zip(values) {
                *sum += cosine * w;
            }
            for (sum, w) in im.iter_mut().zip(values) {
                *sum -= sine * w;
            }
        }
        into.load(rows, columns, &sums, Scale::ONE);
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// `(cos, sin)` of `2 pi k/n`, each within `8 u` of the exact value, `u = 2^-53`.
///
/// The angle is brought to `x` in `[0, pi/4]` in whole numbers. `x` itself has three roundings, so it
/// is off by at most `2.4 u`, which moves sine and cosine by no more. The series are cut at terms
/// below `2^-58`. In Horner's form the sum in brackets is at most 1 and off by less than `5 u`, and
/// is multiplied by `x^2/2 <= 0.31` for the cosine and by `x^3/6 <= 0.09` for the sine; with the last
/// rounding that is below `4 u`. The standard library promises no accuracy, so it is not used.
pub fn unit_root(k: usize, n: usize) -> [f64; 2] {
    let (octant, rest) = (8 * (k % n) / n, 8 * (k % n) % n);
    let odd = octant % 2 == 1;
    let fraction = if odd { n - rest } else { rest } as f64 / n as f64;
    let x = fraction * FRAC_PI_4;
    let square = x * x;
    // 1 - q/(m (m+1)) (1 - q/((m+2)(m+3)) (...)) for the sine with m = 2 and the cosine with m = 1.
    let series = |first: usize| {
        (0..9).rev().fold(1.0, |sum, i| {
            let m = (first + 2 * i) as f64;
            1.0 - square / (m * (m + 1.0)) * sum
        })
    };
    let (cosine, sine) = (series(1), x * series(2));
    let sine = if odd { -sine } else { sine };
    match octant.div_ceil(2) % 4 {
        0 => [cosine, sine],
        1 => [-sine, cosine],
        2 => [-cosine, -sine],
        _ => [sine, -cosine],
    }
}
