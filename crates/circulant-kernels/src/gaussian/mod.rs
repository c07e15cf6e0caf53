//! The Gaussian `q(a) = N(mean, U diag(scale^2) U^T + diag(exp(2 log_deviation)) + jitter I)` with a
//! low-rank and a diagonal part: samples, KL, entropy and density, with gradients (SPEC section 4).
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

mod block;
mod cholesky;
mod density;
mod kl;
mod low_rank;
mod sample;
#[cfg(test)]
mod tests;

use std::f64::consts::TAU;
use std::ops::Range;

use block::{Prior, Rows};
use cholesky::Cholesky;
pub(crate) use density::{DiagonalChunk, LogVarianceChunk, ResidualChunk};
use kl::RowGradients;
pub(crate) use kl::{KlChunk, KlSums};
pub(crate) use low_rank::GramChunk;
use low_rank::padded;
pub(crate) use sample::{SampleBackwardChunk, SampleChunk};

use crate::chunks::{best_isa, rows_per_chunk, run_all};
use crate::error::{KernelError, expect_len};
use crate::real::Real;

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
        expect_len("factor", factor.len(), mean.len() * scale.len())?;
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

    /// The gradients of a sample from `grad`, the gradient of its numbers. They overwrite what is
    /// there; the gradient of the mean is `grad` itself.
    pub fn sample_backward(
        &self,
        low_rank_noise: &[T],
        noise: &[T],
        grad: &[T],
        gradients: SampleGradients<'_, T>,
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
                    rows,
                }),
            |job| T::sample_backward_chunk(best_isa(), job),
        );
        let projection = add_up(projections);
        for ((out, &xi), sum) in grad_scale.iter_mut().zip(low_rank_noise).zip(projection) {
            *out = T::of(xi.wide() * sum);
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

    /// The KL as above and its gradients, which overwrite what is there.
    pub fn kl_with_gradients(
        &self,
        prior_variance: &[T],
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
        let mut grad_each = match prior {
            Prior::Each(_) => grad_prior.take(),
            Prior::Same(_) => None,
        };
        let scale = self.padded_scale();
        let cholesky = self.cholesky(&scale);
        let inverse = cholesky.inverse();
        let sums = run_all(
            self.numbers(),
            self.chunks(&scale).map(|(rows, range)| KlChunk {
                prior: prior.slice(range),
                gradients: Some(RowGradients {
                    inverse: &inverse,
                    mean: take_front(&mut mean, rows.len()),
                    factor: take_front(&mut factor, rows.len() * rows.rank),
                    log_deviation: take_front(&mut log_deviation, rows.len()),
                    prior_variance: grad_each.as_mut().map(|each| take_front(each, rows.len())),
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
            grad_prior[0] = T::of(of_prior);
        }
        let of_scale = add_up(sums.into_iter().map(|chunk: KlSums| chunk.scale).collect());
        for (out, sum) in grad_scale.iter_mut().zip(of_scale) {
            *out = T::of(sum);
        }
        Ok(0.5 * (twice - cholesky.log_determinant()))
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

/// What the methods above share.
impl<T: Real> LowRank<'_, T> {
    /// Numbers that a pass over the rows touches.
    fn numbers(&self) -> usize {
        self.dimension() * (self.rank() + 1)
    }

    /// The rows in chunks, with their range; `scale` is the padded one.
    fn chunks<'b>(&'b self, scale: &'b [f64]) -> impl Iterator<Item = (Rows<'b, T>, Range<usize>)> {
        let rows = Rows {
            mean: self.mean,
            factor: self.factor,
            log_deviation: self.log_deviation,
            jitter: T::of(self.jitter),
            scale,
            rank: self.rank(),
        };
        let (dimension, step) = (self.dimension(), rows_per_chunk(self.rank() + 1));
        (0..dimension).step_by(step).map(move |start| {
            let range = start..dimension.min(start + step);
            (rows.slice(range.clone()), range)
        })
    }

    /// The scale in f64, zero in the padding.
    fn padded_scale(&self) -> Vec<f64> {
        let mut scale = vec![0.0; padded(self.rank())];
        for (wide, value) in scale.iter_mut().zip(self.scale) {
            *wide = value.wide();
        }
        scale
    }

    /// `scale*xi`.
    fn direction(&self, low_rank_noise: &[T]) -> Vec<T> {
        let pairs = self.scale.iter().zip(low_rank_noise);
        pairs.map(|(&scale, &xi)| scale * xi).collect()
    }

    /// `M` with its padding, which is that of the identity and changes nothing.
    fn cholesky(&self, scale: &[f64]) -> Cholesky {
        let n = scale.len();
        if n == 0 {
            return Cholesky::new(Vec::new(), 0);
        }
        let jobs = self.chunks(scale).map(|(rows, _)| GramChunk { rows });
        let grams = run_all(self.numbers(), jobs, |job| T::gram_chunk(best_isa(), job));
        let mut matrix = add_up(grams);
        for i in 0..n {
            matrix[i * n + i] += 1.0;
        }
        Cholesky::new(matrix, n)
    }

    /// `ln det covariance = sum ln D + ln det M`.
    fn log_determinant(&self, scale: &[f64], cholesky: &Cholesky) -> f64 {
        let jobs = self
            .chunks(scale)
            .map(|(rows, _)| LogVarianceChunk { rows });
        let sums = run_all(self.numbers(), jobs, |job| {
            T::log_variance_chunk(best_isa(), job)
        });
        sums.iter().sum::<f64>() + cholesky.log_determinant()
    }

    fn prior<'b>(&self, prior_variance: &'b [T]) -> Result<Prior<'b, T>, KernelError> {
        if let [variance] = prior_variance {
            return Ok(Prior::Same(*variance));
        }
        expect_len("prior_variance", prior_variance.len(), self.dimension())?;
        Ok(Prior::Each(prior_variance))
    }

    fn expect_gradients(
        &self,
        factor: &[T],
        scale: &[T],
        log_deviation: &[T],
    ) -> Result<(), KernelError> {
        expect_len("gradient of factor", factor.len(), self.factor.len())?;
        expect_len("gradient of scale", scale.len(), self.rank())?;
        let got = log_deviation.len();
        expect_len("gradient of log_deviation", got, self.dimension())
    }
}

/// Cuts the first `len` numbers off a slice.
fn take_front<'a, T>(slice: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    slice
        .split_off_mut(..len)
        .expect("lengths are checked before the rows are cut")
}

/// Adds vectors of the same length, in their order.
fn add_up(parts: Vec<Vec<f64>>) -> Vec<f64> {
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_default();
    for part in parts {
        for (total, value) in total.iter_mut().zip(part) {
            *total += value;
        }
    }
    total
}
