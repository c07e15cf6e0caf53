//! `KL(q || N(0, diag(tau^2)))` and its gradients, all in one pass over the rows (SPEC section 4).
//!
//! With `W = U diag(scale)`, `D = exp(2 log_deviation) + jitter`, `M = I + W^T D^-1 W`:
//!
//! `KL = 1/2 [ sum (D + rowsq(W) + mean^2)/tau^2 - d + sum ln tau^2 - sum ln D - ln det M ]`
//!
//! From `d ln det M = 2 <D^-1 W M^-1, dW> - <rowsq(W M^-1, W)/D^2, dD>`, row by row:
//!
//! | of | gradient |
//! | --- | --- |
//! | mean | `mean/tau^2` |
//! | `W` | `G = W/tau^2 - N`, with `N = D^-1 W M^-1` |
//! | factor | `G diag(scale)` |
//! | scale | `sum over rows of G*U` |
//! | log_deviation | `exp(2 log_deviation) (1/tau^2 - (1 - N.W)/D)` |
//! | `tau^2` | `1/2 (1 - (D + rowsq(W) + mean^2)/tau^2) / tau^2` |

use super::block::{BLOCK, Prior, PriorBlock, Rows, TILE, Variances, sum, sum_lanes};
use super::low_rank::{Weights, factor_tile};
use crate::real::Real;
use crate::simd::{Kernel, Vector};

/// Gradients of consecutive rows.
pub struct RowGradients<'a, T> {
    /// `M^-1`.
    pub(super) inverse: &'a [f64],
    pub(super) mean: &'a mut [T],
    pub(super) factor: &'a mut [T],
    pub(super) log_deviation: &'a mut [T],
    /// One per row, where each row has its own prior variance and its gradient is asked for.
    pub(super) prior_variance: Option<&'a mut [T]>,
}

/// The sum over consecutive rows, without `ln det M`.
pub struct KlChunk<'a, T> {
    pub(super) rows: Rows<'a, T>,
    pub(super) prior: Prior<'a, T>,
    pub(super) gradients: Option<RowGradients<'a, T>>,
}

/// What the rows of a chunk add to the whole.
pub struct KlSums {
    /// To twice the KL.
    pub(super) value: f64,
    /// To the gradient of the scale, `[padded rank]`.
    pub(super) scale: Vec<f64>,
    /// To the gradient of one prior variance for all rows.
    pub(super) prior_variance: f64,
}

/// What the factor adds to the rows of a block; without a factor it stays as it is made.
struct FactorBlock<T> {
    /// `rowsq(W)`.
    spread: [T; BLOCK],
    /// `1 - N.W`, the share of `1/D` that is left.
    left: [T; BLOCK],
    weights: Weights,
    products: Weights,
}

impl<T: Real> Kernel<T> for KlChunk<'_, T> {
    type Output = KlSums;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(mut self) -> KlSums {
        let padded = self.rows.padded();
        let mut sums = KlSums {
            value: 0.0,
            scale: vec![0.0; padded],
            prior_variance: 0.0,
        };
        let mut variances = Variances::new();
        let mut prior = PriorBlock::new(self.prior);
        let mut factor = FactorBlock::new(padded);
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range.clone());
            variances.read(&rows);
            prior.read(self.prior.slice(range.clone()));
            if padded > 0 {
                factor.read(&rows);
            }
            sums.value += diagonal_terms(&rows, &variances, &prior, &factor);
            if let Some(gradients) = &mut self.gradients {
                let mut gradients = gradients.slice(range, rows.rank);
                if padded > 0 {
                    factor.gradients(&rows, &variances, &prior, &mut gradients, &mut sums.scale);
                }
                sums.prior_variance +=
                    diagonal_gradients(&rows, &variances, &prior, &factor, gradients);
            }
        }
        sums
    }
}

impl<T> RowGradients<'_, T> {
    #[inline(always)]
    fn slice(&mut self, rows: std::ops::Range<usize>, rank: usize) -> RowGradients<'_, T> {
        RowGradients {
            inverse: self.inverse,
            mean: &mut self.mean[rows.clone()],
            factor: &mut self.factor[rows.start * rank..rows.end * rank],
            log_deviation: &mut self.log_deviation[rows.clone()],
            prior_variance: self.prior_variance.as_mut().map(|g| &mut g[rows]),
        }
    }
}

/// `sum (D + rowsq(W) + mean^2)/tau^2 - 1 + ln tau^2 - ln D`.
#[inline(always)]
fn diagonal_terms<T: Real>(
    rows: &Rows<'_, T>,
    variances: &Variances<T>,
    prior: &PriorBlock<T>,
    factor: &FactorBlock<T>,
) -> f64 {
    let mut logarithms = [T::zero(); BLOCK];
    variances.logarithms(rows, &mut logarithms);
    let mut terms = [T::zero(); BLOCK];
    for (i, (term, &mean)) in terms.iter_mut().zip(rows.mean).enumerate() {
        let second_moment = variances.total[i] + factor.spread[i] + mean * mean;
        let ratio = second_moment * prior.inverse[i] - T::one();
        *term = ratio + (prior.logarithm[i] - logarithms[i]);
    }
    sum(&terms[..rows.len()])
}

/// The gradients of mean, log deviation and prior variances; returns the sum of the latter.
#[inline(always)]
fn diagonal_gradients<T: Real>(
    rows: &Rows<'_, T>,
    variances: &Variances<T>,
    prior: &PriorBlock<T>,
    factor: &FactorBlock<T>,
    gradients: RowGradients<'_, T>,
) -> f64 {
    let mut free_share = [T::zero(); BLOCK];
    variances.free_share(rows, &mut free_share);
    let outputs = gradients.mean.iter_mut().zip(gradients.log_deviation);
    for (i, ((grad_mean, grad_log), &mean)) in outputs.zip(rows.mean).enumerate() {
        *grad_mean = mean * prior.inverse[i];
        *grad_log = variances.free[i] * prior.inverse[i] - factor.left[i] * free_share[i];
    }
    let mut terms = [T::zero(); BLOCK];
    let half = T::of(0.5);
    for (i, (term, &mean)) in terms.iter_mut().zip(rows.mean).enumerate() {
        let second_moment = variances.total[i] + factor.spread[i] + mean * mean;
        let inverse = prior.inverse[i];
        *term = half * inverse * (T::one() - second_moment * inverse);
    }
    let terms = &terms[..rows.len()];
    if let Some(grad_prior) = gradients.prior_variance {
        grad_prior.copy_from_slice(terms);
    }
    sum(terms)
}

impl<T: Real> FactorBlock<T> {
    #[inline(always)]
    fn new(padded: usize) -> Self {
        Self {
            spread: [T::zero(); BLOCK],
            left: [T::one(); BLOCK],
            weights: Weights::new(padded),
            products: Weights::new(padded),
        }
    }

    #[inline(always)]
    fn read(&mut self, rows: &Rows<'_, T>) {
        self.weights.read(rows);
        for i in 0..rows.len() {
            let mut lanes = [0.0; TILE];
            for tile in 0..rows.padded() / TILE {
                let w = self.weights.tile(i, tile);
                for l in 0..TILE {
                    lanes[l] += w[l] * w[l];
                }
            }
            self.spread[i] = T::of(sum_lanes(lanes));
        }
    }

    /// Gradients of factor and scale, and what of `1/D` is left for the log deviation.
    #[inline(always)]
    fn gradients(
        &mut self,
        rows: &Rows<'_, T>,
        variances: &Variances<T>,
        prior: &PriorBlock<T>,
        gradients: &mut RowGradients<'_, T>,
        grad_scale: &mut [f64],
    ) {
        let len = rows.len();
        self.weights
            .times(len, gradients.inverse, &mut self.products);
        let mut inverse = [0.0; BLOCK];
        for (inverse, total) in inverse.iter_mut().zip(&variances.total) {
            *inverse = 1.0 / total.wide();
        }
        let mut explained = [0.0; BLOCK];
        let tiles = rows.scale.as_chunks::<TILE>().0.iter();
        for (tile, (scale, grad_scale)) in tiles.zip(grad_scale.as_chunks_mut().0).enumerate() {
            let mut sums = [0.0; TILE];
            for i in 0..len {
                let (w, product) = (self.weights.tile(i, tile), self.products.tile(i, tile));
                let u = factor_tile(rows, i, tile);
                let prior_inverse = prior.inverse[i].wide();
                let mut lanes = [0.0; TILE];
                let mut grad_u = [T::zero(); TILE];
                for l in 0..TILE {
                    let n = product[l] * inverse[i];
                    lanes[l] = n * w[l];
                    let grad_w = w[l] * prior_inverse - n;
                    grad_u[l] = T::of(grad_w * scale[l]);
                    sums[l] += grad_w * u[l];
                }
                explained[i] += sum_lanes(lanes);
                let row = &mut gradients.factor[i * rows.rank + tile * TILE..(i + 1) * rows.rank];
                store_tile(&grad_u, row);
            }
            let grad_scale: &mut [f64; TILE] = grad_scale;
            for (total, sum) in grad_scale.iter_mut().zip(sums) {
                *total += sum;
            }
        }
        for (left, explained) in self.left[..len].iter_mut().zip(explained) {
            *left = T::of(1.0 - explained);
        }
    }
}

/// Writes a tile into what is left of a row, without the padding.
#[inline(always)]
pub(super) fn store_tile<T: Real>(tile: &[T; TILE], row: &mut [T]) {
    if let Some(row) = row.first_chunk_mut::<TILE>() {
        *row = *tile;
    } else {
        for (out, value) in row.iter_mut().zip(tile) {
            *out = *value;
        }
    }
}
