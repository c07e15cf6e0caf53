//! A network of orthogonal convolutions as ONNX: `x [inputs, size] -> probabilities [inputs, classes]`.
//!
//! | part | operators |
//! | --- | --- |
//! | unshuffle | `Reshape`, `Transpose`, `Reshape` |
//! | circular convolution with a kernel as large as the image | `Slice` and `Concat` in front of every row and column, `Conv` |
//! | MaxMin | `Slice` into two halves of the channels, `Max`, `Min`, `Concat` |
//! | read-out | `Reshape`, `MatMul`, `Add`, `Softmax` |
//!
//! Several draws are several branches, whose probabilities are averaged.

use super::super::orthogonal::{PlainConvolution, PlainOrthogonal};
use super::messages::{Message, file, indices, node, number, numbers, tensor};

/// What is written so far.
#[derive(Default)]
struct Graph {
    nodes: Vec<Message>,
    initialisers: Vec<Message>,
    names: usize,
}

/// The model of one network or of several draws, which have the same sizes.
pub fn model(draws: &[PlainOrthogonal]) -> Vec<u8> {
    let mut graph = Graph::default();
    let mut found = Vec::new();
    for network in draws {
        let logits = graph.logits(network);
        found.push(graph.add("Softmax", &[&logits], &[number("axis", -1)]));
    }
    let names: Vec<&str> = found.iter().map(String::as_str).collect();
    // Of one network its own probabilities.
    graph.nodes.push(node("Mean", &names, "probabilities", &[]));
    let (
        first,
        Graph {
            nodes,
            initialisers,
            ..
        },
    ) = (&draws[0], graph);
    let outputs = [("probabilities", first.classes)];
    file(
        &nodes,
        &initialisers,
        first.image.iter().product(),
        &outputs,
    )
}

impl Graph {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn add(&mut self, kind: &str, inputs: &[&str], attributes: &[Message]) -> String {
        let output = self.name();
        self.nodes.push(node(kind, inputs, &output, attributes));
        output
    }

    fn floats(&mut self, shape: &[usize], values: &[f32]) -> String {
        let name = self.name();
        self.initialisers.push(tensor(&name, shape, values));
        name
    }

    fn reshape(&mut self, x: &str, shape: &[usize]) -> String {
        let shape: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
        let name = self.name();
        let whole = [&[-1], &shape[..]].concat();
        self.initialisers.push(indices(&name, &whole));
        self.add("Reshape", &[x, &name], &[])
    }

    fn slice(&mut self, x: &str, axis: i64, from: usize, to: usize) -> String {
        let [starts, ends, axes] = [from as i64, to as i64, axis].map(|value| {
            let name = self.name();
            self.initialisers.push(indices(&name, &[value]));
            name
        });
        self.add("Slice", &[x, &starts, &ends, &axes], &[])
    }

    fn logits(&mut self, network: &PlainOrthogonal) -> String {
        let [mut channels, mut height, mut width] = network.image;
        let mut x = "x".to_owned();
        for stage in network.layers.chunks(network.depth) {
            (height, width) = (height / 2, width / 2);
            x = self.reshape(&x, &[channels, height, 2, width, 2]);
            let order = [numbers("perm", &[0, 1, 3, 5, 2, 4])];
            x = self.add("Transpose", &[&x], &order);
            x = self.reshape(&x, &[4 * channels, height, width]);
            for layer in stage {
                x = self.convolution(&x, layer);
                channels = layer.channels[1];
                x = self.max_min(&x, channels);
            }
        }
        x = self.reshape(&x, &[channels * height * width]);
        for matrix in &network.hidden {
            let [outputs, inputs] = matrix.shape;
            let at = |place: usize| matrix.weight[place % outputs * inputs + place / outputs];
            let transposed: Vec<f32> = (0..inputs * outputs).map(at).collect();
            x = self.dense(&x, &transposed, &matrix.bias);
            x = self.max_min(&x, outputs);
        }
        self.dense(&x, &network.weight, &network.bias)
    }

    /// Weights `[in, out]`.
    fn dense(&mut self, x: &str, weight: &[f32], bias: &[f32]) -> String {
        let outputs = bias.len();
        let weight = self.floats(&[weight.len() / outputs, outputs], weight);
        let bias = self.floats(&[outputs], bias);
        let product = self.add("MatMul", &[x, &weight], &[]);
        self.add("Add", &[&product, &bias], &[])
    }

    /// Of the halves of axis 1.
    fn max_min(&mut self, x: &str, size: usize) -> String {
        let first = self.slice(x, 1, 0, size / 2);
        let second = self.slice(x, 1, size / 2, size);
        let larger = self.add("Max", &[&first, &second], &[]);
        let smaller = self.add("Min", &[&first, &second], &[]);
        self.add("Concat", &[&larger, &smaller], &[number("axis", 1)])
    }

    fn convolution(&mut self, x: &str, layer: &PlainConvolution) -> String {
        let mut x = x.to_owned();
        for (axis, size) in [(2, layer.grid[0]), (3, layer.grid[1])] {
            if size > 1 {
                let front = self.slice(&x, axis, 1, size);
                x = self.add("Concat", &[&front, &x], &[number("axis", axis)]);
            }
        }
        let [inputs, outputs] = layer.channels;
        let shape = [outputs, inputs, layer.grid[0], layer.grid[1]];
        let kernel = self.floats(&shape, &layer.kernel);
        let bias = self.floats(&[outputs], &layer.bias);
        // Their defaults, which not every reader knows.
        let steps = [
            numbers("strides", &[1, 1]),
            numbers("dilations", &[1, 1]),
            numbers("pads", &[0; 4]),
        ];
        self.add("Conv", &[&x, &kernel, &bias], &steps)
    }
}
