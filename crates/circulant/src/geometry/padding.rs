//! The rounding errors of a signal that runs as the corner of a longer operator: `docs/mathematics.md`, section 9.4.

use super::rounding::{
    PRODUCT, UNIT, UNIT_DOUBLE, compounded, prime_factors, row_error, there_and_back,
};

/// The longest operator that a signal of length `d` runs as the corner of: the next power of two is smooth, whatever else is.
pub(super) fn longest(length: usize) -> f64 {
    4.0 * length as f64 + 64.0
}

/// `Lambda`: the norm of the longer operator, in units of that of the short one.
pub(super) fn norm(length: usize) -> f64 {
    5.0 + (length as f64 / 2.0).max(1.0).ln()
}

/// `c/L`.
pub(super) fn error(length: usize) -> f64 {
    let (d, m, lambda) = (length as f64, longest(length), norm(length));
    let smooth = |unit: f64| 17.0 * unit * m.log2();
    let short = row_error(length, UNIT_DOUBLE) + 2.0 * UNIT_DOUBLE;
    let long = compounded(1.5 * smooth(UNIT_DOUBLE) + 24.0 * UNIT_DOUBLE);
    let spectrum = 2.0 * d.sqrt() * short + (2.0 * m).sqrt() * long * (1.0 + short);
    let delta = spectrum + UNIT * (lambda + spectrum);
    let transforms = there_and_back(compounded(smooth(UNIT)), PRODUCT);
    std::f64::consts::SQRT_2 * transforms * (lambda + delta) + delta
}

/// Whether a signal of this length may run as the corner of a longer operator. (Some of these lengths have butterflies; the bound
/// need not know which.)
pub(super) fn may_be_used(length: usize) -> bool {
    prime_factors(length).iter().any(|&p| p > 7)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, TAU};

    use circulant_kernels::{Activation, CirculantPlan, Filters, HalfSpectrum};

    use super::*;

    /// Primes, and composites with a large prime factor.
    const LENGTHS: [usize; 16] = [
        17, 19, 23, 29, 31, 34, 37, 47, 59, 97, 101, 127, 173, 257, 362, 509,
    ];
    /// Enough rows for lanes of any width.
    const ROWS: usize = 33;

    /// `D(p)`.
    fn kernel(length: usize, p: f64) -> f64 {
        (1..length).fold(1.0, |sum, s| sum + 2.0 * (s as f64 * p).cos())
    }

    /// The real spectrum of norm one whose longer filter is largest at the angle `t`.
    fn worst_spectrum(length: usize, t: f64) -> Vec<f64> {
        let of = |k: usize| kernel(length, TAU * k as f64 / length as f64 - t);
        // A real filter has the same at `k` and `-k`.
        let sign = |k: usize| (of(k) + of((length - k) % length)).signum();
        (0..=length / 2).map(sign).collect()
    }

    #[test]
    fn the_longer_operator_is_as_large_as_the_formula_says_at_most() {
        for length in LENGTHS {
            for step in 0..40 {
                let t = PI * f64::from(step) / 39.0;
                let of = |k: usize| kernel(length, TAU * k as f64 / length as f64 - t).abs();
                let largest = (0..length).map(of).sum::<f64>() / length as f64;
                assert!(largest <= norm(length), "{length} {t}: {largest}");
            }
        }
    }

    /// Whether `m` has only the prime factors that padding may use.
    fn is_smooth(m: usize) -> bool {
        prime_factors(m).iter().all(|&p| p <= 13)
    }

    #[test]
    fn lengths_and_stages_are_within_the_formula() {
        for length in LENGTHS {
            let smallest = 2 * length - 1;
            let power = smallest.max(16).next_power_of_two();
            assert!(power as f64 <= longest(length), "{length}");
            for m in (smallest..=power).filter(|&m| is_smooth(m)) {
                let error = super::super::rounding::lane_error([1, m], UNIT);
                let allowed = compounded(17.0 * UNIT * (m as f64).log2());
                assert!(error <= allowed, "{length} {m}: {error} > {allowed}");
            }
        }
    }

    /// The kernel itself, against a dense product in f64, with filters and inputs that are hard on it.
    #[test]
    fn errors_of_the_kernel_stay_within_the_bound() {
        for length in LENGTHS {
            let layout = HalfSpectrum::new(length).expect("valid");
            let plan = CirculantPlan::<f32>::new_1d(&layout);
            let mut share = 0.0_f64;
            let mut angles = vec![0.0, PI, PI / length as f64, 1.0];
            angles.extend((1..4).map(|j| TAU * (j as f64 + 0.5) / length as f64));
            for t in angles {
                let half = worst_spectrum(length, t);
                let mut coordinates = vec![half[0] as f32];
                for &h in &half[1..] {
                    coordinates.push(h as f32);
                    coordinates.push(0.0);
                }
                coordinates.truncate(length);
                let h = |k: usize| half[k.min(length - k)];
                let c: Vec<f64> = (0..length)
                    .map(|s| {
                        let angle = |k: usize| TAU * (k * s % length) as f64 / length as f64;
                        (0..length).map(|k| h(k) * angle(k).cos()).sum::<f64>() / length as f64
                    })
                    .collect();
                let x: Vec<f32> = (0..ROWS * length)
                    .map(|i| hard(i / length, i % length))
                    .collect();
                let mut y = vec![0.0_f32; x.len()];
                let filters = Filters {
                    coordinates: &coordinates,
                    bias: None,
                    activation: Activation::Identity,
                };
                plan.forward(&x, filters, &mut y).expect("fits");
                let rows = x.chunks_exact(length).zip(y.chunks_exact(length));
                let squares = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
                let largest = x
                    .chunks_exact(length)
                    .map(squares)
                    .fold(0.0, f64::max)
                    .sqrt();
                for (x, y) in rows {
                    let exact = |i: usize| -> f64 {
                        let term = |j: usize| c[(i + length - j) % length] * f64::from(x[j]);
                        (0..length).map(term).sum()
                    };
                    let gap = |i: usize| (f64::from(y[i]) - exact(i)).powi(2);
                    let gap = (0..length).map(gap).sum::<f64>().sqrt();
                    share = share.max(gap / (error(length) * largest));
                }
            }
            println!("length {length}: the largest error is {share:.1e} of its bound");
            assert!(share <= 1.0, "{length}: {share}");
            // Without this the bound could be true because the plan did nothing.
            assert!(share > 1e-7, "{length}: {share}");
        }
    }

    /// Constant, alternating, one huge neighbour, a spike, a ramp, and noise.
    fn hard(row: usize, column: usize) -> f32 {
        match row % 6 {
            0 => 1.0,
            1 => [1.0, -1.0][column % 2],
            2 => 100.0 * [1.0, 0.9, -1.0][column % 3],
            3 => f32::from(u8::from(column == row % 7)),
            4 => column as f32 / 7.0,
            _ => ((row * 31 + column * 17) % 101) as f32 / 50.0 - 1.0,
        }
    }
}
