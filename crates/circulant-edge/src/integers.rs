//! Sums over the channels of a layer as sums of integers: codes of weights times spectra as integers of `bound/2^bits`.
//!
//! No part of a spectrum that is divided by its length exceeds the largest input, `bound`. With `C` channels and codes of at most
//! 128 a sum stays below `C 128 sqrt(2) 2^bits`, which [`bits`] keeps below `2^31`.

use circulant_core::{Complex, HalfPlane};

use crate::gaussian::{CodeRuns, Gaussian};
use crate::number::Number;
use crate::sums::parts;
use crate::values::SQUARES;

/// Bits that are left for the spectra of so many channels, at most 24 with f32; zero if there are too many of them.
pub fn bits(channels: usize) -> u32 {
    let room = (1_u64 << 31) / (182 * channels.max(1) as u64);
    room.max(1).ilog2()
}

/// Fewer would lose too much.
const FEWEST: u32 = 10;

/// Weights of a layer of signals, that is of planes of one row, as integers.
pub(crate) struct Integers<'a> {
    codes: CodeRuns<'a>,
    channels: [usize; 2],
    /// Kept bins.
    kept: usize,
    /// The last of all bins is real if it is this.
    middle: usize,
    /// From a part of a spectrum to its integer.
    factor: f32,
}

impl<'a> Integers<'a> {
    /// If the codes of both coordinates of every bin have the same scales.
    pub(crate) fn of<T: Number>(
        weights: &Gaussian<'a>,
        plane: &HalfPlane,
        channels: [usize; 2],
        bound: f32,
    ) -> Option<Self> {
        let run = channels[0] * channels[1];
        let codes = weights.runs(run)?;
        let (bits, coordinates) = (bits(channels[0]), plane.coordinates());
        let scales = |coordinate: usize| weights.scales(coordinate * run);
        let mut pairs = (1..coordinates.saturating_sub(1)).step_by(2);
        let alike = pairs.all(|coordinate| scales(coordinate) == scales(coordinate + 1));
        (plane.height() == 1 && alike && bits >= FEWEST).then(|| Self {
            codes,
            channels,
            kept: coordinates / 2 + 1,
            middle: if plane.width().is_multiple_of(2) {
                plane.width() / 2
            } else {
                usize::MAX
            },
            factor: (1_u32 << bits.min(T::FRACTION)) as f32 / bound,
        })
    }

    /// Bins that are not masked.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// The first coordinate of a bin, and whether there is another.
    #[inline(always)]
    fn coordinates(&self, bin: usize) -> (usize, bool) {
        ((2 * bin).saturating_sub(1), bin > 0 && bin != self.middle)
    }

    /// Adds an input channel with this spectrum, as `sums::add` does; means and shared parts as integers.
    #[inline(never)]
    pub(crate) fn add<T: Number>(
        &self,
        input: usize,
        spectrum: &[Complex<T>],
        sums: &mut [Complex<T>],
    ) {
        let [inputs, outputs] = self.channels;
        let rank = self.codes.rank;
        let parts = parts(rank);
        let (run, own) = (inputs * outputs, input * outputs);
        let bins = sums.chunks_exact_mut(outputs * parts);
        for ((bin, &x), sums) in spectrum.iter().enumerate().take(self.kept).zip(bins) {
            let (coordinate, paired) = self.coordinates(bin);
            let first = coordinate * run + own;
            let second = if paired { first + run } else { first };
            let rows = (
                self.codes.row(first, outputs),
                self.codes.row(second, outputs),
            );
            let (Some(one), Some(two)) = rows else {
                return;
            };
            let x_codes = Complex::new(x.re.fraction(self.factor), x.im.fraction(self.factor));
            let p = x.re.fine_product(x.re);
            let c = x.re.fine_product(x.im);
            let q = x.im.fine_product(x.im);
            // The imaginary coordinate multiplies ix.
            let zero = T::zero();
            let (turned, others) = if paired {
                (Complex::new(-x_codes.im, x_codes.re), [p, c, q])
            } else {
                (Complex::new(0, 0), [zero, zero, zero])
            };
            let mut sums = sums;
            let mut factors = (one.factors, two.factors);
            let codes = one.means.iter().zip(two.means);
            let deviations = one.deviations.iter().zip(two.deviations);
            for (mean, deviation) in codes.zip(deviations) {
                let Some((sum, rest)) = sums.split_first_mut() else {
                    return;
                };
                add_codes(sum, *mean.0, *mean.1, x_codes, turned);
                let Some((shared, rest)) = rest.split_at_mut_checked(rank) else {
                    return;
                };
                for sum in shared {
                    let (Some((one, left)), Some((two, right))) =
                        (factors.0.split_first(), factors.1.split_first())
                    else {
                        return;
                    };
                    add_codes(sum, *one, *two, x_codes, turned);
                    factors = (left, right);
                }
                let Some(([root, last], rest)) = rest.split_first_chunk_mut::<2>() else {
                    return;
                };
                let one = SQUARES[usize::from(*deviation.0)];
                let two = SQUARES[usize::from(*deviation.1)];
                root.re = root.re + p.fraction_of(one) + others[2].fraction_of(two);
                root.im = root.im + c.fraction_of(one) - others[1].fraction_of(two);
                last.re = last.re + q.fraction_of(one) + others[0].fraction_of(two);
                sums = rest;
            }
        }
    }

    /// Integers become numbers.
    #[inline(never)]
    pub(crate) fn finish<T: Number>(&self, weights: &Gaussian<'_>, sums: &mut [Complex<T>]) {
        let [inputs, outputs] = self.channels;
        let rank = self.codes.rank;
        let parts = parts(rank);
        let bins = sums.chunks_exact_mut(outputs * parts);
        for (bin, sums) in bins.enumerate().take(self.kept) {
            let (coordinate, _) = self.coordinates(bin);
            let scales = weights.scales(coordinate * inputs * outputs);
            let [mean, factor] = scales.map(|scale| scale / self.factor);
            for sums in sums.chunks_exact_mut(parts) {
                for (part, sum) in sums[..=rank].iter_mut().enumerate() {
                    let scale = if part == 0 { mean } else { factor };
                    let value = |part: T| T::of_sum(part.kept(), scale);
                    *sum = Complex::new(value(sum.re), value(sum.im));
                }
            }
        }
    }
}

/// Adds one code times `x` and another times `turned` to integers.
#[inline(always)]
fn add_codes<T: Number>(
    sum: &mut Complex<T>,
    one: u8,
    two: u8,
    x: Complex<i32>,
    turned: Complex<i32>,
) {
    let (one, two) = (i32::from(one as i8), i32::from(two as i8));
    let re = sum.re.kept().wrapping_add(one * x.re + two * turned.re);
    let im = sum.im.kept().wrapping_add(one * x.im + two * turned.im);
    *sum = Complex::new(T::keep(re), T::keep(im));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sum_overflows() {
        for channels in (1..1 << 20).step_by(17) {
            let largest =
                channels as f64 * 128.0 * 2.0_f64.sqrt() * 2.0_f64.powi(bits(channels) as i32);
            assert!(
                bits(channels) == 0 || largest < 2.0_f64.powi(31),
                "{channels}"
            );
        }
        assert_eq!(bits(28), 18);
    }
}
