//! Dropout before the read-out, in training and in prediction.

use burn::module::Module;
use burn::tensor::Tensor;
use circulant_kernels::{Activation, ensemble_statistics};

use super::LinearReadout;
use crate::bayes::{BayesError, Predictions};
use crate::functional::{Dropout, dropout, linear};
use crate::models::ImageClassifier;
use crate::noise::NoiseKey;
use crate::task::Classifier;

/// A classifier whose hidden features are dropped with a probability. [`Trainer`](crate::train::Trainer) draws a mask per step.
#[derive(Module, Debug)]
pub struct DropoutClassifier {
    /// The network.
    pub model: ImageClassifier,
    #[module(skip)]
    rate: f64,
}

impl DropoutClassifier {
    /// A network with a rate in `[0, 1)`.
    pub fn new(model: ImageClassifier, rate: f64) -> Result<Self, BayesError> {
        Dropout::new(rate, NoiseKey { seed: 0, stream: 0 })?;
        Ok(Self { model, rate })
    }

    /// Predictions from so many masks per input.
    pub fn predict(
        &self,
        inputs: Tensor<4>,
        samples: usize,
        seed: u64,
        batch: usize,
    ) -> Result<Predictions, BayesError> {
        let all = inputs.dims()[0];
        for (what, size) in [
            ("the set of inputs", all),
            ("the set of masks", samples),
            ("the batch", batch),
        ] {
            if size == 0 {
                return Err(BayesError::Empty { what });
            }
        }
        let classes = self.model.output.weight.dims()[1];
        let mut found = Predictions {
            classes,
            probabilities: vec![0.0; all * classes],
            predictive_entropy: vec![0.0; all],
            expected_entropy: vec![0.0; all],
        };
        for start in (0..all).step_by(batch) {
            let rows = batch.min(all - start);
            let features =
                LinearReadout::<4>::features(&self.model, inputs.clone().narrow(0, start, rows));
            let mut logits = Vec::with_capacity(samples * rows * classes);
            for sample in 0..samples {
                let stream = (start as u64) << 32 | sample as u64;
                let masked = self.masked(features.clone(), NoiseKey { seed, stream });
                let values = masked.into_data().convert::<f32>();
                logits.extend_from_slice(values.as_slice::<f32>().expect("converted just before"));
            }
            ensemble_statistics(
                &logits,
                rows,
                classes,
                &mut found.probabilities[start * classes..][..rows * classes],
                &mut found.predictive_entropy[start..][..rows],
                &mut found.expected_entropy[start..][..rows],
            )?;
        }
        match found
            .predictive_entropy
            .iter()
            .position(|entropy| !entropy.is_finite())
        {
            Some(input) => Err(BayesError::NotFiniteLogits { input }),
            None => Ok(found),
        }
    }

    fn masked(&self, features: Tensor<2>, key: NoiseKey) -> Tensor<2> {
        let mask = Dropout::new(self.rate, key).expect("the rate was checked");
        linear(
            &self.model.output,
            dropout(features, mask),
            Activation::Identity,
        )
    }
}

impl Classifier<4> for DropoutClassifier {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.model.forward(images)
    }

    fn training_logits(&self, images: Tensor<4>, key: NoiseKey) -> Tensor<2> {
        self.masked(LinearReadout::<4>::features(&self.model, images), key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{HiddenKind, ImageClassifierConfig};

    #[test]
    fn masks_average_to_the_network() {
        let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
            .with_image([1, 4, 4])
            .init(&crate::cpu());
        let x = Tensor::<4>::ones([3, 1, 4, 4], &crate::cpu());
        let none = DropoutClassifier::new(model.clone(), 0.0).unwrap();
        let plain = none.predict(x.clone(), 1, 0, 2).unwrap();
        assert!(
            plain
                .mutual_information()
                .all(|information| information < 1e-6)
        );
        let half = DropoutClassifier::new(model.clone(), 0.5).unwrap();
        let found = half.predict(x.clone(), 200, 0, 2).unwrap();
        assert!(
            found
                .mutual_information()
                .all(|information| information > 1e-4)
        );
        // The logits average to those without masks.
        let key = |stream| NoiseKey { seed: 9, stream };
        let sum = (0..2000)
            .map(|stream| half.training_logits(x.clone(), key(stream)))
            .reduce(|a, b| a + b);
        let gap = (sum.unwrap() / 2000.0 - half.logits(x.clone()))
            .abs()
            .max()
            .into_scalar::<f32>();
        assert!(gap < 0.1, "{gap}");
        for rate in [-0.1, 1.0, f64::NAN] {
            assert!(
                DropoutClassifier::new(model.clone(), rate).is_err(),
                "{rate}"
            );
        }
        assert!(half.predict(x, 0, 0, 2).is_err());
    }
}
