//! `--export CASE FILE`: what a case starts from and what ours makes of it (safetensors), for the peers to check.
//!
//! | case | tensors |
//! | --- | --- |
//! | both | `inputs`, `parameter.NAME`, `noise.NAME` (one sample after the other) |
//! | `svi/MODEL/BATCH` | `labels`, `loss`, `kl`, `gradient.NAME` |
//! | `predictive/MODEL/SAMPLESxINPUTS` | `probabilities`, `predictive_entropy`, `expected_entropy` |

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::SgdConfig;
use burn::tensor::Tensor;
use circulant::bayes::{Bayesian, PredictiveConfig, Svi, SviConfig};
use circulant::models::{HiddenKind, ImageClassifier};
use circulant::noise::standard_normal;
use circulant::noise::{Noise, Purpose};
use circulant::task::Classifier;
use safetensors::tensor::{Dtype, TensorView};

use super::{EXAMPLES, data, network, parse, parse_predictive};

/// The learning rate of the exported step, a power of two: it takes the parameters so far that what they move by is the gradient
/// to the last bits.
const RATE: f64 = 16384.0;

pub fn export(case: &str, file: &str) {
    let tensors = match (parse(case), parse_predictive(case)) {
        (Some((kind, batch)), _) => step(kind, batch),
        (_, Some((kind, samples, inputs))) => prediction(kind, samples, inputs),
        _ => panic!("--export svi/MODEL/BATCH FILE, or predictive/MODEL/SAMPLESxINPUTS FILE"),
    };
    let views: HashMap<&str, TensorView<'_>> = tensors
        .iter()
        .map(|tensor| {
            let view = TensorView::new(tensor.kind, tensor.shape.clone(), &tensor.bytes);
            (tensor.name.as_str(), view.expect("sizes fit"))
        })
        .collect();
    std::fs::write(file, safetensors::serialize(views, None).expect("valid")).expect("written");
}

/// One tensor of the file.
struct Exported {
    name: String,
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

fn numbers(name: impl Into<String>, shape: &[usize], values: &[f32]) -> Exported {
    Exported {
        name: name.into(),
        kind: Dtype::F32,
        shape: shape.to_vec(),
        bytes: values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    }
}

/// The very step that is timed, but for the optimiser.
fn step(kind: HiddenKind, batch: usize) -> Vec<Exported> {
    let device = circulant::cpu().autodiff();
    let network = network(kind, &device);
    let data = data(batch, &device);
    let all: Vec<usize> = (0..batch).collect();
    let examples = data.select(&all);
    let config = SviConfig::new().with_learning_rate(RATE);
    let optimizer = SgdConfig::new().init();
    let mut svi = Svi::with_optimizer(network.clone(), optimizer, config, EXAMPLES).expect("valid");
    let on_tape = examples.clone().into_autodiff();
    let report = svi.step(batch, |model| model.cross_entropy(on_tape.clone()).neg());
    let report = report.expect("a finite loss");

    let before = Parameters::of(&network);
    let mut tensors = before.exported();
    for (before, after) in before.0.iter().zip(&Parameters::of(svi.network()).0) {
        let moved = before.values.iter().zip(&after.values);
        let gradient: Vec<f32> = moved
            .map(|(before, after)| (before - after) / RATE as f32)
            .collect();
        tensors.push(numbers(
            format!("gradient.{}", before.name),
            &before.shape,
            &gradient,
        ));
    }
    tensors.extend(noise(&network, &before, Purpose::Training, 1));
    let labels = data.labels().iter();
    tensors.push(Exported {
        name: "labels".into(),
        kind: Dtype::I64,
        shape: vec![batch],
        bytes: labels
            .flat_map(|&label| (label as i64).to_le_bytes())
            .collect(),
    });
    tensors.push(inputs(examples.batch()));
    tensors.push(numbers("loss", &[1], &[report.loss as f32]));
    // Per example in the report, in all in the file.
    tensors.push(numbers("kl", &[1], &[(report.kl * EXAMPLES as f64) as f32]));
    tensors
}

fn prediction(kind: HiddenKind, samples: usize, count: usize) -> Vec<Exported> {
    let device = circulant::cpu();
    let network = network(kind, &device);
    let images = data(count, &device).inputs();
    let config = PredictiveConfig::new().with_samples(samples);
    let found = config.predict(&network, images.clone()).expect("predicts");

    let parameters = Parameters::of(&network);
    let mut tensors = parameters.exported();
    tensors.extend(noise(&network, &parameters, Purpose::Prediction, samples));
    tensors.push(inputs(images));
    tensors.push(numbers(
        "probabilities",
        &[count, found.classes],
        &found.probabilities,
    ));
    tensors.push(numbers(
        "predictive_entropy",
        &[count],
        &found.predictive_entropy,
    ));
    tensors.push(numbers(
        "expected_entropy",
        &[count],
        &found.expected_entropy,
    ));
    tensors
}

fn inputs(images: Tensor<4>) -> Exported {
    let shape = images.dims();
    let values: Vec<f32> = images.into_data().try_into_vec().expect("f32");
    numbers("inputs", &shape, &values)
}

/// The standard normal numbers of some samples, site by site.
fn noise(
    network: &Bayesian<ImageClassifier>,
    parameters: &Parameters,
    purpose: Purpose,
    samples: usize,
) -> Vec<Exported> {
    let mut noises: Vec<Noise> = (0..samples)
        .map(|sample| Noise::new(0, purpose, 0, sample))
        .collect();
    let mut tensors = Vec::new();
    for (path, _) in network.posteriors() {
        let site = short(path);
        let (rank, count) = (parameters.len(site, "scale"), parameters.len(site, "mean"));
        let [mut low_rank, mut rest] = [Vec::new(), Vec::new()];
        for noise in &mut noises {
            let mut values = vec![0.0_f32; rank + count];
            standard_normal(noise.next_key(), &mut values);
            low_rank.extend(&values[..rank]);
            rest.extend(&values[rank..]);
        }
        if rank > 0 {
            tensors.push(numbers(
                format!("noise.{site}.low_rank"),
                &[samples * rank],
                &low_rank,
            ));
        }
        tensors.push(numbers(format!("noise.{site}"), &[samples * count], &rest));
    }
    tensors
}

/// The parameters of a posterior, under the names that the peers use.
struct Parameters(Vec<Parameter>);

struct Parameter {
    /// `SITE.FIELD`.
    name: String,
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl Parameters {
    fn of(network: &Bayesian<ImageClassifier>) -> Self {
        let mut collect = Collect::default();
        network.visit(&mut collect);
        Self(collect.found)
    }

    fn exported(&self) -> Vec<Exported> {
        let all = self.0.iter();
        all.map(|one| numbers(format!("parameter.{}", one.name), &one.shape, &one.values))
            .collect()
    }

    /// How many numbers a field has; none if it is not there.
    fn len(&self, site: &str, field: &str) -> usize {
        let name = format!("{site}.{field}");
        let found = self.0.iter().find(|one| one.name == name);
        found.map_or(0, |one| one.values.len())
    }
}

#[derive(Default)]
struct Collect {
    /// Of the number at hand, `SITE, posterior, FIELD`.
    path: Vec<String>,
    found: Vec<Parameter>,
}

impl ModuleVisitor for Collect {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.pop();
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let [site, _, field] = &self.path[..] else {
            return;
        };
        let tensor = param.val().inner();
        self.found.push(Parameter {
            name: format!("{}.{field}", short(site)),
            shape: tensor.dims().to_vec(),
            values: tensor.into_data().try_into_vec().expect("f32"),
        });
    }
}

/// A name for a site that does not depend on the model.
fn short(path: &str) -> &'static str {
    match path {
        "hidden.bias" => "hidden_bias",
        "output.weight" => "weight",
        "output.bias" => "bias",
        _ => "hidden",
    }
}
