//! Attention on the CPU, of three tensors or of one that holds them one after the other.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Shape};
use burn_flex::FlexTensor;
use circulant_kernels::{Attention, QueryKeyValue};

use super::AttentionSettings;
use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};

/// The tensors of an attention layer, contiguous.
#[derive(Debug, Clone)]
pub(super) struct Attend {
    /// Queries, keys and values `[batch, tokens, d]`, or all of them as `[3, batch, tokens, d]`.
    inputs: Vec<FlexTensor>,
    /// `[batch, tokens, d]`.
    shape: Shape,
    attention: Attention,
    settings: AttentionSettings,
}

impl Attend {
    /// `inputs` are three tensors or a packed one; `shape` is `[batch, tokens, d]`.
    pub(super) fn new(inputs: Vec<FlexTensor>, shape: Shape, settings: AttentionSettings) -> Self {
        let dims = shape.to_vec();
        let [_, tokens, d] = dims[..] else {
            panic!("attention: expected [batch, tokens, d], got {dims:?}")
        };
        assert!(
            settings.heads > 0 && d.is_multiple_of(settings.heads),
            "attention: a width of {d} cannot be cut into {} heads",
            settings.heads
        );
        Self {
            inputs: inputs.iter().map(FlexTensor::to_contiguous).collect(),
            shape,
            attention: valid(Attention::new(tokens, settings.heads, d / settings.heads)),
            settings,
        }
    }

    /// The output, and the logarithms of the softmax sums.
    pub(super) fn forward(&self) -> (FlexTensor, FlexTensor) {
        with_native!(self.inputs[0].dtype(), forward_typed(self))
    }

    /// The gradients of the inputs, in the form of the inputs.
    pub(super) fn backward(&self, log_sums: &FlexTensor, grad: &FlexTensor) -> Vec<FlexTensor> {
        with_native!(self.inputs[0].dtype(), backward_typed(self, log_sums, grad))
    }

    fn slices<T: Native>(&self) -> QueryKeyValue<&[T]> {
        const WHAT: &str = "queries, keys and values";
        if let [query, key, value] = &self.inputs[..] {
            return QueryKeyValue {
                query: numbers(query, WHAT),
                key: numbers(key, WHAT),
                value: numbers(value, WHAT),
            };
        }
        let packed = numbers::<T>(&self.inputs[0], WHAT);
        let (query, rest) = packed.split_at(packed.len() / 3);
        let (key, value) = rest.split_at(rest.len() / 2);
        QueryKeyValue { query, key, value }
    }
}

fn forward_typed<T: Native>(layer: &Attend) -> (FlexTensor, FlexTensor) {
    let batch = layer.shape.to_vec()[0];
    let len = layer.attention.log_sums_len(batch);
    let mut output = Buffer::<T>::any(layer.shape.num_elements());
    let mut log_sums = Buffer::<T>::any(len);
    valid(layer.attention.forward(
        layer.slices(),
        layer.settings.dropout,
        output.as_mut(),
        log_sums.as_mut(),
    ));
    (
        output.into_tensor(layer.shape.clone()),
        log_sums.into_tensor(Shape::from(vec![len])),
    )
}

fn backward_typed<T: Native>(
    layer: &Attend,
    log_sums: &FlexTensor,
    grad: &FlexTensor,
) -> Vec<FlexTensor> {
    let mut out: Vec<Buffer<T>> = layer
        .inputs
        .iter()
        .map(|input| Buffer::any(input.shape().num_elements()))
        .collect();
    let gradients = match &mut out[..] {
        [query, key, value] => QueryKeyValue {
            query: query.as_mut(),
            key: key.as_mut(),
            value: value.as_mut(),
        },
        packed => {
            let packed = packed[0].as_mut();
            let (query, rest) = packed.split_at_mut(packed.len() / 3);
            let (key, value) = rest.split_at_mut(rest.len() / 2);
            QueryKeyValue { query, key, value }
        }
    };
    valid(layer.attention.backward(
        layer.slices(),
        layer.settings.dropout,
        numbers(log_sums, "the log sums"),
        numbers(grad, "the gradient"),
        gradients,
    ));
    let shapes = layer.inputs.iter().map(TensorMetadata::shape);
    let out = out.into_iter().zip(shapes);
    out.map(|(buffer, shape)| buffer.into_tensor(shape))
        .collect()
}
