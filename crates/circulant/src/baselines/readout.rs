//! The hidden layer behind a linear read-out.

use burn::nn::Linear;
use burn::tensor::Tensor;

use crate::models::ImageClassifier;
use crate::nn::to_host;
use crate::task::Classifier;

/// A classifier whose logits are `features W + b`.
pub trait LinearReadout<const D: usize>: Classifier<D> {
    /// What the last layer gets, `[batch, features]`.
    fn features(&self, inputs: Tensor<D>) -> Tensor<2>;

    /// The last layer.
    fn readout(&self) -> &Linear;
}

/// Features of many inputs on the host.
#[derive(Debug, Clone)]
pub struct HiddenFeatures {
    /// Features of one input.
    pub columns: usize,
    /// `[inputs, columns]`, row-major.
    pub values: Vec<f32>,
}

impl HiddenFeatures {
    /// Of inputs `[n, ...]`, so many at a time.
    pub fn of<const D: usize>(
        model: &impl LinearReadout<D>,
        inputs: Tensor<D>,
        batch: usize,
    ) -> Self {
        let (all, batch) = (inputs.dims()[0], batch.max(1));
        let (mut columns, mut values) = (0, Vec::new());
        for start in (0..all).step_by(batch) {
            let rows = batch.min(all - start);
            let features = model.features(inputs.clone().narrow(0, start, rows));
            columns = features.dims()[1];
            values.extend(to_host(features).into_iter().map(|x| x as f32));
        }
        Self { columns, values }
    }
}

impl LinearReadout<4> for ImageClassifier {
    fn features(&self, images: Tensor<4>) -> Tensor<2> {
        let layers = self.hidden_layers();
        layers
            .fold(images, |images, (_, layer)| layer.forward_tanh(images))
            .flatten(1, 3)
    }

    fn readout(&self) -> &Linear {
        &self.output
    }
}

impl LinearReadout<2> for ImageClassifier {
    fn features(&self, rows: Tensor<2>) -> Tensor<2> {
        let ([batch, length], [height, width]) = (rows.dims(), self.grid());
        let images = rows.reshape([batch, length / (height * width), height, width]);
        LinearReadout::<4>::features(self, images)
    }

    fn readout(&self) -> &Linear {
        &self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{HiddenKind, ImageClassifierConfig};

    #[test]
    fn the_read_out_of_the_features_are_the_logits() {
        for kind in HiddenKind::ALL {
            let model = ImageClassifierConfig::new(kind)
                .with_image([1, 3, 4])
                .with_depth(2)
                .init(&crate::cpu());
            let x = Tensor::<1, burn::tensor::Int>::arange(0..60, &crate::cpu()).float();
            let x = x.mul_scalar(0.3).sin().reshape([5, 1, 3, 4]);
            let features = LinearReadout::<4>::features(&model, x.clone());
            let logits = model.output.forward(features);
            logits
                .to_data()
                .assert_approx_eq::<f32>(&model.forward(x.clone()).to_data(), Default::default());
            let found = HiddenFeatures::of::<4>(&model, x.clone(), 2);
            let whole = HiddenFeatures::of::<2>(&model, x.flatten(1, 3), 100);
            assert_eq!(
                (found.columns, found.values.len()),
                (whole.columns, 5 * found.columns)
            );
            assert!(
                found
                    .values
                    .iter()
                    .zip(&whole.values)
                    .all(|(a, b)| (a - b).abs() < 1e-5)
            );
        }
    }
}
