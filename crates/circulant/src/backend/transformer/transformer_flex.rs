//! The operations on the CPU, for f32 and f64.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::DType;
use burn_flex::FlexTensor;
use circulant_kernels::{Dropout, gelu_backward, gelu_into};

use super::attention::Attend;
use super::attention_block::AttentionBlock;
use super::mlp_block::{MlpBlock, dropped};
use super::norm::Norm;
use super::{AttentionBlockSettings, AttentionSettings, MlpBlockSettings, TransformerOps};
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};
use crate::backend::fused::fused_flex::{finish, like};

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

pub(super) fn gelu_gradient(x: &FlexTensor, grad: &FlexTensor) -> FlexTensor {
    let grad = grad.to_contiguous();
    with_native!(x.dtype(), gelu_backward_typed(x, &grad))
}

impl TransformerOps for Flex {
    fn gelu_saving(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        with_native!(x.dtype(), gelu_typed(&x))
    }

    fn dropout_masked(x: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        with_native!(x.dtype(), dropped(&x, Some(dropout)))
    }

    fn normalise_layer(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        Norm::new([x, gamma, beta], epsilon).forward().0
    }

    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        settings: AttentionSettings,
    ) -> FloatTensor<Self> {
        let shape = query.shape();
        Attend::new(vec![query, key, value], shape, settings)
            .forward()
            .0
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
        MlpBlock::forward(tensors, settings).0
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
        AttentionBlock::forward(tensors, settings).0
    }
}
