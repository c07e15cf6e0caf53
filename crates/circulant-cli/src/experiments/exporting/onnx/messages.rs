//! The messages of ONNX. The format is Protocol Buffers, of which this needs two kinds of fields: numbers (a tag and a varint) and
//! bytes (a tag, their length, the bytes).

/// The version of the operators, which every runtime of the last years has.
const OPERATORS: u64 = 13;
/// The version of the format that came with it.
const FORMAT: u64 = 8;
/// `TensorProto.DataType.FLOAT`.
const FLOAT: u64 = 1;

/// A message that is being written.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

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
pub(super) fn tensor(name: &str, shape: &[usize], values: &[f32]) -> Message {
    let dims = shape.iter();
    let message = dims.fold(Message::default(), |m, &dim| m.number(1, dim as u64));
    let raw: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    message.number(2, FLOAT).text(8, name).bytes(9, &raw)
}

/// The same of whole numbers (`data_type` 7).
pub(super) fn indices(name: &str, values: &[i64]) -> Message {
    let raw: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let message = Message::default().number(1, values.len() as u64);
    message.number(2, 7).text(8, name).bytes(9, &raw)
}

/// `NodeProto`: input 1, output 2, op_type 4, attribute 5.
pub(super) fn node(kind: &str, inputs: &[&str], output: &str, attributes: &[Message]) -> Message {
    let message = inputs
        .iter()
        .fold(Message::default(), |m, input| m.text(1, input));
    let message = message.text(2, output).text(4, kind);
    attributes
        .iter()
        .fold(message, |m, attribute| m.message(5, attribute))
}

/// `AttributeProto`: name 1, i 3, ints 8, type 20 (2 a number, 7 numbers).
pub(super) fn number(name: &str, value: i64) -> Message {
    let message = Message::default().text(1, name);
    message.number(3, value as u64).number(20, 2)
}

pub(super) fn numbers(name: &str, values: &[i64]) -> Message {
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

/// The whole file: from `x` of so many values per input to these outputs.
pub(super) fn file(
    nodes: &[Message],
    initialisers: &[Message],
    inputs: usize,
    outputs: &[(&str, usize)],
) -> Vec<u8> {
    let mut graph = Message::default().text(2, "circulant");
    for node in nodes {
        graph = graph.message(1, node);
    }
    for initialiser in initialisers {
        graph = graph.message(5, initialiser);
    }
    graph = graph.message(11, &value("x", inputs));
    for (name, size) in outputs {
        graph = graph.message(12, &value(name, *size));
    }
    let operators = Message::default().text(1, "").number(2, OPERATORS);
    Message::default()
        .number(1, FORMAT)
        .text(2, "circulant")
        .message(7, &graph)
        .message(8, &operators)
        .0
}
