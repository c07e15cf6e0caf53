//! A vision transformer (pre-norm): patches, a class token, learned positions, blocks of
//! attention and a GELU MLP, a final norm, a linear head on the class token. The four
//! projections of every attention layer and the two of every MLP are dense or structured, role by role ([`ProjectionKind`]).
//!
//! | data | dense | spectral, real numbers | spectral, as the paper counts |
//! | --- | --- | --- | --- |
//! | CIFAR-10, patch 4 | 1,205,898 | 812,706 | 811,218 |
//! | Tiny ImageNet, patch 8 | 1,248,840 | 855,648 | 854,160 |

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{LayerNorm, Linear};
use burn::tensor::{Device, Tensor};
use circulant_kernels::{Activation, Dropout, NoiseKey};

use super::block::{Block, BlockShape, Dropouts, new_norm, normalise};
use super::projection::{Projection, ProjectionKind};
use super::seeds::{Seeds, linear};
use crate::LayerError;
use crate::functional;
use crate::nn::{InitialNumbers, parameter};
use crate::task::Classifier;

/// The usual spread of initial tokens and positions.
const EMBEDDING_DEVIATION: f64 = 0.02;

/// Configuration of a [`VisionTransformer`].
///
/// ```
/// use circulant::models::{ParameterCount, ProjectionKind, VisionTransformerConfig};
///
/// // Circulant attention, and an MLP of blocks of 8 instead of matrices.
/// let model = VisionTransformerConfig::new(32, 4, 10, ProjectionKind::Spectral)
///     .with_mlp([ProjectionKind::Blocks(8); 2])
///     .init(&circulant::cpu());
/// assert_eq!(ParameterCount::of(&model).total(), 124_578);
/// ```
#[derive(Config, Debug)]
pub struct VisionTransformerConfig {
    /// The side of the square images.
    pub image: usize,
    /// The side of the square patches.
    pub patch: usize,
    /// The number of classes.
    pub classes: usize,
    /// The projections of the attention layers.
    pub projection: ProjectionKind,
    /// Those of values and output, if others than those of queries and keys.
    pub values: Option<ProjectionKind>,
    /// Those of the MLP, into and out of its hidden layer.
    #[config(default = "[ProjectionKind::Dense, ProjectionKind::Dense]")]
    pub mlp: [ProjectionKind; 2],
    /// The channels of the images.
    #[config(default = 3)]
    pub channels: usize,
    /// The width of a token.
    #[config(default = 128)]
    pub d: usize,
    /// The number of blocks.
    #[config(default = 6)]
    pub depth: usize,
    /// The number of heads.
    #[config(default = 4)]
    pub heads: usize,
    /// The hidden width of the MLP, as a multiple of `d`.
    #[config(default = 4)]
    pub expansion: usize,
    /// The dropout probability during training.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// The seed of all initial parameters.
    #[config(default = 0)]
    pub seed: u64,
}

/// A vision transformer. Made by [`VisionTransformerConfig`].
#[derive(Module, Debug)]
pub struct VisionTransformer {
    patch_embedding: Linear,
    /// `[1, 1, d]`.
    class_token: Param<Tensor<3>>,
    /// `[1, tokens, d]`.
    positions: Param<Tensor<3>>,
    /// The blocks.
    pub blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
    dropout: f64,
    patch: usize,
}

impl VisionTransformerConfig {
    /// Makes the model, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<VisionTransformer, LayerError> {
        let divides = |what, size: usize, unit: usize| {
            if size == 0 || unit == 0 || !size.is_multiple_of(unit) {
                return Err(LayerError::NotMultiple { what, size, unit });
            }
            Ok(size / unit)
        };
        let side = divides("the image side and the patch side", self.image, self.patch)?;
        divides(
            "the token width and the number of heads",
            self.d,
            self.heads,
        )?;
        let tokens = side * side + 1;
        let mut seeds = Seeds::new(self.seed);
        let seeds = &mut seeds;
        let embedding = |count: usize, seed: u64| {
            parameter(
                InitialNumbers::new(seed).normal(count * self.d, EMBEDDING_DEVIATION),
                [1, count, self.d],
                device,
            )
        };
        // The key does not matter: only the rate can be wrong.
        Dropout::new(self.dropout, NoiseKey { seed: 0, stream: 0 })?;
        let block = BlockShape {
            attention: [self.projection, self.values.unwrap_or(self.projection)],
            mlp: self.mlp,
            d: self.d,
            heads: self.heads,
            hidden: self.expansion * self.d,
        };
        Ok(VisionTransformer {
            patch_embedding: linear(
                self.channels * self.patch * self.patch,
                self.d,
                seeds.next(),
                device,
            ),
            class_token: embedding(1, seeds.next()),
            positions: embedding(tokens, seeds.next()),
            blocks: (0..self.depth)
                .map(|_| Block::new(&block, seeds, device))
                .collect::<Result<_, _>>()?,
            norm: new_norm(self.d, device),
            head: linear(self.d, self.classes, seeds.next(), device),
            dropout: self.dropout,
            patch: self.patch,
        })
    }

    /// Makes the model.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> VisionTransformer {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("VisionTransformer: {error}"))
    }
}

impl VisionTransformer {
    /// The logits of a batch of images, without dropout.
    ///
    /// # Shapes
    ///
    /// - images: `[batch, channels, side, side]`
    /// - output: `[batch, classes]`
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        self.run(images, None)
    }

    /// [`Self::forward`] with dropout. The masks are functions of the key: `seed` is that of the run, `stream` the number of
    /// the step.
    ///
    /// # Shapes
    ///
    /// - images: `[batch, channels, side, side]`
    /// - output: `[batch, classes]`
    pub fn forward_training(&self, images: Tensor<4>, key: NoiseKey) -> Tensor<2> {
        self.run(images, Some(key))
    }

    fn run(&self, images: Tensor<4>, key: Option<NoiseKey>) -> Tensor<2> {
        let mut dropouts = Dropouts::new(self.dropout, key);
        let patches = functional::linear(
            &self.patch_embedding,
            self.patches(images),
            Activation::Identity,
        );
        let [batch, _, d] = patches.dims();
        let class = self.class_token.val().expand([batch, 1, d]);
        let mut tokens = Tensor::cat(vec![class, patches], 1) + self.positions.val();
        if let Some(dropout) = dropouts.next() {
            tokens = functional::dropout(tokens, dropout);
        }
        let blocks = self.blocks.iter();
        let tokens = blocks.fold(tokens, |x, block| block.forward(x, &mut dropouts));
        let class = normalise(&self.norm, tokens.narrow(1, 0, 1)).squeeze_dim::<2>(1);
        functional::linear(&self.head, class, Activation::Identity)
    }

    /// `[batch, C, H, W]` to `[batch, patches, C*patch*patch]`.
    fn patches(&self, images: Tensor<4>) -> Tensor<3> {
        let [batch, channels, height, width] = images.dims();
        let patch = self.patch;
        let (rows, columns) = (height / patch, width / patch);
        images
            .reshape([batch, channels, rows, patch, columns, patch])
            .permute([0, 2, 4, 1, 3, 5])
            .reshape([batch, rows * columns, channels * patch * patch])
    }

    /// The count as the paper makes it: a complex bin is one parameter, and every spectral
    /// projection has a slope of its prior besides.
    pub fn paper_count(&self) -> usize {
        let projections = self
            .blocks
            .iter()
            .flat_map(|block| block.attention.projections());
        projections.fold(self.num_params(), |count, projection| match projection {
            Projection::Spectral(layer) => count - layer.degrees_of_freedom() + layer.modes() + 1,
            _ => count,
        })
    }
}

impl Classifier<4> for VisionTransformer {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.forward(images)
    }

    fn training_logits(&self, images: Tensor<4>, dropout: NoiseKey) -> Tensor<2> {
        self.forward_training(images, dropout)
    }
}
