//! How badly a class fits the probabilities of an input.

use serde::{Deserialize, Serialize};

use super::ConformalError;

/// The score of a class; see the table of [`conformal`](super).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetMethod {
    /// `1 - p_k` (LAC; Sadinle, Lei and Wasserman, 2019).
    Threshold,
    /// Adaptive prediction sets (Romano, Sesia and Candes, 2020).
    Aps,
    /// Regularised adaptive prediction sets (Angelopoulos et al., 2021).
    Raps {
        /// What every rank beyond `free` adds to the score.
        penalty: f64,
        /// Ranks without a penalty.
        free: usize,
    },
}

impl SetMethod {
    /// RAPS with its authors' penalty for images: 0.01 for every rank beyond the fifth.
    pub const RAPS: Self = Self::Raps {
        penalty: 0.01,
        free: 5,
    };

    pub(super) fn checked(self) -> Result<Self, ConformalError> {
        match self {
            Self::Raps { penalty, .. } if !(penalty >= 0.0 && penalty.is_finite()) => {
                Err(ConformalError::Penalty { got: penalty })
            }
            method => Ok(method),
        }
    }

    /// The smallest scores of all classes when the probability of class `k` is in `[lower_k, upper_k]`; the scores themselves where both are
    /// equal. `u` is what a class adds of its own probability.
    ///
    /// A class counts as above `k` if it is for all probabilities within the bounds; classes of the same probability are not above each other.
    pub(super) fn scores(self, lower: &[f64], upper: &[f64], u: f64) -> Vec<f64> {
        let (penalty, free) = match self {
            Self::Threshold => return upper.iter().map(|p| 1.0 - p).collect(),
            Self::Aps => (0.0, 0),
            Self::Raps { penalty, free } => (penalty, free),
        };
        let mut falling = lower.to_vec();
        falling.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut sums = vec![0.0; falling.len() + 1];
        for (rank, p) in falling.iter().enumerate() {
            sums[rank + 1] = sums[rank] + p;
        }
        let score = |(lower, upper): (&f64, &f64)| {
            let above = falling.partition_point(|p| p > upper);
            let ranks = (above + 1).saturating_sub(free) as f64;
            sums[above] + u * lower + penalty * ranks
        };
        lower.iter().zip(upper).map(score).collect()
    }
}
