//! Attention with its projections, its norm and its residual, on the CPU:
//! `y = x + dropout(output(attention(Q, K, V)))` with `Q`, `K`, `V` three projections of `norm(x)`, dense or spectral.
//!
//! The three are one tensor `[3, batch, tokens, d]`. Spectral ones share one transform of `norm(x)`, and in the backward pass
//! one transform back: `dx = IRFFT(sum over i of conj(h[i]) RFFT(g[i]))`.

use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, Shape};
use burn_flex::FlexTensor;
use circulant_kernels::{LinearGradients, linear_stack_backward, linear_stack_into};

use super::AttentionBlockSettings;
use super::attention::Attend;
use super::mlp_block::{dropped, linear_gradients, product, residual};
use super::norm::{Norm, Statistics};
use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};
use crate::backend::fused::fused_flex::{finish, like};
use crate::backend::{CirculantBackend, OperatorGradients, Saved, Wanted};
use crate::operator::Operator;

/// Queries, keys and values.
const STACK: usize = 3;
/// All gradients of a spectral projection.
const ALL: Wanted = Wanted {
    x: true,
    coordinates: true,
    bias: true,
};

/// The tensors of a block, contiguous, and what its forward pass keeps.
#[derive(Debug, Clone)]
pub(super) struct AttentionBlock {
    norm: Norm,
    statistics: Statistics,
    attend: Attend,
    log_sums: FlexTensor,
    projections: Projections,
    settings: AttentionBlockSettings,
}

#[derive(Debug, Clone)]
enum Projections {
    Dense {
        normalised: FlexTensor,
        mixed: FlexTensor,
        /// Weight and bias of the stack and of the output.
        parameters: [FlexTensor; 4],
    },
    Spectral {
        stack: Saved<Flex>,
        output: Saved<Flex>,
    },
}

impl AttentionBlock {
    pub(super) fn forward(
        [x, gamma, beta, weight, bias, output, output_bias]: [FlexTensor; 7],
        settings: AttentionBlockSettings,
    ) -> (FlexTensor, Self) {
        let norm = Norm::new([x, gamma, beta], settings.epsilon);
        let parameters = [weight, bias, output, output_bias].map(|tensor| tensor.to_contiguous());
        match settings.operator.clone() {
            None => with_native!(norm.x.dtype(), dense(norm, parameters, settings)),
            Some(operator) => with_native!(
                norm.x.dtype(),
                spectral(norm, parameters, &operator, settings)
            ),
        }
    }

    /// The gradients of the seven tensors.
    pub(super) fn backward(&self, grad: &FlexTensor) -> Vec<FlexTensor> {
        let grad = grad.to_contiguous();
        with_native!(grad.dtype(), backward_typed(self, &grad))
    }
}

fn stacked(shape: &Shape) -> Shape {
    let mut dims = vec![STACK];
    dims.extend(shape.to_vec());
    Shape::from(dims)
}

fn dense<T: Native>(
    norm: Norm,
    parameters: [FlexTensor; 4],
    settings: AttentionBlockSettings,
) -> (FlexTensor, AttentionBlock) {
    let [weight, bias, output, output_bias] = &parameters;
    let (normalised, statistics) = norm.forward();
    let shape = norm.x.shape();
    let mut stack = Buffer::<T>::any(STACK * shape.num_elements());
    valid(linear_stack_into(
        numbers(&normalised, "x"),
        numbers(weight, "W"),
        numbers(bias, "b"),
        STACK,
        stack.as_mut(),
    ));
    let stack = stack.into_tensor(stacked(&shape));
    let attend = Attend::new(vec![stack], shape, settings.attention);
    let (mixed, log_sums) = attend.forward();
    let addend = product::<T>(&mixed, output);
    let y = residual::<T>(&norm.x, &addend, Some(output_bias), settings.dropout);
    let block = AttentionBlock {
        norm,
        statistics,
        attend,
        log_sums,
        projections: Projections::Dense {
            normalised,
            mixed,
            parameters,
        },
        settings,
    };
    (y, block)
}

fn spectral<T: Native>(
    norm: Norm,
    [coordinates, bias, output, output_bias]: [FlexTensor; 4],
    operator: &Operator,
    settings: AttentionBlockSettings,
) -> (FlexTensor, AttentionBlock) {
    let (normalised, statistics) = norm.forward();
    let shape = norm.x.shape();
    let keeping = |x, coordinates, bias, shape| {
        Flex::circulant_keeping(x, coordinates, Some(bias), operator.clone(), shape)
    };
    let (qkv, stack) = keeping(normalised, coordinates, bias, stacked(&shape));
    let attend = Attend::new(vec![qkv], shape.clone(), settings.attention);
    let (mixed, log_sums) = attend.forward();
    let (addend, output) = keeping(mixed, output, output_bias, shape);
    let y = residual::<T>(&norm.x, &addend, None, settings.dropout);
    let block = AttentionBlock {
        norm,
        statistics,
        attend,
        log_sums,
        projections: Projections::Spectral { stack, output },
        settings,
    };
    (y, block)
}

fn backward_typed<T: Native>(block: &AttentionBlock, grad: &FlexTensor) -> Vec<FlexTensor> {
    let of_addend = dropped::<T>(grad, block.settings.dropout);
    let attend = |of_mixed: &FlexTensor| {
        let mut gradients = block.attend.backward(&block.log_sums, of_mixed);
        gradients.pop().expect("one packed tensor")
    };
    let (of_normalised, of_parameters) = match &block.projections {
        Projections::Dense {
            normalised,
            mixed,
            parameters: [weight, bias, output, output_bias],
        } => {
            let (of_mixed, of_output, of_output_bias) =
                linear_gradients::<T>([mixed, output], Some(output_bias), &of_addend);
            let of_stack = attend(&of_mixed);
            let mut out = [normalised, weight, bias].map(like::<T>);
            let [x, of_weight, of_bias] = out.each_mut().map(|(buffer, _)| Some(buffer.as_mut()));
            valid(linear_stack_backward(
                numbers(normalised, "x"),
                numbers(weight, "W"),
                bias.shape().num_elements(),
                STACK,
                numbers(&of_stack, "the gradient"),
                LinearGradients {
                    x,
                    weight: of_weight,
                    bias: of_bias,
                },
            ));
            let [of_normalised, of_weight, of_bias] = out.map(finish);
            let mut of_parameters = vec![of_weight, of_bias, of_output];
            of_parameters.extend(of_output_bias);
            (of_normalised, of_parameters)
        }
        Projections::Spectral { stack, output } => {
            let (of_mixed, of_output) = circulant_gradients(output, of_addend);
            let (of_normalised, of_stack) = circulant_gradients(stack, attend(&of_mixed));
            (
                of_normalised,
                of_stack.into_iter().chain(of_output).collect(),
            )
        }
    };
    let norm = &block.norm;
    let mut gradients = Vec::from(norm.backward(&block.statistics, &of_normalised, Some(grad)));
    gradients.extend(of_parameters);
    gradients
}

/// The gradient of `x`; those of the coordinates and the bias.
fn circulant_gradients(saved: &Saved<Flex>, grad: FlexTensor) -> (FlexTensor, [FlexTensor; 2]) {
    const WANTED: &str = "asked for";
    let OperatorGradients {
        x,
        coordinates,
        bias,
    } = Flex::circulant_backward(saved.clone(), grad, ALL);
    let parameters = [coordinates.expect(WANTED), bias.expect(WANTED)];
    (x.expect(WANTED), parameters)
}
