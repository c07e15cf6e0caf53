//! What a trainer minimises. All but the first push the logit of the right class away from the others by a distance that is chosen, which is
//! a certified radius where the Lipschitz constant of the network is known.

use burn::tensor::{Tensor, TensorData, activation};

use super::TrainingError;
use crate::functional::cross_entropy;

/// The loss of one example, from its logits `z` and its class `y`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum TrainingLoss {
    /// `-log softmax(z)_y`.
    #[default]
    CrossEntropy,
    /// `-T log softmax((z - offset e_y)/T)_y`: the right class has to be ahead by `offset`, and a low temperature `T` asks no more of those
    /// that are.
    Margin {
        /// How far the right logit has to be ahead.
        offset: f64,
        /// In units of the logits.
        temperature: f64,
    },
    /// `max(0, margin - (z_y - max_k z_k))`.
    Hinge {
        /// How far the right logit has to be ahead.
        margin: f64,
    },
    /// Annealing: `-T (1 - p)^power log p` with `p = softmax((z - offset e_y)/T)_y`. Examples that are far enough ahead weigh less and less.
    Annealing {
        /// How far the right logit has to be ahead.
        offset: f64,
        /// In units of the logits.
        temperature: f64,
        /// How fast the weight falls.
        power: f64,
    },
}

impl TrainingLoss {
    /// Refuses settings without sense.
    pub(super) fn check(self) -> Result<(), TrainingError> {
        let finite = |what, got: f64, expected, fits: bool| match fits && got.is_finite() {
            true => Ok(()),
            false => Err(TrainingError::Setting {
                what,
                expected,
                got,
            }),
        };
        let offset = |got: f64| {
            finite(
                "the offset of the loss",
                got,
                "zero or positive",
                got >= 0.0,
            )
        };
        let temperature =
            |got: f64| finite("the temperature of the loss", got, "positive", got > 0.0);
        match self {
            Self::CrossEntropy => Ok(()),
            Self::Margin {
                offset: ahead,
                temperature: unit,
            } => offset(ahead).and(temperature(unit)),
            Self::Hinge { margin } => {
                finite("the margin of the loss", margin, "positive", margin > 0.0)
            }
            Self::Annealing {
                offset: ahead,
                temperature: unit,
                power,
            } => {
                offset(ahead).and(temperature(unit))?;
                finite(
                    "the power of the loss",
                    power,
                    "zero or positive",
                    power >= 0.0,
                )
            }
        }
    }

    /// Summed over the batch: `[1]`.
    ///
    /// # Shapes
    ///
    /// - logits: `[batch, classes]`, labels: `batch` classes
    ///
    /// # Panics
    ///
    /// Panics unless there is a class for each row.
    pub fn sum(self, logits: Tensor<2>, labels: &[usize]) -> Tensor<1> {
        let [rows, classes] = logits.dims();
        assert!(
            labels.len() == rows && labels.iter().all(|&label| label < classes),
            "expected {rows} classes below {classes}, got {labels:?}"
        );
        let right = || one_hot(labels, &logits);
        let shifted = |offset: f64, temperature: f64| {
            let behind = logits.clone() - right().mul_scalar(offset);
            behind.div_scalar(temperature)
        };
        match self {
            Self::CrossEntropy => cross_entropy(logits, labels.to_vec()),
            Self::Margin {
                offset,
                temperature,
            } => {
                cross_entropy(shifted(offset, temperature), labels.to_vec()).mul_scalar(temperature)
            }
            Self::Hinge { margin } => {
                // So far below all others that it is never the largest.
                let own = right();
                let others =
                    (logits.clone() - own.clone().mul_scalar(f64::from(f32::MAX / 4.0))).max_dim(1);
                let ahead = (logits * own).sum_dim(1) - others;
                activation::relu(ahead.neg().add_scalar(margin)).sum()
            }
            Self::Annealing {
                offset,
                temperature,
                power,
            } => {
                let logs = activation::log_softmax(shifted(offset, temperature), 1);
                let log = (logs * right()).sum_dim(1);
                // Away from zero, where the derivative of a power may be infinite.
                let rest = log.clone().exp().neg().add_scalar(1.0).clamp_min(1e-7);
                (rest.powf_scalar(power) * log)
                    .sum()
                    .mul_scalar(-temperature)
            }
        }
    }
}

/// `[batch, classes]`, 1 at the class.
fn one_hot(labels: &[usize], like: &Tensor<2>) -> Tensor<2> {
    let [rows, classes] = like.dims();
    let mut values = vec![0.0_f32; rows * classes];
    for (row, label) in labels.iter().enumerate() {
        values[row * classes + label] = 1.0;
    }
    let data = TensorData::new(values, [rows, classes]);
    Tensor::from_data(data, (&like.device(), like.dtype()))
}
