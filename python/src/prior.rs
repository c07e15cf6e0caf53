//! The spectral prior by the names of its spectra.

use circulant::bayes::{
    BayesError, Matern, Slope, SpectralPrior, SquaredExponential, StationarySpectrum,
};
use circulant::operator::Layout;
use circulant_kernels::NoiseKey;
use pyo3::PyResult;
use pyo3::exceptions::PyMemoryError;

use crate::errors::value_error;

/// A spectrum with its parameters.
pub struct Spectrum(Box<dyn StationarySpectrum>);

impl Spectrum {
    /// By name; parameters that a spectrum does not have are not looked at.
    pub fn new(
        name: &str,
        deviation: f64,
        alpha: f64,
        length_scale: f64,
        nu: f64,
    ) -> PyResult<Self> {
        Ok(Self(match name {
            "slope" => Box::new(Slope { deviation, alpha }),
            "squared-exponential" => Box::new(SquaredExponential {
                deviation,
                length_scale,
            }),
            "matern" => Box::new(Matern {
                deviation,
                length_scale,
                nu,
            }),
            other => {
                return Err(value_error(format!(
                    "spectrum: expected 'slope', 'squared-exponential' or 'matern', got {other:?}"
                )));
            }
        }))
    }

    /// The prior of a layer.
    pub fn prior(&self, layout: &Layout) -> PyResult<SpectralPrior> {
        SpectralPrior::new(layout, &*self.0).map_err(value_error::<BayesError>)
    }

    /// Draws with the streams 0, 1, ... of a seed.
    pub fn draws(
        prior: &SpectralPrior,
        seed: u64,
        draws: usize,
        filters: bool,
    ) -> PyResult<Vec<f64>> {
        let mut values = Vec::new();
        let size = if filters {
            prior.densities().len()
        } else {
            prior.variances().len()
        };
        let enough = size
            .checked_mul(draws)
            .is_some_and(|total| values.try_reserve_exact(total).is_ok());
        if !enough {
            let error = format!("{draws} draws of {size} values do not fit into memory");
            return Err(PyMemoryError::new_err(error));
        }
        for stream in 0..draws as u64 {
            let key = NoiseKey { seed, stream };
            values.extend(if filters {
                prior.draw_filter(key)
            } else {
                prior.draw(key)
            });
        }
        Ok(values)
    }
}
