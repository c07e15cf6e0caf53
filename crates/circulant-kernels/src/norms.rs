//! Exact operator norms, in f64: 1D `max_k |h_k|`, 2D the largest singular value over the
//! frequencies (SPEC section 5). With unitary transforms the bins are the operator's blocks, so
//! nothing is estimated.

use faer::Mat;
use faer::c64;
use num_complex::Complex;
use rayon::prelude::*;

use crate::bins::Bin;
use crate::error::{KernelError, expect_len};
use crate::half_plane::HalfPlane;
use crate::half_spectrum::HalfSpectrum;

/// `max_k |h_k|`.
pub fn operator_norm_1d(layout: &HalfSpectrum, coordinates: &[f64]) -> Result<f64, KernelError> {
    expect_len("coordinates", coordinates.len(), layout.coordinates())?;
    expect_finite(coordinates)?;
    let mut bins = vec![Complex::new(0.0, 0.0); layout.bins()];
    layout.unpack(coordinates, &mut bins)?;
    Ok(bins.iter().map(|h| h.norm()).fold(0.0, f64::max))
}

/// The largest singular value of `K(u, v)` over the half plane, coordinates
/// `[coordinate, C_in, C_out]`.
pub fn operator_norm_2d(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &[f64],
) -> Result<f64, KernelError> {
    let pairs = channels_in * channels_out;
    expect_len(
        "coordinates",
        coordinates.len(),
        layout.coordinates() * pairs,
    )?;
    expect_finite(coordinates)?;
    let free: Vec<(usize, bool)> = (0..layout.bins())
        .filter_map(
            |i| match layout.bin(i / layout.columns(), i % layout.columns()) {
                Bin::Real { coordinate } => Some((coordinate, false)),
                Bin::Complex { coordinate } => Some((coordinate, true)),
                Bin::Conjugate { .. } | Bin::Masked => None,
            },
        )
        .collect();
    let norm_of = |&(coordinate, complex): &(usize, bool)| -> Result<f64, KernelError> {
        let re = &coordinates[coordinate * pairs..][..pairs];
        let matrix = Mat::from_fn(channels_in, channels_out, |i, j| {
            let at = i * channels_out + j;
            let im = if complex {
                coordinates[(coordinate + 1) * pairs + at]
            } else {
                0.0
            };
            c64::new(re[at], im)
        });
        if pairs == 1 {
            return Ok(matrix[(0, 0)].re.hypot(matrix[(0, 0)].im));
        }
        let values = matrix
            .singular_values()
            .map_err(|_| KernelError::NotFinite {
                what: "a singular value decomposition",
            })?;
        Ok(values.into_iter().fold(0.0, f64::max))
    };
    let norms: Result<Vec<f64>, KernelError> = free.par_iter().map(norm_of).collect();
    Ok(norms?.into_iter().fold(0.0, f64::max))
}

fn expect_finite(coordinates: &[f64]) -> Result<(), KernelError> {
    if coordinates.iter().all(|x| x.is_finite()) {
        Ok(())
    } else {
        Err(KernelError::NotFinite {
            what: "the coordinates",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{convolve, naive_filter, noise, spectrum};

    /// An SVD of the explicit matrix in f64.
    const TOLERANCE: f64 = 1e-10;

    /// The matrix of the operator, column by column, from its action on unit vectors.
    fn dense_norm(
        height: usize,
        width: usize,
        full: &[Bin],
        inputs: usize,
        outputs: usize,
        coordinates: &[f64],
    ) -> f64 {
        let n = height * width;
        let mut dense = Mat::<f64>::zeros(outputs * n, inputs * n);
        for c in 0..inputs {
            for o in 0..outputs {
                let at = |k: usize| coordinates[(k * inputs + c) * outputs + o];
                let w = naive_filter(height, width, &spectrum(full, at));
                for s in 0..n {
                    let mut unit = vec![0.0; n];
                    unit[s] = 1.0;
                    for (t, y) in convolve(height, width, &w, &unit).into_iter().enumerate() {
                        dense[(o * n + t, c * n + s)] = y;
                    }
                }
            }
        }
        dense
            .singular_values()
            .expect("converges")
            .into_iter()
            .fold(0.0, f64::max)
    }

    #[test]
    fn norms_equal_the_explicit_matrix() {
        for (height, width, inputs, outputs) in [
            (1, 1, 1, 1),
            (3, 4, 1, 1),
            (4, 5, 2, 3),
            (5, 3, 3, 1),
            (2, 2, 2, 2),
        ] {
            let layout = HalfPlane::new(height, width).expect("valid");
            let a = noise(7, layout.coordinates() * inputs * outputs);
            let norm = operator_norm_2d(&layout, inputs, outputs, &a).expect("finite");
            let expected = dense_norm(height, width, &layout.full(), inputs, outputs, &a);
            assert!(
                (norm - expected).abs() < TOLERANCE * expected,
                "{norm} {expected}"
            );
        }
        for d in [1, 2, 5, 8, 13] {
            let layout = HalfSpectrum::new(d).expect("valid");
            let a = noise(8, d);
            let norm = operator_norm_1d(&layout, &a).expect("finite");
            let expected = dense_norm(1, d, &layout.full(), 1, 1, &a);
            assert!(
                (norm - expected).abs() < TOLERANCE * expected,
                "{norm} {expected}"
            );
        }
    }

    #[test]
    fn a_value_that_is_not_finite_is_an_error() {
        let layout = HalfSpectrum::new(3).expect("valid");
        assert!(operator_norm_1d(&layout, &[1.0, f64::NAN, 0.0]).is_err());
        assert!(operator_norm_1d(&layout, &[1.0]).is_err());
    }
}
