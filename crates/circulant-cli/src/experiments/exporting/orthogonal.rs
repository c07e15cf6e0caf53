//! A network of orthogonal convolutions in plain numbers, and as torch.
//!
//! A layer is a circular convolution with a kernel as large as the image: `y_o[t] = sum_i sum_s w_oi[t - s] x_i[s] + b_o`. Frameworks
//! correlate, so the kernel is written mirrored, and the image gets all of its rows and columns but the first one once more in front.

use std::fmt::Write;

use burn::tensor::{Tensor, TensorData};
use circulant::models::OrthogonalNetwork;
use serde_json::{Map, json};

use super::matrices::{Matrix, packed};

/// A circular convolution.
#[derive(Debug, Clone)]
pub struct PlainConvolution {
    /// In and out.
    pub channels: [usize; 2],
    /// Height and width, of images and of the kernel.
    pub grid: [usize; 2],
    /// `[out, in, height, width]`, mirrored.
    pub kernel: Vec<f32>,
    /// One per output channel.
    pub bias: Vec<f32>,
}

/// A network at the mean of its distribution, or a draw of it.
#[derive(Debug, Clone)]
pub struct PlainOrthogonal {
    /// `[channels, height, width]`.
    pub image: [usize; 3],
    /// The number of classes.
    pub classes: usize,
    /// Convolutions between two unshuffles.
    pub depth: usize,
    /// MaxMin of the halves of channels follows each of them.
    pub layers: Vec<PlainConvolution>,
    /// Behind them, each with MaxMin of the halves of features.
    pub hidden: Vec<Matrix>,
    /// `[features, classes]`.
    pub weight: Vec<f32>,
    /// One per class.
    pub bias: Vec<f32>,
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data().convert::<f32>();
    data.try_into_vec().expect("converted to f32 just before")
}

impl PlainOrthogonal {
    /// The numbers of a network for images of this shape.
    pub fn of(network: &OrthogonalNetwork, image: [usize; 3]) -> Self {
        let mut layers = Vec::new();
        for layer in &network.layers {
            let ([inputs, outputs], [height, width]) = (layer.channels(), layer.grid());
            let size = height * width;
            // What the layer makes of one pixel of one channel, without the bias.
            let mut impulses = vec![0.0_f32; inputs * inputs * size];
            for input in 0..inputs {
                impulses[(input * inputs + input) * size] = 1.0;
            }
            let bias = layer.bias.as_ref().map(|bias| host(bias.val()));
            let bias = bias.unwrap_or_else(|| vec![0.0; outputs]);
            let device = layer.taps.val().device();
            let shape = [inputs, inputs, height, width];
            let impulses = Tensor::<4>::from_data(TensorData::new(impulses, shape), &device);
            let answers = host(layer.forward(impulses));
            let mut kernel = vec![0.0; outputs * inputs * size];
            for (place, value) in kernel.iter_mut().enumerate() {
                let (pair, pixel) = (place / size, place % size);
                let (output, input) = (pair / inputs, pair % inputs);
                let mirrored = size - 1 - pixel;
                *value = answers[(input * outputs + output) * size + mirrored] - bias[output];
            }
            layers.push(PlainConvolution {
                channels: [inputs, outputs],
                grid: [height, width],
                kernel,
                bias,
            });
        }
        let mut hidden = Vec::new();
        for layer in &network.hidden {
            let [inputs, outputs] = [layer.d_in(), layer.d_out()];
            let bias = layer.bias.as_ref().map(|bias| host(bias.val()));
            let bias = bias.unwrap_or_else(|| vec![0.0; outputs]);
            let identity =
                (0..inputs * inputs).map(|at| f32::from(u8::from(at % (inputs + 1) == 0)));
            let identity = TensorData::new(identity.collect::<Vec<f32>>(), [inputs, inputs]);
            let identity = Tensor::<2>::from_data(identity, &network.output.weight.val().device());
            let answers = host(layer.forward(identity));
            let weight = (0..outputs * inputs).map(|at| {
                let (output, input) = (at / inputs, at % inputs);
                answers[input * outputs + output] - bias[output]
            });
            hidden.push(Matrix {
                shape: [outputs, inputs],
                weight: weight.collect(),
                bias,
            });
        }
        let readout = network.readout();
        let [_, classes] = readout.weight.shape().dims();
        let bias = readout.bias.map(|bias| host(bias.val()));
        Self {
            image,
            classes,
            depth: network.depth(),
            layers,
            hidden,
            weight: host(readout.weight.val()),
            bias: bias.unwrap_or_else(|| vec![0.0; classes]),
        }
    }

    /// The layers as safetensors with the names of [`Self::snippet`].
    pub fn safetensors(&self) -> Vec<u8> {
        let (mut header, mut data) = (Map::new(), Vec::new());
        let mut put = |name: String, shape: &[usize], values: &[f32]| {
            let start = data.len();
            data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            let entry =
                json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
            header.insert(name, entry);
        };
        // Behind the reshaping; an unshuffle before every stage, MaxMin behind every layer.
        let mut place = 1;
        for (index, layer) in self.layers.iter().enumerate() {
            place += usize::from(index.is_multiple_of(self.depth));
            let ([inputs, outputs], [height, width]) = (layer.channels, layer.grid);
            let shape = [outputs, inputs, height, width];
            put(format!("{place}.weight"), &shape, &layer.kernel);
            put(format!("{place}.bias"), &[outputs], &layer.bias);
            place += 2;
        }
        place += 1;
        for matrix in &self.hidden {
            put(format!("{place}.weight"), &matrix.shape, &matrix.weight);
            put(format!("{place}.bias"), &matrix.shape[..1], &matrix.bias);
            place += 2;
        }
        let features = self.weight.len() / self.classes;
        let transposed: Vec<f32> = (0..self.weight.len())
            .map(|at| self.weight[at % features * self.classes + at / features])
            .collect();
        let shape = [self.classes, features];
        put(format!("{place}.weight"), &shape, &transposed);
        put(format!("{place}.bias"), &[self.classes], &self.bias);
        packed(header, &data)
    }

    /// Python that loads [`Self::safetensors`] into torch.
    pub fn snippet(&self, preparation: &str) -> String {
        let [channels, height, width] = self.image;
        let mut layers = format!("    torch.nn.Unflatten(1, ({channels}, {height}, {width})),\n");
        for (index, layer) in self.layers.iter().enumerate() {
            if index.is_multiple_of(self.depth) {
                layers.push_str("    torch.nn.PixelUnshuffle(2),\n");
            }
            let ([inputs, outputs], [height, width]) = (layer.channels, layer.grid);
            let _ = writeln!(
                layers,
                "    Circular({inputs}, {outputs}, ({height}, {width})),\n    MaxMin(),"
            );
        }
        layers.push_str("    torch.nn.Flatten(),\n");
        for matrix in &self.hidden {
            let [outputs, inputs] = matrix.shape;
            let _ = writeln!(
                layers,
                "    torch.nn.Linear({inputs}, {outputs}),\n    MaxMin(),"
            );
        }
        let _ = writeln!(
            layers,
            "    torch.nn.Linear({}, {}),",
            self.weight.len() / self.classes,
            self.classes
        );
        format!(
            r#""""A network of Lipschitz constant one before its read-out: `logits = network(x)`.

{preparation}
"""
from pathlib import Path

import torch
from safetensors.torch import load_file


class Circular(torch.nn.Conv2d):
    """A circular convolution with a kernel as large as the image."""

    def forward(self, x):
        height, width = self.kernel_size
        return super().forward(torch.nn.functional.pad(x, (width - 1, 0, height - 1, 0), mode="circular"))


class MaxMin(torch.nn.Module):
    """Sorts every channel of the first half with its partner in the second one, the larger first."""

    def forward(self, x):
        first, second = x.chunk(2, 1)
        return torch.cat([torch.maximum(first, second), torch.minimum(first, second)], 1)


network = torch.nn.Sequential(
{layers})
network.load_state_dict(load_file(Path(__file__).with_name("network.safetensors")))
"#
        )
    }
}

#[cfg(test)]
mod tests {
    use circulant::models::OrthogonalNetworkConfig;

    use super::super::onnx;
    use super::*;

    /// Two passes in f32 whose sums have another order.
    const SAME: f64 = 1e-5;

    /// The logits of one image by the definition, in f64.
    fn logits(network: &PlainOrthogonal, image: &[f32]) -> Vec<f64> {
        let [mut channels, mut height, mut width] = network.image;
        let mut x: Vec<f64> = image.iter().map(|&x| f64::from(x)).collect();
        for (index, layer) in network.layers.iter().enumerate() {
            if index % network.depth == 0 {
                let (rows, columns) = (height / 2, width / 2);
                let from = |c: usize, u: usize, v: usize| x[(c * height + u) * width + v];
                let mut small = Vec::new();
                for channel in 0..4 * channels {
                    let (c, down, across) = (channel / 4, channel / 2 % 2, channel % 2);
                    for u in 0..rows {
                        small.extend((0..columns).map(|v| from(c, 2 * u + down, 2 * v + across)));
                    }
                }
                (x, channels, height, width) = (small, 4 * channels, rows, columns);
            }
            let size = height * width;
            let mut y = Vec::new();
            for output in 0..layer.channels[1] {
                for (u, v) in (0..size).map(|t| (t / width, t % width)) {
                    let mut sum = f64::from(layer.bias[output]);
                    for input in 0..channels {
                        for (a, b) in (0..size).map(|t| (t / width, t % width)) {
                            // The filter at (u - a, v - b), which stands mirrored in the kernel.
                            let place = (height + u - a) % height * width + (width + v - b) % width;
                            let own = (output * channels + input) * size + size - 1 - place;
                            let pixel = x[input * size + a * width + b];
                            sum += f64::from(layer.kernel[own]) * pixel;
                        }
                    }
                    y.push(sum);
                }
            }
            channels = layer.channels[1];
            let half = channels / 2 * size;
            let larger = (0..half).map(|t| y[t].max(y[t + half]));
            let smaller = (0..half).map(|t| y[t].min(y[t + half]));
            x = larger.chain(smaller).collect();
        }
        for matrix in &network.hidden {
            let rows = matrix.weight.chunks(x.len()).zip(&matrix.bias);
            let row = |(row, bias): (&[f32], &f32)| {
                let products = row.iter().zip(&x).map(|(w, x)| f64::from(*w) * x);
                products.sum::<f64>() + f64::from(*bias)
            };
            let y: Vec<f64> = rows.map(row).collect();
            let half = y.len() / 2;
            let larger = (0..half).map(|t| y[t].max(y[t + half]));
            let smaller = (0..half).map(|t| y[t].min(y[t + half]));
            x = larger.chain(smaller).collect();
        }
        let class = |k: usize| {
            let column = network.weight.iter().skip(k).step_by(network.classes);
            let products = column.zip(&x).map(|(w, x)| f64::from(*w) * x);
            products.sum::<f64>() + f64::from(network.bias[k])
        };
        (0..network.classes).map(class).collect()
    }

    fn softmax(logits: &[f64]) -> Vec<f64> {
        let weights: Vec<f64> = logits.iter().map(|z| z.exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    }

    #[test]
    fn plain_numbers_and_onnx_are_the_network() {
        let device = circulant::cpu();
        for (image, widths, depth, hidden) in [
            ([1, 8, 8], vec![4, 6], 2, vec![]),
            ([3, 4, 8], vec![8, 4], 1, vec![6]),
            ([2, 2, 6], vec![6], 2, vec![24, 4]),
        ] {
            let network = |seed| {
                let config = OrthogonalNetworkConfig::new(widths.clone());
                let config = config.with_image(image).with_classes(3).with_depth(depth);
                let config = config.with_hidden(hidden.clone()).with_block(2);
                let mut network = config.with_seed(seed).init(&device);
                for (index, layer) in network.layers.iter_mut().enumerate() {
                    let bias = layer.bias.as_mut().expect("one");
                    let values: Vec<f32> = (0..layer.taps.shape().num_elements())
                        .map(|i| ((i * 7 + index) % 11) as f32 / 11.0 - 0.4)
                        .take(bias.shape().num_elements())
                        .collect();
                    let data = TensorData::new(values, bias.shape());
                    *bias = burn::module::Param::from_tensor(Tensor::from_data(data, &device));
                }
                network
            };
            let size: usize = image.iter().product();
            let rows = 3;
            let numbers = |i: usize| ((i * 37 + 5) % 17) as f32 / 8.0 - 1.0;
            let images: Vec<f32> = (0..rows * size).map(numbers).collect();
            let shape = [rows, image[0], image[1], image[2]];
            let tensor = Tensor::<4>::from_data(TensorData::new(images.clone(), shape), &device);
            let mut averaged = vec![0.0; rows * 3];
            let mut draws = Vec::new();
            for seed in [1, 2] {
                let network = network(seed);
                let plain = PlainOrthogonal::of(&network, image);
                let expected = host(network.forward(tensor.clone()));
                for (row, image) in images.chunks(size).enumerate() {
                    let found = logits(&plain, image);
                    for (found, expected) in found.iter().zip(&expected[3 * row..]) {
                        let error = (found - f64::from(*expected)).abs();
                        assert!(error < SAME, "{widths:?}: {found} {expected}");
                    }
                    for (sum, p) in averaged[3 * row..].iter_mut().zip(softmax(&found)) {
                        *sum += p / 2.0;
                    }
                }
                draws.push(plain);
            }
            let run = |draws: &[PlainOrthogonal]| {
                let model = rten::Model::load(onnx::orthogonal::model(draws)).expect("a model");
                let input = rten_tensor::Tensor::from_data(&[rows, size], images.clone());
                let output = model.run_one(input.into(), None).expect("an answer");
                let output: rten_tensor::Tensor<f32> = output.try_into().expect("floats");
                output.into_data()
            };
            for (found, expected) in run(&draws).iter().zip(&averaged) {
                assert!((f64::from(*found) - expected).abs() < SAME, "{widths:?}");
            }
            let alone = run(&draws[..1]);
            let expected = softmax(&logits(&draws[0], &images[..size]));
            for (found, expected) in alone.iter().zip(expected) {
                assert!((f64::from(*found) - expected).abs() < SAME, "{widths:?}");
            }
        }
    }
}
