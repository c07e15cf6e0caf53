//! Everything against dense decompositions of explicit matrices.

mod clip;
mod convolution;
mod exact;
mod gram;
mod proof;
mod roots;

use circulant_core::{Bin, HalfPlane};
use faer::{Mat, c64};

use crate::oracle::{convolve, naive_filter, spectrum};

/// An SVD of the explicit matrix in f64.
const TOLERANCE: f64 = 1e-10;
/// The error of a decomposition of one bin in f64.
const DECOMPOSITION: f64 = 1e-13;

/// All singular values of the operator, from its action on unit vectors, in falling order.
fn dense_values(
    [height, width]: [usize; 2],
    full: &[Bin],
    [inputs, outputs]: [usize; 2],
    coordinates: &[f64],
) -> Vec<f64> {
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
    dense.singular_values().expect("converges")
}

/// The largest singular value of a row-major matrix.
fn dense_norm(rows: usize, columns: usize, values: &[f64]) -> f64 {
    let matrix = Mat::from_fn(rows, columns, |i, j| values[i * columns + j]);
    matrix.singular_values().expect("converges")[0]
}

/// The free bins of a layer as complex matrices.
fn bin_matrices(
    layout: &HalfPlane,
    [inputs, outputs]: [usize; 2],
    coordinates: &[f64],
) -> Vec<Mat<c64>> {
    let at = |k: usize, i: usize, j: usize| coordinates[(k * inputs + i) * outputs + j];
    (0..layout.bins())
        .filter_map(
            |i| match layout.bin(i / layout.columns(), i % layout.columns()) {
                Bin::Real { coordinate: k } => Some(Mat::from_fn(inputs, outputs, |i, j| {
                    c64::new(at(k, i, j), 0.0)
                })),
                Bin::Complex { coordinate: k } => Some(Mat::from_fn(inputs, outputs, |i, j| {
                    c64::new(at(k, i, j), at(k + 1, i, j))
                })),
                Bin::Conjugate { .. } | Bin::Masked => None,
            },
        )
        .collect()
}

/// The largest singular value of any bin.
fn largest_of_bins(layout: &HalfPlane, channels: [usize; 2], coordinates: &[f64]) -> f64 {
    // faer squares values: beyond 1e150 it does not converge, below 1e-150 it is wrong.
    let scale = coordinates.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
    let unit: Vec<f64> = coordinates.iter().map(|x| x / scale).collect();
    if scale == 0.0 {
        return 0.0;
    }
    (bin_matrices(layout, channels, &unit).iter())
        .map(|bin| scale * bin.singular_values().expect("converges")[0])
        .fold(0.0, f64::max)
}
