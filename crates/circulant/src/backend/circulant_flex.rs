//! The native kernel on the CPU backend Flex, for f32 and f64.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, Shape};
use burn_flex::FlexTensor;
use circulant_kernels::{Activation, Filters, Gradients, KeptSpectrum, KernelError};

use super::buffers::{Buffer, Pooled};
use super::{CirculantBackend, CirculantOps, Operator, OperatorGradients, Saved, Wanted};
use crate::operator::Planned;

/// The spectrum of a batch, in the number type of the batch.
#[derive(Debug, Clone)]
pub enum FlexKept {
    /// f32.
    Single(Arc<KeptSpectrum<f32>>),
    /// f64.
    Double(Arc<KeptSpectrum<f64>>),
    /// A batch of no inputs.
    Empty,
}

/// A number type of the native kernel.
pub(super) trait Native: Planned + Pooled {
    fn wrap(kept: KeptSpectrum<Self>) -> FlexKept;
    fn unwrap(kept: &FlexKept) -> Option<&KeptSpectrum<Self>>;
}

impl Native for f32 {
    fn wrap(kept: KeptSpectrum<Self>) -> FlexKept {
        FlexKept::Single(Arc::new(kept))
    }

    fn unwrap(kept: &FlexKept) -> Option<&KeptSpectrum<Self>> {
        if let FlexKept::Single(kept) = kept {
            Some(kept)
        } else {
            None
        }
    }
}

impl Native for f64 {
    fn wrap(kept: KeptSpectrum<Self>) -> FlexKept {
        FlexKept::Double(Arc::new(kept))
    }

    fn unwrap(kept: &FlexKept) -> Option<&KeptSpectrum<Self>> {
        if let FlexKept::Double(kept) = kept {
            Some(kept)
        } else {
            None
        }
    }
}

/// Runs `$call::<T>(..)` with the number type of `$dtype`.
macro_rules! with_native {
    ($dtype:expr, $call:ident ( $($argument:expr),* )) => {
        match $dtype {
            DType::F32 => $call::<f32>($($argument),*),
            DType::F64 => $call::<f64>($($argument),*),
            dtype => panic!(
                "circulant operators on the CPU take F32 or F64 tensors, got {dtype:?}; \
                 cast input and module, e.g. by `cast(FloatDType::F32)`"
            ),
        }
    };
}

pub(super) use with_native;

/// Shapes inside a forward pass panic, as everywhere in Burn; the kernel's message names both sizes.
pub(super) fn valid<R>(result: Result<R, KernelError>) -> R {
    result.unwrap_or_else(|error| panic!("circulant operator: {error}"))
}

pub(super) fn numbers<'a, T: Native>(tensor: &'a FlexTensor, what: &str) -> &'a [T] {
    assert!(
        tensor.dtype() == T::dtype(),
        "circulant operator: {what} is {:?} but x is {:?}; cast one of them",
        tensor.dtype(),
        T::dtype()
    );
    tensor.as_slice().expect("made contiguous before")
}

/// Forward, with the spectrum kept when `keep`.
fn run<T: Native>(
    x: &FlexTensor,
    coordinates: &FlexTensor,
    bias: Option<&FlexTensor>,
    operator: &Operator,
    shape: Shape,
    keep: bool,
) -> (FlexTensor, FlexKept) {
    let plan = &operator.plans::<T>().operator;
    let x = numbers::<T>(x, "x");
    let filters = Filters {
        coordinates: numbers(coordinates, "the coordinates"),
        bias: bias.map(|bias| numbers(bias, "the bias")),
        activation: operator.activation(),
    };
    let mut y = Buffer::<T>::any(shape.num_elements());
    let kept = if x.is_empty() {
        FlexKept::Empty
    } else if keep {
        T::wrap(valid(plan.forward_keeping(x, filters, y.as_mut())))
    } else {
        valid(plan.forward(x, filters, y.as_mut()));
        FlexKept::Empty
    };
    (y.into_tensor(shape), kept)
}

fn gradients<T: Native>(
    saved: &Saved<Flex>,
    grad: &FlexTensor,
    wanted: Wanted,
) -> OperatorGradients<Flex> {
    let plan = &saved.operator.plans::<T>().operator;
    let kept = T::unwrap(&saved.kept);
    let buffer = |wanted: bool, shape: Option<Shape>| {
        shape.filter(|_| wanted).map(|shape| {
            let len = shape.num_elements();
            // Without a batch nothing is set: the gradients are zero.
            let values = if kept.is_some() {
                Buffer::<T>::any(len)
            } else {
                Buffer::zeroed(len)
            };
            (values, shape)
        })
    };
    let mut x = buffer(wanted.x, Some(saved.x_shape.clone()));
    let mut coordinates = buffer(wanted.coordinates, Some(saved.coordinates.shape()));
    let mut bias = buffer(wanted.bias, saved.bias.as_ref().map(TensorMetadata::shape));
    if let Some(kept) = kept {
        let filters = Filters {
            coordinates: numbers(&saved.coordinates, "the coordinates"),
            bias: saved.bias.as_ref().map(|bias| numbers(bias, "the bias")),
            activation: saved.operator.activation(),
        };
        let y = saved
            .y
            .as_ref()
            .map_or(&[][..], |y| numbers(y, "the output"));
        let slots = Gradients {
            x: x.as_mut().map(|(values, _)| values.as_mut()),
            coordinates: coordinates.as_mut().map(|(values, _)| values.as_mut()),
            bias: bias.as_mut().map(|(values, _)| values.as_mut()),
        };
        valid(plan.backward(
            kept,
            filters,
            y,
            numbers(grad, "the output gradient"),
            slots,
        ));
    }
    let finish =
        |slot: Option<(Buffer<T>, Shape)>| slot.map(|(values, shape)| values.into_tensor(shape));
    OperatorGradients {
        x: finish(x),
        coordinates: finish(coordinates),
        bias: finish(bias),
    }
}

fn analyse<T: Native>(filters: &FlexTensor, operator: &Operator, shape: Shape) -> FlexTensor {
    let transform = &operator.plans::<T>().filters;
    let filters = numbers::<T>(filters, "the filter");
    let mut coordinates = Buffer::<T>::any(shape.num_elements());
    let each = filters.chunks_exact(filter_len(operator)).zip(
        coordinates
            .as_mut()
            .chunks_exact_mut(operator.coordinates()),
    );
    for (filter, coordinates) in each {
        valid(transform.analyse(filter, coordinates));
    }
    coordinates.into_tensor(shape)
}

fn analyse_adjoint<T: Native>(grad: &FlexTensor, operator: &Operator, shape: Shape) -> FlexTensor {
    let transform = &operator.plans::<T>().filters;
    let grad = numbers::<T>(grad, "the gradient of the coordinates");
    let mut filters = Buffer::<T>::any(shape.num_elements());
    let each = grad
        .chunks_exact(operator.coordinates())
        .zip(filters.as_mut().chunks_exact_mut(filter_len(operator)));
    for (grad, filter) in each {
        valid(transform.adjoint(grad, filter));
    }
    filters.into_tensor(shape)
}

fn filter_len(operator: &Operator) -> usize {
    operator.layout().channels().0 * operator.output_len()
}

fn forward(
    x: FlexTensor,
    coordinates: FlexTensor,
    bias: Option<FlexTensor>,
    operator: &Operator,
    shape: Shape,
) -> FlexTensor {
    let (x, coordinates) = (x.to_contiguous(), coordinates.to_contiguous());
    let bias = bias.map(|bias| bias.to_contiguous());
    with_native!(
        x.dtype(),
        run(&x, &coordinates, bias.as_ref(), operator, shape, false)
    )
    .0
}

impl CirculantOps for Flex {
    fn circulant(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        forward(x, coordinates, None, &operator, shape)
    }

    fn circulant_biased(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        forward(x, coordinates, Some(bias), &operator, shape)
    }

    fn coordinates_of_filters(
        filters: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        let filters = filters.to_contiguous();
        with_native!(filters.dtype(), analyse(&filters, &operator, shape))
    }
}

impl CirculantBackend for Flex {
    type Kept = FlexKept;

    fn circulant_keeping(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: Option<FloatTensor<Self>>,
        operator: Operator,
        shape: Shape,
    ) -> (FloatTensor<Self>, Saved<Self>) {
        let (x, coordinates) = (x.to_contiguous(), coordinates.to_contiguous());
        let bias = bias.map(|bias| bias.to_contiguous());
        let (y, kept) = with_native!(
            x.dtype(),
            run(&x, &coordinates, bias.as_ref(), &operator, shape, true)
        );
        let needs_output = operator.activation() != Activation::Identity;
        let saved = Saved {
            kept,
            x_shape: x.shape(),
            coordinates,
            bias,
            y: needs_output.then(|| y.clone()),
            operator,
        };
        (y, saved)
    }

    fn circulant_backward(
        saved: Saved<Self>,
        grad: FloatTensor<Self>,
        wanted: Wanted,
    ) -> OperatorGradients<Self> {
        let grad = grad.to_contiguous();
        with_native!(grad.dtype(), gradients(&saved, &grad, wanted))
    }

    fn coordinates_of_filters_adjoint(
        grad: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        let grad = grad.to_contiguous();
        with_native!(grad.dtype(), analyse_adjoint(&grad, &operator, shape))
    }
}
