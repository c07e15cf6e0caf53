//! ONNX files whose convolutions leave out `kernel_shape`: the shape of the weights tells it, so files may, but the
//! library that runs them reads the attribute only. Here it is added to the file.
//!
//! The fields of the protocol buffers that matter: `ModelProto.graph = 7`; `GraphProto.node = 1`, `initializer = 5`;
//! `NodeProto.input = 1`, `output = 2`, `op_type = 4`, `attribute = 5`; `AttributeProto.name = 1`, `ints = 8`,
//! `type = 20` (7 for ints); `TensorProto.dims = 1`, `name = 8`.

use std::collections::HashMap;

const KERNEL: &[u8] = b"kernel_shape";

/// A field of a message.
struct Field<'a> {
    number: u64,
    /// With its key.
    whole: &'a [u8],
    value: Value<'a>,
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

impl<'a> Field<'a> {
    fn bytes(&self, number: u64) -> Option<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) if self.number == number => Some(bytes),
            _ => None,
        }
    }
}

/// The file with every `kernel_shape` that can be told. What is no ONNX file stays as it is.
pub(super) fn complete(file: Vec<u8>) -> Vec<u8> {
    completed(&file).unwrap_or(file)
}

fn completed(file: &[u8]) -> Option<Vec<u8>> {
    let model = fields(file)?;
    let graph = fields(model.iter().find_map(|field| field.bytes(7))?)?;
    let shapes = shapes(&graph)?;
    let mut changed = false;
    let mut new_graph = Vec::with_capacity(file.len());
    for field in &graph {
        match field.bytes(1).and_then(|node| with_kernel(node, &shapes)) {
            Some(node) => {
                changed = true;
                push(&mut new_graph, 1, &node);
            }
            None => new_graph.extend_from_slice(field.whole),
        }
    }
    let mut new_file = Vec::with_capacity(if changed { file.len() } else { 0 });
    for field in model.iter().filter(|_| changed) {
        match field.bytes(7) {
            Some(_) => push(&mut new_file, 7, &new_graph),
            None => new_file.extend_from_slice(field.whole),
        }
    }
    changed.then_some(new_file)
}

/// The shapes of all weights, also under the names that operators with one input and one output (a cast) give them.
fn shapes<'a>(graph: &[Field<'a>]) -> Option<HashMap<&'a [u8], Vec<u64>>> {
    let mut shapes = HashMap::new();
    for tensor in graph.iter().filter_map(|field| field.bytes(5)) {
        let tensor = fields(tensor)?;
        let mut dims = Vec::new();
        for field in tensor.iter().filter(|field| field.number == 1) {
            match field.value {
                Value::Number(size) => dims.push(size),
                Value::Bytes(mut packed) => {
                    while !packed.is_empty() {
                        dims.push(varint(&mut packed)?);
                    }
                }
                Value::Other => return None,
            }
        }
        shapes.insert(tensor.iter().find_map(|field| field.bytes(8))?, dims);
    }
    for node in graph.iter().filter_map(|field| field.bytes(1)) {
        let node = fields(node)?;
        let names = |number| node.iter().filter_map(move |field| field.bytes(number));
        let (mut inputs, mut outputs) = (names(1), names(2));
        if let (Some(input), None, Some(output), None) =
            (inputs.next(), inputs.next(), outputs.next(), outputs.next())
            && let Some(shape) = shapes.get(input).cloned()
            && names(4).eq([b"Cast"])
        {
            shapes.insert(output, shape);
        }
    }
    Some(shapes)
}

/// A convolution with its `kernel_shape`, if it lacks one.
fn with_kernel(node: &[u8], shapes: &HashMap<&[u8], Vec<u64>>) -> Option<Vec<u8>> {
    let parts = fields(node)?;
    let values = |number| parts.iter().filter_map(move |field| field.bytes(number));
    let named = |attribute| {
        fields(attribute)
            .is_some_and(|parts| parts.iter().any(|part| part.bytes(1) == Some(KERNEL)))
    };
    let is_convolution = values(4).any(|kind| kind == b"Conv" || kind == b"ConvTranspose");
    if !is_convolution || values(5).any(named) {
        return None;
    }
    // Channels come first, the kernel after them.
    let kernel = shapes.get(values(1).nth(1)?)?.get(2..)?;
    let mut attribute = Vec::new();
    push(&mut attribute, 1, KERNEL);
    for &size in kernel {
        push_varint(&mut attribute, 8 << 3);
        push_varint(&mut attribute, size);
    }
    push_varint(&mut attribute, 20 << 3);
    push_varint(&mut attribute, 7);
    let mut completed = node.to_vec();
    push(&mut completed, 5, &attribute);
    Some(completed)
}

/// The fields of a message, or nothing if it is none.
fn fields(mut message: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let start = message;
        let key = varint(&mut message)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut message)?),
            1 => {
                message = message.get(8..)?;
                Value::Other
            }
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Value::Bytes(bytes)
            }
            5 => {
                message = message.get(4..)?;
                Value::Other
            }
            _ => return None,
        };
        fields.push(Field {
            number: key >> 3,
            whole: &start[..start.len() - message.len()],
            value,
        });
    }
    Some(fields)
}

/// Seven bits per byte, the lowest first, and whether more follow.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

fn push_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        to.push(value as u8 | 128);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A field of bytes.
fn push(to: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    push_varint(to, number << 3 | 2);
    push_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(fields: &[(u64, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, content) in fields {
            push(&mut bytes, *number, content);
        }
        bytes
    }

    /// A convolution whose weights `[2, 3, 5, 7]` go through a cast.
    fn model(attributes: &[&[u8]]) -> Vec<u8> {
        let mut weights = message(&[(8, b"stored")]);
        for size in [2, 3, 5, 7] {
            push_varint(&mut weights, 1 << 3);
            push_varint(&mut weights, size);
        }
        let cast = message(&[(1, b"stored"), (2, b"weights"), (4, b"Cast")]);
        let mut convolution = message(&[(1, b"image"), (1, b"weights"), (2, b"y"), (4, b"Conv")]);
        for attribute in attributes {
            push(&mut convolution, 5, attribute);
        }
        let graph = message(&[(1, &cast), (1, &convolution), (5, &weights), (2, b"graph")]);
        message(&[(2, b"producer"), (7, &graph), (8, b"opset")])
    }

    #[test]
    fn a_kernel_that_is_left_out_is_added() {
        let mut kernel = message(&[(1, KERNEL)]);
        kernel.extend([8 << 3, 5, 8 << 3, 7, 160, 1, 7]);
        assert_eq!(complete(model(&[])), model(&[&kernel]));
        let other = message(&[(1, b"group")]);
        assert_eq!(complete(model(&[&other])), model(&[&other, &kernel]));
    }

    #[test]
    fn everything_else_stays() {
        let kernel = message(&[(1, KERNEL)]);
        let whole = model(&[&kernel]);
        assert_eq!(complete(whole.clone()), whole);
        let open = model(&[]);
        // The graph is whole seven bytes before the end.
        for end in 0..open.len() - 7 {
            let cut = open[..end].to_vec();
            assert_eq!(complete(cut.clone()), cut, "{end}");
        }
        for wrong in [&b""[..], b"hello, this is text", &[0xff; 40]] {
            assert_eq!(complete(wrong.to_vec()), wrong);
        }
    }
}
