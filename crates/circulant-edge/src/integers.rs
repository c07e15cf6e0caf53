//! Sums over the channels of a layer as sums of integers: codes of weights times spectra as integers of `bound/2^bits`.
//!
//! No part of a spectrum that is divided by its length exceeds the largest input, `bound`. With `C` channels and codes of at most
//! 128 a sum stays below `C 128 sqrt(2) 2^bits`, which [`bits`] keeps below `2^31`.

use circulant_core::{Bin, Complex, HalfPlane};

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

/// Weights as integers.
pub(crate) struct Integers<'a> {
    codes: CodeRuns<'a>,
    channels: [usize; 2],
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
        let bits = bits(channels[0]);
        let alike = plane.iter().all(|bin| match bin {
            Bin::Complex { coordinate } => {
                weights.scales(coordinate * run) == weights.scales((coordinate + 1) * run)
            }
            _ => true,
        });
        (alike && bits >= FEWEST).then(|| Self {
            codes,
            channels,
            factor: (1_u32 << bits.min(T::FRACTION)) as f32 / bound,
        })
    }

    /// Adds an input channel with this spectrum, as `sums::add` does; means and shared parts as integers.
    #[inline(never)]
    pub(crate) fn add<T: Number>(
        &self,
        plane: &HalfPlane,
        input: usize,
        spectrum: &[Complex<T>],
        sums: &mut [Complex<T>],
    ) {
        let [inputs, outputs] = self.channels;
        let rank = self.codes.rank;
        let parts = parts(rank);
        let (run, own) = (inputs * outputs, input * outputs);
        let bins = sums.chunks_exact_mut(outputs * parts);
        for ((bin, &x), sums) in plane.iter().zip(spectrum).zip(bins) {
            // The imaginary coordinate multiplies ix, or -ix.
            let (coordinate, sign) = match bin {
                Bin::Real { coordinate } => (coordinate, 0),
                Bin::Complex { coordinate } => (coordinate, 1),
                Bin::Conjugate { coordinate } => (coordinate, -1),
                Bin::Masked => continue,
            };
            let first = coordinate * run + own;
            let second = if sign == 0 { first } else { first + run };
            let rows = (
                self.codes.row(first, outputs),
                self.codes.row(second, outputs),
            );
            let (Some(one), Some(two)) = rows else {
                return;
            };
            let (re, im) = (x.re.fraction(self.factor), x.im.fraction(self.factor));
            let turned = [-sign * im, sign * re];
            let add = |sum: &mut Complex<T>, one: u8, two: u8| {
                let (one, two) = (i32::from(one as i8), i32::from(two as i8));
                let re = sum.re.kept().wrapping_add(one * re + two * turned[0]);
                let im = sum.im.kept().wrapping_add(one * im + two * turned[1]);
                *sum = Complex::new(T::keep(re), T::keep(im));
            };
            let squares = [
                x.re.fine_product(x.re),
                x.re.fine_product(x.im),
                x.im.fine_product(x.im),
            ];
            let others = if sign == 0 { [T::zero(); 3] } else { squares };
            let means = one.means.iter().zip(two.means);
            let deviations = one.deviations.iter().zip(two.deviations);
            let mut factors = one.factors.iter().zip(two.factors);
            let sums = sums.chunks_exact_mut(parts);
            for (((mean, deviation), sums), _) in means.zip(deviations).zip(sums).zip(0..outputs) {
                add(&mut sums[0], *mean.0, *mean.1);
                for sum in &mut sums[1..=rank] {
                    if let Some((one, two)) = factors.next() {
                        add(sum, *one, *two);
                    }
                }
                let one = SQUARES[usize::from(*deviation.0)];
                let two = SQUARES[usize::from(*deviation.1)];
                let re = squares[0].fraction_of(one) + others[2].fraction_of(two);
                let both = squares[1].fraction_of(one) - others[1].fraction_of(two);
                let im = squares[2].fraction_of(one) + others[0].fraction_of(two);
                sums[rank + 1] = sums[rank + 1] + Complex::new(re, both);
                sums[rank + 2].re = sums[rank + 2].re + im;
            }
        }
    }

    /// Integers become numbers.
    #[inline(never)]
    pub(crate) fn finish<T: Number>(
        &self,
        weights: &Gaussian<'_>,
        plane: &HalfPlane,
        sums: &mut [Complex<T>],
    ) {
        let [inputs, outputs] = self.channels;
        let rank = self.codes.rank;
        let parts = parts(rank);
        let bins = sums.chunks_exact_mut(outputs * parts);
        for (bin, sums) in plane.iter().zip(bins) {
            let (Bin::Real { coordinate }
            | Bin::Complex { coordinate }
            | Bin::Conjugate { coordinate }) = bin
            else {
                continue;
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sum_overflows() {
        for channels in (1..1 << 20).step_by(17) {
            let largest = channels as f64 * 128.0 * 2.0_f64.sqrt() * 2.0_f64.powi(bits(channels) as i32);
            assert!(bits(channels) == 0 || largest < 2.0_f64.powi(31), "{channels}");
        }
        assert_eq!(bits(28), 18);
    }
}
