//! A number of several seeds.

use serde::Serialize;

use crate::report::Estimate;

impl From<&Values> for Estimate {
    fn from(values: &Values) -> Self {
        Self {
            mean: values.mean,
            spread: (values.values.len() > 1).then_some(values.std),
        }
    }
}

/// Seeds as text.
pub fn seeds(seeds: &[u64]) -> String {
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    seeds.join(", ")
}

/// One number per seed, with their mean and standard deviation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Values {
    pub mean: f64,
    /// The sample standard deviation; 0 for one seed.
    pub std: f64,
    /// In the order of the seeds.
    pub values: Vec<f64>,
}

impl Values {
    /// Of one number per seed.
    pub fn new(values: Vec<f64>) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let std = match values.len() {
            1 => 0.0,
            _ => (squares / (count - 1.0)).sqrt(),
        };
        Self { mean, std, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_sample_deviations() {
        let values = Values::new(vec![1.0, 2.0, 6.0]);
        assert_eq!(values.mean, 3.0);
        assert!((values.std - 7_f64.sqrt()).abs() < 1e-15);
        assert_eq!(Values::new(vec![5.0]).std, 0.0);
    }
}
