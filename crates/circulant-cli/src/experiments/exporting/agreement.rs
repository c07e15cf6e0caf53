//! Predictions of a model of `circulant-edge` beside those of the program.

use anyhow::{anyhow, ensure};
use circulant::bayes::Predictions;
use circulant::metrics::{DEFAULT_BINS, Probabilities, classification_report};
use circulant_data::{ImageSet, Pixels};
use circulant_edge::{Complex, Draws, Input, Model, Runtime, Sampling};
use rayon::prelude::*;
use serde::Serialize;

/// What a way of predicting gives on a set.
#[derive(Debug, Clone, Serialize)]
pub struct AgreementRow {
    /// Which.
    pub name: String,
    /// Where labels are known.
    pub accuracy: Option<f64>,
    /// Expected calibration error, 15 bins.
    pub ece: Option<f64>,
    /// Negative log likelihood.
    pub nll: Option<f64>,
    /// The largest difference of a probability from the program's.
    pub largest_difference: f64,
    /// Of the predictive entropies with the program's, by rank.
    pub entropy_correlation: f64,
}

/// How the device predicts.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// From samples.
    Sampled(Sampling),
    /// From moments.
    Moments,
}

/// `[inputs, classes]` and entropies, as the device computes them.
pub struct DevicePredictions {
    /// Averages over samples.
    pub probabilities: Vec<f32>,
    /// Predictive.
    pub entropies: Vec<f32>,
}

/// Predicts a set.
pub fn predict(bytes: &[u8], set: &ImageSet, way: Way) -> anyhow::Result<DevicePredictions> {
    let model = Model::read(bytes)?;
    let row = model.inputs();
    ensure!(row > 0 && !set.is_empty(), "{}: no inputs", set.source());
    let chunk = 64;
    let starts: Vec<usize> = (0..set.len()).step_by(chunk).collect();
    let parts: Vec<(Vec<f32>, Vec<f32>)> = starts
        .par_iter()
        .map(|&start| -> anyhow::Result<_> {
            let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
            let mut runtime = Runtime::new(model, &mut memory)?;
            let (mut probabilities, mut entropies) = (Vec::new(), Vec::new());
            for index in start..set.len().min(start + chunk) {
                let place = index * row..(index + 1) * row;
                let input = match set.pixels() {
                    Pixels::U8(bytes) => Input::Bytes(&bytes[place]),
                    Pixels::F32(floats) => Input::Floats(&floats[place]),
                };
                let prediction = match way {
                    Way::Sampled(sampling) => runtime.predict(input, &sampling),
                    Way::Moments => runtime.predict_moments(input),
                };
                let prediction = prediction.map_err(|error| anyhow!("input {index}: {error}"))?;
                probabilities.extend(prediction.probabilities());
                entropies.push(prediction.predictive_entropy);
            }
            Ok((probabilities, entropies))
        })
        .collect::<anyhow::Result<_>>()?;
    let (probabilities, entropies): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    Ok(DevicePredictions {
        probabilities: probabilities.concat(),
        entropies: entropies.concat(),
    })
}

/// A line of the table about one way of predicting.
pub fn row(
    name: &str,
    found: &DevicePredictions,
    program: &Predictions,
    labels: Option<&[usize]>,
) -> anyhow::Result<AgreementRow> {
    let pairs = found.probabilities.iter().zip(&program.probabilities);
    let largest = pairs
        .map(|(a, b)| f64::from((a - b).abs()))
        .fold(0.0, f64::max);
    let report = match labels {
        Some(labels) => {
            let probabilities = Probabilities::new(&found.probabilities, program.classes)?;
            let labels: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
            Some(classification_report(
                &probabilities,
                &labels,
                DEFAULT_BINS,
            )?)
        }
        None => None,
    };
    let report = report.as_ref();
    Ok(AgreementRow {
        name: name.to_owned(),
        accuracy: report.map(|report| report.accuracy),
        ece: report.map(|report| report.ece),
        nll: report.map(|report| report.nll),
        largest_difference: largest,
        entropy_correlation: rank_correlation(&found.entropies, &program.predictive_entropy),
    })
}

/// The program's own line.
pub fn own_row(
    name: &str,
    program: &Predictions,
    labels: Option<&[usize]>,
) -> anyhow::Result<AgreementRow> {
    let own = DevicePredictions {
        probabilities: program.probabilities.clone(),
        entropies: program.predictive_entropy.clone(),
    };
    row(name, &own, program, labels)
}

/// Spearman's: the correlation of ranks, ties sharing theirs.
fn rank_correlation(a: &[f32], b: &[f32]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let products = |a: &[f64], b: &[f64]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = (products(&a, &a) * products(&b, &b)).sqrt();
    if spread > 0.0 {
        products(&a, &b) / spread
    } else {
        1.0
    }
}

fn ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    for group in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let first = order.partition_point(|&i| values[i].total_cmp(&values[group[0]]).is_lt());
        let shared = first as f64 + (group.len() as f64 - 1.0) / 2.0;
        group.iter().for_each(|&index| ranks[index] = shared);
    }
    ranks
}

/// The rows of the table that is printed at export.
pub fn ways(samples: u32, bayesian: bool) -> Vec<(String, Way)> {
    let sampling = |draws| Sampling {
        samples: if bayesian { samples } else { 1 },
        seed: 0,
        draws,
        radius: false,
    };
    if !bayesian {
        return vec![("device".to_owned(), Way::Sampled(sampling(Draws::Sums)))];
    }
    vec![
        (
            "device, the same weights drawn".to_owned(),
            Way::Sampled(sampling(Draws::Weights)),
        ),
        (
            "device, sums drawn".to_owned(),
            Way::Sampled(sampling(Draws::Sums)),
        ),
        ("device, moments".to_owned(), Way::Moments),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 0.0]), [2.5, 1.0, 2.5, 0.0]);
        assert!((rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]) - 1.0).abs() < 1e-12);
        assert!((rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        // Ranks 0, 1.5, 1.5 and 0, 1, 2.
        let expected = 1.5 / (1.5_f64 * 2.0).sqrt();
        assert!((rank_correlation(&[0.0, 1.0, 1.0], &[0.0, 1.0, 2.0]) - expected).abs() < 1e-12);
    }
}
