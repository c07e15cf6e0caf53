//! A module of one's own as a Bayesian model: `cargo run --example bayesian`.
//!
//! Nothing but the logits has to be written. Spectral layers get a low-rank posterior and the spectral prior, all other parameters
//! a mean-field one, and predictions say how sure they are: less on signals unlike those of training.

use std::ops::ControlFlow;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorData};
use circulant::bayes::{BayesianConfig, PredictiveConfig, Svi, SviConfig};
use circulant::data::LabelledData;
use circulant::functional::tanh;
use circulant::metrics::class_metrics;
use circulant::nn::{SpectralCirculant1d, SpectralCirculant1dConfig};
use circulant::noise::{NoiseKey, standard_normal};
use circulant::task::Classifier;

const LENGTH: usize = 48;
const CLASSES: usize = 3;

#[derive(Module, Debug)]
struct Network {
    first: SpectralCirculant1d,
    second: SpectralCirculant1d,
    read: Linear,
}

impl Classifier<2> for Network {
    fn logits(&self, signals: Tensor<2>) -> Tensor<2> {
        let hidden = tanh(self.first.forward(signals));
        self.read.forward(tanh(self.second.forward(hidden)))
    }
}

/// Signals with a bump in one of three thirds, the class, or with noise only.
fn signals(count: usize, seed: u64, bump: f64) -> (Vec<f32>, Vec<i64>) {
    let mut values = vec![0.0_f64; count * LENGTH];
    standard_normal(NoiseKey { seed, stream: 0 }, &mut values);
    for (index, signal) in values.chunks_exact_mut(LENGTH).enumerate() {
        let third = LENGTH / CLASSES;
        let middle = index % CLASSES * third + index * 7 % third;
        for (at, value) in signal.iter_mut().enumerate() {
            let distance = at as f64 - middle as f64;
            *value = 0.3 * *value + bump * (-distance * distance / 8.0).exp();
        }
    }
    let labels = (0..count).map(|index| (index % CLASSES) as i64).collect();
    (
        values.into_iter().map(|value| value as f32).collect(),
        labels,
    )
}

fn tensor(values: Vec<f32>, device: &Device) -> Tensor<2> {
    let count = values.len() / LENGTH;
    Tensor::from_data(TensorData::new(values, [count, LENGTH]), device)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = circulant::cpu().autodiff();
    device.seed(1);
    let network = Network {
        first: SpectralCirculant1dConfig::new(LENGTH).init(&device),
        second: SpectralCirculant1dConfig::new(LENGTH)
            .with_modes(Some(12))
            .init(&device),
        read: LinearConfig::new(LENGTH, CLASSES).init(&device),
    };
    let network = BayesianConfig::new().init(network)?;
    for (path, factor) in network.posteriors() {
        println!("{path}: {} values", factor.posterior.num_params());
    }

    let (inputs, labels) = signals(384, 2, 2.0);
    let data = LabelledData::new(inputs, [384, LENGTH], &labels, CLASSES, &device)?;
    let config = SviConfig::new()
        .with_steps(300)
        .with_batch(96)
        .with_learning_rate(0.02);
    let mut svi = Svi::new(network, config, data.examples())?;
    svi.fit(&data, None, |report| {
        if report.step % 100 == 0 {
            println!(
                "step {}: data {:.3}, KL {:.3}",
                report.step, report.data, report.kl
            );
        }
        ControlFlow::Continue(())
    })?;

    let predictive = PredictiveConfig::new().with_samples(30);
    let (inputs, labels) = signals(300, 3, 2.0);
    let familiar = predictive.predict(svi.network(), tensor(inputs, &device))?;
    let (noise, _) = signals(300, 4, 0.0);
    let unfamiliar = predictive.predict(svi.network(), tensor(noise, &device))?;
    let (metrics, _) = class_metrics(&familiar.class_probabilities()?, &labels)?;
    let ood = familiar.ood_metrics(&unfamiliar)?;
    println!(
        "accuracy {:.3}, calibration error {:.3}, out-of-distribution signals found with AUROC {:.3}",
        metrics.accuracy, metrics.ece, ood.auroc
    );
    assert!(metrics.accuracy > 0.9, "{}", metrics.accuracy);
    assert!(ood.auroc > 0.7, "{}", ood.auroc);
    Ok(())
}
