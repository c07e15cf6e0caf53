//! What training needs besides the library: settings from JSON, weights, and one fit at a time.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use anyhow::{Context, ensure};
use burn::tensor::{Int, Tensor, TensorData, activation};
use circulant::bayes::{KlWeight, SviConfig};
use circulant::models::ImageClassifier;
use circulant_cli::bindings::{Inference, RunConfig, VERSION};

use crate::threads::Stop;

/// Only one thread at a time may record on Burn's tape.
static TAPE: Mutex<()> = Mutex::new(());

/// What the training thread tells the one that waits.
#[derive(Default)]
pub struct Progress {
    /// Steps done.
    pub step: AtomicU64,
    /// The bits of the loss.
    pub loss: AtomicU64,
}

/// Settings from JSON; what is left out has the program's default.
pub fn settings_of(text: &str) -> anyhow::Result<RunConfig> {
    let config: RunConfig =
        serde_json::from_str(text).context("the settings are not understood")?;
    let config = RunConfig {
        version: VERSION,
        ..config
    };
    config.check()?;
    Ok(config)
}

/// Examples of which each counts as often as its weight says.
pub struct Weighted {
    /// `[n, ...]`, as the network reads them.
    pub values: Vec<f32>,
    /// One per example.
    pub labels: Vec<i64>,
    /// One per example.
    pub weights: Vec<f64>,
    /// `[n, channels, height, width]`.
    pub shape: [usize; 4],
}

/// Some of them.
pub struct WeightedBatch {
    inputs: Tensor<4>,
    /// `[batch, 1]`.
    labels: Tensor<2, Int>,
    /// `[batch, 1]`.
    weights: Tensor<2>,
}

impl Weighted {
    /// The examples at these indices.
    pub fn batch(&self, examples: &[usize]) -> WeightedBatch {
        let device = circulant::cpu().autodiff();
        let [_, channels, height, width] = self.shape;
        let (size, count) = (channels * height * width, examples.len());
        let values = examples
            .iter()
            .flat_map(|&i| &self.values[i * size..][..size]);
        let values: Vec<f32> = values.copied().collect();
        let labels: Vec<i64> = examples.iter().map(|&i| self.labels[i]).collect();
        let weights: Vec<f32> = examples.iter().map(|&i| self.weights[i] as f32).collect();
        let shape = [count, channels, height, width];
        WeightedBatch {
            inputs: Tensor::from_data(TensorData::new(values, shape), &device),
            labels: Tensor::from_data(TensorData::new(labels, [count, 1]), &device),
            weights: Tensor::from_data(TensorData::new(weights, [count, 1]), &device),
        }
    }
}

impl WeightedBatch {
    /// Summed, `[1]`.
    pub fn log_likelihood(&self, model: &ImageClassifier) -> Tensor<1> {
        let log_probabilities = activation::log_softmax(model.forward(self.inputs.clone()), 1);
        let own = log_probabilities.gather(1, self.labels.clone());
        (own * self.weights.clone()).sum()
    }
}

/// The right to record on Burn's tape, as soon as no other thread has it.
pub fn tape(stop: &Stop) -> anyhow::Result<MutexGuard<'static, ()>> {
    loop {
        match TAPE.try_lock() {
            Ok(tape) => return Ok(tape),
            Err(TryLockError::Poisoned(error)) => return Ok(error.into_inner()),
            Err(TryLockError::WouldBlock) => {
                ensure!(!stop.is_asked(), "asked to stop");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// How the settings say to train.
pub fn svi_config(config: &RunConfig) -> SviConfig {
    let training = &config.training;
    SviConfig::new()
        .with_steps(training.steps)
        .with_batch(training.batch)
        .with_learning_rate(training.learning_rate)
        .with_final_rate(training.final_rate)
        .with_samples(match config.posterior.inference {
            Inference::Bayesian => training.samples,
            // All samples would be the same network.
            Inference::Point => 1,
        })
        .with_kl_weight(KlWeight::Constant(training.kl_weight))
        .with_seed(training.seed)
        .with_patience(training.patience)
}
