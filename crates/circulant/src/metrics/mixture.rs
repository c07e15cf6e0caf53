//! The predictive distribution of one target: the average of the distributions that `S` networks give.
//!
//! | quantity | Gaussian, `N(m_s, v_s^2)` | Poisson, rates `r_s` |
//! | --- | --- | --- |
//! | mean | `m = mean m_s` | `mean r_s` |
//! | aleatoric variance: what no amount of data removes | `mean v_s^2` | `mean r_s` |
//! | epistemic variance: what more data would remove | `mean (m_s - m)^2` | `mean (r_s - r)^2` |
//! | CRPS, `E|Y - y| - E|Y - Y'|/2` | `mean A(y - m_s, v_s) - mean A(m_s - m_t, sqrt(v_s^2 + v_t^2))/2` | `sum_k (F(k) - 1[k >= y])^2` |
//!
//! with `A(m, v) = E|N(m, v^2)| = m erf(m/(v sqrt 2)) + 2 v phi(m/v)`. Both variances add up to the total one.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use serde::{Deserialize, Serialize};

/// The distribution of a target for one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// A number with Gaussian noise.
    Gaussian,
    /// A count.
    Poisson,
}

/// Rates above this are refused: the sums over counts would take too long.
pub(super) const LARGEST_RATE: f64 = 1e8;
/// Standard deviations after which a Gaussian tail is below the smallest f64.
const TAIL: f64 = 40.0;

/// One predictive distribution.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mixture<'a> {
    pub(super) family: Family,
    /// Means or rates.
    pub(super) locations: &'a [f64],
    /// Standard deviations; empty for counts.
    pub(super) deviations: &'a [f64],
}

/// Mean, aleatoric and epistemic variance.
pub(super) struct Moments {
    pub(super) mean: f64,
    pub(super) aleatoric: f64,
    pub(super) epistemic: f64,
}

impl Mixture<'_> {
    pub(super) fn moments(&self) -> Moments {
        let count = self.locations.len() as f64;
        // From the first one, so that equal locations have exactly no spread.
        let first = self.locations[0];
        let shift = self.locations.iter().map(|m| m - first).sum::<f64>() / count;
        let mean = first + shift;
        let squares = |m: &f64| (m - first - shift).powi(2);
        let aleatoric = match self.family {
            Family::Gaussian => self.deviations.iter().map(|v| v * v).sum::<f64>() / count,
            Family::Poisson => mean,
        };
        Moments {
            mean,
            aleatoric,
            epistemic: self.locations.iter().map(squares).sum::<f64>() / count,
        }
    }

    /// `log p(y)`, of a density or a probability.
    pub(super) fn log_likelihood(&self, y: f64) -> f64 {
        let terms = (0..self.locations.len()).map(|s| self.component(s, y));
        let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return largest;
        }
        let sum: f64 = terms.map(|term| (term - largest).exp()).sum();
        largest + (sum / self.locations.len() as f64).ln()
    }

    fn component(&self, s: usize, y: f64) -> f64 {
        match self.family {
            Family::Gaussian => {
                let v = self.deviations[s];
                let z = (y - self.locations[s]) / v;
                -0.5 * z * z - v.ln() - (2.0 * PI).ln() / 2.0
            }
            Family::Poisson => log_probability(self.locations[s], y),
        }
    }

    /// `P(Y <= y)`.
    pub(super) fn cdf(&self, y: f64) -> f64 {
        let below = |s: usize| match self.family {
            Family::Gaussian => normal((y - self.locations[s]) / self.deviations[s]),
            Family::Poisson => poisson_cdf(self.locations[s], y.floor()),
        };
        self.mean(below)
    }

    /// `P(Y < y)`.
    pub(super) fn cdf_below(&self, y: f64) -> f64 {
        match self.family {
            Family::Gaussian => self.cdf(y),
            Family::Poisson => self.cdf(y.ceil() - 1.0),
        }
    }

    fn mean(&self, of: impl Fn(usize) -> f64) -> f64 {
        let count = self.locations.len();
        (0..count).map(of).sum::<f64>() / count as f64
    }

    /// The least `y` with `P(Y <= y) >= p`, for `p` strictly between 0 and 1.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        match self.family {
            Family::Gaussian => self.gaussian_quantile(p),
            Family::Poisson => self.poisson_quantile(p),
        }
    }

    /// Newton's method within a bracket that halves whenever a step leaves it.
    fn gaussian_quantile(&self, p: f64) -> f64 {
        let pairs = || self.locations.iter().zip(self.deviations);
        let mut low = pairs().fold(f64::INFINITY, |low, (m, v)| low.min(m - TAIL * v));
        let mut high = pairs().fold(f64::NEG_INFINITY, |high, (m, v)| high.max(m + TAIL * v));
        let width = pairs().fold(f64::INFINITY, |least, (_, v)| least.min(*v));
        let mut y = self.moments().mean;
        for _ in 0..200 {
            let gap = self.cdf(y) - p;
            if gap < 0.0 {
                low = y;
            } else {
                high = y;
            }
            let next = y - gap / self.log_likelihood(y).exp();
            let next = if next > low && next < high {
                next
            } else {
                f64::midpoint(low, high)
            };
            let step = (next - y).abs();
            y = next;
            if step <= 1e-13 * width.max(y.abs()) {
                break;
            }
        }
        y
    }

    fn poisson_quantile(&self, p: f64) -> f64 {
        let largest = self.locations.iter().fold(0.0_f64, |a, b| a.max(*b));
        let (mut low, mut high) = (-1.0, (largest + TAIL * largest.sqrt() + 400.0).floor());
        while high - low > 1.0 {
            let middle = f64::midpoint(low, high).floor();
            if self.cdf(middle) >= p {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    /// The continuous ranked probability score; smaller is better, in the unit of `y`.
    pub(super) fn crps(&self, y: f64) -> f64 {
        match self.family {
            Family::Gaussian => self.gaussian_crps(y),
            Family::Poisson => self.poisson_crps(y),
        }
    }

    fn gaussian_crps(&self, y: f64) -> f64 {
        let count = self.locations.len() as f64;
        let error = self.mean(|s| folded(y - self.locations[s], self.deviations[s]));
        let mut spread = 0.0;
        for (s, (m, v)) in self.locations.iter().zip(self.deviations).enumerate() {
            let mut others = 0.0;
            for (n, w) in self.locations[..s].iter().zip(self.deviations) {
                others += folded(m - n, v.hypot(*w));
            }
            spread += 2.0 * others + folded(0.0, v * SQRT_2);
        }
        error - spread / (2.0 * count * count)
    }

    fn poisson_crps(&self, y: f64) -> f64 {
        let least = self.locations.iter().fold(f64::INFINITY, |a, b| a.min(*b));
        let largest = self.locations.iter().fold(0.0_f64, |a, b| a.max(*b));
        let reach = |rate: f64| 10.0 * rate.sqrt() + 30.0;
        let start = (least - reach(least)).max(0.0).floor();
        let end = (largest + reach(largest)).ceil();
        // Before the start F is 0, behind the end 1: only the steps up to y are left.
        let mut sum = (start - y).max(0.0) + (y - end).max(0.0);
        let mut below: Vec<f64> = self
            .locations
            .iter()
            .map(|&r| poisson_cdf(r, start - 1.0))
            .collect();
        let mut k = start;
        while k < end {
            for (below, &rate) in below.iter_mut().zip(self.locations) {
                *below += log_probability(rate, k).exp();
            }
            let cdf = below.iter().sum::<f64>() / below.len() as f64;
            let gap = if k >= y { cdf - 1.0 } else { cdf };
            sum += gap * gap;
            k += 1.0;
        }
        sum
    }
}

/// `E|N(m, v^2)|`.
fn folded(m: f64, v: f64) -> f64 {
    let z = m / v;
    m * libm::erf(z * FRAC_1_SQRT_2) + v * (2.0 / PI).sqrt() * (-0.5 * z * z).exp()
}

/// The distribution function of the standard normal distribution, accurate in its lower tail too.
fn normal(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// `log P(Y = k)`; minus infinity for what is no count.
fn log_probability(rate: f64, k: f64) -> f64 {
    if k < 0.0 || k.fract() != 0.0 {
        return f64::NEG_INFINITY;
    }
    let powers = if k == 0.0 { 0.0 } else { k * rate.ln() };
    powers - rate - libm::lgamma(k + 1.0)
}

/// `P(Y <= k)`, summed from the largest term of the smaller side outwards.
fn poisson_cdf(rate: f64, k: f64) -> f64 {
    if k < 0.0 {
        return 0.0;
    }
    let (mut sum, mut term, mut at) = (0.0, 1.0, k);
    if k < rate {
        while term > 1e-18 * sum && at >= 0.0 {
            sum += term;
            term *= at / rate;
            at -= 1.0;
        }
        return (sum * log_probability(rate, k).exp()).min(1.0);
    }
    at += 1.0;
    while term > 1e-18 * sum {
        sum += term;
        at += 1.0;
        term *= rate / at;
    }
    (1.0 - sum * log_probability(rate, k + 1.0).exp()).max(0.0)
}
