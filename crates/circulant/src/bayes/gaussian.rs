//! Draws from a Gaussian posterior and its KL, on tensors: one fused operation on the CPU, composed of ordinary
//! operations everywhere else.
//!
//! | function | formula |
//! | --- | --- |
//! | [`low_rank_sample`] | `mu + U(lambda * xi) + sqrt(sigma^2 + eps) * zeta` |
//! | [`low_rank_kl`] | `w/2 [sum (D + rowsq(U lambda) + mu^2)/tau^2 - d + sum log tau^2 - sum log D - log det M]` |
//! | [`mean_field_sample`], [`mean_field_kl`] | the same with rank 0 and without jitter |

use burn::backend::Dispatch;
use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::{NoiseKey, standard_normal};

use crate::backend::fused::{FusedOps, is_native};

/// A reparameterised sample `[d]`; the stream `key` gives first `xi`, then `zeta`.
pub(crate) fn low_rank_sample(
    mean: Tensor<1>,
    factor: Tensor<2>,
    scale: Tensor<1>,
    log_deviation: Tensor<1>,
    key: NoiseKey,
    jitter: f64,
) -> Tensor<1> {
    if !is_native(&mean.device()) {
        let [count, rank] = factor.dims();
        let noise = normal(key, rank + count, &mean.device());
        return low_rank_sample_of(mean, factor, scale, log_deviation, noise, jitter);
    }
    Tensor::from_dispatch(Dispatch::low_rank_sample(
        mean.into_dispatch(),
        factor.into_dispatch(),
        scale.into_dispatch(),
        log_deviation.into_dispatch(),
        key,
        jitter,
    ))
}

pub(crate) fn mean_field_sample(
    mean: Tensor<1>,
    log_deviation: Tensor<1>,
    key: NoiseKey,
) -> Tensor<1> {
    if !is_native(&mean.device()) {
        let zeta = normal(key, mean.dims()[0], &mean.device());
        return mean_field_sample_of(mean, log_deviation, zeta);
    }
    Tensor::from_dispatch(Dispatch::mean_field_sample(
        mean.into_dispatch(),
        log_deviation.into_dispatch(),
        key,
    ))
}

/// `weight * KL: [1]`.
pub(crate) fn low_rank_kl(
    mean: Tensor<1>,
    factor: Tensor<2>,
    scale: Tensor<1>,
    log_deviation: Tensor<1>,
    prior_variance: Tensor<1>,
    jitter: f64,
    weight: f64,
) -> Tensor<1> {
    if !is_native(&mean.device()) {
        let kl = composed::low_rank_kl(mean, factor, scale, log_deviation, prior_variance, jitter);
        return kl.mul_scalar(weight);
    }
    Tensor::from_dispatch(Dispatch::low_rank_kl(
        mean.into_dispatch(),
        factor.into_dispatch(),
        scale.into_dispatch(),
        log_deviation.into_dispatch(),
        prior_variance.into_dispatch(),
        jitter,
        weight,
    ))
}

pub(crate) fn mean_field_kl(
    mean: Tensor<1>,
    log_deviation: Tensor<1>,
    prior_variance: Tensor<1>,
    weight: f64,
) -> Tensor<1> {
    if !is_native(&mean.device()) {
        return composed::mean_field_kl(mean, log_deviation, prior_variance).mul_scalar(weight);
    }
    Tensor::from_dispatch(Dispatch::mean_field_kl(
        mean.into_dispatch(),
        log_deviation.into_dispatch(),
        prior_variance.into_dispatch(),
        weight,
    ))
}

/// `count` standard normal numbers on `device`, the same as the fused operations draw.
fn normal(key: NoiseKey, count: usize, device: &Device) -> Tensor<1> {
    let mut values = vec![0.0_f32; count];
    standard_normal(key, &mut values);
    Tensor::from_data(TensorData::new(values, [count]), device)
}

/// [`low_rank_sample`] out of ordinary tensor operations, of `noise`: `xi: [r]`, then `zeta: [d]`.
pub(crate) fn low_rank_sample_of(
    mean: Tensor<1>,
    factor: Tensor<2>,
    scale: Tensor<1>,
    log_deviation: Tensor<1>,
    noise: Tensor<1>,
    jitter: f64,
) -> Tensor<1> {
    let [count, rank] = factor.dims();
    let (xi, zeta) = (
        noise.clone().narrow(0, 0, rank),
        noise.narrow(0, rank, count),
    );
    let low_rank = factor.matmul((scale * xi).unsqueeze_dim(1)).squeeze_dim(1);
    let deviation = log_deviation
        .mul_scalar(2.0)
        .exp()
        .add_scalar(jitter)
        .sqrt();
    mean + low_rank + deviation * zeta
}

/// [`mean_field_sample`] out of ordinary tensor operations, of `zeta: [d]`.
pub(crate) fn mean_field_sample_of(
    mean: Tensor<1>,
    log_deviation: Tensor<1>,
    zeta: Tensor<1>,
) -> Tensor<1> {
    mean + log_deviation.exp() * zeta
}

/// The KL out of ordinary tensor operations.
mod composed {
    use super::*;

    pub(super) fn mean_field_kl(
        mean: Tensor<1>,
        log_deviation: Tensor<1>,
        prior_variance: Tensor<1>,
    ) -> Tensor<1> {
        let log_variance = log_deviation.mul_scalar(2.0);
        let quadratic = log_variance.clone().exp() + mean.square();
        let prior_log = prior_variance.clone().log();
        (quadratic / prior_variance + prior_log - log_variance)
            .sub_scalar(1.0)
            .sum()
            .mul_scalar(0.5)
    }

    pub(super) fn low_rank_kl(
        mean: Tensor<1>,
        factor: Tensor<2>,
        scale: Tensor<1>,
        log_deviation: Tensor<1>,
        prior_variance: Tensor<1>,
        jitter: f64,
    ) -> Tensor<1> {
        let scaled = factor * scale.unsqueeze_dim(0);
        let variance = log_deviation.mul_scalar(2.0).exp().add_scalar(jitter);
        let inner = scaled
            .clone()
            .transpose()
            .matmul(scaled.clone() / variance.clone().unsqueeze_dim(1));
        let rows = scaled.square().sum_dim(1).squeeze_dim::<1>(1);
        let quadratic = variance.clone() + rows + mean.square();
        let prior_log = prior_variance.clone().log();
        let diagonal = (quadratic / prior_variance + prior_log - variance.log())
            .sub_scalar(1.0)
            .sum();
        (diagonal - log_det_plus_identity(inner)).mul_scalar(0.5)
    }

    /// `log det(I + A)` of a positive semidefinite `A: [r, r]` by elimination without pivots, which a positive
    /// definite matrix does not need.
    fn log_det_plus_identity(matrix: Tensor<2>) -> Tensor<1> {
        let rank = matrix.dims()[0];
        let mut rest = matrix.clone() + Tensor::eye(rank, &matrix.device());
        let mut log_det = Tensor::zeros([1], &matrix.device());
        for size in (1..=rank).rev() {
            let pivot = rest.clone().narrow(0, 0, 1).narrow(1, 0, 1);
            log_det = log_det + pivot.clone().log().reshape([1]);
            if size > 1 {
                let column = rest.clone().narrow(0, 1, size - 1).narrow(1, 0, 1);
                let row = rest.clone().narrow(0, 0, 1).narrow(1, 1, size - 1);
                let corner = rest.narrow(0, 1, size - 1).narrow(1, 1, size - 1);
                rest = corner - column.matmul(row / pivot);
            }
        }
        log_det
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f32, sums of a few hundred terms.
    const TOLERANCE: f32 = 2e-5;
    const KEY: NoiseKey = NoiseKey { seed: 4, stream: 9 };
    const JITTER: f64 = 1e-3;
    const WEIGHT: f64 = 0.3;

    fn leaf<const D: usize>(stream: u64, shape: [usize; D]) -> Tensor<D> {
        let device = crate::cpu().autodiff();
        let mut values = vec![0.0_f32; shape.iter().product()];
        standard_normal(NoiseKey { seed: 1, stream }, &mut values);
        values.iter_mut().for_each(|value| *value *= 0.5);
        Tensor::from_data(TensorData::new(values, shape), &device).require_grad()
    }

    fn close<const D: usize>(a: Tensor<D>, b: Tensor<D>, what: &str) {
        let scale: f32 = b.clone().abs().max().into_scalar();
        let gap: f32 = (a - b).abs().max().into_scalar();
        assert!(gap <= TOLERANCE * scale.max(1.0), "{what}: {gap}");
    }

    /// What devices without the fused operations run, against those, with all gradients.
    #[test]
    fn composed_equals_fused() {
        for (count, rank) in [(1, 1), (7, 3), (64, 8)] {
            let (mean, factor) = (leaf(1, [count]), leaf(2, [count, rank]));
            let (scale, deviation) = (leaf(3, [rank]), leaf(4, [count]));
            let prior = leaf(5, [count]).exp().detach().require_grad();
            let parameters = || {
                (
                    mean.clone(),
                    factor.clone(),
                    scale.clone(),
                    deviation.clone(),
                )
            };
            let (m, u, l, s) = parameters();
            let fused = low_rank_kl(m, u, l, s, prior.clone(), JITTER, WEIGHT);
            let (m, u, l, s) = parameters();
            let composed =
                composed::low_rank_kl(m, u, l, s, prior.clone(), JITTER).mul_scalar(WEIGHT);
            close(composed.clone(), fused.clone(), "KL");
            let (a, b) = (composed.backward(), fused.backward());
            let gradients =
                |x: &Tensor<1>| (x.grad(&a).expect("tracked"), x.grad(&b).expect("tracked"));
            for (x, what) in [
                (&mean, "mean"),
                (&scale, "scale"),
                (&deviation, "deviation"),
                (&prior, "prior"),
            ] {
                let (composed, fused) = gradients(x);
                close(composed, fused, what);
            }
            let (composed, fused) = (factor.grad(&a), factor.grad(&b));
            close(
                composed.expect("tracked"),
                fused.expect("tracked"),
                "factor",
            );

            let (m, u, l, s) = parameters();
            let fused = low_rank_sample(m, u, l, s, KEY, JITTER);
            let (m, u, l, s) = parameters();
            let [count, rank] = u.dims();
            let noise = normal(KEY, rank + count, &m.device());
            close(
                low_rank_sample_of(m, u, l, s, noise, JITTER),
                fused,
                "sample",
            );

            let (m, s) = (mean.clone(), deviation.clone());
            let fused = mean_field_sample(m.clone(), s.clone(), KEY);
            let zeta = normal(KEY, m.dims()[0], &m.device());
            close(
                mean_field_sample_of(m.clone(), s.clone(), zeta),
                fused,
                "mean-field sample",
            );
            let fused = mean_field_kl(m.clone(), s.clone(), prior.clone(), 1.0);
            close(
                composed::mean_field_kl(m, s, prior.clone()),
                fused,
                "mean-field KL",
            );
        }
    }
}
