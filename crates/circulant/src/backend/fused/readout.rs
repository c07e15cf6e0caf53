//! A circulant operator with a linear read-out behind it, on the CPU: one pass there and one back, or, with the
//! cross-entropy, both in one.

use std::any::Any;
use std::sync::Arc;

use burn::tensor::{DType, Shape};
use burn_flex::FlexTensor;
use circulant_kernels::{
    Examples, Filters, Gradients, Inputs, KeptReadout, Readout, ReadoutGradients,
};

use super::Selection;
use super::fused_flex::{finish, like, scalar};
use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};
use crate::operator::Operator;

/// The tensors of both layers, contiguous: input, coordinates, bias, weight, constant.
#[derive(Debug, Clone)]
pub(super) struct ReadoutLayer {
    tensors: [FlexTensor; 5],
    operator: Operator,
    shape: Shape,
}

/// What the backward pass needs, in the number type of the input; `None` of a batch of no inputs.
pub(super) type Kept = Option<Arc<dyn Any + Send + Sync>>;

impl ReadoutLayer {
    pub(super) fn new(tensors: [FlexTensor; 5], operator: Operator, shape: Shape) -> Self {
        Self {
            tensors: tensors.map(|tensor| tensor.to_contiguous()),
            operator,
            shape,
        }
    }

    pub(super) fn forward(&self, keep: bool) -> (FlexTensor, Kept) {
        with_native!(self.tensors[0].dtype(), forward_typed(self, keep))
    }

    /// The gradients of the tensors, those that are wanted.
    pub(super) fn backward(
        &self,
        kept: &Kept,
        grad: &FlexTensor,
        wanted: [bool; 5],
    ) -> [Option<FlexTensor>; 5] {
        let grad = grad.to_contiguous();
        with_native!(grad.dtype(), backward_typed(self, kept, &grad, wanted))
    }

    fn filters<T: Native>(&self) -> Filters<'_, T> {
        Filters {
            coordinates: numbers(&self.tensors[1], "the coordinates"),
            bias: Some(numbers(&self.tensors[2], "the bias")),
            activation: self.operator.activation(),
        }
    }

    fn readout<T: Native>(&self) -> Readout<'_, T> {
        Readout {
            weight: numbers(&self.tensors[3], "the read-out"),
            bias: numbers(&self.tensors[4], "the read-out's bias"),
        }
    }
}

fn forward_typed<T: Native>(layer: &ReadoutLayer, keep: bool) -> (FlexTensor, Kept) {
    let plan = &layer.operator.plans::<T>().operator;
    let x = numbers::<T>(&layer.tensors[0], "x");
    let (filters, readout) = (layer.filters(), layer.readout());
    let mut z = Buffer::<T>::any(layer.shape.num_elements());
    let mut kept: Kept = None;
    if keep && !x.is_empty() {
        let keeping = plan.forward_readout_keeping(x, filters, readout, z.as_mut());
        kept = Some(Arc::new(valid(keeping)));
    } else if !x.is_empty() {
        valid(plan.forward_readout(x, filters, readout, z.as_mut()));
    }
    (z.into_tensor(layer.shape.clone()), kept)
}

fn backward_typed<T: Native>(
    layer: &ReadoutLayer,
    kept: &Kept,
    grad: &FlexTensor,
    wanted: [bool; 5],
) -> [Option<FlexTensor>; 5] {
    let mut slots: [Option<(Buffer<T>, Shape)>; 5] =
        std::array::from_fn(|i| wanted[i].then(|| like::<T>(&layer.tensors[i])));
    let [x, coordinates, bias, weight, constant] = &mut slots;
    match kept {
        // Without a batch nothing is set: the gradients are zero.
        None => {
            for (values, _) in [x, coordinates, bias, weight, constant]
                .into_iter()
                .flatten()
            {
                values.as_mut().fill(T::zeroed());
            }
        }
        Some(kept) => {
            let kept = kept
                .downcast_ref::<KeptReadout<T>>()
                .expect("kept in the number type of the input");
            let plan = &layer.operator.plans::<T>().operator;
            let gradients = Gradients {
                x: x.as_mut().map(|(values, _)| values.as_mut()),
                coordinates: coordinates.as_mut().map(|(values, _)| values.as_mut()),
                bias: bias.as_mut().map(|(values, _)| values.as_mut()),
            };
            let of_readout = ReadoutGradients {
                weight: weight.as_mut().map(|(values, _)| values.as_mut()),
                bias: constant.as_mut().map(|(values, _)| values.as_mut()),
            };
            valid(plan.backward_readout(
                kept,
                layer.filters(),
                layer.readout(),
                numbers(grad, "the gradient"),
                gradients,
                of_readout,
            ));
        }
    }
    slots.map(|slot| slot.map(finish))
}

/// The cross-entropy of a read-out, and if wanted its gradients with respect to all tensors but the input.
pub(super) fn cross_entropy(
    tensors: [FlexTensor; 5],
    operator: Operator,
    selection: &Selection,
    keep: bool,
) -> (FlexTensor, Vec<FlexTensor>) {
    // It has no output of its own.
    let layer = ReadoutLayer::new(tensors, operator, Shape::from(vec![0]));
    with_native!(
        layer.tensors[1].dtype(),
        cross_entropy_typed(&layer, selection, keep)
    )
}

fn cross_entropy_typed<T: Native>(
    layer: &ReadoutLayer,
    selection: &Selection,
    keep: bool,
) -> (FlexTensor, Vec<FlexTensor>) {
    let mut slots: [Option<(Buffer<T>, Shape)>; 4] =
        std::array::from_fn(|i| keep.then(|| like::<T>(&layer.tensors[i + 1])));
    let [coordinates, bias, weight, constant] = slots
        .each_mut()
        .map(|slot| slot.as_mut().map(|(values, _)| values.as_mut()));
    let examples = Examples {
        inputs: match &selection.bytes {
            None => Inputs::Numbers(numbers::<T>(&layer.tensors[0], "x")),
            Some((values, scale)) => Inputs::Bytes(values, scale),
        },
        rows: selection.rows.as_ref().map(|rows| &rows.0[..]),
        labels: &selection.labels.as_i64(),
    };
    let gradients = Gradients {
        x: None,
        coordinates,
        bias,
    };
    let of_readout = ReadoutGradients {
        weight,
        bias: constant,
    };
    let plan = &layer.operator.plans::<T>().operator;
    let (filters, readout) = (layer.filters(), layer.readout());
    let loss = plan.readout_cross_entropy(examples, filters, readout, gradients, of_readout);
    let gradients = slots.into_iter().flatten().map(finish).collect();
    (scalar::<T>(valid(loss)), gradients)
}
