//! Dense layers and convolutions on the CPU.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Shape};
use burn_flex::FlexTensor;
use circulant_kernels::{
    Activation, Convolution, ConvolutionGradients, LinearGradients, LinearOutput, linear_backward,
    linear_into,
};

use super::fused_flex::{finish, like};
use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};

/// The tensors of a dense layer, contiguous.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    x: FlexTensor,
    weight: FlexTensor,
    bias: FlexTensor,
    activation: Activation,
}

impl Linear {
    pub(super) fn new(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        activation: Activation,
    ) -> Self {
        Self {
            x: x.to_contiguous(),
            weight: weight.to_contiguous(),
            bias: bias.to_contiguous(),
            activation,
        }
    }

    pub(super) fn forward(&self) -> FlexTensor {
        with_native!(self.x.dtype(), linear_typed(self))
    }

    /// Gradients of `x`, `W` and `b`, those that are wanted.
    pub(super) fn backward(
        &self,
        y: &FlexTensor,
        grad: &FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let grad = grad.to_contiguous();
        with_native!(
            self.x.dtype(),
            linear_backward_typed(self, y, &grad, wanted)
        )
    }
}

fn linear_typed<T: Native>(layer: &Linear) -> FlexTensor {
    let bias = numbers::<T>(&layer.bias, "b");
    let mut shape = layer.x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = bias.len();
    }
    let mut y = Buffer::<T>::any(shape.iter().product());
    let (x, weight) = (numbers(&layer.x, "x"), numbers(&layer.weight, "W"));
    valid(linear_into(x, weight, bias, layer.activation, y.as_mut()));
    y.into_tensor(Shape::from(shape))
}

fn linear_backward_typed<T: Native>(
    layer: &Linear,
    y: &FlexTensor,
    grad: &FlexTensor,
    wanted: [bool; 3],
) -> [Option<FlexTensor>; 3] {
    let tensors = [&layer.x, &layer.weight, &layer.bias];
    let [mut x, mut weight, mut bias] =
        std::array::from_fn(|i| wanted[i].then(|| like::<T>(tensors[i])));
    let grad = numbers(grad, "the gradient");
    let mut scratch = Buffer::<T>::any(match layer.activation {
        Activation::Identity => 0,
        Activation::Tanh => grad.len(),
    });
    valid(linear_backward(
        numbers(&layer.x, "x"),
        numbers(&layer.weight, "W"),
        layer.bias.shape().num_elements(),
        LinearOutput {
            activation: layer.activation,
            y: numbers(y, "the output"),
            grad,
            scratch: scratch.as_mut(),
        },
        LinearGradients {
            x: x.as_mut().map(|(buffer, _)| buffer.as_mut()),
            weight: weight.as_mut().map(|(buffer, _)| buffer.as_mut()),
            bias: bias.as_mut().map(|(buffer, _)| buffer.as_mut()),
        },
    ));
    [x, weight, bias].map(|gradient| gradient.map(finish))
}

/// The tensors of a convolution, contiguous.
#[derive(Debug, Clone)]
pub(super) struct Conv {
    x: FlexTensor,
    weight: FlexTensor,
    bias: FlexTensor,
    convolution: Convolution,
    activation: Activation,
}

impl Conv {
    pub(super) fn new(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        convolution: Convolution,
        activation: Activation,
    ) -> Self {
        Self {
            x: x.to_contiguous(),
            weight: weight.to_contiguous(),
            bias: bias.to_contiguous(),
            convolution,
            activation,
        }
    }

    pub(super) fn forward(&self) -> FlexTensor {
        with_native!(self.x.dtype(), convolution_typed(self))
    }

    /// Gradients of `x`, weight and bias, those that are wanted.
    pub(super) fn backward(
        &self,
        y: &FlexTensor,
        grad: &FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let grad = grad.to_contiguous();
        with_native!(
            self.x.dtype(),
            convolution_backward_typed(self, y, &grad, wanted)
        )
    }
}

fn convolution_typed<T: Native>(layer: &Conv) -> FlexTensor {
    let mut shape = layer.x.shape().to_vec();
    shape[1] = layer.convolution.channels_out();
    let mut y = Buffer::<T>::any(shape.iter().product());
    valid(layer.convolution.forward(
        numbers(&layer.x, "x"),
        numbers(&layer.weight, "the weight"),
        numbers(&layer.bias, "the bias"),
        layer.activation,
        y.as_mut(),
    ));
    y.into_tensor(Shape::from(shape))
}

fn convolution_backward_typed<T: Native>(
    layer: &Conv,
    y: &FlexTensor,
    grad: &FlexTensor,
    wanted: [bool; 3],
) -> [Option<FlexTensor>; 3] {
    let tensors = [&layer.x, &layer.weight, &layer.bias];
    let [mut x, mut weight, mut bias] =
        std::array::from_fn(|i| wanted[i].then(|| like::<T>(tensors[i])));
    valid(layer.convolution.backward(
        numbers(&layer.x, "x"),
        numbers(&layer.weight, "the weight"),
        layer.activation,
        numbers(y, "the output"),
        numbers(grad, "the gradient"),
        ConvolutionGradients {
            x: x.as_mut().map(|(buffer, _)| buffer.as_mut()),
            weight: weight.as_mut().map(|(buffer, _)| buffer.as_mut()),
            bias: bias.as_mut().map(|(buffer, _)| buffer.as_mut()),
        },
    ));
    [x, weight, bias].map(|gradient| gradient.map(finish))
}
