//! The operations on the CPU, for f32 and f64, and their backward passes. Parents come in the order of the arguments.

use std::fmt::Debug;
use std::marker::PhantomData;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, TensorMetadata};
use burn::tensor::DType;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn_flex::FlexTensor;
use circulant_kernels::{Dropout, gelu_backward, gelu_into};

use super::attention::Attend;
use super::attention_block::AttentionBlock;
use super::mlp_block::{MlpBlock, dropped};
use super::norm::{Norm, Statistics};
use super::{AttentionBlockSettings, AttentionSettings, MlpBlockSettings, TransformerOps};
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};
use crate::backend::fused::fused_flex::{finish, like};

/// What a forward pass keeps, and what the backward pass makes of it.
trait State: Clone + Debug + Send + Sync + 'static {
    /// One gradient per parent.
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor>;
}

#[derive(Debug, Clone)]
struct Gelu(FlexTensor);

fn gelu_typed<T: Native>(x: &FlexTensor) -> FlexTensor {
    let mut y = like::<T>(x);
    valid(gelu_into(numbers(x, "x"), y.0.as_mut()));
    finish(y)
}

fn gelu_backward_typed<T: Native>(x: &FlexTensor, grad: &FlexTensor) -> FlexTensor {
    let mut out = like::<T>(x);
    let (x, grad) = (numbers(x, "x"), numbers(grad, "the gradient"));
    valid(gelu_backward(x, grad, out.0.as_mut()));
    finish(out)
}

fn gelu([x]: [FlexTensor; 1]) -> (FlexTensor, Gelu) {
    let x = x.to_contiguous();
    (with_native!(x.dtype(), gelu_typed(&x)), Gelu(x))
}

impl State for Gelu {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        let (x, grad) = (&self.0, grad.to_contiguous());
        vec![with_native!(x.dtype(), gelu_backward_typed(x, &grad))]
    }
}

fn masked([x]: [FlexTensor; 1], dropout: Dropout) -> (FlexTensor, Dropout) {
    let x = x.to_contiguous();
    let y = with_native!(x.dtype(), dropped(&x, Some(dropout)));
    (y, dropout)
}

impl State for Dropout {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        vec![masked([grad], *self).0]
    }
}

fn normalised(tensors: [FlexTensor; 3], epsilon: f64) -> (FlexTensor, (Norm, Statistics)) {
    let norm = Norm::new(tensors, epsilon);
    let (y, statistics) = norm.forward();
    (y, (norm, statistics))
}

impl State for (Norm, Statistics) {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        self.0.backward(&self.1, &grad.to_contiguous(), None).into()
    }
}

fn attended(
    tensors: [FlexTensor; 3],
    settings: AttentionSettings,
) -> (FlexTensor, (Attend, FlexTensor)) {
    let shape = tensors[0].shape();
    let attend = Attend::new(tensors.into(), shape, settings);
    let (y, log_sums) = attend.forward();
    (y, (attend, log_sums))
}

/// Attention and its log sums.
impl State for (Attend, FlexTensor) {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        self.0.backward(&self.1, &grad.to_contiguous())
    }
}

impl State for MlpBlock {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        self.backward(&grad)
    }
}

impl State for AttentionBlock {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        self.backward(&grad)
    }
}

#[derive(Debug)]
struct Node<S>(PhantomData<S>);

impl<S: State, const N: usize> Backward<Flex, N> for Node<S> {
    type State = S;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradients = ops.state.backward(grads.consume::<Flex>(&ops.node));
        for (parent, gradient) in ops.parents.iter().zip(gradients) {
            if let Some(node) = parent {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

fn record<S: State, C: CheckpointStrategy, const N: usize>(
    guards: [NodeGuard; N],
    (y, state): (FlexTensor, S),
) -> FloatTensor<Autodiff<Flex, C>> {
    let node = Node::<S>(PhantomData);
    match node.prepare::<C>(guards).compute_bound().stateful() {
        OpsKind::Tracked(node) => node.finish(state, y),
        OpsKind::UnTracked(node) => node.finish(y),
    }
}

/// The tensors and the guards of a list of parents.
fn parts<C: CheckpointStrategy, const N: usize>(
    tensors: [FloatTensor<Autodiff<Flex, C>>; N],
) -> ([FlexTensor; N], [NodeGuard; N]) {
    let parts = tensors.map(|tensor| tensor.into_parts());
    let primitives = parts.each_ref().map(|(tensor, _)| tensor.clone());
    (primitives, parts.map(|(_, guard)| guard))
}

/// Operations from their forward passes, which give the output and the state: on tensors alone, and as a node of the tape.
macro_rules! operations {
    ($($name:ident($($tensor:ident),+; $($setting:ident: $type:ty)?) = $forward:expr;)*) => {
        impl TransformerOps for Flex {$(
            fn $name($($tensor: FloatTensor<Self>,)+ $($setting: $type)?) -> FloatTensor<Self> {
                $forward([$($tensor),+], $($setting)?).0
            }
        )*}

        impl<C: CheckpointStrategy> TransformerOps for Autodiff<Flex, C> {$(
            fn $name($($tensor: FloatTensor<Self>,)+ $($setting: $type)?) -> FloatTensor<Self> {
                let (tensors, guards) = parts::<C, _>([$($tensor),+]);
                record::<_, C, _>(guards, $forward(tensors, $($setting)?))
            }
        )*}
    };
}

operations! {
    gelu_saving(x;) = gelu;
    dropout_masked(x; dropout: Dropout) = masked;
    normalise_layer(x, gamma, beta; epsilon: f64) = normalised;
    attend(query, key, value; settings: AttentionSettings) = attended;
    mlp_block(x, gamma, beta, expand, expand_bias, contract, contract_bias; settings: MlpBlockSettings)
        = MlpBlock::forward;
    attention_block(x, gamma, beta, weight, bias, output, output_bias; settings: AttentionBlockSettings)
        = AttentionBlock::forward;
}
