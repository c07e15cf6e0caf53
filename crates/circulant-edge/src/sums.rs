//! The first layer of several channels, when sums are drawn in the place of weights.
//!
//! A bin of output `o` is `Y = sum_i h_io X_i`, with the same `X` in every draw. Given `X` it is normal: with the mean
//! `M = sum_i mean_io X_i`, the shared part `sum_r xi_r F_r`, `F_r = sum_i V_io,r X_i`, and a part of its own whose covariance
//! over (Re, Im) follows from `h = a + ib` with independent deviations `s`, `t` of `a` and `b`:
//!
//! `Var Re = sum s^2 Xre^2 + t^2 Xim^2`, `Cov = sum (s^2 - t^2) Xre Xim`, `Var Im = sum s^2 Xim^2 + t^2 Xre^2`.
//!
//! All of it is computed once per input, while its channels are transformed one after the other: no spectrum of an input is
//! kept, and a draw takes two normal numbers per bin, however many channels there are. A channel whose bytes are all the same
//! has one bin, and takes no transform. Where channels are signals, a coordinate has one scale for all of them, and both coordinates of
//! a bin the same one, `M` and `F` are sums of integers ([`Integers`]).
//!
//! A bias becomes part of the bins: its mean has a spectrum, and independent values of one deviation `s` at `n` positions are
//! independent bins of the variance `s^2/n` (half of it in either part of a complex bin), so that nothing is left to draw for
//! them ([`folds`]).
//!
//! Per bin and output memory holds `M`, `F_1, ..., F_R` and the two columns of the root of the covariance, `(a, b)` and
//! `(c, 0)`: `Re += a g`, `Im += b g + c g'`.

use circulant_core::elementary::root;
use circulant_core::{BccbOperator, Bin, Complex, HalfPlane};

use crate::EdgeError;
use crate::gaussian::{Draw, Gaussian};
use crate::integers::Integers;
use crate::layer::{Kind, Layer};
use crate::memory::{get, set};
use crate::number::Number;
use crate::pixels::Pixels;

/// Values of a signal whose bins may be computed one by one.
const SHORT: usize = 64;
/// Bins in the place of which one is computed by itself.
const FEWER: usize = 2;

/// Complex numbers per bin and output.
pub(crate) fn parts(rank: usize) -> usize {
    rank + 3
}

/// Whether sums take no more memory than the spectra of the inputs that they are made of.
pub(crate) fn pay(channels: [usize; 2], rank: usize) -> bool {
    channels[1].saturating_mul(parts(rank)) <= channels[0]
}

/// Whether the bias of a layer is part of its sums: one value per output, or one deviation for all positions of an output.
pub(crate) fn folds(layer: &Layer<'_>) -> bool {
    let Kind::Bccb { channels, grid, .. } = layer.kind else {
        return false;
    };
    let bias = &layer.bias;
    let alike = bias.count == channels[1]
        || bias
            .deviation
            .is_none_or(|own| own.is_the_same_for(grid[0] * grid[1]));
    alike && bias.rank == 0
}

/// What a share of one stands for among the deviations of the weights; not zero.
fn unit(weights: &Gaussian<'_>) -> f32 {
    let unit = weights.unit();
    if unit > 0.0 { unit } else { 1.0 }
}

/// Adds an input channel with this spectrum, weights of any format. Deviations are counted in the unit of their array.
#[inline(never)]
fn add<T: Number>(
    weights: &Gaussian<'_>,
    plane: &HalfPlane,
    channels: [usize; 2],
    input: usize,
    spectrum: &[Complex<T>],
    sums: &mut [Complex<T>],
) {
    let (outputs, rank) = (channels[1], weights.rank);
    let parts = parts(rank);
    let unit = 1.0 / unit(weights);
    let bins = sums.chunks_exact_mut(outputs * parts);
    for ((bin, &x), sums) in plane.iter().zip(spectrum).zip(bins) {
        let (coordinate, count, conjugate) = match bin {
            Bin::Real { coordinate } => (coordinate, 1, false),
            Bin::Complex { coordinate } => (coordinate, 2, false),
            Bin::Conjugate { coordinate } => (coordinate, 2, true),
            Bin::Masked => continue,
        };
        // The real coordinate multiplies x, the imaginary one ix.
        let turned = Complex::new(-x.im, x.re);
        let factors = [x, if conjugate { -turned } else { turned }];
        for (part, x) in factors.into_iter().take(count).enumerate() {
            let first = ((coordinate + part) * channels[0] + input) * outputs;
            let (re, im) = (x.re.fine_product(x.re), x.im.fine_product(x.im));
            let squares = [re, x.re.fine_product(x.im), im];
            for (index, sums) in sums.chunks_exact_mut(parts).enumerate() {
                let index = first + index;
                sums[0] = sums[0] + x.scale(weights.mean.at(index));
                for column in 0..rank {
                    let weight = weights.factor_at(index, column);
                    sums[1 + column] = sums[1 + column] + x.scale(weight);
                }
                if let Some(deviations) = weights.deviation {
                    let share = deviations.at(index) * unit;
                    let squares = squares.map(|product| product.scaled(share * share));
                    let (diagonal, last) = (rank + 1, rank + 2);
                    sums[diagonal] = sums[diagonal] + Complex::new(squares[0], squares[1]);
                    sums[last].re = sums[last].re + squares[2];
                }
            }
        }
    }
}

/// The average over positions of the variance of an output.
pub(crate) fn variance<T: Number>(
    rank: usize,
    plane: &HalfPlane,
    output: usize,
    sums: &[Complex<T>],
) -> f32 {
    let outputs = sums.len() / (plane.bins() * parts(rank));
    let own = sums
        .chunks_exact(parts(rank))
        .skip(output)
        .step_by(outputs.max(1));
    let mut total = 0.0;
    for (index, bin) in own.enumerate() {
        let often = plane.multiplicity(0, index % plane.columns()) as f32;
        // All but the mean: the shared parts, and the root of the covariance.
        let squares = bin[1..].iter().map(|part| {
            let (re, im) = (part.re.to_single(), part.im.to_single());
            re * re + im * im
        });
        total += often * squares.sum::<f32>();
    }
    total
}

/// Covariances become their roots, in units of one.
#[inline(never)]
fn finish<T: Number>(rank: usize, unit: f32, sums: &mut [Complex<T>]) {
    for bin in sums.chunks_exact_mut(parts(rank)) {
        let (diagonal, last) = (bin[rank + 1], bin[rank + 2].re);
        let a = diagonal.re.fine_root();
        let (mut b, mut rest) = (T::zero(), last);
        if a > T::zero() {
            b = diagonal.im.fine_quotient(a);
            rest = last - b.fine_product(b);
        }
        let c = if rest > T::zero() {
            rest.fine_root()
        } else {
            T::zero()
        };
        bin[rank + 1] = Complex::new(a.scaled(unit), b.scaled(unit));
        bin[rank + 2] = Complex::new(c.scaled(unit), T::zero());
    }
}

/// The spectrum of an output in a draw, or in the mean network.
#[inline(never)]
pub(crate) fn spectrum<T: Number>(
    weights: &Gaussian<'_>,
    plane: &HalfPlane,
    output: usize,
    draw: Option<Draw>,
    sums: &[Complex<T>],
    xi: &mut [Complex<T>],
    spectrum: &mut [Complex<T>],
) {
    let rank = weights.rank;
    let key = draw.map(|draw| weights.counter(draw));
    if let Some(key) = key {
        let normal = |column| T::normal(key.normal(column as u32));
        (0..rank).for_each(|column| set(xi, column, normal(column)));
    }
    let (bins, parts) = (plane.bins(), parts(rank));
    let row = sums.len() / bins;
    let own = sums.get(output * parts..).unwrap_or(&[]);
    let first = (rank + output * bins) as u32;
    for ((index, value), bin) in (first..).zip(spectrum.iter_mut()).zip(own.chunks(row)) {
        let Some((&mean, rest)) = bin.split_first() else {
            return;
        };
        let mut sum = mean;
        if let Some(key) = key
            && let Some((shared, rest)) = rest.split_at_checked(rank)
            && let Some([root, last]) = rest.first_chunk::<2>()
        {
            for (column, part) in shared.iter().enumerate() {
                sum = sum + part.scale(get(xi, column));
            }
            let (one, two) = key.two_normals(index);
            let one = T::normal(one);
            sum.re = sum.re + root.re * one;
            sum.im = sum.im + root.im * one + last.re * T::normal(two);
        }
        *value = sum;
    }
    fill(plane, spectrum);
}

/// Bins that are conjugates of others: columns that are paired with themselves, rows above the middle.
fn fill<T: Number>(plane: &HalfPlane, spectrum: &mut [Complex<T>]) {
    let (height, columns) = (plane.height(), plane.columns());
    for u in height / 2 + 1..height {
        spectrum[u * columns] = spectrum[(height - u) * columns].conj();
        if plane.multiplicity(u, columns - 1) == 1 {
            let last = columns - 1;
            spectrum[u * columns + last] = spectrum[(height - u) * columns + last].conj();
        }
    }
}

/// Transforms the channels of an input and makes their sums: `exact`, as certificates need them, or faster.
pub(crate) fn prepare<T: Number>(
    layer: &Layer<'_>,
    operator: &BccbOperator<'_, T>,
    channels: [usize; 2],
    pixels: &Pixels<'_, '_>,
    exact: bool,
    sums: &mut [Complex<T>],
    work: &mut [Complex<T>],
) -> Result<(), EdgeError> {
    let (weights, plane) = (&layer.weights, operator.layout());
    let size = plane.height() * plane.width();
    let (spectrum, line) = work.split_at_mut(plane.bins());
    let line = &mut line[..operator.line_len()];
    let bound = pixels.bound::<T>();
    // No step of a transform exceeds four times the sum of its values.
    if !(4.0 * bound * size as f32).is_finite() {
        return Err(EdgeError::NotFinite {
            what: "the values of a layer",
        });
    }
    let integers = Integers::of::<T>(weights, plane, channels, bound);
    // Few kept bins of a short signal cost less one by one; what that loses is small, but no part of a certificate.
    let few = integers.as_ref().map(Integers::kept);
    let few =
        few.filter(|kept| !exact && T::CERTIFIED && size <= SHORT && kept * FEWER <= plane.bins());
    sums.fill(Complex::new(T::zero(), T::zero()));
    for input in 0..channels[0] {
        let first = input * size;
        let mut bins = 1;
        match pixels.constant(first, size) {
            Some(value) => spectrum[0] = Complex::new(value, T::zero()),
            None => {
                bins = few.unwrap_or(plane.bins());
                transform(pixels, first, operator, &mut spectrum[..bins], line)?;
                divide(&mut spectrum[..bins], size);
            }
        }
        match &integers {
            Some(integers) => integers.add(input, &spectrum[..bins], sums),
            None => add(weights, plane, channels, input, &spectrum[..bins], sums),
        }
    }
    if let Some(integers) = &integers {
        integers.finish(weights, sums);
    }
    if folds(layer) {
        add_noise(layer, plane, channels, sums);
    }
    finish(weights.rank, unit(weights), sums);
    if folds(layer) {
        add_bias(layer, operator, channels, sums, spectrum, line)?;
    }
    Ok(())
}

/// The spectrum of a channel, or its first bins.
fn transform<T: Number>(
    pixels: &Pixels<'_, '_>,
    first: usize,
    operator: &BccbOperator<'_, T>,
    spectrum: &mut [Complex<T>],
    line: &mut [Complex<T>],
) -> Result<(), EdgeError> {
    let plane = operator.layout();
    if plane.height() == 1 {
        let rows = operator.rows();
        let pairs = plane.width().div_ceil(2);
        pixels.fill(first, plane.width(), &mut line[..pairs]);
        if spectrum.len() < plane.bins() {
            rows.first_bins(&line[..pairs], spectrum)?;
        } else {
            rows.forward_in_place(spectrum, &mut line[..rows.scratch_len()])?;
        }
    } else {
        operator.spectrum_of(&|index| pixels.at(index), first, spectrum, line)?;
    }
    Ok(())
}

pub(crate) fn divide<T: Number>(spectrum: &mut [Complex<T>], by: usize) {
    for bin in spectrum {
        *bin = Complex::new(bin.re.divided(by), bin.im.divided(by));
    }
}

/// Adds the variances of the bias of every output to those of its bins.
fn add_noise<T: Number>(
    layer: &Layer<'_>,
    plane: &HalfPlane,
    channels: [usize; 2],
    sums: &mut [Complex<T>],
) {
    let (bias, rank) = (&layer.bias, layer.weights.rank);
    let Some(deviations) = bias.deviation else {
        return;
    };
    let (outputs, size) = (channels[1], plane.height() * plane.width());
    let single = bias.count == outputs;
    let rows = sums.chunks_exact_mut(outputs * parts(rank));
    for (place, row) in rows.enumerate() {
        let (u, v) = (place / plane.columns(), place % plane.columns());
        let real = plane.multiplicity(u, v) == 1 && (u == 0 || 2 * u == plane.height());
        // A bias of one value is the same at all positions.
        let share = match (single, real) {
            (true, _) if place == 0 => 1.0,
            (true, _) => return,
            (false, true) => root(1.0 / size as f32),
            (false, false) => root(0.5 / size as f32),
        };
        for (output, bin) in row.chunks_exact_mut(parts(rank)).enumerate() {
            let own = deviations.at(if single { output } else { output * size });
            let own = T::single(own * share / unit(&layer.weights));
            let square = own.fine_product(own);
            bin[rank + 1].re = bin[rank + 1].re + square;
            if !single && !real {
                bin[rank + 2].re = bin[rank + 2].re + square;
            }
        }
    }
}

/// Adds the spectra of the means of the bias.
fn add_bias<T: Number>(
    layer: &Layer<'_>,
    operator: &BccbOperator<'_, T>,
    channels: [usize; 2],
    sums: &mut [Complex<T>],
    spectrum: &mut [Complex<T>],
    line: &mut [Complex<T>],
) -> Result<(), EdgeError> {
    let (plane, mean) = (operator.layout(), &layer.bias.mean);
    let (outputs, size) = (channels[1], plane.height() * plane.width());
    let parts = parts(layer.weights.rank);
    for output in 0..outputs {
        let mut bins = 1;
        if layer.bias.count == outputs {
            spectrum[0] = Complex::new(mean.at(output), T::zero());
        } else {
            let value = |index: usize| mean.at(index);
            operator.spectrum_of(&value, output * size, spectrum, line)?;
            divide(spectrum, size);
            bins = spectrum.len();
        }
        let own = sums
            .iter_mut()
            .skip(output * parts)
            .step_by(outputs * parts);
        for (sum, bin) in own.zip(&spectrum[..bins]) {
            *sum = *sum + *bin;
        }
    }
    Ok(())
}
