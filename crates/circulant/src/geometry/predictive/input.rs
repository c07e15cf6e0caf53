//! One input: the search for its radius.

use super::super::exponential::{Softmax, below_exponential_of_minus};
use super::super::{LowerBound, UpperBound};
use super::{PredictiveCertificate, SampleBound};

/// What is subtracted for all inputs alike.
pub(super) struct Slacks {
    pub(super) lipschitz: UpperBound,
    pub(super) rounding: UpperBound,
    pub(super) probability: UpperBound,
}

/// The f64 errors of a mean of so many terms of this file, none of them above 1.
pub(super) fn own_error(samples: usize) -> f64 {
    1e-9 + 4.0 * samples as f64 * f64::EPSILON
}

/// One input, all samples.
pub(super) struct Input<'a> {
    pub(super) samples: &'a [SampleBound],
    pub(super) errors: &'a [UpperBound],
    pub(super) logits: Vec<&'a [f32]>,
    pub(super) softmax: Vec<Softmax>,
    pub(super) class: usize,
    pub(super) slacks: &'a Slacks,
}

/// The relative width at which the search for a radius stops.
const PRECISION: f64 = 1e-6;
/// And the share of the largest radius below which there is none.
const SMALLEST: f64 = 1e-12;

impl Input<'_> {
    pub(super) fn certificate(&self, predicted: usize, room: LowerBound) -> PredictiveCertificate {
        let classes = self.samples[0].classes;
        let mut others: Vec<(usize, f64)> = (0..classes)
            .filter(|&k| k != self.class)
            .map(|k| (k, self.difference(k)))
            .collect();
        // The nearest one first: it decides as a rule.
        others.sort_by(|a, b| a.1.total_cmp(&b.1));
        let difference = others.first().map_or(1.0, |other| other.1);
        let slope = self.slacks.lipschitz / LowerBound::new(2.0_f64.sqrt().next_down());
        let certified = LowerBound::new(difference - self.lost())
            - UpperBound::new(2.0).sqrt() * self.slacks.rounding;
        let average = (certified / slope).min(room);
        let mut per_sample = room;
        for &(k, _) in &others {
            per_sample = per_sample.min(self.radius(k, average, per_sample));
        }
        PredictiveCertificate {
            class: self.class,
            predicted,
            difference,
            certified_difference: certified,
            average,
            per_sample: per_sample.max(average),
        }
    }

    /// `mean_s (p_y - p_k)`.
    fn difference(&self, k: usize) -> f64 {
        let sum: f64 = self
            .softmax
            .iter()
            .map(|softmax| softmax.difference(self.class, k))
            .sum();
        sum / self.softmax.len() as f64
    }

    /// Of a difference of two averages, by rounding: of the f32 ones that decide, and of the f64 ones here.
    fn lost(&self) -> f64 {
        let own = self.softmax[0].difference_error() + own_error(self.softmax.len());
        (UpperBound::new(2.0) * self.slacks.probability + UpperBound::new(own)).get()
    }

    /// The largest radius up to `largest` at which `y` stays above `k`; `known` is one.
    fn radius(&self, k: usize, known: LowerBound, largest: LowerBound) -> LowerBound {
        let holds = |radius: f64| self.least_difference(k, radius) > 0.0;
        if !holds(known.get()) {
            // Only at zero, or where the two radii agree but for rounding.
            return LowerBound::ZERO;
        }
        if holds(largest.get()) {
            return largest;
        }
        let (mut low, mut high) = (known.get(), largest.get());
        // First the order of magnitude.
        let mut next = 2.0 * low;
        while next > 0.0 && next < high && holds(next) {
            low = next;
            next *= 2.0;
        }
        if next > 0.0 {
            high = high.min(next);
        }
        while high - low > PRECISION * high && high > SMALLEST * largest.get() {
            let middle = f64::midpoint(low, high);
            if holds(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        LowerBound::new(low)
    }

    /// At most the difference of the f32 averages of `y` and `k` at any input within `radius`.
    fn least_difference(&self, k: usize, radius: f64) -> f64 {
        let y = self.class;
        let (reach, root) = (UpperBound::new(radius), UpperBound::new(8.0).sqrt());
        let mut sum = 0.0;
        for (sample, (bound, softmax)) in self.samples.iter().zip(&self.softmax).enumerate() {
            // `2 sqrt(2) e`: of the difference of two logits, and of twice the artanh.
            let error = root * self.errors[sample];
            let moved = (UpperBound::new(bound.twice_artanh(y, k)) * reach + error).get();
            // (1 - D)/(1 + D) is e^(-2 artanh D).
            let more = softmax.below_one_and_difference(y, k) * below_exponential_of_minus(moved);
            let less = softmax.above_one_less_difference(y, k);
            let by_probability = (more - less) / (more + less);
            let pair = (bound.pairs[y * bound.classes + k] * reach + error).get();
            let logits = self.logits[sample];
            let margin = (f64::from(logits[y]) - f64::from(logits[k])).next_down() - pair;
            // Where y is above k, its probability is; where it is not, tanh(margin/2) is the worst case: two classes.
            let by_logits = if margin >= 0.0 {
                0.0
            } else {
                let e = below_exponential_of_minus(-margin.next_down());
                (e - 1.0) / (e + 1.0)
            };
            sum += by_probability.max(by_logits);
        }
        sum / self.samples.len() as f64 - self.lost()
    }
}
