//! Multi-head attention whose four projections are dense or spectral:
//! `softmax(Q K^t/sqrt(d_head)) V` per head, then the output projection.
//!
//! Spectral queries, keys and values share one transform of their input.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor};

use super::initial::{Seeds, linear};
use crate::functions::circulant_1d_filters;
use crate::nn::{SpectralCirculant1d, SpectralCirculant1dConfig};
use crate::ops::Operator;

/// Which projections an attention layer has.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum ProjectionKind {
    /// `Linear`.
    Dense,
    /// [`SpectralCirculant1d`] with a scalar bias.
    Spectral,
}

/// One projection from `d` to `d` features.
#[derive(Module, Debug)]
pub enum Projection {
    /// A dense matrix.
    Dense(Linear),
    /// A circulant matrix.
    Spectral(SpectralCirculant1d),
}

impl Projection {
    pub(super) fn new(kind: ProjectionKind, d: usize, seed: u64, device: &Device) -> Self {
        match kind {
            ProjectionKind::Dense => Self::Dense(linear(d, d, seed, device)),
            ProjectionKind::Spectral => Self::Spectral(
                SpectralCirculant1dConfig::new(d)
                    .with_seed(seed)
                    .init(device),
            ),
        }
    }

    /// Applies the projection over the last axis.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Dense(layer) => layer.forward(x),
            Self::Spectral(layer) => layer.forward(x),
        }
    }
}

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
    dropout: Dropout,
    heads: usize,
}

impl Attention {
    pub(super) fn new(
        kind: ProjectionKind,
        (d, heads): (usize, usize),
        dropout: f64,
        seeds: &mut Seeds,
        device: &Device,
    ) -> Self {
        let mut projection = || Projection::new(kind, d, seeds.next(), device);
        Self {
            query: projection(),
            key: projection(),
            value: projection(),
            output: projection(),
            dropout: DropoutConfig::new(dropout).init(),
            heads,
        }
    }

    /// The four projections.
    pub fn projections(&self) -> [&Projection; 4] {
        [&self.query, &self.key, &self.value, &self.output]
    }

    /// Attends from every token to every token.
    ///
    /// # Shapes
    ///
    /// - x: `[batch, tokens, d]`
    /// - output: `[batch, tokens, d]`
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, tokens, d] = x.dims();
        let d_head = d / self.heads;
        let split = |x: Tensor<3>| {
            x.reshape([batch, tokens, self.heads, d_head])
                .swap_dims(1, 2)
        };
        let [query, key, value] = self.project(x).map(split);
        let scores = query
            .matmul(key.transpose())
            .div_scalar((d_head as f64).sqrt());
        let mixed = self.dropout.forward(softmax(scores, 3)).matmul(value);
        self.output
            .forward(mixed.swap_dims(1, 2).reshape([batch, tokens, d]))
    }

    fn project(&self, x: Tensor<3>) -> [Tensor<3>; 3] {
        let three = [&self.query, &self.key, &self.value];
        let [
            Projection::Spectral(query),
            Projection::Spectral(key),
            Projection::Spectral(value),
        ] = three
        else {
            return three.map(|projection| projection.forward(x.clone()));
        };
        let layers = [query, key, value];
        let coordinates =
            Tensor::stack::<2>(layers.map(|layer| layer.coordinates.val()).to_vec(), 0);
        let bias: Option<Vec<_>> = layers
            .iter()
            .map(|layer| layer.bias.as_ref().map(|bias| bias.val()))
            .collect();
        let bias = bias.map(|bias| Tensor::stack::<2>(bias, 0));
        let operator = Operator::signal(query.layout().clone());
        let y: Tensor<4> = circulant_1d_filters(x, coordinates, bias, &operator);
        [0, 1, 2].map(|f| y.clone().narrow(0, f, 1).squeeze_dim::<3>(0))
    }
}
