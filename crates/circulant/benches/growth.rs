//! How cost grows: with the length of a layer, with its channels, and with the number of posterior samples.
//!
//! ```text
//! cargo bench -p circulant --bench growth -- [--json] [--case PART] [--seconds S] [--threads N]
//! ```
//!
//! With `--json` one line per point: `{"series", "x", "microseconds", "per"}`, the best time of all calls. `bench/growth/growth.py` draws them.

mod options;

use std::hint::black_box;

use burn::nn::LinearConfig;
use burn::tensor::{Device, Distribution, Tensor};
use circulant::bayes::{BayesianConfig, PredictiveConfig};
use circulant::models::{HiddenKind, ImageClassifierConfig};
use circulant::nn::{SpectralBccb2dConfig, SpectralCirculant1dConfig};
use options::{Options, time};

/// Powers of two, the pixels of MNIST, and primes.
const LENGTHS: [usize; 20] = [
    16, 17, 32, 64, 127, 128, 256, 512, 521, 784, 1024, 2048, 4093, 4096, 8192, 16381, 16384,
    32768, 65521, 65536,
];
/// Numbers of a batch, so that all lengths move as much memory.
const NUMBERS: usize = 1 << 20;
/// A longer dense layer would not fit the machine: its matrix has the square.
const LONGEST_DENSE: usize = 4096;
const CHANNELS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const SAMPLES: [usize; 8] = [1, 2, 5, 10, 20, 50, 100, 200];
const INPUTS: usize = 2000;

/// Prints the points of the series that are wanted.
struct Points(Options);

impl Points {
    /// Times `run` and prints the time of one of `count` parts.
    fn point(&self, series: &str, x: usize, (count, per): (usize, &str), mut run: impl FnMut()) {
        run();
        let (best, _) = time(self.0.seconds, &mut run);
        let microseconds = best * 1e3 / count as f64;
        if self.0.json {
            println!(
                "{}",
                serde_json::json!({"series": series, "x": x, "microseconds": microseconds, "per": per, "threads": self.0.threads})
            );
        } else {
            println!("{series:<34} {x:>6} {microseconds:>12.4} us per {per}");
        }
    }

    fn wants(&self, series: &str) -> bool {
        series.contains(&self.0.case)
    }

    fn lengths(&self, device: &Device) {
        let training = device.clone().autodiff();
        for length in LENGTHS {
            let rows = (NUMBERS / length).max(16);
            let per = (rows, "row");
            let batch = |device: &Device| {
                Tensor::<2>::random([rows, length], Distribution::Uniform(-1.0, 1.0), device)
            };
            let (x, tracked) = (batch(device), batch(&training).require_grad());
            if self.wants("circulant, forward") {
                let layer = SpectralCirculant1dConfig::new(length).init(device);
                self.point("circulant, forward", length, per, || {
                    black_box(layer.forward(x.clone()));
                });
            }
            if self.wants("circulant, forward and backward") {
                let layer = SpectralCirculant1dConfig::new(length).init(&training);
                self.point("circulant, forward and backward", length, per, || {
                    black_box(layer.forward(tracked.clone()).sum().backward());
                });
            }
            if length > LONGEST_DENSE {
                continue;
            }
            if self.wants("dense, forward") {
                let layer = LinearConfig::new(length, length).init(device);
                self.point("dense, forward", length, per, || {
                    black_box(layer.forward(x.clone()));
                });
            }
            if self.wants("dense, forward and backward") {
                let layer = LinearConfig::new(length, length).init(&training);
                self.point("dense, forward and backward", length, per, || {
                    black_box(layer.forward(tracked.clone()).sum().backward());
                });
            }
        }
    }

    fn channels(&self, device: &Device) {
        let series = "channels, forward and backward";
        if !self.wants(series) {
            return;
        }
        let (device, batch) = (device.clone().autodiff(), 16);
        for channels in CHANNELS {
            let layer = SpectralBccb2dConfig::new([channels, channels], [32, 32]).init(&device);
            let shape = [batch, channels, 32, 32];
            let x = Tensor::<4>::random(shape, Distribution::Uniform(-1.0, 1.0), &device);
            let x = x.require_grad();
            self.point(series, channels, (batch, "image"), || {
                black_box(layer.forward(x.clone()).sum().backward());
            });
        }
    }

    fn samples(&self, device: &Device) {
        let series = "posterior samples";
        if !self.wants(series) {
            return;
        }
        let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(device);
        let network = BayesianConfig::new().init(model).expect("valid");
        let shape = [INPUTS, 1, 28, 28];
        let x = Tensor::<4>::random(shape, Distribution::Uniform(0.0, 1.0), device);
        for samples in SAMPLES {
            let config = PredictiveConfig::new().with_samples(samples);
            self.point(series, samples, (INPUTS, "image"), || {
                black_box(config.predict(&network, x.clone()).expect("predicts"));
            });
        }
    }
}

fn main() {
    let points = Points(Options::start(0.5, |_, _| false));
    let device = circulant::cpu();
    points.lengths(&device);
    points.channels(&device);
    points.samples(&device);
}
