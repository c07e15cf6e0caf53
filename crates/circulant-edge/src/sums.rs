//! The first layer of several channels, when sums are drawn in the place of weights.
//!
//! A bin of output `o` is `Y = sum_i h_io X_i`, with the same `X` in every draw. Given `X` it is normal: with the mean
//! `M = sum_i mean_io X_i`, the shared part `sum_r xi_r F_r`, `F_r = sum_i V_io,r X_i`, and a part of its own whose covariance
//! over (Re, Im) follows from `h = a + ib` with independent deviations `s`, `t` of `a` and `b`:
//!
//! `Var Re = sum s^2 Xre^2 + t^2 Xim^2`, `Cov = sum (s^2 - t^2) Xre Xim`, `Var Im = sum s^2 Xim^2 + t^2 Xre^2`.
//!
//! All of it is computed once per input, while its channels are transformed one after the other: no spectrum of an input is
//! kept, and a draw takes two normal numbers per bin, however many channels there are.
//!
//! Per bin and output memory holds `M`, `F_1, ..., F_R` and the two columns of the root of the covariance, `(a, b)` and
//! `(c, 0)`: `Re += a g`, `Im += b g + c g'`.

use circulant_core::{BccbOperator, Bin, Complex, HalfPlane};

use crate::gaussian::{CodeRows, Draw, Gaussian};
use crate::memory::{get, set};
use crate::number::Number;
use crate::values::SQUARES;

/// Complex numbers per bin and output.
pub(crate) fn parts(rank: usize) -> usize {
    rank + 3
}

/// Whether sums take no more memory than the spectra of the inputs that they are made of.
pub(crate) fn pay(channels: [usize; 2], rank: usize) -> bool {
    channels[1].saturating_mul(parts(rank)) <= channels[0]
}

/// Adds an input channel with this spectrum. Deviations are counted in the unit of their array.
fn add<T: Number>(
    weights: &Gaussian<'_>,
    plane: &HalfPlane,
    channels: [usize; 2],
    input: usize,
    spectrum: &[Complex<T>],
    sums: &mut [Complex<T>],
) {
    let (outputs, parts) = (channels[1], parts(weights.rank));
    let codes = weights.codes();
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
        for (part, &x) in factors.iter().take(count).enumerate() {
            let first = ((coordinate + part) * channels[0] + input) * outputs;
            let (re, im) = (x.re.fine_product(x.re), x.im.fine_product(x.im));
            let squares = [re, x.re.fine_product(x.im), im];
            let term = Term { x, squares };
            match codes.and_then(|codes| codes.rows(first, outputs)) {
                Some(rows) => term.add_codes(rows, weights.rank, sums),
                None => term.add_any(weights, first, sums),
            }
        }
    }
}

/// What a coordinate is multiplied by.
#[derive(Clone, Copy)]
struct Term<T> {
    x: Complex<T>,
    /// Products of its parts, fine.
    squares: [T; 3],
}

impl<T: Number> Term<T> {
    /// Adds the coordinates of all outputs.
    #[inline(always)]
    fn add_codes(self, rows: CodeRows<'_>, rank: usize, sums: &mut [Complex<T>]) {
        let own = Complex::new(self.x.re.scaled(rows.scale), self.x.im.scaled(rows.scale));
        let scale = rows.factor_scale;
        let shared = Complex::new(self.x.re.scaled(scale), self.x.im.scaled(scale));
        let [re, cross, im] = self.squares;
        let mut factors = rows.factors;
        let mut sums = sums;
        for (&code, &deviation) in rows.means.iter().zip(rows.deviations) {
            let Some((mean, rest)) = sums.split_first_mut() else {
                return;
            };
            mean.re = mean.re + self.x.re.times_code_of(own.re, code as i8, rows.scale);
            mean.im = mean.im + self.x.im.times_code_of(own.im, code as i8, rows.scale);
            let (Some((codes, left)), Some((values, rest))) = (
                factors.split_at_checked(rank),
                rest.split_at_mut_checked(rank),
            ) else {
                return;
            };
            for (value, &code) in values.iter_mut().zip(codes) {
                value.re = value.re + self.x.re.times_code_of(shared.re, code as i8, scale);
                value.im = value.im + self.x.im.times_code_of(shared.im, code as i8, scale);
            }
            factors = left;
            let Some((roots, rest)) = rest.split_first_chunk_mut::<2>() else {
                return;
            };
            let square = SQUARES[usize::from(deviation)];
            roots[0].re = roots[0].re + re.fraction_of(square);
            roots[0].im = roots[0].im + cross.fraction_of(square);
            roots[1].re = roots[1].re + im.fraction_of(square);
            sums = rest;
        }
    }

    /// The same from numbers of any format.
    #[inline(never)]
    fn add_any(&self, weights: &Gaussian<'_>, first: usize, sums: &mut [Complex<T>]) {
        let rank = weights.rank;
        let unit = 1.0 / weights.unit();
        for (index, sums) in sums.chunks_exact_mut(parts(rank)).enumerate() {
            let index = first + index;
            sums[0] = sums[0] + self.x.scale(weights.mean.at(index));
            for column in 0..rank {
                let weight = weights.factor_at(index, column);
                sums[1 + column] = sums[1 + column] + self.x.scale(weight);
            }
            if let Some(deviations) = weights.deviation {
                let share = deviations.at(index) * unit;
                let squares = self.squares.map(|product| product.scaled(share * share));
                let (diagonal, last) = (rank + 1, rank + 2);
                sums[diagonal] = sums[diagonal] + Complex::new(squares[0], squares[1]);
                sums[last].re = sums[last].re + squares[2];
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
    let key = draw.filter(|_| weights.deviation.is_some());
    let key = key.map(|draw| weights.counter(draw));
    if let Some(key) = key {
        let normal = |column| T::normal(key.normal(column as u32));
        (0..rank).for_each(|column| set(xi, column, normal(column)));
    }
    let (bins, parts) = (plane.bins(), parts(rank));
    let row = sums.len() / bins;
    for (index, (value, sums)) in spectrum.iter_mut().zip(sums.chunks_exact(row)).enumerate() {
        let Some(bin) = sums.get(output * parts..(output + 1) * parts) else {
            return;
        };
        let mut sum = bin[0];
        if let Some(key) = key {
            for (column, part) in bin[1..=rank].iter().enumerate() {
                sum = sum + part.scale(get(xi, column));
            }
            let (one, two) = key.two_normals((rank + output * bins + index) as u32);
            let (root, one) = (bin[rank + 1], T::normal(one));
            sum.re = sum.re + root.re * one;
            sum.im = sum.im + root.im * one + bin[rank + 2].re * T::normal(two);
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

/// Transforms the channels of an input and makes their sums.
pub(crate) fn prepare<T: Number>(
    weights: &Gaussian<'_>,
    operator: &BccbOperator<'_, T>,
    channels: [usize; 2],
    value: &dyn Fn(usize) -> T,
    sums: &mut [Complex<T>],
    work: &mut [Complex<T>],
) -> Result<(), circulant_core::SizeError> {
    let plane = operator.layout();
    let pixels = plane.height() * plane.width();
    let (spectrum, line) = work.split_at_mut(plane.bins());
    let line = &mut line[..operator.line_len()];
    sums.fill(Complex::new(T::zero(), T::zero()));
    for input in 0..channels[0] {
        operator.spectrum_of(value, input * pixels, spectrum, line)?;
        for bin in spectrum.iter_mut() {
            *bin = Complex::new(bin.re.divided(pixels), bin.im.divided(pixels));
        }
        add(weights, plane, channels, input, spectrum, sums);
    }
    finish(weights.rank, weights.unit(), sums);
    Ok(())
}
