//! The MLP of a transformer with its norm and its residual, on the CPU:
//! `y = x + dropout(h W_2 + b_2)`, `h = dropout(gelu(u + b_1))`, `u = norm(x) W_1`.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Shape};
use burn_flex::FlexTensor;
use circulant_kernels::{
    Activation, Dropout, LinearGradients, LinearOutput, bias_gelu_dropout_backward,
    bias_gelu_dropout_into, dropout_into, linear_backward, matrix_product_into, residual_into,
};

use super::MlpBlockSettings;
use super::norm::{Norm, Statistics};
use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};
use crate::backend::fused::fused_flex::{finish, like};

/// The tensors of a block, contiguous, and what its forward pass keeps.
#[derive(Debug, Clone)]
pub(super) struct MlpBlock {
    norm: Norm,
    /// `W_1`, `b_1`, `W_2`, `b_2`.
    parameters: [FlexTensor; 4],
    settings: MlpBlockSettings,
    kept: Kept,
}

#[derive(Debug, Clone)]
struct Kept {
    normalised: FlexTensor,
    statistics: Statistics,
    /// `u`.
    hidden: FlexTensor,
    /// `h`.
    activated: FlexTensor,
}

impl MlpBlock {
    pub(super) fn forward(
        [x, gamma, beta, expand, expand_bias, contract, contract_bias]: [FlexTensor; 7],
        settings: MlpBlockSettings,
    ) -> (FlexTensor, Self) {
        let norm = Norm::new([x, gamma, beta], settings.epsilon);
        let parameters =
            [expand, expand_bias, contract, contract_bias].map(|tensor| tensor.to_contiguous());
        with_native!(norm.x.dtype(), forward_typed(norm, parameters, settings))
    }

    /// The gradients of the seven tensors.
    pub(super) fn backward(&self, grad: &FlexTensor) -> Vec<FlexTensor> {
        let grad = grad.to_contiguous();
        with_native!(grad.dtype(), backward_typed(self, &grad))
    }
}

/// `x W`, in the shape of `x` but for the last axis.
pub(super) fn product<T: Native>(x: &FlexTensor, weight: &FlexTensor) -> FlexTensor {
    let dims = weight.shape().to_vec();
    let mut shape = x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = dims[1];
    }
    let mut y = Buffer::<T>::any(shape.iter().product());
    let (x, weight) = (numbers(x, "x"), numbers(weight, "W"));
    valid(matrix_product_into(x, weight, dims[0], y.as_mut()));
    y.into_tensor(Shape::from(shape))
}

/// `x + dropout(addend + bias)`.
pub(super) fn residual<T: Native>(
    x: &FlexTensor,
    addend: &FlexTensor,
    bias: Option<&FlexTensor>,
    dropout: Option<Dropout>,
) -> FlexTensor {
    let mut y = like::<T>(x);
    valid(residual_into(
        numbers(x, "x"),
        numbers(addend, "the addend"),
        bias.map_or(&[][..], |bias| numbers(bias, "b")),
        dropout,
        y.0.as_mut(),
    ));
    finish(y)
}

/// `dropout(x)`.
pub(super) fn dropped<T: Native>(x: &FlexTensor, dropout: Option<Dropout>) -> FlexTensor {
    let Some(dropout) = dropout else {
        return x.clone();
    };
    let mut y = like::<T>(x);
    valid(dropout_into(numbers(x, "x"), dropout, y.0.as_mut()));
    finish(y)
}

/// The gradients of `x`, `W` and, if there is one, the bias of a dense layer without an activation.
pub(super) fn linear_gradients<T: Native>(
    [x, weight]: [&FlexTensor; 2],
    bias: Option<&FlexTensor>,
    grad: &FlexTensor,
) -> (FlexTensor, FlexTensor, Option<FlexTensor>) {
    let (mut of_x, mut of_weight) = (like::<T>(x), like::<T>(weight));
    let mut of_bias = bias.map(like::<T>);
    let output = LinearOutput {
        activation: Activation::Identity,
        y: &[],
        grad: numbers(grad, "the gradient"),
        scratch: &mut [],
    };
    let gradients = LinearGradients {
        x: Some(of_x.0.as_mut()),
        weight: Some(of_weight.0.as_mut()),
        bias: of_bias.as_mut().map(|(buffer, _)| buffer.as_mut()),
    };
    let outputs = weight.shape().to_vec()[1];
    let (x, weight) = (numbers(x, "x"), numbers(weight, "W"));
    valid(linear_backward(x, weight, outputs, output, gradients));
    (finish(of_x), finish(of_weight), of_bias.map(finish))
}

fn forward_typed<T: Native>(
    norm: Norm,
    parameters: [FlexTensor; 4],
    settings: MlpBlockSettings,
) -> (FlexTensor, MlpBlock) {
    let [expand, expand_bias, contract, contract_bias] = &parameters;
    let (normalised, statistics) = norm.forward();
    let hidden = product::<T>(&normalised, expand);
    let mut activated = like::<T>(&hidden);
    valid(bias_gelu_dropout_into(
        numbers(&hidden, "the hidden layer"),
        numbers(expand_bias, "b"),
        settings.hidden_dropout,
        activated.0.as_mut(),
    ));
    let activated = finish(activated);
    let output = product::<T>(&activated, contract);
    let y = residual::<T>(&norm.x, &output, Some(contract_bias), settings.dropout);
    let kept = Kept {
        normalised,
        statistics,
        hidden,
        activated,
    };
    let block = MlpBlock {
        norm,
        parameters,
        settings,
        kept,
    };
    (y, block)
}

fn backward_typed<T: Native>(block: &MlpBlock, grad: &FlexTensor) -> Vec<FlexTensor> {
    let [expand, expand_bias, contract, contract_bias] = &block.parameters;
    let (kept, settings) = (&block.kept, &block.settings);
    let of_output = dropped::<T>(grad, settings.dropout);
    let (of_activated, of_contract, of_contract_bias) =
        linear_gradients::<T>([&kept.activated, contract], Some(contract_bias), &of_output);
    let (mut of_hidden, mut of_expand_bias) = (like::<T>(&kept.hidden), like::<T>(expand_bias));
    valid(bias_gelu_dropout_backward(
        numbers(&kept.hidden, "the hidden layer"),
        numbers(expand_bias, "b"),
        settings.hidden_dropout,
        numbers(&of_activated, "the gradient"),
        of_hidden.0.as_mut(),
        of_expand_bias.0.as_mut(),
    ));
    drop(of_activated);
    let (of_normalised, of_expand, _) =
        linear_gradients::<T>([&kept.normalised, expand], None, &finish(of_hidden));
    let norm = &block.norm;
    let mut gradients = Vec::from(norm.backward(&kept.statistics, &of_normalised, Some(grad)));
    gradients.extend([of_expand, finish(of_expand_bias), of_contract]);
    gradients.extend(of_contract_bias);
    gradients
}
