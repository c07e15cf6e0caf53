//! One block of a transformer, pre-norm: `x + attention(norm(x))`, then `x + mlp(norm(x))` with
//! `mlp(x) = contract(gelu(expand(x)))`.

use burn::backend::Dispatch;
use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig};
use burn::tensor::{Device, Tensor};
use circulant_kernels::{Dropout, NoiseKey};

use super::attention::Attention;
use super::projection::{Projection, ProjectionKind};
use super::seeds::Seeds;
use crate::LayerError;
use crate::backend::fused::is_native;
use crate::backend::transformer::{MlpBlockSettings, TransformerOps};
use crate::functional;

/// The constant of every norm. (Burn's `LayerNorm` does not tell its own.)
pub(super) const EPSILON: f64 = 1e-5;

/// One block.
#[derive(Module, Debug)]
pub struct Block {
    attention_norm: LayerNorm,
    /// The attention layer.
    pub attention: Attention,
    mlp_norm: LayerNorm,
    /// Into the hidden layer of the MLP.
    pub expand: Projection,
    /// Out of it.
    pub contract: Projection,
}

/// Sizes of a block.
pub(super) struct BlockShape {
    /// Queries and keys, values and output.
    pub(super) attention: [ProjectionKind; 2],
    /// Into and out of the hidden layer.
    pub(super) mlp: [ProjectionKind; 2],
    pub(super) d: usize,
    pub(super) heads: usize,
    pub(super) hidden: usize,
}

pub(super) fn new_norm(d: usize, device: &Device) -> LayerNorm {
    LayerNormConfig::new(d).with_epsilon(EPSILON).init(device)
}

pub(super) fn norm_parameters(norm: &LayerNorm) -> (Tensor<1>, Tensor<1>) {
    let gamma = norm.gamma.val();
    let beta = norm.beta.as_ref().map(|beta| beta.val());
    (gamma.clone(), beta.unwrap_or_else(|| gamma.zeros_like()))
}

/// [`functional::layer_norm`] with the parameters of a module of [`new_norm`].
pub(super) fn normalise<const D: usize>(norm: &LayerNorm, x: Tensor<D>) -> Tensor<D> {
    let (gamma, beta) = norm_parameters(norm);
    functional::layer_norm(x, gamma, beta, EPSILON)
}

/// `x + dropout(y)`.
pub(super) fn add_dropped(x: Tensor<3>, y: Tensor<3>, dropout: Option<Dropout>) -> Tensor<3> {
    x + match dropout {
        Some(dropout) => functional::dropout(y, dropout),
        None => y,
    }
}

/// The dropouts of one training step, each with a stream of its own.
#[derive(Debug, Clone)]
pub(super) struct Dropouts {
    rate: f64,
    key: Option<NoiseKey>,
}

impl Dropouts {
    /// How many a forward pass of any depth may ask for.
    const STREAMS: u64 = 1 << 16;

    /// None without a key.
    pub(super) fn new(rate: f64, key: Option<NoiseKey>) -> Self {
        let key = key.filter(|_| rate > 0.0).map(|key| NoiseKey {
            seed: key.seed,
            stream: key.stream.wrapping_mul(Self::STREAMS),
        });
        Self { rate, key }
    }

    pub(super) fn next(&mut self) -> Option<Dropout> {
        let key = self.key.as_mut()?;
        let dropout = Dropout::new(self.rate, *key).expect("try_init checks the rate");
        key.stream = key.stream.wrapping_add(1);
        Some(dropout)
    }
}

impl Block {
    pub(super) fn new(
        shape: &BlockShape,
        seeds: &mut Seeds,
        device: &Device,
    ) -> Result<Self, LayerError> {
        let BlockShape {
            attention,
            mlp: [mlp_in, mlp_out],
            d,
            heads,
            hidden,
        } = *shape;
        Ok(Self {
            attention_norm: new_norm(d, device),
            attention: Attention::new(attention, (d, heads), seeds, device)?,
            mlp_norm: new_norm(d, device),
            expand: Projection::new(mlp_in, [d, hidden], seeds.next(), device)?,
            contract: Projection::new(mlp_out, [hidden, d], seeds.next(), device)?,
        })
    }

    /// The block with the dropouts of a training step.
    pub(super) fn forward(&self, x: Tensor<3>, dropouts: &mut Dropouts) -> Tensor<3> {
        let attention = [dropouts.next(), dropouts.next()];
        let x = self.attention.block(&self.attention_norm, x, attention);
        self.mlp(x, [dropouts.next(), dropouts.next()])
    }

    /// `x + dropout(contract(dropout(gelu(expand(norm(x))))))`.
    fn mlp(&self, x: Tensor<3>, [hidden, output]: [Option<Dropout>; 2]) -> Tensor<3> {
        if let (Projection::Dense(expand), Projection::Dense(contract)) =
            (&self.expand, &self.contract)
            && let (true, Some(expand_bias), Some(contract_bias)) =
                (is_native(&x.device()), &expand.bias, &contract.bias)
        {
            let (gamma, beta) = norm_parameters(&self.mlp_norm);
            return Tensor::from_dispatch(Dispatch::mlp_block(
                x.into_dispatch(),
                gamma.into_dispatch(),
                beta.into_dispatch(),
                expand.weight.val().into_dispatch(),
                expand_bias.val().into_dispatch(),
                contract.weight.val().into_dispatch(),
                contract_bias.val().into_dispatch(),
                MlpBlockSettings {
                    epsilon: EPSILON,
                    hidden_dropout: hidden,
                    dropout: output,
                },
            ));
        }
        let y = self.expand.forward(normalise(&self.mlp_norm, x.clone()));
        let mut y = functional::gelu(y);
        if let Some(dropout) = hidden {
            y = functional::dropout(y, dropout);
        }
        add_dropped(x, self.contract.forward(y), output)
    }
}

#[cfg(test)]
mod tests;
