//! Several networks as one.

use crate::bayes::Predictions;
use crate::metrics::{MetricError, Probabilities, entropies};

/// What networks say together: the mean of their probabilities, its entropy, and the mean of their expected entropies.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::baselines::average;
/// use circulant::bayes::{BayesianConfig, PredictiveConfig};
/// use circulant::models::{HiddenKind, ImageClassifierConfig};
///
/// let config = ImageClassifierConfig::new(HiddenKind::Dense).with_image([1, 1, 4]).with_classes(2);
/// let predictive = PredictiveConfig::new().with_samples(1);
/// let mut members = Vec::new();
/// for seed in 0..5 {
///     // Yours are trained.
///     let network = BayesianConfig::new().init(config.clone().with_seed(seed).init(&circulant::cpu()))?;
///     members.push(predictive.predict(&network, Tensor::<2>::ones([3, 4], &circulant::cpu()))?);
/// }
/// let ensemble = average(&members)?;
/// assert!(ensemble.mutual_information().all(|information| information > 0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn average(members: &[Predictions]) -> Result<Predictions, MetricError> {
    let Some(first) = members.first() else {
        return Err(MetricError::Empty {
            what: "the members",
        });
    };
    let count = members.len() as f64;
    for member in members {
        for (what, expected, got) in [
            ("the classes of a member", first.classes, member.classes),
            (
                "the probabilities of a member",
                first.probabilities.len(),
                member.probabilities.len(),
            ),
        ] {
            if expected != got {
                return Err(MetricError::Length {
                    what,
                    expected,
                    got,
                });
            }
        }
    }
    let mean = |of: fn(&Predictions) -> &Vec<f32>| -> Vec<f32> {
        let at = |i: usize| {
            (members
                .iter()
                .map(|member| f64::from(of(member)[i]))
                .sum::<f64>()
                / count) as f32
        };
        (0..of(first).len()).map(at).collect()
    };
    let probabilities = mean(|member| &member.probabilities);
    let entropy = entropies(&Probabilities::new(&probabilities, first.classes)?);
    Ok(Predictions {
        classes: first.classes,
        predictive_entropy: entropy.into_iter().map(|h| h as f32).collect(),
        expected_entropy: mean(|member| &member.expected_entropy),
        probabilities,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure_of(class: usize) -> Predictions {
        Predictions {
            classes: 2,
            probabilities: (0..2).map(|k| f32::from(u8::from(k == class))).collect(),
            predictive_entropy: vec![0.0],
            expected_entropy: vec![0.0],
        }
    }

    #[test]
    fn members_that_disagree_know_nothing_together() {
        let found = average(&[sure_of(0), sure_of(1)]).unwrap();
        assert_eq!(found.probabilities, [0.5, 0.5]);
        assert_eq!(found.predictive_entropy, [2.0_f32.ln()]);
        assert_eq!(found.expected_entropy, [0.0]);
        assert_eq!(average(&[sure_of(1)]).unwrap(), sure_of(1));
        assert!(average(&[]).is_err());
        let mut other = sure_of(0);
        other.classes = 1;
        assert!(average(&[sure_of(0), other]).is_err());
    }
}
