//! The backward passes. Parents come in the order of the arguments.

use std::fmt::Debug;
use std::marker::PhantomData;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, TensorMetadata};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn_flex::FlexTensor;
use circulant_kernels::Dropout;

use super::attention::Attend;
use super::attention_block::AttentionBlock;
use super::mlp_block::MlpBlock;
use super::norm::{Norm, Statistics};
use super::transformer_flex::gelu_gradient;
use super::{AttentionBlockSettings, AttentionSettings, MlpBlockSettings, TransformerOps};

/// What a forward pass keeps, and what the backward pass makes of it.
trait State: Clone + Debug + Send + Sync + 'static {
    /// One gradient per parent.
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor>;
}

#[derive(Debug, Clone)]
struct Gelu(FlexTensor);

impl State for Gelu {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        vec![gelu_gradient(&self.0, &grad)]
    }
}

impl State for Dropout {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        vec![Flex::dropout_masked(grad, *self)]
    }
}

impl State for (Norm, Statistics) {
    fn backward(&self, grad: FlexTensor) -> Vec<FlexTensor> {
        self.0.backward(&self.1, &grad.to_contiguous(), None).into()
    }
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

impl<C: CheckpointStrategy> TransformerOps for Autodiff<Flex, C> {
    fn gelu_saving(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let ([x], guards) = parts::<C, 1>([x]);
        let x = x.to_contiguous();
        record::<_, C, 1>(guards, (Flex::gelu_saving(x.clone()), Gelu(x)))
    }

    fn dropout_masked(x: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        let ([x], guards) = parts::<C, 1>([x]);
        record::<_, C, 1>(guards, (Flex::dropout_masked(x, dropout), dropout))
    }

    fn normalise_layer(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let (tensors, guards) = parts::<C, 3>([x, gamma, beta]);
        let norm = Norm::new(tensors, epsilon);
        let (y, statistics) = norm.forward();
        record::<_, C, 3>(guards, (y, (norm, statistics)))
    }

    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        settings: AttentionSettings,
    ) -> FloatTensor<Self> {
        let (tensors, guards) = parts::<C, 3>([query, key, value]);
        let shape = tensors[0].shape();
        let attend = Attend::new(tensors.into(), shape, settings);
        let (y, log_sums) = attend.forward();
        record::<_, C, 3>(guards, (y, (attend, log_sums)))
    }

    fn mlp_block(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        expand: FloatTensor<Self>,
        expand_bias: FloatTensor<Self>,
        contract: FloatTensor<Self>,
        contract_bias: FloatTensor<Self>,
        settings: MlpBlockSettings,
    ) -> FloatTensor<Self> {
        let tensors = [x, gamma, beta, expand, expand_bias, contract, contract_bias];
        let (tensors, guards) = parts::<C, 7>(tensors);
        record::<_, C, 7>(guards, MlpBlock::forward(tensors, settings))
    }

    fn attention_block(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        output: FloatTensor<Self>,
        output_bias: FloatTensor<Self>,
        settings: AttentionBlockSettings,
    ) -> FloatTensor<Self> {
        let tensors = [x, gamma, beta, weight, bias, output, output_bias];
        let (tensors, guards) = parts::<C, 7>(tensors);
        record::<_, C, 7>(guards, AttentionBlock::forward(tensors, settings))
    }
}
