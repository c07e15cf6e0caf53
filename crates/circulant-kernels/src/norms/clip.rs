//! The nearest layer, in the Frobenius norm, whose operator norm is at most a limit: every bin's
//! singular values are clipped, its singular vectors kept. In 1D `h_k` becomes
//! `h_k min(1, limit/|h_k|)`.
//!
//! A bin that satisfies the limit, up to the rounding of the test, is not touched, so clipping
//! twice is clipping once, bit for bit.

use circulant_core::{Bin, HalfPlane, HalfSpectrum};
use faer::Mat;
use rayon::prelude::*;

use crate::error::{KernelError, expect_len};
use crate::vector::Isa;

use super::expect_finite;
use super::image::{check_sizes, free_bins};
use super::leading::decompose;
use super::matrix::{Matrix, Scale};
use super::proof::{Slack, proves};

/// Clips `|h_k|` to `limit` and keeps the phase; a real bin keeps its sign.
pub fn clip_norm_1d(
    layout: &HalfSpectrum,
    coordinates: &mut [f64],
    limit: f64,
) -> Result<(), KernelError> {
    expect_len("coordinates", coordinates.len(), layout.coordinates())?;
    expect_finite("the coordinates", coordinates)?;
    expect_limit(limit)?;
    for k in 0..layout.modes() {
        clip_bin(layout.bin(k), coordinates, limit);
    }
    Ok(())
}

/// Clips the singular values of every bin to `limit`; coordinates `[coordinate, C_in, C_out]`.
pub fn clip_norm_2d(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &mut [f64],
    limit: f64,
) -> Result<(), KernelError> {
    check_sizes(layout, channels_in, channels_out, coordinates)?;
    expect_finite("the coordinates", coordinates)?;
    expect_limit(limit)?;
    let pairs = channels_in * channels_out;
    if pairs == 1 {
        for i in 0..layout.bins() {
            let bin = layout.bin(i / layout.columns(), i % layout.columns());
            clip_bin(bin, coordinates, limit);
        }
        return Ok(());
    }
    // Free bins lie one after the other in the coordinates.
    let mut rest = coordinates;
    let mut matrices = Vec::new();
    for bin in free_bins(layout) {
        let len = pairs * (1 + usize::from(bin.complex));
        let (values, after) = std::mem::take(&mut rest).split_at_mut(len);
        matrices.push(values);
        rest = after;
    }
    let isa = Isa::best();
    matrices
        .par_iter_mut()
        .try_for_each(|values| clip_matrix(isa, (channels_in, channels_out), values, limit))
}

fn expect_limit(limit: f64) -> Result<(), KernelError> {
    if limit.is_finite() && limit >= 0.0 {
        Ok(())
    } else {
        Err(KernelError::Limit { got: limit })
    }
}

fn clip_bin(bin: Bin, coordinates: &mut [f64], limit: f64) {
    match bin {
        Bin::Real { coordinate } => {
            coordinates[coordinate] = coordinates[coordinate].clamp(-limit, limit);
        }
        Bin::Complex { coordinate } => {
            let (re, im) = (coordinates[coordinate], coordinates[coordinate + 1]);
            if re.hypot(im) > limit {
                let (re, im) = with_modulus(re, im, limit);
                (coordinates[coordinate], coordinates[coordinate + 1]) = (re, im);
            }
        }
        Bin::Conjugate { .. } | Bin::Masked => {}
    }
}

/// The number of the same phase whose computed modulus is `limit`, or a little less, never more.
fn with_modulus(re: f64, im: f64, limit: f64) -> (f64, f64) {
    // A quarter: the modulus of two values near the largest f64 would overflow.
    let modulus = (0.25 * re).hypot(0.25 * im);
    let (cosine, sine) = (0.25 * re / modulus, 0.25 * im / modulus);
    let mut shrink = f64::EPSILON;
    let mut scaled = (limit * cosine, limit * sine);
    while scaled.0.hypot(scaled.1) > limit {
        let factor = (1.0 - shrink).max(0.0);
        scaled = (limit * (cosine * factor), limit * (sine * factor));
        shrink *= 2.0;
    }
    scaled
}

/// `values` are the real parts of one bin and then, for a complex bin, the imaginary parts.
fn clip_matrix(
    isa: Isa,
    (channels_in, channels_out): (usize, usize),
    values: &mut [f64],
    limit: f64,
) -> Result<(), KernelError> {
    let pairs = channels_in * channels_out;
    let complex = values.len() > pairs;
    let Some(scale) = Scale::of(values) else {
        return Ok(());
    };
    if limit == 0.0 {
        values.fill(0.0);
        return Ok(());
    }
    let (rows, columns) = (channels_in.max(channels_out), channels_in.min(channels_out));
    let mut matrix = Matrix::<f64>::zeros(rows, columns, complex);
    matrix.load(channels_in, channels_out, values, scale);
    // An infinite scaled limit is far above this bin.
    let scaled = scale.apply(limit);
    let shift = Slack::double(rows, columns).map(|slack| slack.shift_above(scaled, 1.0));
    let below = |shift: f64| shift == f64::INFINITY || proves(isa, &mut matrix, shift);
    if shift.is_some_and(below) {
        return Ok(());
    }
    let svd = decompose(&matrix)?;
    let (u, s, v) = (svd.U(), svd.S().column_vector(), svd.V());
    if s[0].re <= scaled {
        return Ok(());
    }
    // Rebuilt from the clipped values: taking the surplus off a large matrix would leave an error
    // of the size of the large one.
    let scaled_u = Mat::from_fn(rows, columns, |i, k| u[(i, k)] * s[k].re.min(scaled));
    let rebuilt = scaled_u * v.adjoint();
    let transposed = rows != channels_in;
    for i in 0..rows {
        for j in 0..columns {
            let entry = rebuilt[(i, j)];
            let (row, column) = if transposed { (j, i) } else { (i, j) };
            let at = row * channels_out + column;
            values[at] = scale.undo(entry.re);
            if complex {
                values[pairs + at] = scale.undo(entry.im);
            }
        }
    }
    Ok(())
}
