//! `KL(q || N(0, diag(tau^2)))` and its gradients, all in one pass over the rows (`docs/mathematics.md`, section 6, where
//! `V` is the `W = U diag(scale)` of this file; the gradient `G` of `W` gives those of the factor, `G diag(scale)`, and of the
//! scale, the sum over rows of `G*U`).

use std::ops::Range;

use super::block::{BLOCK, Prior, PriorBlock, Rows, TILE, Variances, sum, sum_lanes};
use super::low_rank::FactorBlock;
use crate::real::Real;
use crate::vector::{Kernel, Present, Vector};

/// Gradients of consecutive rows.
pub struct RowGradients<'a, T> {
    /// Of the KL in the whole.
    pub(super) weight: T,
    /// `diag(scale) M^-1`, so that `N = D^-1 U` times it.
    pub(super) scaled_inverse: &'a [f64],
    pub(super) mean: &'a mut [T],
    pub(super) factor: &'a mut [T],
    pub(super) log_deviation: &'a mut [T],
    pub(super) prior: PriorGradient<'a, T>,
}

/// What is asked for of the gradient of the prior variance.
pub enum PriorGradient<'a, T> {
    /// Nothing.
    None,
    /// Its sum over the rows.
    Sum,
    /// One per row.
    Each(&'a mut [T]),
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

impl<T: Real> Kernel<T> for KlChunk<'_, T> {
    type Output = KlSums;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(mut self, _: Present<V>) -> KlSums {
        let padded = self.rows.padded();
        let mut sums = KlSums {
            value: 0.0,
            scale: vec![0.0; padded],
            prior_variance: 0.0,
        };
        let mut block = KlBlock::new(self.prior, padded);
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range.clone());
            sums.value += block.read(&rows, self.prior.slice(range.clone()));
            if let Some(gradients) = &mut self.gradients {
                let mut gradients = gradients.slice(range, rows.rank);
                match padded / TILE {
                    0 => {}
                    1 => block.factor_gradients(1, &rows, &mut gradients, &mut sums.scale),
                    tiles => block.factor_gradients(tiles, &rows, &mut gradients, &mut sums.scale),
                }
                block.diagonal_gradients(&rows, &mut gradients);
                let weight = gradients.weight;
                sums.prior_variance += block.prior_gradients(&rows, weight, gradients.prior);
            }
        }
        sums
    }
}

impl<T> RowGradients<'_, T> {
    #[inline(always)]
    fn slice(&mut self, rows: Range<usize>, rank: usize) -> RowGradients<'_, T>
    where
        T: Copy,
    {
        RowGradients {
            weight: self.weight,
            scaled_inverse: self.scaled_inverse,
            mean: &mut self.mean[rows.clone()],
            factor: &mut self.factor[rows.start * rank..rows.end * rank],
            log_deviation: &mut self.log_deviation[rows.clone()],
            prior: match &mut self.prior {
                PriorGradient::None => PriorGradient::None,
                PriorGradient::Sum => PriorGradient::Sum,
                PriorGradient::Each(each) => PriorGradient::Each(&mut each[rows]),
            },
        }
    }
}

/// Everything about the rows of one block; without a factor its parts stay as they are made.
struct KlBlock<T> {
    variances: Variances<T>,
    prior: PriorBlock<T>,
    factor: FactorBlock,
    /// `U diag(scale) M^-1`.
    products: FactorBlock,
    /// `(D + mean^2)/tau^2 - 1`.
    excess: [T; BLOCK],
    /// `1 - N.W`, the share of `1/D` that is left.
    left: [T; BLOCK],
    /// For a quantity of every row.
    terms: [T; BLOCK],
}

impl<T: Real> KlBlock<T> {
    #[inline(always)]
    fn new(prior: Prior<'_, T>, padded: usize) -> Self {
        Self {
            variances: Variances::new(),
            prior: PriorBlock::new(prior),
            factor: FactorBlock::new(padded),
            products: FactorBlock::new(padded),
            excess: [T::zero(); BLOCK],
            left: [T::one(); BLOCK],
            terms: [T::zero(); BLOCK],
        }
    }

    /// Returns `sum (D + rowsq(W) + mean^2)/tau^2 - 1 + ln tau^2 - ln D`.
    #[inline(always)]
    fn read(&mut self, rows: &Rows<'_, T>, prior: Prior<'_, T>) -> f64 {
        self.variances.read(rows);
        let prior_logarithms = self.prior.read(rows.len(), prior);
        let excess = &mut self.excess[..rows.len()];
        for (i, (excess, &mean)) in excess.iter_mut().zip(rows.mean).enumerate() {
            let second_moment = self.variances.total[i] + mean * mean;
            *excess = second_moment * self.prior.inverse[i] - T::one();
        }
        let mut value = sum(excess) + (prior_logarithms - self.variances.sum_of_logarithms(rows));
        if rows.rank > 0 {
            self.factor.read(rows);
            value += match self.factor.tiles {
                // The usual rank of 8, with all bounds known to the compiler.
                1 => self.spread(1, rows),
                tiles => self.spread(tiles, rows),
            };
        }
        value
    }

    /// `sum rowsq(W)/tau^2`, column by column.
    #[inline(always)]
    fn spread(&self, tiles: usize, rows: &Rows<'_, T>) -> f64 {
        let scales = rows.scale.as_chunks::<TILE>().0;
        let factor = &self.factor.u[..rows.len() * tiles];
        let mut lanes = [0.0; TILE];
        for j in 0..tiles {
            let mut sums = [0.0; TILE];
            for (row, inverse) in factor.chunks_exact(tiles).zip(&self.prior.inverse) {
                let (u, inverse) = (row[j], inverse.wide());
                for l in 0..TILE {
                    sums[l] += u[l] * u[l] * inverse;
                }
            }
            for l in 0..TILE {
                lanes[l] += sums[l] * (scales[j][l] * scales[j][l]);
            }
        }
        sum_lanes(lanes)
    }

    #[inline(always)]
    fn diagonal_gradients(&mut self, rows: &Rows<'_, T>, gradients: &mut RowGradients<'_, T>) {
        self.variances.free_share(rows, &mut self.terms);
        let outputs = gradients.mean.iter_mut().zip(&mut *gradients.log_deviation);
        for (i, ((of_mean, of_log), &mean)) in outputs.zip(rows.mean).enumerate().take(BLOCK) {
            let (inverse, weight) = (self.prior.inverse[i], gradients.weight);
            *of_mean = mean * inverse * weight;
            *of_log = (self.variances.free[i] * inverse - self.left[i] * self.terms[i]) * weight;
        }
    }

    /// Returns the sum over the rows, without the weight.
    #[inline(always)]
    fn prior_gradients(
        &mut self,
        rows: &Rows<'_, T>,
        weight: T,
        gradient: PriorGradient<'_, T>,
    ) -> f64 {
        if matches!(gradient, PriorGradient::None) {
            return 0.0;
        }
        let half = T::of(0.5);
        let terms = &mut self.terms[..rows.len()];
        for (i, term) in terms.iter_mut().enumerate() {
            *term = -half * self.prior.inverse[i] * self.excess[i];
        }
        if rows.rank > 0 {
            let factor = self.factor.u.chunks_exact(rows.padded() / TILE);
            for (i, (term, row)) in terms.iter_mut().zip(factor).enumerate() {
                let mut spread = 0.0;
                for (u, scale) in row.as_flattened().iter().zip(rows.scale) {
                    spread += (u * scale) * (u * scale);
                }
                let inverse = self.prior.inverse[i];
                *term = *term - half * inverse * inverse * T::of(spread);
            }
        }
        if let PriorGradient::Each(each) = gradient {
            for (each, term) in each.iter_mut().zip(&*terms) {
                *each = *term * weight;
            }
        }
        sum(terms)
    }

    /// Gradients of factor and scale, and what of `1/D` is left for the log deviation.
    #[inline(always)]
    fn factor_gradients(
        &mut self,
        tiles: usize,
        rows: &Rows<'_, T>,
        gradients: &mut RowGradients<'_, T>,
        grad_scale: &mut [f64],
    ) {
        let (len, weight) = (rows.len(), gradients.weight.wide());
        self.factor
            .times(tiles, len, gradients.scaled_inverse, &mut self.products);
        let mut inverse = [0.0; BLOCK];
        for (inverse, total) in inverse.iter_mut().zip(&self.variances.total) {
            *inverse = 1.0 / total.wide();
        }
        let mut explained = [0.0; BLOCK];
        let scales = rows.scale.as_chunks::<TILE>().0;
        let grad_scale = grad_scale.as_chunks_mut::<TILE>().0;
        let factor = &self.factor.u[..len * tiles];
        let products = &mut self.products.u[..len * tiles];
        for j in 0..tiles {
            let scale = scales[j];
            let mut sums = [0.0; TILE];
            for i in 0..len {
                let (u, product) = (factor[i * tiles + j], &mut products[i * tiles + j]);
                let prior_inverse = self.prior.inverse[i].wide();
                let mut lanes = [0.0; TILE];
                for l in 0..TILE {
                    let w = u[l] * scale[l];
                    let n = product[l] * inverse[i];
                    lanes[l] = n * w;
                    let grad_w = w * prior_inverse - n;
                    product[l] = grad_w * (scale[l] * weight);
                    sums[l] += grad_w * u[l];
                }
                explained[i] += sum_lanes(lanes);
            }
            for (total, sum) in grad_scale[j].iter_mut().zip(sums) {
                *total += sum;
            }
        }
        self.products.write(rows.rank, gradients.factor);
        for (left, explained) in self.left[..len].iter_mut().zip(&explained) {
            *left = T::of(1.0 - explained);
        }
    }
}
