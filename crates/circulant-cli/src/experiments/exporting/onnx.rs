//! A network as ONNX, of matrix products alone: `x [inputs, size] -> probabilities [inputs, classes]`, of a regression
//! `values [inputs, 1]` in the unit of the target.
//!
//! With one network the layers are `MatMul`, `Add` and `Tanh`; with several draws every weight is `[draws, in, out]`, the
//! product runs over all of them, and the probabilities are averaged; of values there are `deviations` over the draws besides. The
//! format is Protocol Buffers, of which this needs two
//! kinds of fields: numbers (a tag and a varint) and bytes (a tag, their length, the bytes).

use circulant_edge::write::WrittenTarget;

use super::matrices::Matrix;

/// The version of the operators, which every runtime of the last years has.
const OPERATORS: u64 = 13;
/// The version of the format that came with it.
const FORMAT: u64 = 8;
/// `TensorProto.DataType.FLOAT`.
const FLOAT: u64 = 1;

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }
}

/// `TensorProto`: dims 1, data_type 2, name 8, raw_data 9.
fn tensor(name: &str, shape: &[usize], values: &[f32]) -> Message {
    let dims = shape.iter();
    let message = dims.fold(Message::default(), |m, &dim| m.number(1, dim as u64));
    let raw: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    message.number(2, FLOAT).text(8, name).bytes(9, &raw)
}

/// `NodeProto`: input 1, output 2, op_type 4, attribute 5.
fn node(kind: &str, inputs: &[&str], output: &str, attributes: &[Message]) -> Message {
    let message = inputs
        .iter()
        .fold(Message::default(), |m, input| m.text(1, input));
    let message = message.text(2, output).text(4, kind);
    attributes
        .iter()
        .fold(message, |m, attribute| m.message(5, attribute))
}

/// `AttributeProto`: name 1, i 3, ints 8, type 20 (2 a number, 7 numbers).
fn number(name: &str, value: i64) -> Message {
    let message = Message::default().text(1, name);
    message.number(3, value as u64).number(20, 2)
}

fn numbers(name: &str, values: &[i64]) -> Message {
    let message = Message::default().text(1, name);
    let message = values
        .iter()
        .fold(message, |m, &value| m.number(8, value as u64));
    message.number(20, 7)
}

/// `ValueInfoProto`: name 1, type 2 { tensor_type 1 { elem_type 1, shape 2 { dim 1 { dim_value 1 | dim_param 2 } } } }.
fn value(name: &str, size: usize) -> Message {
    let batch = Message::default().text(2, "inputs");
    let size = Message::default().number(1, size as u64);
    let shape = Message::default().message(1, &batch).message(1, &size);
    let tensor = Message::default().number(1, FLOAT).message(2, &shape);
    Message::default()
        .text(1, name)
        .message(2, &Message::default().message(1, &tensor))
}

/// The model of one network or of several draws, which have the same sizes.
pub fn model(draws: &[Vec<Matrix>], target: Option<WrittenTarget>) -> Vec<u8> {
    let (first, count) = (&draws[0], draws.len());
    let mut graph = Message::default().text(2, "circulant");
    let mut initialisers = Vec::new();
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
    let mut outputs = vec!["probabilities"];
    let mut add = |kind: &str, inputs: &[&str], output: &str, attributes: &[Message]| {
        nodes.push(node(kind, inputs, output, attributes));
    };
    if let Some(target) = target {
        outputs = vec!["values"];
        initialisers.push(tensor("scale", &[1], &[target.scale]));
        initialisers.push(tensor("offset", &[1], &[target.offset]));
        add("Mul", &[&value_name, "scale"], "scaled", &[]);
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
    } else {
        let axis = [number("axis", -1)];
        if count > 1 {
            add("Softmax", &[&value_name], "drawn", &axis);
            add("ReduceMean", &["drawn"], "probabilities", &mean);
        } else {
            add("Softmax", &[&value_name], "probabilities", &axis);
        }
    }
    for node in &nodes {
        graph = graph.message(1, node);
    }
    for initialiser in &initialisers {
        graph = graph.message(5, initialiser);
    }
    graph = graph.message(11, &value("x", first[0].shape[1]));
    for output in outputs {
        graph = graph.message(12, &value(output, size));
    }
    let operators = Message::default().text(1, "").number(2, OPERATORS);
    Message::default()
        .number(1, FORMAT)
        .text(2, "circulant")
        .message(7, &graph)
        .message(8, &operators)
        .0
}
