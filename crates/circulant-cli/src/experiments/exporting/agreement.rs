//! Predictions of a model of `circulant-edge` beside those of the program.

use std::borrow::Cow;

use anyhow::{anyhow, ensure};
use circulant::bayes::Predictions;
use circulant::metrics::{DEFAULT_BINS, Mixtures, Probabilities, classification_report};
use circulant_data::{ImageSet, Pixels};
use circulant_edge::write::WrittenNormalisation;
use circulant_edge::{Complex, Draws, Input, Model, Prediction, Runtime, Sampling};
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

/// Inputs one after the other, as a device gets them.
pub enum Inputs<'a> {
    /// Of images.
    Bytes(&'a [u8]),
    /// Of images or tables.
    Floats(Cow<'a, [f32]>),
}

impl<'a> Inputs<'a> {
    /// Pixels.
    pub fn of(set: &'a ImageSet) -> Self {
        match set.pixels() {
            Pixels::U8(bytes) => Self::Bytes(bytes),
            Pixels::F32(floats) => Self::Floats(Cow::Borrowed(floats)),
        }
    }

    /// Rows of a table in the units of its columns, from standardised ones.
    pub fn of_standardised(values: &[f32], normalisation: &WrittenNormalisation) -> Self {
        let columns = normalisation.mean.iter().zip(&normalisation.deviation);
        let rows = values.iter().zip(columns.cycle());
        let raw = rows.map(|(x, (mean, deviation))| x * deviation + mean);
        Self::Floats(raw.collect())
    }

    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Floats(floats) => floats.len(),
        }
    }
}

/// `[inputs, classes]` and entropies, as the device computes them.
pub struct DevicePredictions {
    /// Averages over samples.
    pub probabilities: Vec<f32>,
    /// Predictive.
    pub entropies: Vec<f32>,
}

/// What a device says about numbers.
pub struct DeviceValues {
    /// Averages over samples.
    pub means: Vec<f32>,
    /// Their deviations over samples.
    pub deviations: Vec<f32>,
    /// Those of the noise.
    pub noises: Vec<f32>,
}

/// Predicts a set of classes.
pub fn predict(bytes: &[u8], inputs: &Inputs<'_>, way: Way) -> anyhow::Result<DevicePredictions> {
    let parts = each(bytes, inputs, way, |prediction| {
        let probabilities: Vec<f32> = prediction.probabilities().collect();
        (probabilities, prediction.predictive_entropy)
    })?;
    let (probabilities, entropies): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    Ok(DevicePredictions {
        probabilities: probabilities.concat(),
        entropies,
    })
}

/// Predicts numbers.
pub fn predict_values(bytes: &[u8], inputs: &Inputs<'_>, way: Way) -> anyhow::Result<DeviceValues> {
    let parts = each(bytes, inputs, way, |prediction| {
        [
            prediction.mean(0),
            prediction.deviation(0),
            prediction.noise(0),
        ]
    })?;
    let part = |which: usize| parts.iter().map(|row| row[which]).collect();
    Ok(DeviceValues {
        means: part(0),
        deviations: part(1),
        noises: part(2),
    })
}

/// What is wanted of every prediction, in order.
fn each<R: Send>(
    bytes: &[u8],
    inputs: &Inputs<'_>,
    way: Way,
    of: impl Fn(Prediction<'_, f32>) -> R + Sync,
) -> anyhow::Result<Vec<R>> {
    let model = Model::read(bytes)?;
    let row = model.inputs();
    let count = inputs.len() / row.max(1);
    ensure!(count > 0, "no inputs to compare predictions on");
    let chunk = 64;
    let starts: Vec<usize> = (0..count).step_by(chunk).collect();
    let parts: Vec<Vec<R>> = starts
        .par_iter()
        .map(|&start| -> anyhow::Result<_> {
            let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
            let mut runtime = Runtime::new(model, &mut memory)?;
            let mut found = Vec::new();
            for index in start..count.min(start + chunk) {
                let place = index * row..(index + 1) * row;
                let input = match inputs {
                    Inputs::Bytes(bytes) => Input::Bytes(&bytes[place]),
                    Inputs::Floats(floats) => Input::Floats(&floats[place]),
                };
                let prediction = match way {
                    Way::Sampled(sampling) => runtime.predict(input, &sampling),
                    Way::Moments => runtime.predict_moments(input),
                };
                let prediction = prediction.map_err(|error| anyhow!("input {index}: {error}"))?;
                found.push(of(prediction));
            }
            Ok(found)
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// How a way of predicting numbers differs from the program, in the unit of the target.
#[derive(Debug, Clone, Serialize)]
pub struct ValueRow {
    /// Which.
    pub name: String,
    /// The root mean square error, where targets are known.
    pub rmse: Option<f64>,
    /// The largest difference of a mean from the program's.
    pub largest_difference: f64,
    /// The largest one of a deviation over networks.
    pub largest_of_deviations: f64,
    /// The largest one of the noise.
    pub largest_of_noises: f64,
}

/// A line of the table about numbers.
pub fn value_row(
    name: &str,
    found: &DeviceValues,
    program: &Mixtures,
    targets: Option<&[f64]>,
) -> ValueRow {
    let largest = |found: &[f32], expected: Vec<f64>| {
        let pairs = found.iter().zip(expected);
        pairs
            .map(|(a, b)| (f64::from(*a) - b).abs())
            .fold(0.0, f64::max)
    };
    let rmse = targets.map(|targets| {
        let pairs = found.means.iter().zip(targets);
        let sum: f64 = pairs.map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
        (sum / targets.len().max(1) as f64).sqrt()
    });
    ValueRow {
        name: name.to_owned(),
        rmse,
        largest_difference: largest(&found.means, program.mean()),
        largest_of_deviations: largest(&found.deviations, program.epistemic_deviation()),
        largest_of_noises: largest(&found.noises, program.aleatoric_deviation()),
    }
}

/// The program's own line about numbers.
pub fn own_value_row(name: &str, program: &Mixtures, targets: Option<&[f64]>) -> ValueRow {
    let single = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect();
    let own = DeviceValues {
        means: single(program.mean()),
        deviations: single(program.epistemic_deviation()),
        noises: single(program.aleatoric_deviation()),
    };
    value_row(name, &own, program, targets)
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
