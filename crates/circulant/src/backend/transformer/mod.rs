//! The operations of a transformer, each one node with its own backward pass, on the CPU backend Flex.
//!
//! | operation | what it saves |
//! | --- | --- |
//! | [`TransformerOps::gelu_saving`] | its input |
//! | [`TransformerOps::dropout_masked`] | nothing: the mask is a function of its key |
//! | [`TransformerOps::normalise_layer`] | two values per row |
//! | [`TransformerOps::attend`] | its inputs and one number per row of the weights |
//! | [`TransformerOps::mlp_block`], [`TransformerOps::attention_block`] | their layers' inputs |
//!
//! A block is one node because its input goes two ways, around the layers and through them: apart, Burn would add up the
//! two gradients in a pass of its own over memory, as it would the bias and the residual.
#![allow(
    clippy::too_many_arguments,
    clippy::type_complexity,
    reason = "a routed operation takes its tensors one by one, and gives them back as a tuple"
)]

mod attention;
mod attention_block;
mod mlp_block;
mod norm;
mod operations;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, backend_extension};
use circulant_kernels::Dropout;

use crate::operator::Operator;

/// What attention has to know besides its tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionSettings {
    /// The number of heads.
    pub heads: usize,
    /// The dropout of the weights.
    pub dropout: Option<Dropout>,
}

/// What a block of attention has to know besides its tensors.
#[derive(Debug, Clone)]
pub struct AttentionBlockSettings {
    /// The attention between the projections.
    pub attention: AttentionSettings,
    /// The constant of the norm.
    pub epsilon: f64,
    /// The dropout of the output.
    pub dropout: Option<Dropout>,
    /// The circulant operator of spectral projections; dense ones have none.
    pub operator: Option<Operator>,
}

/// What an MLP block has to know besides its tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MlpBlockSettings {
    /// The constant of the norm.
    pub epsilon: f64,
    /// The dropout of the hidden layer.
    pub hidden_dropout: Option<Dropout>,
    /// The dropout of the output.
    pub dropout: Option<Dropout>,
}

/// Fused operations of a transformer on the CPU.
#[backend_extension(Flex, Autodiff)]
pub trait TransformerOps: Backend {
    /// `gelu(x)`, the exact form.
    fn gelu_saving(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `dropout(x)`.
    fn dropout_masked(x: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self>;

    /// Layer normalisation over the last axis of `x: [..., n]`, `gamma` and `beta` `[n]`.
    fn normalise_layer(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self>;

    /// `dropout(softmax(Q K^t/sqrt(d_head))) V` per head; all tensors are `[batch, tokens, d]`.
    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        settings: AttentionSettings,
    ) -> FloatTensor<Self>;

    /// `x + dropout(contract(dropout(gelu(expand(norm(x))))))` of `x: [..., n]`; weights are `[in, out]`.
    fn mlp_block(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        expand: FloatTensor<Self>,
        expand_bias: FloatTensor<Self>,
        contract: FloatTensor<Self>,
        contract_bias: FloatTensor<Self>,
        settings: MlpBlockSettings,
    ) -> FloatTensor<Self>;

    /// `x + dropout(output(attention(projections(norm(x)))))` of `x: [batch, tokens, d]`. Dense projections: `weight`
    /// `[3, d, d]`, `bias` `[3, d]`, `output` `[d, d]`, `output_bias` `[d]`. Spectral ones: coordinates `[3, d_eff]`, `[3, 1]`,
    /// `[d_eff]`, `[1]`.
    fn attention_block(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        output: FloatTensor<Self>,
        output_bias: FloatTensor<Self>,
        settings: AttentionBlockSettings,
    ) -> FloatTensor<Self>;
}
