//! Multi-head attention whose four projections are dense or structured:
//! `softmax(Q K^t/sqrt(d_head)) V` per head, then the output projection.
//!
//! Circulant queries, keys and values of one layout share one transform of their input. On the CPU the layer, the norm before it and the
//! residual around it are one fused operation.

use burn::backend::Dispatch;
use burn::module::Module;
use burn::nn::LayerNorm;
use burn::tensor::{Device, Tensor};
use circulant_kernels::Dropout;

use super::block::{EPSILON, add_dropped, norm_parameters, normalise};
use super::projection::{Projection, ProjectionKind};
use super::seeds::Seeds;
use crate::LayerError;
use crate::backend::fused::is_native;
use crate::backend::transformer::{AttentionBlockSettings, AttentionSettings, TransformerOps};
use crate::functional;
use crate::operator::Operator;

/// Multi-head attention.
#[derive(Module, Debug)]
pub struct Attention {
    /// The projection to queries.
    pub query: Projection,
    /// The projection to keys.
    pub key: Projection,
    /// The projection to values.
    pub value: Projection,
    /// The projection of the joined heads.
    pub output: Projection,
    heads: usize,
}

/// The four parameter tensors of the projections: queries, keys and values stacked, then the output.
struct Stacked<const W: usize, const O: usize> {
    weight: Tensor<W>,
    bias: Tensor<2>,
    output: Tensor<O>,
    output_bias: Tensor<1>,
    operator: Option<Operator>,
}

impl Attention {
    /// Queries and keys of one kind, values and output of another.
    pub(super) fn new(
        [scores, values]: [ProjectionKind; 2],
        (d, heads): (usize, usize),
        seeds: &mut Seeds,
        device: &Device,
    ) -> Result<Self, LayerError> {
        let mut projection = |kind| Projection::new(kind, [d, d], seeds.next(), device);
        Ok(Self {
            query: projection(scores)?,
            key: projection(scores)?,
            value: projection(values)?,
            output: projection(values)?,
            heads,
        })
    }

    /// The four projections.
    pub fn projections(&self) -> [&Projection; 4] {
        [&self.query, &self.key, &self.value, &self.output]
    }

    /// Attends from every token to every token, without dropout.
    ///
    /// # Shapes
    ///
    /// - x: `[batch, tokens, d]`
    /// - output: `[batch, tokens, d]`
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.attend(x, None)
    }

    /// [`Self::forward`] with a dropout of the attention weights.
    fn attend(&self, x: Tensor<3>, dropout: Option<Dropout>) -> Tensor<3> {
        let [query, key, value] = self.project(x);
        let mixed = functional::attention(query, key, value, self.heads, dropout);
        self.output.forward(mixed)
    }

    /// `x + dropout(attention(norm(x)))`; the first dropout is that of the weights.
    pub(super) fn block(
        &self,
        norm: &LayerNorm,
        x: Tensor<3>,
        [weights, output]: [Option<Dropout>; 2],
    ) -> Tensor<3> {
        if is_native(&x.device()) {
            let settings = |operator| AttentionBlockSettings {
                attention: AttentionSettings {
                    heads: self.heads,
                    dropout: weights,
                },
                epsilon: EPSILON,
                dropout: output,
                operator,
            };
            if let Some(stacked) = self.dense() {
                return stacked.block(norm, x, settings);
            }
            if let Some(stacked) = self.spectral() {
                return stacked.block(norm, x, settings);
            }
        }
        let y = self.attend(normalise(norm, x.clone()), weights);
        add_dropped(x, y, output)
    }

    /// The parameters of four dense projections, if that is what they are.
    fn dense(&self) -> Option<Stacked<3, 2>> {
        let mut layers = Vec::new();
        for projection in self.projections() {
            let Projection::Dense(layer) = projection else {
                return None;
            };
            layers.push((layer.weight.val(), layer.bias.as_ref()?.val()));
        }
        let (output, output_bias) = layers.pop()?;
        let (weights, biases): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
        Some(Stacked {
            weight: Tensor::stack(weights, 0),
            bias: Tensor::stack(biases, 0),
            output,
            output_bias,
            operator: None,
        })
    }

    /// The parameters of four circulant projections of one layout, if that is what they are.
    fn spectral(&self) -> Option<Stacked<2, 1>> {
        let (operator, ..) = self.query.circulant()?;
        let mut layers = Vec::new();
        for projection in self.projections() {
            let (own, coordinates, bias) = projection.circulant()?;
            if own.layout() != operator.layout() {
                return None;
            }
            layers.push((coordinates, bias));
        }
        let (output, output_bias) = layers.pop()?;
        let (coordinates, biases): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
        let len = biases[0].dims();
        if biases.iter().any(|bias| bias.dims() != len) {
            return None;
        }
        Some(Stacked {
            weight: Tensor::stack(coordinates, 0),
            bias: Tensor::stack(biases, 0),
            output,
            output_bias,
            operator: Some(operator.clone()),
        })
    }

    fn project(&self, x: Tensor<3>) -> [Tensor<3>; 3] {
        let three = [&self.query, &self.key, &self.value];
        let Some(Stacked {
            weight,
            bias,
            operator: Some(operator),
            ..
        }) = self.spectral()
        else {
            return three.map(|projection| projection.forward(x.clone()));
        };
        let y: Tensor<4> = functional::circulant_1d_filters(x, weight, Some(bias), &operator);
        [0, 1, 2].map(|f| y.clone().narrow(0, f, 1).squeeze_dim::<3>(0))
    }
}

impl<const W: usize, const O: usize> Stacked<W, O> {
    fn block(
        self,
        norm: &LayerNorm,
        x: Tensor<3>,
        settings: impl FnOnce(Option<Operator>) -> AttentionBlockSettings,
    ) -> Tensor<3> {
        let (gamma, beta) = norm_parameters(norm);
        Tensor::from_dispatch(Dispatch::attention_block(
            x.into_dispatch(),
            gamma.into_dispatch(),
            beta.into_dispatch(),
            self.weight.into_dispatch(),
            self.bias.into_dispatch(),
            self.output.into_dispatch(),
            self.output_bias.into_dispatch(),
            settings(self.operator),
        ))
    }
}
