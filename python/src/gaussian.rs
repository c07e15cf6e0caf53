//! The posterior `N(mean, U diag(scale^2) U^T + diag(exp(2 log_deviation)) + jitter I)`: samples and KL.

use circulant_kernels::{KlGradients, LowRank, NoiseKey, standard_normal};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::{Input, Number, array, input, of_number_type, slice};
use crate::errors::value_error;
use crate::threads::run;

/// The arrays of a posterior.
struct Posterior<'py, T: Number> {
    mean: Input<'py, T>,
    factor: Input<'py, T>,
    scale: Input<'py, T>,
    log_deviation: Input<'py, T>,
    jitter: f64,
}

impl<'py, T: Number> Posterior<'py, T> {
    fn new(
        [mean, factor, scale, log_deviation]: [&Bound<'py, PyAny>; 4],
        jitter: f64,
    ) -> PyResult<Self> {
        Ok(Self {
            mean: input("mean", mean)?,
            factor: input("factor", factor)?,
            scale: input("scale", scale)?,
            log_deviation: input("log_deviation", log_deviation)?,
            jitter,
        })
    }

    fn low_rank(&self) -> PyResult<LowRank<'_, T>> {
        LowRank::new(
            slice(&self.mean)?,
            slice(&self.factor)?,
            slice(&self.scale)?,
            slice(&self.log_deviation)?,
            self.jitter,
        )
        .map_err(value_error)
    }
}

/// The KL from `N(0, diag(prior_variance))`.
#[pyfunction]
pub fn gaussian_kl(
    py: Python<'_>,
    mean: &Bound<'_, PyAny>,
    factor: &Bound<'_, PyAny>,
    scale: &Bound<'_, PyAny>,
    log_deviation: &Bound<'_, PyAny>,
    jitter: f64,
    prior_variance: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    of_number_type!(mean, T => {
        let posterior = Posterior::<T>::new([mean, factor, scale, log_deviation], jitter)?;
        let prior = input::<T>("prior_variance", prior_variance)?;
        let (q, prior) = (posterior.low_rank()?, slice(&prior)?);
        run(py, q.dimension() * (q.rank() + 1), || q.kl(prior))?.map_err(value_error)
    })
}

/// The KL with the gradients of mean, factor, scale and log_deviation.
#[pyfunction]
pub fn gaussian_kl_gradients<'py>(
    py: Python<'py>,
    mean: &Bound<'py, PyAny>,
    factor: &Bound<'py, PyAny>,
    scale: &Bound<'py, PyAny>,
    log_deviation: &Bound<'py, PyAny>,
    jitter: f64,
    prior_variance: &Bound<'py, PyAny>,
) -> PyResult<(f64, Vec<Bound<'py, PyAny>>)> {
    of_number_type!(mean, T => {
        let posterior = Posterior::<T>::new([mean, factor, scale, log_deviation], jitter)?;
        let prior = input::<T>("prior_variance", prior_variance)?;
        let (q, prior) = (posterior.low_rank()?, slice(&prior)?);
        let (d, r) = (q.dimension(), q.rank());
        let zeros = |n: usize| vec![T::ZERO; n];
        let (mut mean, mut factor) = (zeros(d), zeros(d * r));
        let (mut scale, mut log_deviation) = (zeros(r), zeros(d));
        let gradients = KlGradients {
            mean: &mut mean,
            factor: &mut factor,
            scale: &mut scale,
            log_deviation: &mut log_deviation,
            prior_variance: None,
        };
        let work = || q.kl_with_gradients(prior, 1.0, gradients);
        let kl = run(py, d * (r + 1), work)?.map_err(value_error)?;
        let gradients = [mean, factor, scale, log_deviation];
        let gradients = gradients.into_iter().map(|values| array(py, values).into_any());
        Ok((kl, gradients.collect()))
    })
}

/// Samples with the streams 0, 1, ... of a seed, one after the other.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes them one by one")]
pub fn gaussian_sample<'py>(
    py: Python<'py>,
    mean: &Bound<'py, PyAny>,
    factor: &Bound<'py, PyAny>,
    scale: &Bound<'py, PyAny>,
    log_deviation: &Bound<'py, PyAny>,
    jitter: f64,
    seed: u64,
    draws: usize,
) -> PyResult<Bound<'py, PyAny>> {
    of_number_type!(mean, T => {
        let posterior = Posterior::<T>::new([mean, factor, scale, log_deviation], jitter)?;
        let samples = samples_of(py, posterior.low_rank()?, seed, draws)?;
        Ok(samples.into_any())
    })
}

fn samples_of<'py, T: Number>(
    py: Python<'py>,
    q: LowRank<'_, T>,
    seed: u64,
    draws: usize,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let (d, r) = (q.dimension(), q.rank());
    let mut out = Vec::new();
    let total = d.checked_mul(draws);
    if total.is_none_or(|total| out.try_reserve_exact(total).is_err()) {
        let error = format!("{draws} draws of {d} values do not fit into memory");
        return Err(pyo3::exceptions::PyMemoryError::new_err(error));
    }
    out.resize(d * draws, T::ZERO);
    let work = || {
        let mut noise = vec![T::ZERO; r + d];
        for (stream, out) in out.chunks_exact_mut(d).enumerate() {
            let stream = stream as u64;
            standard_normal(NoiseKey { seed, stream }, &mut noise);
            let (low_rank, diagonal) = noise.split_at(r);
            q.sample_into(low_rank, diagonal, out)?;
        }
        Ok::<_, circulant_kernels::KernelError>(())
    };
    run(py, d * (r + 1) * draws, work)?.map_err(value_error)?;
    Ok(array(py, out))
}
