//! Layer normalisation over the last axis of `[rows, n]` and its gradients.
//!
//! With the mean `m` and `r = 1/sqrt(variance + epsilon)` of a row (the variance divides by `n`):
//! `h = (x - m) r`, `y = h gamma + beta`. With `g` the gradient of `y` and `w = g gamma`:
//! `dx = r (w - mean(w) - h mean(w h))`, `dgamma = sum over rows of g h`, `dbeta = that of g`.
//! Forward keeps `m` and `r`, two values per row; `h` is computed again.
//!
//! A row is read from the L1 or L2 cache three times (mean, variance, result) and from memory once. Its
//! sums run in 16 places side by side.

use crate::error::{KernelError, expect_len, rows_of};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, each_chunk};
use crate::runtime::partial_sums::{add_parts, rows_per_sum};
use crate::runtime::scratch::Scratch;
use crate::vector::lane_sums::{sum, sum_of_squares, total};
use crate::vector::{Kernel, Present, Vector};

/// Sums of a row that run side by side.
const LANES: usize = 16;

/// The trained numbers of a layer, `[n]` each, and its constant.
#[derive(Debug, Clone, Copy)]
pub struct LayerNorm<'a, T> {
    /// The factors.
    pub gamma: &'a [T],
    /// The offsets.
    pub beta: &'a [T],
    /// Added to the variance; Burn's default is 1e-5.
    pub epsilon: f64,
}

/// What is known of every row, `[rows]` each.
#[derive(Debug)]
pub struct RowStatistics<S> {
    /// The mean.
    pub mean: S,
    /// `1/sqrt(variance + epsilon)`.
    pub inverse_deviation: S,
}

/// What a backward pass writes.
#[derive(Debug)]
pub struct LayerNormGradients<'a, T> {
    /// `[rows, n]`.
    pub x: &'a mut [T],
    /// `[n]`.
    pub gamma: &'a mut [T],
    /// `[n]`.
    pub beta: &'a mut [T],
}

/// `y` from `x`, both `[rows, n]`, and the statistics of the rows.
pub fn layer_norm_into<T: Real>(
    x: &[T],
    layer: LayerNorm<'_, T>,
    y: &mut [T],
    statistics: RowStatistics<&mut [T]>,
) -> Result<(), KernelError> {
    let n = layer.gamma.len();
    expect_sizes(x.len(), layer, y.len(), &statistics)?;
    let rows = rows_per_sum(n);
    let outputs = [
        (y, rows * n),
        (statistics.mean, rows),
        (statistics.inverse_deviation, rows),
    ];
    each_chunk(x.len(), [(x, rows * n)], outputs, |_, [x], outputs| {
        let [y, mean, inverse_deviation] = outputs;
        let statistics = RowStatistics {
            mean,
            inverse_deviation,
        };
        let job = LayerNormChunk {
            x,
            layer,
            y,
            statistics,
        };
        T::layer_norm_chunk(best_isa(), job);
    });
    Ok(())
}

/// The gradients from that of `y`. `x` is what was normalised (behind a residual addition the sum);
/// `residual`, if given, is the gradient that reaches `x` on its way around the layer, and is added
/// to the one through the layer.
pub fn layer_norm_backward<T: Real>(
    x: &[T],
    gamma: &[T],
    statistics: RowStatistics<&[T]>,
    grad: &[T],
    residual: Option<&[T]>,
    gradients: LayerNormGradients<'_, T>,
) -> Result<(), KernelError> {
    let n = gamma.len();
    let layer = LayerNorm {
        gamma,
        beta: gamma,
        epsilon: 0.0,
    };
    expect_sizes(x.len(), layer, gradients.x.len(), &statistics)?;
    expect_len("the gradient", grad.len(), x.len())?;
    let residual = residual.unwrap_or(&[]);
    if !residual.is_empty() {
        expect_len("the residual gradient", residual.len(), x.len())?;
    }
    expect_len("the gradient of gamma", gradients.gamma.len(), n)?;
    expect_len("the gradient of beta", gradients.beta.len(), n)?;
    let rows = rows_per_sum(n);
    let mut sums = Scratch::take((x.len() / n).div_ceil(rows) * 2 * n);
    let of_residual = if residual.is_empty() { 0 } else { rows * n };
    let inputs = [
        (x, rows * n),
        (grad, rows * n),
        (residual, of_residual),
        (statistics.mean, rows),
        (statistics.inverse_deviation, rows),
    ];
    let outputs = [(gradients.x, rows * n), (&mut sums[..], 2 * n)];
    each_chunk(x.len(), inputs, outputs, |_, inputs, [out, sums]| {
        let [x, grad, residual, mean, inverse_deviation] = inputs;
        let job = LayerNormBackwardChunk {
            x,
            gamma,
            statistics: RowStatistics {
                mean,
                inverse_deviation,
            },
            grad,
            residual,
            out,
            sums,
        };
        T::layer_norm_backward_chunk(best_isa(), job);
    });
    add_parts(&sums, 2 * n, 0, gradients.gamma);
    add_parts(&sums, 2 * n, n, gradients.beta);
    Ok(())
}

fn expect_sizes<T, S: AsRef<[T]>>(
    numbers: usize,
    layer: LayerNorm<'_, T>,
    out: usize,
    statistics: &RowStatistics<S>,
) -> Result<(), KernelError> {
    let n = layer.gamma.len();
    let rows = rows_of("x", numbers, n)?;
    expect_len("beta", layer.beta.len(), n)?;
    expect_len("the result", out, numbers)?;
    expect_len("the means", statistics.mean.as_ref().len(), rows)?;
    let deviations = statistics.inverse_deviation.as_ref().len();
    expect_len("the inverse deviations", deviations, rows)
}

/// Whole rows.
pub struct LayerNormChunk<'a, T> {
    x: &'a [T],
    layer: LayerNorm<'a, T>,
    y: &'a mut [T],
    statistics: RowStatistics<&'a mut [T]>,
}

impl<T: Real> Kernel<T> for LayerNormChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let LayerNorm {
            gamma,
            beta,
            epsilon,
        } = self.layer;
        let n = gamma.len();
        let (count, epsilon) = (T::of(1.0 / n as f64), T::of(epsilon));
        let statistics = self.statistics.mean.iter_mut();
        let statistics = statistics.zip(self.statistics.inverse_deviation);
        for (row, (mean, inverse)) in statistics.enumerate() {
            let own = row * n..row * n + n;
            let x = &self.x[own.clone()];
            *mean = sum::<T, LANES>(x) * count;
            let variance = sum_of_squares::<V, LANES>(x, *mean) * count;
            *inverse = T::one() / (variance + epsilon).root();
            let parameters = gamma.iter().zip(beta);
            for ((y, &x), (&gamma, &beta)) in self.y[own].iter_mut().zip(x).zip(parameters) {
                *y = V::fused((x - *mean) * *inverse, gamma, beta);
            }
        }
    }
}

/// The gradients of whole rows: `sums` are those of gamma, then those of beta, in these rows.
pub struct LayerNormBackwardChunk<'a, T> {
    x: &'a [T],
    gamma: &'a [T],
    statistics: RowStatistics<&'a [T]>,
    grad: &'a [T],
    residual: &'a [T],
    out: &'a mut [T],
    sums: &'a mut [T],
}

impl<T: Real> Kernel<T> for LayerNormBackwardChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let n = self.gamma.len();
        let count = T::of(1.0 / n as f64);
        self.sums.fill(T::zero());
        let (of_gamma, of_beta) = self.sums.split_at_mut(n);
        let statistics = self.statistics.mean.iter();
        let statistics = statistics.zip(self.statistics.inverse_deviation);
        for (row, (&mean, &inverse)) in statistics.enumerate() {
            let own = row * n..row * n + n;
            let (x, grad) = (&self.x[own.clone()], &self.grad[own.clone()]);
            let out = &mut self.out[own.clone()];
            let (of_mean, of_deviation) =
                row_sums::<V>([x, grad, self.gamma], mean, inverse, of_gamma, of_beta);
            let (of_mean, of_deviation) = (of_mean * count, of_deviation * count);
            let inputs = x.iter().zip(grad).zip(self.gamma);
            for (out, ((&x, &g), &gamma)) in out.iter_mut().zip(inputs) {
                let h = (x - mean) * inverse;
                *out = V::fused(h, -of_deviation, V::fused(g, gamma, -of_mean)) * inverse;
            }
            if !self.residual.is_empty() {
                for (out, &residual) in out.iter_mut().zip(&self.residual[own]) {
                    *out = *out + residual;
                }
            }
        }
    }
}

/// `sum(w)` and `sum(w h)` of a row; `g h` and `g` are added to the sums over rows on the way.
#[inline(always)]
fn row_sums<V: Vector>(
    [x, grad, gamma]: [&[V::Scalar]; 3],
    mean: V::Scalar,
    inverse: V::Scalar,
    of_gamma: &mut [V::Scalar],
    of_beta: &mut [V::Scalar],
) -> (V::Scalar, V::Scalar) {
    let mut plain = [num_traits::Zero::zero(); LANES];
    let mut weighted = plain;
    let mut first = 0;
    while first < x.len() {
        let width = LANES.min(x.len() - first);
        let own = first..first + width;
        let (x, grad, gamma) = (&x[own.clone()], &grad[own.clone()], &gamma[own.clone()]);
        let (of_gamma, of_beta) = (&mut of_gamma[own.clone()], &mut of_beta[own]);
        for l in 0..width {
            let (h, w) = ((x[l] - mean) * inverse, grad[l] * gamma[l]);
            plain[l] = plain[l] + w;
            weighted[l] = V::fused(w, h, weighted[l]);
            of_gamma[l] = V::fused(grad[l], h, of_gamma[l]);
            of_beta[l] = of_beta[l] + grad[l];
        }
        first += width;
    }
    (total(plain), total(weighted))
}
