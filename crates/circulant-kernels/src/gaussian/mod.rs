//! The Gaussian `q(a) = N(mean, U diag(scale^2) U^T + diag(exp(2 log_deviation)) + jitter I)` with a
//! low-rank and a diagonal part: samples, KL, entropy and density, with gradients (`docs/mathematics.md`, section 6).
//!
//! | name | shape |
//! | --- | --- |
//! | mean, log_deviation | `[d]` |
//! | factor `U` | `[d, r]`, row-major |
//! | scale | `[r]` |
//!
//! No `d x d` matrix is ever made: with `D = exp(2 log_deviation) + jitter` and `W = U diag(scale)`
//! the determinant lemma gives `det = prod(D) det(M)`, `M = I + W^T D^-1 W`, which is `r x r`.
//! Rank 0 is the mean-field Gaussian. Not a number goes in, not a number comes out.

pub mod block;
pub mod cholesky;
pub mod density;
pub mod kl;
pub mod low_rank;
pub mod parts;
pub mod sample;

use std::f64::consts::TAU;

use block::Prior;
pub(crate) use density::{DiagonalChunk, LogVarianceChunk, ResidualChunk};
pub(crate) use kl::{KlChunk, KlSums};
use kl::{PriorGradient, RowGradients};
pub(crate) use low_rank::GramChunk;
use parts::{add_up, take_front};
pub(crate) use sample::{SampleBackwardChunk, SampleChunk};

use crate::error::{KernelError, expect_len, expect_volume};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, run_all};

/// A Gaussian with covariance `U diag(scale^2) U^T + diag(exp(2 log_deviation)) + jitter I`.
///
/// ```
/// use circulant_kernels::LowRank;
/// let (mean, log_deviation) = ([0.0; 3], [0.0; 3]);
/// let q = LowRank::new(&mean, &[], &[], &log_deviation, 0.0)?;
/// assert_eq!(q.kl(&[1.0])?, 0.0);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LowRank<'a, T> {
    mean: &'a [T],
    factor: &'a [T],
    scale: &'a [T],
    log_deviation: &'a [T],
    jitter: f64,
}

/// Where the gradients of a sample are written; the gradient of the mean is that of the sample.
#[derive(Debug)]
pub struct SampleGradients<'a, T> {
    /// `[d, r]`.
    pub factor: &'a mut [T],
    /// `[r]`.
    pub scale: &'a mut [T],
    /// `[d]`.
    pub log_deviation: &'a mut [T],
}

/// Where the gradients of the KL are written.
#[derive(Debug)]
pub struct KlGradients<'a, T> {
    /// `[d]`.
    pub mean: &'a mut [T],
    /// `[d, r]`.
    pub factor: &'a mut [T],
    /// `[r]`.
    pub scale: &'a mut [T],
    /// `[d]`.
    pub log_deviation: &'a mut [T],
    /// As long as the prior variance: 1 or `d`.
    pub prior_variance: Option<&'a mut [T]>,
}

impl<'a, T: Real> LowRank<'a, T> {
    /// Checks the sizes: `d` from the mean, `r` from the scale.
    pub fn new(
        mean: &'a [T],
        factor: &'a [T],
        scale: &'a [T],
        log_deviation: &'a [T],
        jitter: f64,
    ) -> Result<Self, KernelError> {
        if mean.is_empty() {
            return Err(KernelError::ZeroSize {
                what: "the dimension of the Gaussian",
            });
        }
        expect_len("log_deviation", log_deviation.len(), mean.len())?;
        expect_volume("factor", factor.len(), &[mean.len(), scale.len()])?;
        if jitter < 0.0 || jitter.is_infinite() {
            return Err(KernelError::Jitter { got: jitter });
        }
        Ok(Self {
            mean,
            factor,
            scale,
            log_deviation,
            jitter,
        })
    }

    /// The dimension `d`.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// The rank `r`.
    pub fn rank(&self) -> usize {
        self.scale.len()
    }

    /// `out = mean + U (scale*low_rank_noise) + sqrt(D) noise`.
    ///
    /// # Shapes
    /// `low_rank_noise [r]`, `noise [d]`, `out [d]`.
    pub fn sample_into(
        &self,
        low_rank_noise: &[T],
        noise: &[T],
        out: &mut [T],
    ) -> Result<(), KernelError> {
        expect_len("low_rank_noise", low_rank_noise.len(), self.rank())?;
        expect_len("noise", noise.len(), self.dimension())?;
        expect_len("out", out.len(), self.dimension())?;
        let (scale, direction) = (self.padded_scale(), self.direction(low_rank_noise));
        let mut out = out;
        run_all(
            self.numbers(),
            self.chunks(&scale).map(|(rows, range)| SampleChunk {
                noise: &noise[range],
                out: take_front(&mut out, rows.len()),
                direction: &direction,
                rows,
            }),
            |job| T::sample_chunk(best_isa(), job),
        );
        Ok(())
    }

    /// The gradients of a sample from `grad`, the gradient of its values. They overwrite what is
    /// there; the gradient of the mean is `grad` itself.
    pub fn sample_backward(
        &self,
        low_rank_noise: &[T],
        noise: &[T],
        grad: &[T],
        gradients: SampleGradients<'_, T>,
    ) -> Result<(), KernelError> {
        self.pull_back((low_rank_noise, noise), grad, gradients, None)
    }

    /// Adds `share` times the gradients of a sample to what is there, say, to the gradients of the KL; that of the prior stays.
    pub fn add_sample_gradients(
        &self,
        low_rank_noise: &[T],
        noise: &[T],
        grad: &[T],
        share: f64,
        sums: KlGradients<'_, T>,
    ) -> Result<(), KernelError> {
        expect_len("the gradient of the mean", sums.mean.len(), grad.len())?;
        let gradients = SampleGradients {
            factor: sums.factor,
            scale: sums.scale,
            log_deviation: sums.log_deviation,
        };
        let share = T::of(share);
        self.pull_back((low_rank_noise, noise), grad, gradients, Some(share))?;
        for (sum, &g) in sums.mean.iter_mut().zip(grad) {
            *sum = *sum + share * g;
        }
        Ok(())
    }

    fn pull_back(
        &self,
        (low_rank_noise, noise): (&[T], &[T]),
        grad: &[T],
        gradients: SampleGradients<'_, T>,
        add: Option<T>,
    ) -> Result<(), KernelError> {
        expect_len("low_rank_noise", low_rank_noise.len(), self.rank())?;
        expect_len("noise", noise.len(), self.dimension())?;
        expect_len("grad", grad.len(), self.dimension())?;
        let SampleGradients {
            mut factor,
            scale: grad_scale,
            mut log_deviation,
        } = gradients;
        self.expect_gradients(factor, grad_scale, log_deviation)?;
        let (scale, direction) = (self.padded_scale(), self.direction(low_rank_noise));
        let projections = run_all(
            self.numbers(),
            self.chunks(&scale)
                .map(|(rows, range)| SampleBackwardChunk {
                    noise: &noise[range.clone()],
                    grad: &grad[range],
                    grad_factor: take_front(&mut factor, rows.len() * rows.rank),
                    grad_log_deviation: take_front(&mut log_deviation, rows.len()),
                    direction: &direction,
                    add,
                    rows,
                }),
            |job| T::sample_backward_chunk(best_isa(), job),
        );
        let projection = add_up(projections);
        for ((out, &xi), sum) in grad_scale.iter_mut().zip(low_rank_noise).zip(projection) {
            let gradient = T::of(xi.wide() * sum);
            *out = add.map_or(gradient, |share| *out + share * gradient);
        }
        Ok(())
    }

    /// `KL(q || N(0, diag(prior_variance)))`; one prior variance for all, or one each.
    pub fn kl(&self, prior_variance: &[T]) -> Result<f64, KernelError> {
        let prior = self.prior(prior_variance)?;
        let scale = self.padded_scale();
        let log_determinant = self.cholesky(&scale).log_determinant();
        let sums = run_all(
            self.numbers(),
            self.chunks(&scale).map(|(rows, range)| KlChunk {
                prior: prior.slice(range),
                gradients: None,
                rows,
            }),
            |job| T::kl_chunk(best_isa(), job),
        );
        let twice: f64 = sums.iter().map(|chunk| chunk.value).sum();
        Ok(0.5 * (twice - log_determinant))
    }

    /// `weight` times the KL as above, and the gradients of that, which overwrite what is there.
    pub fn kl_with_gradients(
        &self,
        prior_variance: &[T],
        weight: f64,
        gradients: KlGradients<'_, T>,
    ) -> Result<f64, KernelError> {
        let prior = self.prior(prior_variance)?;
        let KlGradients {
            mut mean,
            mut factor,
            scale: grad_scale,
            mut log_deviation,
            prior_variance: mut grad_prior,
        } = gradients;
        expect_len("gradient of mean", mean.len(), self.dimension())?;
        self.expect_gradients(factor, grad_scale, log_deviation)?;
        if let Some(grad_prior) = &grad_prior {
            let got = grad_prior.len();
            expect_len("gradient of prior_variance", got, prior_variance.len())?;
        }
        let wants_sum = grad_prior.is_some();
        let mut grad_each = match prior {
            Prior::Each(_) => grad_prior.take(),
            Prior::Same(_) => None,
        };
        let scale = self.padded_scale();
        let cholesky = self.cholesky(&scale);
        let mut scaled_inverse = cholesky.inverse();
        for (row, scale) in scaled_inverse.chunks_mut(scale.len().max(1)).zip(&scale) {
            row.iter_mut().for_each(|entry| *entry *= scale);
        }
        let sums = run_all(
            self.numbers(),
            self.chunks(&scale).map(|(rows, range)| KlChunk {
                prior: prior.slice(range),
                gradients: Some(RowGradients {
                    weight: T::of(weight),
                    scaled_inverse: &scaled_inverse,
                    mean: take_front(&mut mean, rows.len()),
                    factor: take_front(&mut factor, rows.len() * rows.rank),
                    log_deviation: take_front(&mut log_deviation, rows.len()),
                    prior: match &mut grad_each {
                        Some(each) => PriorGradient::Each(take_front(each, rows.len())),
                        None if wants_sum => PriorGradient::Sum,
                        None => PriorGradient::None,
                    },
                }),
                rows,
            }),
            |job| T::kl_chunk(best_isa(), job),
        );
        let (mut twice, mut of_prior) = (0.0, 0.0);
        for chunk in &sums {
            twice += chunk.value;
            of_prior += chunk.prior_variance;
        }
        if let Some(grad_prior) = grad_prior {
            grad_prior[0] = T::of(weight * of_prior);
        }
        let of_scale = add_up(sums.into_iter().map(|chunk: KlSums| chunk.scale).collect());
        for (out, sum) in grad_scale.iter_mut().zip(of_scale) {
            *out = T::of(weight * sum);
        }
        Ok(weight * 0.5 * (twice - cholesky.log_determinant()))
    }

    /// `1/2 [d (1 + ln 2 pi) + ln det covariance]`.
    pub fn entropy(&self) -> f64 {
        let scale = self.padded_scale();
        let log_determinant = self.log_determinant(&scale, &self.cholesky(&scale));
        0.5 * (self.dimension() as f64 * (1.0 + TAU.ln()) + log_determinant)
    }

    /// `ln q(a)`, `a [d]`.
    pub fn log_density(&self, a: &[T]) -> Result<f64, KernelError> {
        expect_len("a", a.len(), self.dimension())?;
        let scale = self.padded_scale();
        let cholesky = self.cholesky(&scale);
        let chunks = run_all(
            self.numbers(),
            self.chunks(&scale)
                .map(|(rows, range)| ResidualChunk { rows, a: &a[range] }),
            |job| T::residual_chunk(best_isa(), job),
        );
        let (forms, projections): (Vec<f64>, Vec<Vec<f64>>) = chunks.into_iter().unzip();
        let form = forms.iter().sum::<f64>() - cholesky.inverse_form(&add_up(projections));
        let constant = self.dimension() as f64 * TAU.ln();
        Ok(-0.5 * (constant + self.log_determinant(&scale, &cholesky) + form))
    }

    /// The diagonal of the covariance, `out [d]`.
    pub fn diagonal_variance(&self, out: &mut [T]) -> Result<(), KernelError> {
        expect_len("out", out.len(), self.dimension())?;
        let (scale, mut out) = (self.padded_scale(), out);
        run_all(
            self.numbers(),
            self.chunks(&scale).map(|(rows, _)| DiagonalChunk {
                out: take_front(&mut out, rows.len()),
                rows,
            }),
            |job| T::diagonal_chunk(best_isa(), job),
        );
        Ok(())
    }
}
