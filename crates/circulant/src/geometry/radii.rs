//! Margins of the f32 logits, and the three radii that follow from them.

use super::certificate::{Certificate, MeasuredInputs, Target};
use super::network_bound::ReadOut;
use super::{GeometryError, LowerBound, NetworkBound, UpperBound};
use crate::nn::to_host;
use crate::task::Classifier;

/// The f32 logits of all inputs.
pub(super) struct ModelLogits {
    pub(super) classes: usize,
    /// `[inputs, classes]`.
    values: Vec<f64>,
}

/// The differences between the logit of a class and all others, rounded down; infinite at the class itself.
pub(super) struct Margins {
    class: usize,
    predicted: usize,
    differences: Vec<f64>,
}

impl ModelLogits {
    pub(super) fn new<const D: usize, M: Classifier<D>>(
        model: &M,
        inputs: &MeasuredInputs<D>,
        batch: usize,
    ) -> Result<Self, GeometryError> {
        let all = inputs.norms.len();
        let (mut classes, mut values) = (0, Vec::new());
        for start in (0..all).step_by(batch.max(1)) {
            let rows = batch.max(1).min(all - start);
            let logits = model.logits(inputs.tensor.clone().narrow(0, start, rows));
            classes = checked_classes(&logits.dims(), rows)?;
            values.extend(to_host(logits));
        }
        if let Some(position) = values.iter().position(|value| !value.is_finite()) {
            let input = position / classes;
            return Err(GeometryError::NotFiniteLogits { input });
        }
        Ok(Self { classes, values })
    }

    fn row(&self, input: usize) -> &[f64] {
        &self.values[input * self.classes..][..self.classes]
    }

    fn predicted(&self, input: usize) -> usize {
        let row = self.row(input);
        (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best })
    }

    pub(super) fn targets(&self, target: Target<'_>) -> Result<Vec<usize>, GeometryError> {
        let all = self.values.len() / self.classes;
        let predicted = || (0..all).map(|input| self.predicted(input)).collect();
        Ok(checked_labels(target, all, self.classes)?.map_or_else(predicted, <[usize]>::to_vec))
    }

    pub(super) fn margins(&self, input: usize, class: usize) -> Margins {
        let row = self.row(input);
        let difference = |(k, value): (usize, &f64)| {
            if k == class {
                return f64::INFINITY;
            }
            let difference = row[class] - value;
            // Equal logits differ by exactly nothing.
            if difference == 0.0 {
                0.0
            } else {
                difference.next_down()
            }
        };
        Margins {
            class,
            predicted: self.predicted(input),
            differences: row.iter().enumerate().map(difference).collect(),
        }
    }
}

/// The number of classes of logits `[rows, classes]`.
pub(super) fn checked_classes(shape: &[usize], rows: usize) -> Result<usize, GeometryError> {
    match *shape {
        [found, classes] if found == rows && classes >= 2 => Ok(classes),
        _ => Err(GeometryError::Shape {
            what: "the logits",
            expected: format!("[{rows}, classes] with at least two classes"),
            got: format!("{shape:?}"),
        }),
    }
}

/// The true classes, if certificates are about them.
pub(super) fn checked_labels(
    target: Target<'_>,
    inputs: usize,
    classes: usize,
) -> Result<Option<&[usize]>, GeometryError> {
    let labels = match target {
        Target::Predicted => return Ok(None),
        Target::True(labels) => labels,
    };
    if labels.len() != inputs {
        return Err(GeometryError::Shape {
            what: "the labels",
            expected: format!("one per input, {inputs}"),
            got: labels.len().to_string(),
        });
    }
    match labels.iter().position(|&label| label >= classes) {
        None => Ok(Some(labels)),
        Some(input) => Err(GeometryError::Label {
            input,
            label: labels[input],
            classes,
        }),
    }
}

impl Margins {
    fn smallest(&self) -> f64 {
        self.differences
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
    }
}

/// The divisors of the three radii and the slack of all of them.
pub(super) struct Radii {
    two: UpperBound,
    root_two: UpperBound,
    /// `L' norm(W_y - W_k)`, row-major.
    pairs: Option<Vec<UpperBound>>,
    /// `norm(W_y - W_k)`.
    distances: Vec<UpperBound>,
    classes: usize,
    /// `2 sqrt(2) e`.
    slack: UpperBound,
    /// Of the last layer's inputs, and of the layer itself, both times two.
    read_out: Option<[UpperBound; 2]>,
}

impl Radii {
    pub(super) fn new(network: &NetworkBound, classes: usize) -> Result<Self, GeometryError> {
        let root_two = UpperBound::new(2.0).sqrt();
        let mut distances = Vec::new();
        let pairs = match network.read_out() {
            None => None,
            Some(read_out) if read_out.outputs != classes => {
                return Err(GeometryError::Shape {
                    what: "the last layer of the description",
                    expected: format!("one output per class, {classes}"),
                    got: read_out.outputs.to_string(),
                });
            }
            Some(read_out) => {
                distances = pair_distances(&read_out);
                Some(pair_constants(&read_out))
            }
        };
        Ok(Self {
            two: UpperBound::new(2.0) * network.upper(),
            root_two: root_two * network.upper(),
            pairs,
            distances,
            classes,
            slack: UpperBound::ZERO,
            read_out: None,
        })
    }

    /// `read_out`: [`NetworkBound::read_out_rounding`].
    pub(super) fn set_slack(&mut self, rounding: UpperBound, read_out: Option<[UpperBound; 2]>) {
        self.slack = UpperBound::new(8.0).sqrt() * rounding;
        let twice = |errors: [UpperBound; 2]| errors.map(|error| UpperBound::new(2.0) * error);
        self.read_out = read_out.map(twice);
    }

    /// How much of a pair's difference rounding may take, at an input and at another one: an error of the features moves it by no more than
    /// the distance of the two columns, and the last layer adds its own.
    fn pair_slack(&self, pair: usize) -> UpperBound {
        let Some([features, own]) = self.read_out else {
            return self.slack;
        };
        let slack = self.distances[pair] * features + UpperBound::new(2.0).sqrt() * own;
        slack.min(self.slack)
    }

    /// The largest radius there can be, without the slack.
    pub(super) fn farthest(&self, margins: &Margins) -> f64 {
        let global = LowerBound::new(margins.smallest()) / self.root_two;
        let pairwise = self.pairwise(margins).unwrap_or(LowerBound::ZERO);
        global.max(pairwise).get()
    }

    /// The smallest difference that is left in spite of rounding.
    fn certified_margin(&self, margins: &Margins) -> LowerBound {
        let start = margins.class * self.classes;
        let others = margins.differences.iter().enumerate();
        others
            .filter(|(k, _)| *k != margins.class)
            .map(|(k, difference)| LowerBound::new(*difference) - self.pair_slack(start + k))
            .fold(LowerBound::new(f64::INFINITY), LowerBound::min)
    }

    fn pairwise(&self, margins: &Margins) -> Option<LowerBound> {
        let start = margins.class * self.classes;
        let pairs = &self.pairs.as_ref()?[start..][..self.classes];
        let mut least = LowerBound::new(f64::INFINITY);
        for (k, (constant, difference)) in pairs.iter().zip(&margins.differences).enumerate() {
            if k != margins.class {
                let left = LowerBound::new(*difference) - self.pair_slack(start + k);
                least = least.min(left / *constant);
            }
        }
        Some(least)
    }

    /// `room` is what an input may grow by, up to `input_norm`.
    pub(super) fn certificate(
        &self,
        margins: &Margins,
        room: LowerBound,
        input_norm: UpperBound,
    ) -> Certificate {
        let margin = margins.smallest();
        let certified = self.certified_margin(margins);
        Certificate {
            class: margins.class,
            predicted: margins.predicted,
            margin,
            certified_margin: certified,
            paper: (certified / self.two).min(room),
            sqrt_two: (certified / self.root_two).min(room),
            last_layer: self.pairwise(margins).map(|radius| radius.min(room)),
            input_norm,
        }
    }
}

/// `L' norm(W_y - W_k)` for all pairs of classes.
pub(super) fn pair_constants(read_out: &ReadOut<'_>) -> Vec<UpperBound> {
    let distances = pair_distances(read_out).into_iter();
    distances.map(|distance| read_out.body * distance).collect()
}

/// `norm(W_y - W_k)` for all pairs of classes.
fn pair_distances(read_out: &ReadOut<'_>) -> Vec<UpperBound> {
    let classes = read_out.outputs;
    let mut distances = vec![UpperBound::ZERO; classes * classes];
    for y in 0..classes {
        for k in 0..y {
            let rows = read_out.weights.chunks_exact(classes);
            let difference: Vec<f64> = rows.map(|row| row[y] - row[k]).collect();
            let distance = UpperBound::norm(&difference);
            distances[y * classes + k] = distance;
            distances[k * classes + y] = distance;
        }
    }
    distances
}
