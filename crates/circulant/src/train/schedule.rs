//! Learning rates.

use std::f64::consts::PI;

/// A learning rate for every step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUpCosine {
    /// The largest rate.
    pub peak: f64,
    /// Steps of linear growth.
    pub warm_up: u64,
    /// All steps; after the last one the rate is zero.
    pub steps: u64,
}

impl WarmUpCosine {
    /// The rate of a step, from 0: `peak (step + 1)/warm_up` at first, then
    /// `peak (1 + cos(pi (step - warm_up)/(steps - warm_up)))/2`.
    pub fn at(&self, step: u64) -> f64 {
        if step < self.warm_up {
            return self.peak * (step + 1) as f64 / self.warm_up as f64;
        }
        if step >= self.steps {
            return 0.0;
        }
        let along = (step - self.warm_up) as f64 / (self.steps - self.warm_up) as f64;
        self.peak * (1.0 + (PI * along).cos()) / 2.0
    }
}
