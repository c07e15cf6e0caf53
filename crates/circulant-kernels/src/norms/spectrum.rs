//! All singular values of a 2D layer.

use circulant_core::HalfPlane;
use rayon::prelude::*;

use super::image::PlaneBins;
use super::leading::{NOT_CONVERGED, to_faer};
use super::matrix::{Matrix, Scale};
use super::search::Bins;
use crate::error::{KernelError, volume};

/// Every singular value of the operator, `H*W*min(C_in, C_out)` values in falling order:
/// those of all bins of the full plane. A free complex bin and its conjugate have the same values,
/// so these come twice; a masked bin has zeros. These are estimates (a singular value
/// decomposition in f64), not bounds.
pub fn singular_values_2d(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &[f64],
) -> Result<Vec<f64>, KernelError> {
    let least = channels_in.min(channels_out);
    let total = volume(
        "the singular values",
        &[layout.height(), layout.width(), least],
    )?;
    let Some(bins) = PlaneBins::new(layout, channels_in, channels_out, coordinates)? else {
        return Ok(vec![0.0; total]);
    };
    let (rows, columns) = bins.shape();
    let of_bin = |index: usize| -> Result<Vec<f64>, KernelError> {
        // Every bin at its own scale: the decomposition squares values, which loses tiny bins.
        let Some(scale) = Scale::of(bins.values(index)) else {
            return Ok(Vec::new());
        };
        let mut matrix = Matrix::zeros(rows, columns, bins.complex(index));
        matrix.load(channels_in, channels_out, bins.values(index), scale);
        let values = to_faer(&matrix)
            .singular_values()
            .map_err(|_| NOT_CONVERGED)?;
        let twice = 1 + usize::from(bins.complex(index));
        Ok((values.iter())
            .flat_map(|&value| std::iter::repeat_n(scale.undo(value), twice))
            .collect())
    };
    let values: Result<Vec<Vec<f64>>, KernelError> =
        bins.order().into_par_iter().map(of_bin).collect();
    let mut values: Vec<f64> = values?.concat();
    values.resize(total, 0.0);
    values.sort_by(|a, b| b.total_cmp(a));
    Ok(values)
}
