//! Exports that everything can run: ONNX, and dense layers for torch.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use burn::module::Module;
use circulant::bayes::{Factor, Posterior};
use circulant::models::OrthogonalNetwork;
use circulant::noise::{Noise, Purpose};
use circulant_edge::write::WrittenGaussian;

use super::report::{ExportOutput, Rows};
use super::{Export, Quantisation, Target};
use crate::experiments::certified::loaded::LoadedCertified;
use crate::experiments::exporting::network::{Outcome, PlainNetwork};
use crate::experiments::exporting::orthogonal::PlainOrthogonal;
use crate::experiments::exporting::{matrices, onnx, source};
use crate::experiments::loaded::TrainedRun;
use crate::files::write;

impl Export {
    pub(super) fn matrices(
        &self,
        network: &PlainNetwork,
        normalised: &str,
        draw: impl FnOnce(u32) -> anyhow::Result<Vec<Vec<matrices::Matrix>>>,
    ) -> anyhow::Result<()> {
        let samples = self.samples_of_matrices()?;
        if self.to == Target::Dense {
            let matrices = matrices::matrices(network)?;
            let bytes = matrices::safetensors(&matrices);
            let inputs = network.layers[0].map.sizes()[0];
            let mut preparation = format!("`x` is [inputs, {inputs}], {normalised}.");
            preparation.push_str(&explained(network.outcome));
            let snippet = matrices::snippet(network, &preparation);
            return self.dense(&bytes, &snippet);
        }
        let draws = if samples == 1 {
            vec![matrices::matrices(network)?]
        } else {
            draw(samples)?
        };
        self.onnx(&onnx::model(&draws, network.outcome), samples)
    }

    /// A network of orthogonal convolutions, at the mean of its distribution or drawn from it as `circulant predict` does.
    pub(super) fn orthogonal(&self) -> anyhow::Result<()> {
        ensure!(
            matches!(self.to, Target::Onnx | Target::Dense),
            "{}: the orthogonal convolutions of a run with --certified are exported as --to onnx or --to dense alone; for a device \
             train without --certified, for example with --model block-circulant",
            self.run.display()
        );
        let samples = self.samples_of_matrices()?;
        let run = LoadedCertified::open(&self.run)?;
        let (network, image) = (run.network.valid(), run.data().image());
        let plain = |network: OrthogonalNetwork| PlainOrthogonal::of(&network, image);
        if self.to == Target::Dense {
            let network = plain(network.mean());
            let size: usize = image.iter().product();
            let normalisation = &run.data_config().normalisation;
            let preparation =
                format!("`x` is [inputs, {size}], normalised as in training: {normalisation:?}.");
            return self.dense(&network.safetensors(), &network.snippet(&preparation));
        }
        let draw = |sample| network.sample(Noise::new(0, Purpose::Prediction, 0, sample));
        let draws: Vec<PlainOrthogonal> = match samples {
            1 => vec![plain(network.mean())],
            _ => (0..samples as usize).map(draw).map(plain).collect(),
        };
        self.onnx(&onnx::orthogonal::model(&draws), samples)
    }

    /// Networks to average.
    fn samples_of_matrices(&self) -> anyhow::Result<u32> {
        ensure!(
            matches!(self.quantise, None | Some(Quantisation::F32)),
            "--quantise: matrices are f32; leave the flag out, or use --to edge"
        );
        let samples = self.samples.unwrap_or(1);
        ensure!(
            samples == 1 || self.to == Target::Onnx,
            "--samples: dense layers are those of the posterior's mean; use --to onnx for an average of networks"
        );
        Ok(samples)
    }

    fn dense(&self, bytes: &[u8], snippet: &str) -> anyhow::Result<()> {
        let files: [(&str, &[u8]); 2] = [
            ("network.safetensors", bytes),
            ("network.py", snippet.as_bytes()),
        ];
        source::folder(&self.out, &files)?;
        self.told(self.out.join("network.py"), bytes.len(), 1)
    }

    fn onnx(&self, bytes: &[u8], samples: u32) -> anyhow::Result<()> {
        write(&self.out, bytes)?;
        self.told(self.out.clone(), bytes.len(), samples)
    }

    fn told(&self, out: PathBuf, bytes: usize, samples: u32) -> anyhow::Result<()> {
        self.report(&ExportOutput {
            out,
            bytes,
            memory: None,
            memory_for_sums: None,
            samples,
            images: None,
            rows: Rows::Classes(Vec::new()),
        })
    }
}

/// What the outputs of dense layers are, for those who read `network.py`.
fn explained(outcome: Outcome) -> String {
    match outcome {
        Outcome::Classes => String::new(),
        Outcome::Value(target) => format!(
            " The target is {} times the output plus {}, with noise of the deviation {}.",
            target.scale, target.offset, target.noise
        ),
        Outcome::ValueWithNoise(target) => format!(
            " The target is {} times the first output plus {}, with noise of the deviation {} * exp(3 * tanh(u/3)), where u is the \
             second output.",
            target.scale, target.offset, target.noise
        ),
        Outcome::Count => " The target is a count whose rate is exp of the output.".to_owned(),
    }
}

/// The matrices of networks that are drawn as `circulant predict` draws them.
pub(super) fn drawn<'a>(
    posteriors: impl Iterator<Item = (&'a str, &'a Factor)>,
    network: &PlainNetwork,
    samples: u32,
) -> anyhow::Result<Vec<Vec<matrices::Matrix>>> {
    let factors: Vec<&Factor> = posteriors.map(|(_, factor)| factor).collect();
    (0..samples as usize)
        .map(|sample| {
            let mut drawn = network.clone();
            let mut noise = Noise::new(0, Purpose::Prediction, 0, sample);
            let mut values = Vec::new();
            for factor in &factors {
                let tensor = Posterior::sample(&factor.posterior, noise.next_key());
                let data = tensor.into_data().convert::<f32>();
                values.push(
                    data.try_into_vec::<f32>()
                        .ok()
                        .context("converted to f32")?,
                );
            }
            for layer in &mut drawn.layers {
                for gaussian in [&mut layer.weights, &mut layer.bias] {
                    let own = values[usize::from(gaussian.stream)].clone();
                    *gaussian = WrittenGaussian::point(own);
                }
            }
            matrices::matrices(&drawn)
        })
        .collect()
}
