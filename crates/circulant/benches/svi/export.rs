//! `--export CASE FILE`: what a case starts from and what ours makes of it (safetensors), for the peers to check.
//!
//! | case | tensors |
//! | --- | --- |
//! | both | `inputs`, `parameter.NAME`, `noise.NAME` (one sample after the other) |
//! | `svi/MODEL/BATCH` | `labels`, `loss`, `kl`, `gradient.NAME` |
//! | `predictive/MODEL/SAMPLESxINPUTS` | `probabilities`, `predictive_entropy`, `expected_entropy` |

use burn::module::Module;
use burn::optim::SgdConfig;
use circulant::bayes::{Bayesian, PredictiveConfig, Svi, SviConfig};
use circulant::models::{HiddenKind, ImageClassifier};
use circulant::noise::standard_normal;
use circulant::noise::{Noise, Purpose};
use circulant::task::Classifier;
use safetensors::tensor::Dtype;

use super::safetensors_file::{Collect, Exported, numbers, tensor, write};
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
    write(file, &tensors);
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

    let before = parameters(&network);
    let mut tensors = Vec::new();
    for (before, after) in before.iter().zip(parameters(svi.network())) {
        let numbers_of = |one: &Exported| -> Vec<f32> {
            let (words, _) = one.bytes.as_chunks();
            words.iter().map(|&word| f32::from_le_bytes(word)).collect()
        };
        let moved = numbers_of(before).into_iter().zip(numbers_of(&after));
        let gradient: Vec<f32> = moved
            .map(|(before, after)| (before - after) / RATE as f32)
            .collect();
        let name = before.name.replace("parameter.", "gradient.");
        tensors.push(numbers(name, &before.shape, &gradient));
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
    tensors.push(tensor("inputs", examples.batch()));
    tensors.push(numbers("loss", &[1], &[report.loss as f32]));
    // Per example in the report, in all in the file.
    tensors.push(numbers("kl", &[1], &[(report.kl * EXAMPLES as f64) as f32]));
    tensors.extend(before);
    tensors
}

fn prediction(kind: HiddenKind, samples: usize, count: usize) -> Vec<Exported> {
    let device = circulant::cpu();
    let network = network(kind, &device);
    let images = data(count, &device).inputs();
    let config = PredictiveConfig::new().with_samples(samples);
    let found = config.predict(&network, images.clone()).expect("predicts");

    let parameters = parameters(&network);
    let mut tensors = noise(&network, &parameters, Purpose::Prediction, samples);
    tensors.extend(parameters);
    tensors.push(tensor("inputs", images));
    let shape = [count, found.classes];
    tensors.push(numbers("probabilities", &shape, &found.probabilities));
    for (name, values) in [
        ("predictive_entropy", &found.predictive_entropy),
        ("expected_entropy", &found.expected_entropy),
    ] {
        tensors.push(numbers(name, &[count], values));
    }
    tensors
}

/// The standard normal numbers of some samples, site by site.
fn noise(
    network: &Bayesian<ImageClassifier>,
    parameters: &[Exported],
    purpose: Purpose,
    samples: usize,
) -> Vec<Exported> {
    let mut noises: Vec<Noise> = (0..samples)
        .map(|sample| Noise::new(0, purpose, 0, sample))
        .collect();
    let mut tensors = Vec::new();
    for (path, _) in network.posteriors() {
        let site = short(path);
        // How many numbers a field has; none if it is not there.
        let len = |field: &str| {
            let name = format!("parameter.{site}.{field}");
            let found = parameters.iter().find(|one| one.name == name);
            found.map_or(0, |one| one.shape.iter().product())
        };
        let (rank, count) = (len("scale"), len("mean"));
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

/// The parameters of the posteriors, under the names that the peers use.
fn parameters(network: &Bayesian<ImageClassifier>) -> Vec<Exported> {
    let mut collect = Collect {
        // Of the parameter at hand the path is SITE, posterior, FIELD.
        name: Some(|path| match path {
            [site, _, field] => Some(format!("{}.{field}", short(site))),
            _ => None,
        }),
        ..Collect::default()
    };
    network.visit(&mut collect);
    collect.found
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
