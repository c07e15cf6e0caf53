//! Certificates of the averaged prediction: the constants behind them are right and tight, and nothing inside a radius changes the class.

mod bounds;
mod certificates;
mod constants;

use crate::common::{host, numbers};
use crate::geometry::{norm, perturbed, single};
use burn::tensor::{Tensor, TensorData, activation};
use circulant::bayes::{Bayesian, BayesianConfig, Predictions, PredictiveConfig, Site};
use circulant::geometry::{PredictiveBounds, PredictiveBoundsConfig};
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
use circulant::noise::{Noise, Purpose};
use circulant::task::Classifier;

const FEATURES: usize = 12;
const CLASSES: usize = 4;
const SAMPLES: usize = 6;

fn network(kind: HiddenKind, classes: usize, seed: u64) -> Bayesian<ImageClassifier> {
    let config = ImageClassifierConfig::new(kind)
        .with_image([1, 1, FEATURES])
        .with_classes(classes)
        .with_width((kind == HiddenKind::Dense).then_some(7))
        .with_seed(seed);
    let wide = Site::mean_field(1.0).with_relative_deviation(0.5);
    let bayesian = BayesianConfig::new()
        .with_site("output.weight", wide)
        .with_seed(seed);
    bayesian
        .init(config.init(&circulant::cpu()))
        .expect("valid")
}

fn tensor(rows: &[f64]) -> Tensor<2> {
    let data = TensorData::new(rows.to_vec(), [rows.len() / FEATURES, FEATURES]);
    Tensor::from_data(data, &circulant::cpu())
}

fn bounds(network: &Bayesian<ImageClassifier>, samples: usize) -> PredictiveBounds<2> {
    let config = PredictiveBoundsConfig::new()
        .with_samples(samples)
        .with_seed(3);
    config.bound(network).expect("bounded")
}

/// What is attacked: the program's own predictions.
struct Attack<'a> {
    network: &'a Bayesian<ImageClassifier>,
    members: Vec<ImageClassifier>,
    tried: usize,
}

impl<'a> Attack<'a> {
    fn new(network: &'a Bayesian<ImageClassifier>) -> Self {
        let member = |sample| {
            let member = network.sample(Noise::new(3, Purpose::Prediction, 0, sample));
            burn::module::Module::to_device(member, &circulant::cpu().autodiff())
        };
        Self {
            network,
            members: (0..SAMPLES).map(member).collect(),
            tried: 0,
        }
    }

    fn predict(&mut self, rows: &[f64]) -> Predictions {
        self.tried += rows.len() / FEATURES;
        let config = PredictiveConfig::new()
            .with_samples(SAMPLES)
            .with_seed(3)
            .with_batch(512);
        config.predict(self.network, tensor(rows)).expect("finite")
    }

    /// The gradient of the averaged `p_other - p_class` at every row.
    fn ascent(&self, rows: &[f64], class: usize, other: usize) -> Vec<f64> {
        let device = circulant::cpu().autodiff();
        let data = TensorData::new(rows.to_vec(), [rows.len() / FEATURES, FEATURES]);
        let x = Tensor::<2>::from_data(data, &device).require_grad();
        let terms = self.members.iter().map(|member| {
            let p = activation::softmax(member.logits(x.clone()), 1);
            (p.clone().narrow(1, other, 1) - p.narrow(1, class, 1)).sum()
        });
        let loss = terms.reduce(|a, b| a + b).expect("samples");
        host(x.grad(&loss.backward()).expect("tracked"))
    }

    /// Inputs within `radius`: random ones, and some steps up the gradient towards every other class.
    fn inputs(&self, x: &[f64], class: usize, radius: f64, trials: usize, seed: u64) -> Vec<f64> {
        let directions = numbers(seed, trials * FEATURES);
        let mut rows: Vec<f64> = directions
            .chunks_exact(FEATURES)
            .flat_map(|direction| perturbed(x, direction, radius))
            .collect();
        let start = rows[..2 * FEATURES].to_vec();
        for other in (0..CLASSES).filter(|&other| other != class) {
            let mut at = start.clone();
            for _ in 0..6 {
                let gradient = self.ascent(&at, class, other);
                let step = |(row, gradient): (&[f64], &[f64])| {
                    let scale = radius / norm(gradient).max(1e-30);
                    let parts = row.iter().zip(gradient).zip(x);
                    let direction: Vec<f64> =
                        parts.map(|((row, g), x)| row + scale * g - x).collect();
                    perturbed(x, &direction, radius)
                };
                at = at
                    .chunks_exact(FEATURES)
                    .zip(gradient.chunks_exact(FEATURES))
                    .flat_map(step)
                    .collect();
                rows.extend(&at);
            }
        }
        rows
    }

    fn flips(&mut self, x: &[f64], class: usize, radius: f64, trials: usize, seed: u64) -> usize {
        let rows = self.inputs(x, class, radius, trials, seed);
        self.predict(&rows)
            .classes_of_inputs()
            .filter(|&found| found != class)
            .count()
    }

    /// Inputs where the averaged prediction changes, by bisection between two inputs.
    fn edge(&mut self) -> Vec<f64> {
        let seeds = single(numbers(99, 40 * FEATURES));
        let classes: Vec<usize> = self.predict(&seeds).classes_of_inputs().collect();
        let mut edge = Vec::new();
        for i in (1..40).filter(|&i| classes[i] != classes[0]).take(3) {
            let (a, b) = (&seeds[..FEATURES], &seeds[i * FEATURES..][..FEATURES]);
            let between = |t: f64| single(a.iter().zip(b).map(|(a, b)| a + t * (b - a)).collect());
            let (mut low, mut high) = (0.0, 1.0);
            for step in 0..36 {
                let middle = f64::midpoint(low, high);
                let found = self.predict(&between(middle)).classes_of_inputs().next();
                if found == Some(classes[0]) {
                    low = middle;
                } else {
                    high = middle;
                }
                if step > 3 {
                    edge.extend(between(low));
                    edge.extend(between(high));
                }
            }
        }
        edge
    }
}
