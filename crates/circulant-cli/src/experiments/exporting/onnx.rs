//! A network as ONNX, of matrix products alone: `x [inputs, size] -> probabilities [inputs, classes]`; of numbers and counts
//! `values [inputs, 1]` in the unit of the target, and `noises`, the deviations of the noise, where they depend on the input.
//!
//! With one network the layers are `MatMul`, `Add` and `Tanh`; with several draws every weight is `[draws, in, out]`, the
//! product runs over all of them, and the probabilities are averaged; of values there are `deviations` over the draws besides. Networks of
//! convolutions are in `onnx/orthogonal.rs`.

mod messages;
pub mod orthogonal;

use self::messages::{Message, file, indices, node, number, numbers, tensor};
use super::matrices::Matrix;
use super::network::Outcome;

/// The model of one network or of several draws, which have the same sizes.
pub fn model(draws: &[Vec<Matrix>], outcome: Outcome) -> Vec<u8> {
    let (first, count) = (&draws[0], draws.len());
    let mut initialisers: Vec<Message> = Vec::new();
    let mut nodes = Vec::new();
    let mut value_name = "x".to_owned();
    let last = first.len() - 1;
    for (index, matrix) in first.iter().enumerate() {
        let [outputs, inputs] = matrix.shape;
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for draw in draws {
            for j in 0..inputs {
                weights.extend((0..outputs).map(|i| draw[index].weight[i * inputs + j]));
            }
            biases.extend_from_slice(&draw[index].bias);
        }
        let (mut weight_shape, mut bias_shape) = (vec![inputs, outputs], vec![outputs]);
        if count > 1 {
            weight_shape.insert(0, count);
            bias_shape = vec![count, 1, outputs];
        }
        let name = |what: &str| format!("{what}{index}");
        initialisers.push(tensor(&name("weight"), &weight_shape, &weights));
        initialisers.push(tensor(&name("bias"), &bias_shape, &biases));
        let (product, sum) = (name("product"), name("sum"));
        nodes.push(node(
            "MatMul",
            &[&value_name, &name("weight")],
            &product,
            &[],
        ));
        nodes.push(node("Add", &[&product, &name("bias")], &sum, &[]));
        value_name = sum;
        if index < last {
            let hidden = name("hidden");
            nodes.push(node("Tanh", &[&value_name], &hidden, &[]));
            value_name = hidden;
        }
    }
    let size = first[last].shape[0];
    let mean = [numbers("axes", &[0]), number("keepdims", 0)];
    let mut outputs = vec!["values"];
    let mut constants = |values: &[(&str, f32)]| {
        let constants = values
            .iter()
            .map(|(name, value)| tensor(name, &[1], &[*value]));
        initialisers.extend(constants);
    };
    let mut add = |kind: &str, inputs: &[&str], output: &str, attributes: &[Message]| {
        nodes.push(node(kind, inputs, output, attributes));
    };
    // What every draw says, `[draws, inputs, 1]` or `[inputs, 1]`.
    match outcome {
        Outcome::Classes => {
            outputs = vec!["probabilities"];
            let drawn = if count > 1 { "drawn" } else { "probabilities" };
            add("Softmax", &[&value_name], drawn, &[number("axis", -1)]);
            if count > 1 {
                add("ReduceMean", &["drawn"], "probabilities", &mean);
            }
        }
        Outcome::Value(target) | Outcome::ValueWithNoise(target) => {
            constants(&[("scale", target.scale), ("offset", target.offset)]);
            let mut value_name = value_name.as_str();
            if let Outcome::ValueWithNoise(_) = outcome {
                outputs.push("noises");
                // `noise sqrt(mean exp(6 tanh(u/3)))`.
                constants(&[("third", 1.0 / 3.0), ("six", 6.0), ("noise", target.noise)]);
                initialisers.push(indices("first", &[0]));
                initialisers.push(indices("second", &[1]));
                let axis = [number("axis", -1)];
                add("Gather", &[value_name, "second"], "own", &axis);
                add("Mul", &["own", "third"], "small", &[]);
                add("Tanh", &["small"], "limited", &[]);
                add("Mul", &["limited", "six"], "logarithm", &[]);
                add("Exp", &["logarithm"], "spread", &[]);
                let mut spread = "spread";
                if count > 1 {
                    spread = "spreads";
                    add("ReduceMean", &["spread"], spread, &mean);
                }
                add("Sqrt", &[spread], "factor", &[]);
                add("Mul", &["factor", "noise"], "noises", &[]);
                add("Gather", &[value_name, "first"], "value", &axis);
                value_name = "value";
            }
            add("Mul", &[value_name, "scale"], "scaled", &[]);
        }
        Outcome::Count => {
            constants(&[("offset", 0.0)]);
            add("Exp", &[&value_name], "scaled", &[]);
        }
    }
    let size = match outcome {
        Outcome::Classes => size,
        _ => {
            let mut center = "scaled";
            if count > 1 {
                outputs.push("deviations");
                center = "center";
                add("ReduceMean", &["scaled"], center, &mean);
                add("Sub", &["scaled", center], "apart", &[]);
                add("Mul", &["apart", "apart"], "squares", &[]);
                add("ReduceMean", &["squares"], "variance", &mean);
                add("Sqrt", &["variance"], "deviations", &[]);
            }
            add("Add", &[center, "offset"], "values", &[]);
            1
        }
    };
    let outputs: Vec<(&str, usize)> = outputs.into_iter().map(|name| (name, size)).collect();
    file(&nodes, &initialisers, first[0].shape[1], &outputs)
}
