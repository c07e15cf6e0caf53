//! Noise on single numbers `x` in 0..=1, independent in the three channels.
//!
//! | corruption | number |
//! | --- | --- |
//! | `gaussian_noise` | `x + N(0, c^2)` |
//! | `speckle_noise` | `x + x N(0, c^2)` |
//! | `shot_noise` | `Poisson(c x) / c` |
//! | `impulse_noise` | 0 or 1, each with probability `c / 2`, else `x` |

use super::Operation;
use super::corruption::Severity;
use super::picture::{byte, unit};
use super::random::Random;

/// A number for every byte.
fn bytewise(number: impl Fn(u8, &mut Random) -> f64 + Send + Sync + 'static) -> Operation {
    Box::new(move |picture, random, output| {
        for (output, &x) in output.iter_mut().zip(picture.bytes) {
            *output = byte(number(x, random));
        }
    })
}

/// `c` is the deviation.
pub(super) fn gaussian(severity: Severity) -> Operation {
    let c = severity.of([0.04, 0.06, 0.08, 0.09, 0.10]);
    bytewise(move |x, random| unit(x) + random.normal(0.0, c))
}

/// `c` is the deviation.
pub(super) fn speckle(severity: Severity) -> Operation {
    let c = severity.of([0.06, 0.1, 0.12, 0.16, 0.2]);
    bytewise(move |x, random| unit(x) + unit(x) * random.normal(0.0, c))
}

/// `c` is the share of numbers that are lost.
pub(super) fn impulse(severity: Severity) -> Operation {
    let c = severity.of([0.01, 0.02, 0.03, 0.05, 0.07]);
    bytewise(move |x, random| match random.unit() {
        lost if lost >= c => unit(x),
        _ if random.unit() < 0.5 => 1.0,
        _ => 0.0,
    })
}

/// `c` is the number of photons of white. A byte has 256 values, so the distribution functions of all
/// 256 Poisson numbers are tables, and a number is drawn by bisection.
pub(super) fn shot(severity: Severity) -> Operation {
    let photons = severity.of([500.0, 250.0, 100.0, 75.0, 50.0]);
    let tables = (0..=u8::MAX).map(|x| Poisson::new(unit(x) * photons));
    let tables: Vec<Poisson> = tables.collect();
    bytewise(move |x, random| tables[usize::from(x)].draw(random.unit()) as f64 / photons)
}

/// A Poisson distribution: `cumulative[i] = P(X <= first + i)`.
struct Poisson {
    first: usize,
    cumulative: Vec<f64>,
}

impl Poisson {
    fn new(mean: f64) -> Self {
        // Ten deviations and a margin for small means: beyond lies less than 1e-16.
        let spread = 10.0 * mean.sqrt() + 20.0;
        let first = (mean - spread).max(0.0) as usize;
        let last = (mean + spread) as usize;
        let mut logarithm = -mean + (1..=first).map(|k| (mean / k as f64).ln()).sum::<f64>();
        let mut sum = 0.0;
        let mut cumulative = Vec::with_capacity(last - first + 1);
        for k in first..=last {
            if k > first {
                logarithm += (mean / k as f64).ln();
            }
            sum += logarithm.exp();
            cumulative.push(sum);
        }
        Self { first, cumulative }
    }

    /// The number at a place of 0..1 of the distribution function.
    fn draw(&self, unit: f64) -> usize {
        let place = self.cumulative.partition_point(|&sum| sum <= unit);
        self.first + place.min(self.cumulative.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::applied;
    use super::*;

    /// The bytes that come from a picture of 300 x 300 of one value.
    fn noisy(operation: Operation, value: u8) -> Vec<u8> {
        applied(&operation, &[value; 3 * 300 * 300], [300, 300], 9)
    }

    fn moments(bytes: &[u8]) -> (f64, f64) {
        let count = bytes.len() as f64;
        // Bytes are cut, half a step below on average.
        let units = || bytes.iter().map(|&x| (f64::from(x) + 0.5) / 255.0);
        let mean = units().sum::<f64>() / count;
        (
            mean,
            units().map(|x| (x - mean).powi(2)).sum::<f64>() / count,
        )
    }

    /// 270,000 numbers: a variance is known to 0.3 %; cutting adds 1/12 of a squared step.
    #[track_caller]
    fn check(bytes: &[u8], mean: f64, variance: f64) {
        let (found_mean, found) = moments(bytes);
        let variance = variance + 1.0 / (12.0 * 255.0 * 255.0);
        assert!((found_mean - mean).abs() < 0.003, "{found_mean} {mean}");
        assert!((found / variance - 1.0).abs() < 0.02, "{found} {variance}");
    }

    #[test]
    fn variances_are_those_of_the_formulas() {
        let x = 128.0 / 255.0;
        for severity in Severity::ALL {
            let c = severity.of([0.04_f64, 0.06, 0.08, 0.09, 0.10]);
            check(&noisy(gaussian(severity), 128), x, c * c);
            let c = severity.of([0.06_f64, 0.1, 0.12, 0.16, 0.2]);
            check(&noisy(speckle(severity), 128), x, (c * x).powi(2));
        }
    }

    #[test]
    fn shot_noise_has_the_variance_of_its_mean() {
        for severity in Severity::ALL {
            let photons = severity.of([500.0, 250.0, 100.0, 75.0, 50.0]);
            for byte in [0_u8, 3, 128] {
                let mean = unit(byte) * photons;
                let (table, mut random) = (Poisson::new(mean), Random::new(4, [0; 3]));
                let draws = (0..100_000).map(|_| table.draw(random.unit()) as f64);
                let draws: Vec<f64> = draws.collect();
                let found = draws.iter().sum::<f64>() / 1e5;
                let variance = draws.iter().map(|k| (k - found).powi(2)).sum::<f64>() / 1e5;
                let error = 5.0 * (mean / 1e5).sqrt();
                assert!((found - mean).abs() <= error, "{found} {mean}");
                assert!((variance - mean).abs() <= 0.03 * mean, "{variance} {mean}");
            }
            // Few photons leave steps wider than a byte; the cut then takes less than half a byte.
            let (mean, _) = moments(&noisy(shot(severity), 128));
            assert!((mean - 128.0 / 255.0).abs() < 0.004, "{mean}");
        }
    }

    #[test]
    fn poisson_tables_equal_the_product_formula() {
        for mean in [0.0_f64, 0.2, 3.7, 40.0] {
            let table = Poisson::new(mean);
            let mut term = (-mean).exp();
            let mut sum = 0.0;
            for k in 0..60 {
                sum += term;
                term *= mean / (k + 1) as f64;
                if let Some(found) = table.cumulative.get(k) {
                    assert!((found - sum).abs() < 1e-12, "{mean} {k}");
                }
            }
            assert!((table.cumulative.last().unwrap() - 1.0).abs() < 1e-12);
        }
        let far = Poisson::new(500.0);
        assert!(far.first > 0 && (far.cumulative.last().unwrap() - 1.0).abs() < 1e-11);
    }

    #[test]
    fn impulses_are_half_salt_half_pepper() {
        for severity in Severity::ALL {
            let share = severity.of([0.01, 0.02, 0.03, 0.05, 0.07]);
            let bytes = noisy(impulse(severity), 128);
            for extreme in [0, 255] {
                let found = bytes.iter().filter(|&&x| x == extreme).count() as f64;
                let expected = share / 2.0 * bytes.len() as f64;
                assert!(
                    (found - expected).abs() < 5.0 * expected.sqrt(),
                    "{found} {expected}"
                );
            }
        }
    }
}
