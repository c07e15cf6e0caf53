//! `e^-x` with a proven error, and softmax probabilities from it: the functions of the platform promise nothing.
//!
//! With `h = x/2^k <= 1/2`, exact, a Taylor polynomial of degree 18 has a remainder below `h^19/19! < 2e-23`, and Horner's scheme an error of
//! at most `36 u sum h^j/j! <= 36 u e^(1/2)`, so below `100 u e^-h`. A squaring doubles a relative error and adds `u`: after `k <= 11` of them it is below
//! `2^k 101 u < 2.4e-11`.

/// A bound of the relative error of [`exponential_of_minus`], the rounding of its argument included: `x u <= 1e-13`.
const RELATIVE: f64 = 3e-11;
/// Beyond, `e^-x` counts as something between zero and [`SMALLEST`].
const LARGEST: f64 = 700.0;
/// Above `e^-700`.
const SMALLEST: f64 = 1e-304;
const DEGREE: u32 = 18;

/// `e^-x` for `x >= 0` within [`RELATIVE`], and zero for `x > 700`.
fn exponential_of_minus(x: f64) -> f64 {
    if x.is_nan() || x > LARGEST {
        return 0.0;
    }
    let (mut h, mut squarings) = (x, 0);
    while h > 0.5 {
        h *= 0.5;
        squarings += 1;
    }
    let mut sum = 1.0;
    for j in (1..=DEGREE).rev() {
        sum = 1.0 - sum * h / f64::from(j);
    }
    for _ in 0..squarings {
        sum *= sum;
    }
    sum
}

/// At most `e^-x`, for `x >= 0`.
pub(super) fn below_exponential_of_minus(x: f64) -> f64 {
    exponential_of_minus(x) * (1.0 - RELATIVE)
}

/// The softmax of f32 logits: `w_k = e^(z_k - max z)` and `Z = sum w_k`, every weight within [`RELATIVE`] or [`SMALLEST`] of the exact one.
pub(super) struct Softmax {
    pub(super) weights: Vec<f64>,
    total: f64,
}

/// Covers the errors of all weights in a quotient of two sums of them, and of the sums.
fn slack(terms: usize) -> f64 {
    4.0 * RELATIVE + 4.0 * terms as f64 * f64::EPSILON
}

impl Softmax {
    pub(super) fn new(logits: &[f32]) -> Self {
        let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weight = |&z: &f32| exponential_of_minus(f64::from(top) - f64::from(z));
        let weights: Vec<f64> = logits.iter().map(weight).collect();
        let total = weights.iter().sum();
        Self { weights, total }
    }

    /// `p_y - p_k` within [`Self::difference_error`].
    pub(super) fn difference(&self, y: usize, k: usize) -> f64 {
        (self.weights[y] - self.weights[k]) / self.total
    }

    /// How far [`Self::difference`] can be from the truth.
    pub(super) fn difference_error(&self) -> f64 {
        2.0 * slack(self.weights.len())
    }

    /// At most `1 + p_y - p_k`. All terms are positive, so it is known to many digits even where it is tiny.
    pub(super) fn below_one_and_difference(&self, y: usize, k: usize) -> f64 {
        let others: f64 = self.all_but(k).sum();
        (others + self.weights[y]) / self.total * (1.0 - slack(self.weights.len()))
    }

    /// At least `1 - (p_y - p_k)`.
    pub(super) fn above_one_less_difference(&self, y: usize, k: usize) -> f64 {
        let others: f64 = self.all_but(y).sum();
        let tiny = (self.weights.len() + 1) as f64 * SMALLEST;
        (others + self.weights[k] + tiny) / self.total * (1.0 + slack(self.weights.len()))
    }

    /// At least `p_k/(1 - p_k)`; infinite where the others vanish.
    pub(super) fn above_odds(&self, k: usize) -> f64 {
        let others: f64 = self.all_but(k).sum();
        (self.weights[k] + SMALLEST) / others * (1.0 + slack(self.weights.len()))
    }

    /// At most `p_k/(1 - p_k)`.
    pub(super) fn below_odds(&self, k: usize) -> f64 {
        let others: f64 = self.all_but(k).sum();
        let tiny = self.weights.len() as f64 * SMALLEST;
        self.weights[k] / (others + tiny) * (1.0 - slack(self.weights.len()))
    }

    fn all_but(&self, class: usize) -> impl Iterator<Item = f64> + '_ {
        let weights = self.weights.iter().enumerate();
        weights.filter_map(move |(k, weight)| (k != class).then_some(*weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_enclosed() {
        let mut x: f64 = 1e-12;
        while x < 690.0 {
            // The platform's own error is some units of 1e-16.
            let exact = (-x).exp();
            assert!(below_exponential_of_minus(x) < exact, "{x}");
            let relative = exponential_of_minus(x) / exact - 1.0;
            assert!(relative.abs() < RELATIVE, "{x} {relative}");
            x *= 1.001;
        }
        assert_eq!(exponential_of_minus(0.0), 1.0);
        assert_eq!(below_exponential_of_minus(f64::INFINITY), 0.0);
        assert_eq!(below_exponential_of_minus(f64::NAN), 0.0);
    }

    #[test]
    fn probabilities_are_enclosed() {
        for logits in [
            [0.0_f32, 0.0, 0.0],
            [1.5, -2.0, 0.25],
            [80.0, -3.0, 10.0],
            [-500.0, 400.0, 399.0],
        ] {
            let softmax = Softmax::new(&logits);
            let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights: Vec<f64> = logits
                .iter()
                .map(|z| (f64::from(*z) - f64::from(top)).exp())
                .collect();
            let total: f64 = weights.iter().sum();
            for (y, own) in weights.iter().enumerate() {
                let others: f64 = weights
                    .iter()
                    .enumerate()
                    .filter(|(k, _)| *k != y)
                    .map(|(_, w)| w)
                    .sum();
                let odds = own / others;
                assert!(
                    softmax.below_odds(y) <= odds && odds <= softmax.above_odds(y),
                    "{logits:?} {y}"
                );
                assert!(softmax.below_odds(y) >= odds * (1.0 - 1e-9));
                for k in (0..3).filter(|&k| k != y) {
                    let exact = (own - weights[k]) / total;
                    assert!((softmax.difference(y, k) - exact).abs() <= softmax.difference_error());
                    let less = (others + weights[k]) / total;
                    let found = softmax.above_one_less_difference(y, k);
                    assert!(
                        found >= less && found <= less * (1.0 + 1e-9) + 1e-300,
                        "{found} {less}"
                    );
                    let rest: f64 = weights
                        .iter()
                        .enumerate()
                        .filter(|(j, _)| *j != k)
                        .map(|(_, w)| w)
                        .sum();
                    let more = (rest + own) / total;
                    let found = softmax.below_one_and_difference(y, k);
                    assert!(
                        found <= more && found >= more * (1.0 - 1e-9),
                        "{found} {more}"
                    );
                }
            }
        }
    }
}
