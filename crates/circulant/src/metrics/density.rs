//! Kernel density estimate on an interval `[a, b]`, for example of entropies on `[0, ln K]`.
//!
//! `f(x) = 1/(n h) sum_i sum_j phi((x - r_j(x_i))/h)`, `phi` the standard normal density, `h` the
//! bandwidth, and `r_j(x_i)` the mirror images of `x_i` at both ends, mirrored on as often as it takes: what a
//! kernel would put outside comes back inside, and `f` integrates to 1 on `[a, b]`. Scott's rule is
//! `h = s n^(-1/5)` with `s` the standard deviation (divisor `n - 1`, as in scipy).
//!
//! The same sum in two ways; the one with fewer operations is taken:
//!
//! - **Window.** Only the values within `9 h` of a point and of its mirror images. What is left out is below
//!   `1e-17` of the peak `1/(h sqrt(2 pi))` of the kernel.
//! - **Cosines.** With `L = b - a`, `f(x) = 1/L sum_k w_k exp(-(k pi h/L)^2/2) c_k cos(k pi (x - a)/L)`, `w_0 = 1`,
//!   else `w_k = 2`, and `c_k` the mean of `cos(k pi (x_i - a)/L)`: the mirrored kernel is periodic and even, and
//!   its series falls like a Gaussian. At most `MAX_TERMS` terms; cutting and rounding stay below `1e-12` of
//!   the peak.

use std::f64::consts::PI;

use rayon::prelude::*;
use serde::Serialize;

use super::MetricError;
use super::cosines::{cosine_series, sums_of_cosines};
use super::probabilities::Real;
use super::rows::{Sum, by_chunks, finite, sort};

/// Kernels end here, in bandwidths: `exp(-9^2/2)` is `2.6e-18`.
const CUTOFF: f64 = 9.0;
/// Terms of the series end when their factor is this small.
const SMALLEST_FACTOR: f64 = 1e-18;
/// Rounding grows with the number of terms; up to here it stays below `1e-12` of the peak.
const MAX_TERMS: usize = 4096;
/// The time of one exponential, in steps of the cosine recurrence.
const EXPONENTIAL_COST: usize = 8;
/// How far outside the interval, in widths, a value is taken for a rounded end: entropies in f32 miss
/// `ln K` by some 1e-7.
const END_TOLERANCE: f64 = 1e-5;

/// A density on an interval.
///
/// ```
/// use circulant::metrics::KernelDensity;
///
/// let density = KernelDensity::new(&[0.1_f32, 0.2, 0.2, 0.7], [0.0, 1.0])?;
/// let curve = density.curve(101)?;
/// let area: f64 = curve.densities.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0 * 0.01).sum();
/// assert!((area - 1.0).abs() < 1e-3);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelDensity {
    sorted: Vec<f64>,
    lower: f64,
    upper: f64,
    bandwidth: f64,
}

/// Points and the density there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DensityCurve {
    /// Evenly spaced, both ends included.
    pub points: Vec<f64>,
    /// One density per point.
    pub densities: Vec<f64>,
}

/// The density of entropies of `classes` classes, at `points` points of `[0, ln K]`, bandwidth by
/// Scott's rule.
pub fn entropy_density<T: Real>(
    entropies: &[T],
    classes: usize,
    points: usize,
) -> Result<DensityCurve, MetricError> {
    if classes == 0 {
        return Err(MetricError::Zero { what: "classes" });
    }
    KernelDensity::new(entropies, [0.0, (classes as f64).ln()])?.curve(points)
}

impl KernelDensity {
    /// Bandwidth by Scott's rule, `s n^(-1/5)`.
    pub fn new<T: Real>(values: &[T], interval: [f64; 2]) -> Result<Self, MetricError> {
        let mut density = Self::prepare(values, interval)?;
        let deviation = deviation(&density.sorted);
        if deviation == 0.0 {
            return Err(MetricError::NoSpread {
                count: values.len(),
            });
        }
        density.bandwidth = deviation * (values.len() as f64).powf(-0.2);
        Ok(density)
    }

    /// A bandwidth of the caller's choice.
    pub fn with_bandwidth<T: Real>(
        values: &[T],
        interval: [f64; 2],
        bandwidth: f64,
    ) -> Result<Self, MetricError> {
        // The kernel's peak, about 0.4 / bandwidth, must be finite too.
        if !(bandwidth.is_normal() && bandwidth > 0.0) {
            return Err(MetricError::NotPositive {
                what: "the bandwidth",
                got: bandwidth,
            });
        }
        let mut density = Self::prepare(values, interval)?;
        density.bandwidth = bandwidth;
        Ok(density)
    }

    fn prepare<T: Real>(values: &[T], [lower, upper]: [f64; 2]) -> Result<Self, MetricError> {
        let width = upper - lower;
        if !(width.is_finite() && width > 0.0) {
            return Err(MetricError::Interval { lower, upper });
        }
        let mut sorted = finite("the values", values)?;
        let margin = width * END_TOLERANCE;
        let outside = |&x: &f64| x < lower - margin || x > upper + margin;
        if let Some(index) = sorted.iter().position(outside) {
            return Err(MetricError::OutsideInterval {
                index,
                got: sorted[index],
                lower,
                upper,
            });
        }
        for value in &mut sorted {
            *value = value.clamp(lower, upper);
        }
        sort(&mut sorted);
        Ok(Self {
            sorted,
            lower,
            upper,
            bandwidth: f64::NAN,
        })
    }

    /// The bandwidth `h`.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth
    }

    /// The density at `points` evenly spaced points, at least 2, ends included.
    pub fn curve(&self, points: usize) -> Result<DensityCurve, MetricError> {
        if points < 2 {
            return Err(MetricError::Points { got: points });
        }
        let last = (points - 1) as f64;
        let point = |i: usize| {
            let share = i as f64 / last;
            self.lower * (1.0 - share) + self.upper * share
        };
        let points: Vec<f64> = (0..points).map(point).collect();
        let densities = self.evaluate(&points)?;
        Ok(DensityCurve { points, densities })
    }

    /// The density at finite points; 0 outside the interval.
    pub fn evaluate<T: Real>(&self, points: &[T]) -> Result<Vec<f64>, MetricError> {
        let points = finite("the points", points)?;
        let terms = self.terms();
        let by_cosines = terms.saturating_mul(self.sorted.len() + points.len());
        // With kernels wider than the interval the mirror images never end.
        if self.bandwidth > self.width()
            || terms <= MAX_TERMS && by_cosines < self.window_cost(&points)
        {
            Ok(self.by_cosines(&points, terms))
        } else {
            Ok(self.by_window(&points))
        }
    }

    fn width(&self) -> f64 {
        self.upper - self.lower
    }

    fn contains(&self, x: f64) -> bool {
        (self.lower..=self.upper).contains(&x)
    }

    /// Terms of the series that count, the constant one included.
    fn terms(&self) -> usize {
        let last = (-2.0 * SMALLEST_FACTOR.ln()).sqrt() * self.width() / (PI * self.bandwidth);
        (last.ceil() as usize).saturating_add(1)
    }

    /// The mirror images of `x` that reach into the interval.
    fn images(&self, x: f64) -> impl Iterator<Item = f64> {
        let reach = CUTOFF * self.bandwidth;
        let period = 2.0 * self.width();
        let most = (reach / period).ceil() as i64 + 1;
        let (lower, upper) = (self.lower - reach, self.upper + reach);
        (-most..=most)
            .map(move |k| k as f64 * period)
            .flat_map(move |shift| [x + shift, 2.0 * self.lower - x + shift])
            .filter(move |image| (lower..=upper).contains(image))
    }

    /// The values whose kernel reaches `x`.
    fn window(&self, x: f64) -> &[f64] {
        let reach = CUTOFF * self.bandwidth;
        let start = self.sorted.partition_point(|&value| value < x - reach);
        let end = self.sorted.partition_point(|&value| value <= x + reach);
        &self.sorted[start..end]
    }

    fn window_cost(&self, points: &[f64]) -> usize {
        let inside = points.iter().filter(|&&x| self.contains(x));
        let images = inside.flat_map(|&x| self.images(x));
        let values: usize = images.map(|image| self.window(image).len()).sum();
        values.saturating_mul(EXPONENTIAL_COST)
    }

    fn by_window(&self, points: &[f64]) -> Vec<f64> {
        let peak = 1.0 / ((2.0 * PI).sqrt() * self.bandwidth);
        let kernel = |x: f64, value: f64| {
            let distance = (x - value) / self.bandwidth;
            (-0.5 * distance * distance).exp()
        };
        let density = |&x: &f64| {
            if !self.contains(x) {
                return 0.0;
            }
            let mut sum = Sum::default();
            for image in self.images(x) {
                let window = self.window(image).iter();
                sum.add(window.map(|&value| kernel(image, value)).sum());
            }
            peak * sum.value() / self.sorted.len() as f64
        };
        points.par_iter().map(density).collect()
    }

    fn by_cosines(&self, points: &[f64], terms: usize) -> Vec<f64> {
        let angle = |x: f64| (x - self.lower) / self.width() * PI;
        let mut sums = vec![Sum::default(); terms];
        for part in by_chunks(self.sorted.len(), |range| {
            sums_of_cosines(self.sorted[range].iter().map(|&x| angle(x)), terms)
        }) {
            for (sum, part) in sums.iter_mut().zip(part) {
                sum.add(part);
            }
        }
        let smoothing = PI * self.bandwidth / self.width();
        let scale = 1.0 / (self.width() * self.sorted.len() as f64);
        let coefficient = |(k, sum): (usize, Sum)| {
            if k == 0 {
                return 1.0 / self.width();
            }
            2.0 * scale * (-0.5 * (k as f64 * smoothing).powi(2)).exp() * sum.value()
        };
        let coefficients: Vec<f64> = sums.into_iter().enumerate().map(coefficient).collect();
        let density = |&x: &f64| {
            if !self.contains(x) {
                return 0.0;
            }
            // Rounding may pass below zero where the density vanishes.
            cosine_series(&coefficients, angle(x)).max(0.0)
        };
        points.par_iter().map(density).collect()
    }
}

/// Standard deviation with the divisor `n - 1`; 0 for one value, and exactly 0 for equal ones.
fn deviation(sorted: &[f64]) -> f64 {
    let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
    if first == last {
        return 0.0;
    }
    let mut sum = Sum::default();
    sorted.iter().for_each(|&x| sum.add(x - first));
    let mean = sum.value() / sorted.len() as f64;
    let mut squares = Sum::default();
    let square = |x: &f64| (x - first - mean).powi(2);
    sorted.iter().for_each(|x| squares.add(square(x)));
    (squares.value() / (sorted.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What both ways promise, in peaks of the kernel.
    const BOUND: f64 = 1e-12;

    fn values(count: usize) -> Vec<f64> {
        // Most near the lower end, like entropies of a good classifier, and some at both ends.
        let value = |i: usize| (i as f64 / count as f64).powi(6) * 2.0;
        (0..=count).map(value).collect()
    }

    #[test]
    fn both_ways_agree() {
        let points: Vec<f64> = (0..=200).map(|i| f64::from(i) / 100.0).collect();
        for bandwidth in [0.0017, 0.01, 0.1, 0.5, 2.0] {
            let density =
                KernelDensity::with_bandwidth(&values(999), [0.0, 2.0], bandwidth).expect("valid");
            assert!(density.terms() <= MAX_TERMS, "{}", density.terms());
            let window = density.by_window(&points);
            let cosines = density.by_cosines(&points, density.terms());
            let peak = 1.0 / (bandwidth * (2.0 * PI).sqrt());
            for (a, b) in window.iter().zip(&cosines) {
                assert!((a - b).abs() <= BOUND * peak, "{bandwidth}: {a} {b}");
            }
        }
    }

    #[test]
    fn the_area_is_one() {
        for bandwidth in [1e-3, 0.05, 0.6, 3.0, 1e9] {
            let density =
                KernelDensity::with_bandwidth(&values(50), [0.0, 2.0], bandwidth).expect("valid");
            let curve = density.curve(20_001).expect("valid");
            let ends = (curve.densities[0] + curve.densities[20_000]) / 2.0;
            let area = (curve.densities.iter().sum::<f64>() - ends) * 1e-4;
            // A mirrored density is smooth as a periodic function: the trapezoidal rule is exact.
            assert!((area - 1.0).abs() < 1e-10, "{bandwidth}: {area}");
        }
    }

    #[test]
    fn a_wide_kernel_is_uniform() {
        let density = KernelDensity::with_bandwidth(&[0.1], [0.0, 4.0], 1e300).expect("valid");
        assert_eq!(
            density
                .evaluate(&[0.0, 1.0, 4.0, 4.1, -0.1])
                .expect("valid"),
            [0.25, 0.25, 0.25, 0.0, 0.0]
        );
    }

    #[test]
    fn extreme_bandwidths_give_numbers() {
        for bandwidth in [f64::MIN_POSITIVE, 1e-200, 1e200, f64::MAX] {
            let interval = [0.0, 1e-10];
            let density =
                KernelDensity::with_bandwidth(&[0.0, 4e-11], interval, bandwidth).expect("valid");
            let curve = density.curve(11).expect("valid");
            assert!(curve.densities.iter().all(|x| x.is_finite()), "{bandwidth}");
        }
    }

    #[test]
    fn wrong_input_is_named() {
        let new = |values: &[f64], interval| KernelDensity::new(values, interval).unwrap_err();
        assert_eq!(
            new(&[], [0.0, 1.0]),
            MetricError::Empty { what: "the values" }
        );
        assert_eq!(
            new(&[0.5; 3], [0.0, 1.0]),
            MetricError::NoSpread { count: 3 }
        );
        assert_eq!(new(&[0.5], [0.0, 1.0]), MetricError::NoSpread { count: 1 });
        let outside = MetricError::OutsideInterval {
            index: 1,
            got: 1.5,
            lower: 0.0,
            upper: 1.0,
        };
        assert_eq!(new(&[0.5, 1.5], [0.0, 1.0]), outside);
        assert!(
            new(&[0.5, f64::NAN], [0.0, 1.0])
                .to_string()
                .contains("index 1")
        );
        for interval in [
            [1.0, 0.0],
            [1.0, 1.0],
            [f64::NAN, 1.0],
            [0.0, f64::INFINITY],
        ] {
            assert!(new(&[0.5, 0.6], interval).to_string().contains("interval"));
        }
        for bandwidth in [0.0, -1.0, 1e-310, f64::NAN, f64::INFINITY] {
            assert!(KernelDensity::with_bandwidth(&[0.5], [0.0, 1.0], bandwidth).is_err());
        }
        let density = KernelDensity::new(&[0.2, 0.6], [0.0, 1.0]).expect("valid");
        assert_eq!(density.curve(1), Err(MetricError::Points { got: 1 }));
        assert!(density.evaluate(&[f64::NAN]).is_err());
        assert!(entropy_density(&[0.0, 0.1], 0, 10).is_err());
        assert!(entropy_density(&[0.0, 0.1], 1, 10).is_err());
    }

    #[test]
    fn rounded_ends_are_ends() {
        let entropies = [0.0_f32, 10.0_f32.ln(), 10.0_f32.ln() + 1e-6, -1e-7];
        assert!(entropy_density(&entropies, 10, 16).is_ok());
    }
}
