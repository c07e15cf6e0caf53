//! Image classifiers: one or more hidden layers with tanh, and a linear read-out. The defaults are the MNIST models
//! of the paper.
//!
//! | hidden layer | read-out | parameters for 28 x 28 and 10 classes |
//! | --- | --- | --- |
//! | spectral or spatial circulant, 784 to 784 | 784 to 10 | 8,635 |
//! | blocks of length 16, 784 to 784 | 784 to 10 | 47,050 |
//! | spectral or spatial BCCB, 1 to 1 channel | 784 to 10 | 8,635 |
//! | convolution 1 to 8, 3 x 3, same size | 6272 to 10 | 62,810 |
//! | dense 784 to 784 | 784 to 10 | 623,290 |
//!
//! Heads on frozen features are the same models, for images of one row (`with_image([1, 1, features])`): a spectral circulant layer with the
//! lowest `K` bins, or a dense one with a width of its own.
//!
//! Circulant and dense layers see an image as one row of `channels * height * width` values.

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use circulant_kernels::Activation;

use super::hidden_layer::{HiddenKind, HiddenLayer, HiddenShape, default_block};
use super::seeds::{Seeds, linear};
use crate::LayerError;
use crate::data::Examples;
use crate::functional::cross_entropy;
use crate::nn::CirculantLayer;
use crate::task::{Classifier, Ensemble};

/// Configuration of an [`ImageClassifier`].
///
/// ```
/// use circulant::models::{HiddenKind, ImageClassifierConfig, ParameterCount};
///
/// let device = circulant::cpu();
/// let mnist = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&device);
/// assert_eq!(ParameterCount::of(&mnist).total(), 8_635);
/// // Two BCCB layers of three channels on colour images.
/// let deep = ImageClassifierConfig::new(HiddenKind::SpectralBccb)
///     .with_image([3, 32, 32])
///     .with_channels(Some(3))
///     .with_depth(2)
///     .init(&device);
/// assert_eq!(ParameterCount::of(&deep).weights, (9 + 9 + 30) * 1024);
/// ```
#[derive(Config, Debug)]
pub struct ImageClassifierConfig {
    /// The kind of all hidden layers.
    pub hidden: HiddenKind,
    /// `[channels, height, width]`.
    #[config(default = "[1, 28, 28]")]
    pub image: [usize; 3],
    /// The number of classes.
    #[config(default = 10)]
    pub classes: usize,
    /// Output channels of every hidden layer, for the kinds that have them;
    /// [`HiddenKind::default_channels`] unless given.
    pub channels: Option<usize>,
    /// Outputs of every dense or block-circulant hidden layer; as many as pixels unless given.
    pub width: Option<usize>,
    /// The lowest bins of every spectral circulant hidden layer or of every block, `K`; all unless given.
    pub modes: Option<usize>,
    /// The length of a block of every block-circulant hidden layer; [`Self::DEFAULT_BLOCK`] unless given, or the larger side of a
    /// smaller layer.
    pub block: Option<usize>,
    /// The number of hidden layers, without the lift.
    #[config(default = 1)]
    pub depth: usize,
    /// A dense layer of so many outputs, with tanh, before the hidden layers: from few columns to a width. For circulant and dense
    /// hidden layers, which then work on the lifted values.
    pub lift: Option<usize>,
    /// What the initial weights of the hidden layers are multiplied by.
    #[config(default = 1.0)]
    pub initial_scale: f64,
    /// The seed of all initial parameters.
    #[config(default = 0)]
    pub seed: u64,
}

/// Hidden layers, each with tanh, and a linear read-out. Made by [`ImageClassifierConfig`].
#[derive(Module, Debug)]
pub struct ImageClassifier {
    /// All hidden layers but the last.
    pub body: Vec<HiddenLayer>,
    /// The last hidden layer.
    pub hidden: HiddenLayer,
    /// The read-out.
    pub output: Linear,
    #[module(skip)]
    grid: [usize; 2],
}

impl ImageClassifierConfig {
    /// The length of a block unless asked otherwise.
    pub const DEFAULT_BLOCK: usize = 16;

    /// Makes the model.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> ImageClassifier {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("ImageClassifier: {error}"))
    }

    /// Makes the model, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<ImageClassifier, LayerError> {
        let [channels_in, height, width] = self.image;
        let channels = self.channels()?;
        for (what, size) in [
            ("the channels of an image", channels_in),
            ("the height of an image", height),
            ("the width of an image", width),
            ("the classes", self.classes),
            ("the channels of a hidden layer", channels),
            ("the hidden layers", self.depth),
            ("the width of a hidden layer", self.width.unwrap_or(1)),
            ("the width of the lift", self.lift.unwrap_or(1)),
        ] {
            if size == 0 {
                return Err(LayerError::Zero { what });
            }
        }
        let other_kind = |what, kind| Err(LayerError::OtherKind { what, kind });
        if self.width.is_some() && !self.hidden.has_width() {
            return other_kind("the outputs of a hidden layer", "dense and block-circulant");
        }
        if self.modes.is_some() && !self.hidden.has_modes() {
            return other_kind("modes", "spectral circulant and block-circulant");
        }
        if self.block.is_some() && self.hidden != HiddenKind::BlockCirculant {
            return other_kind("blocks", "block-circulant");
        }
        if self.lift.is_some() && self.hidden.has_channels() {
            return other_kind("a lift", "circulant and dense");
        }
        let mut seeds = Seeds::new(self.seed);
        let lift = self.lift.map(|lift| {
            let pixels = channels_in * height * width;
            HiddenLayer::Dense(linear(pixels, lift, seeds.next(), device))
        });
        // What the hidden layers see.
        let ([channels_in, height, width], channels) = match self.lift {
            Some(lift) => ([lift, 1, 1], lift),
            None => ([channels_in, height, width], channels),
        };
        let grid = [height, width];
        // What a hidden layer gives to the next one: a layer with a width of its own has no grid.
        let (inner, inner_grid) = match self.width {
            Some(width) => (width, [1, 1]),
            None => (channels, grid),
        };
        let mut layer = |first: bool| -> Result<HiddenLayer, LayerError> {
            let (channels_in, grid) = if first {
                (channels_in, grid)
            } else {
                (inner, inner_grid)
            };
            let shape = HiddenShape {
                kind: self.hidden,
                channels: [channels_in, channels],
                grid,
                width: self.width,
                modes: self.modes,
                block: self.block,
            };
            let mut layer = HiddenLayer::new(&shape, seeds.next(), device)?;
            if self.initial_scale != 1.0 {
                layer.scale(self.initial_scale);
            }
            Ok(layer)
        };
        let hidden = layer(self.depth == 1)?;
        let body = (1..self.depth).map(|position| layer(position == 1));
        let mut body = body.collect::<Result<Vec<_>, _>>()?;
        if let Some(lift) = lift {
            body.insert(0, lift);
        }
        Ok(ImageClassifier {
            body,
            hidden,
            output: linear(
                inner * inner_grid[0] * inner_grid[1],
                self.classes,
                seeds.next(),
                device,
            ),
            grid: [self.image[1], self.image[2]],
        })
    }

    /// The least number of values that a file of the model has, with a posterior of this rank for spectral
    /// coordinates; none if it cannot be counted. Sizes from a foreign file are compared with the file's
    /// own before anything is made of them.
    pub fn least_values(&self, rank: Option<usize>) -> Option<usize> {
        let product = |sizes: &[usize]| {
            sizes
                .iter()
                .try_fold(1_usize, |n, &size| n.checked_mul(size))
        };
        let channels = self.channels().ok()?;
        let (lift, [channels_in, height, width], channels) = match self.lift {
            Some(lift) => {
                let pixels = product(&self.image)?;
                (product(&[pixels, lift])?, [lift, 1, 1], lift)
            }
            None => (0, self.image, channels),
        };
        let layer = |channels_in: usize, [height, width]: [usize; 2]| {
            let pixels = product(&[channels_in, height, width])?;
            match self.hidden {
                HiddenKind::SpectralCirculant | HiddenKind::SpatialCirculant => {
                    Some(self.modes.map_or(pixels, |modes| modes.min(pixels)))
                }
                HiddenKind::BlockCirculant => {
                    let sizes = [pixels, self.width.unwrap_or(pixels)];
                    let block = default_block(self.block, sizes).max(1);
                    let kept = self.modes.map_or(block, |modes| modes.min(block));
                    product(&[kept, sizes[0].div_ceil(block), sizes[1].div_ceil(block)])
                }
                HiddenKind::SpectralBccb | HiddenKind::SpatialBccb => product(&[pixels, channels]),
                HiddenKind::Convolution => product(&[channels_in, channels]),
                HiddenKind::Dense => product(&[pixels, self.width.unwrap_or(pixels)]),
            }
        };
        let (inner, grid) = match self.width {
            Some(width) => (width, [1, 1]),
            None => (channels, [height, width]),
        };
        let others = layer(inner, grid)?.checked_mul(self.depth.saturating_sub(1))?;
        let hidden = layer(channels_in, [height, width])?.checked_add(others)?;
        let spectral = self.hidden.is_spectral();
        // A mean, and a factor of so many columns.
        let columns = rank.filter(|_| spectral).unwrap_or(0).checked_add(1)?;
        let output = product(&[inner, grid[0], grid[1], self.classes])?;
        let spread = hidden.checked_mul(columns)?;
        spread.checked_add(output)?.checked_add(lift)
    }

    /// Output channels of the hidden layers.
    fn channels(&self) -> Result<usize, LayerError> {
        let default = self.hidden.default_channels(self.image[0]);
        match self.channels {
            Some(channels) if !self.hidden.has_channels() && channels != default => {
                Err(LayerError::Channels {
                    expected: default,
                    got: channels,
                })
            }
            channels => Ok(channels.unwrap_or(default)),
        }
    }
}

impl ImageClassifier {
    /// The logits of a batch of images.
    ///
    /// # Shapes
    ///
    /// - images: `[batch, channels, height, width]`
    /// - output: `[batch, classes]`
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let layers = self.body.iter();
        let images = layers.fold(images, |images, layer| layer.forward_tanh(images));
        self.hidden.forward_readout(images, &self.output)
    }

    /// The hidden layers in the order in which they are applied, with the names of their fields.
    pub fn hidden_layers(&self) -> impl Iterator<Item = (String, &HiddenLayer)> {
        let body = self.body.iter().enumerate();
        body.map(|(index, layer)| (format!("body.{index}"), layer))
            .chain([("hidden".to_owned(), &self.hidden)])
    }

    /// `[height, width]` of the images.
    pub fn grid(&self) -> [usize; 2] {
        self.grid
    }

    fn image_shape(&self, rows: [usize; 2]) -> [usize; 4] {
        image_shape(self.grid, rows)
    }
}

impl Classifier<4> for ImageClassifier {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.forward(images)
    }

    fn cross_entropy(&self, examples: Examples<4>) -> Tensor<1> {
        if self.body.is_empty() {
            return self.hidden.readout_cross_entropy(examples, &self.output);
        }
        cross_entropy(self.forward(examples.batch()), examples.labels)
    }

    fn reads_in_place(&self) -> bool {
        self.body.is_empty() && self.hidden.is_circulant()
    }

    fn ensemble(members: Vec<Self>) -> Ensemble<4> {
        /// The hidden layers, if there is one per member and all of them are of this kind.
        macro_rules! layers {
            ($kind:ident) => {
                members
                    .iter()
                    .map(|member| match &member.hidden {
                        HiddenLayer::$kind(layer) if member.body.is_empty() => Some(layer),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>()
            };
        }
        let outputs: Vec<_> = members.iter().map(|member| &member.output).collect();
        let rows = |images: Tensor<4>| images.flatten::<2>(1, 3);
        if let Some(layers) = layers!(SpectralCirculant) {
            let logits = CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh);
            Box::new(move |images| logits(rows(images)))
        } else if let Some(layers) = layers!(SpatialCirculant) {
            let logits = CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh);
            Box::new(move |images| logits(rows(images)))
        } else if let Some(layers) = layers!(BlockCirculant) {
            let logits = CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh);
            Box::new(move |images| logits(rows(images)))
        } else if let Some(layers) = layers!(SpectralBccb) {
            CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh)
        } else if let Some(layers) = layers!(SpatialBccb) {
            CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh)
        } else {
            Box::new(move |images: Tensor<4>| {
                let logits = members.iter().map(|member| member.forward(images.clone()));
                Tensor::stack(logits.collect(), 0)
            })
        }
    }
}

/// Rows of `channels * height * width` values, features for example, in the place of images.
impl Classifier<2> for ImageClassifier {
    fn logits(&self, rows: Tensor<2>) -> Tensor<2> {
        let shape = self.image_shape(rows.dims());
        self.forward(rows.reshape(shape))
    }

    fn cross_entropy(&self, examples: Examples<2>) -> Tensor<1> {
        let shape = self.image_shape(examples.inputs.dims());
        Classifier::<4>::cross_entropy(self, examples.map(|inputs| inputs.reshape(shape)))
    }

    fn reads_in_place(&self) -> bool {
        Classifier::<4>::reads_in_place(self)
    }

    fn ensemble(members: Vec<Self>) -> Ensemble<2> {
        let grid = members.first().map_or([1, 1], Self::grid);
        let logits = <Self as Classifier<4>>::ensemble(members);
        Box::new(move |rows| {
            let shape = image_shape(grid, rows.dims());
            logits(rows.reshape(shape))
        })
    }
}

fn image_shape([height, width]: [usize; 2], [batch, length]: [usize; 2]) -> [usize; 4] {
    [batch, length / (height * width), height, width]
}

#[cfg(test)]
mod tests {
    use burn::tensor::{TensorData, activation};

    use super::*;
    use crate::geometry::Lipschitz;
    use crate::nn::InitialNumbers;

    const IMAGE: [usize; 3] = [2, 3, 5];

    fn config(kind: HiddenKind) -> ImageClassifierConfig {
        ImageClassifierConfig::new(kind)
            .with_image(IMAGE)
            .with_classes(4)
            .with_channels(kind.has_channels().then_some(3))
            .with_depth(3)
            .with_initial_scale(2.0)
    }

    fn images(seed: u64, batch: usize) -> Tensor<4> {
        let [channels, height, width] = IMAGE;
        let values = InitialNumbers::new(seed).normal(batch * channels * height * width, 1.0);
        let data = TensorData::new(values, [batch, channels, height, width]);
        Tensor::from_data(data, &crate::cpu())
    }

    /// The layer without anything fused.
    fn plain(layer: &HiddenLayer, images: Tensor<4>) -> Tensor<4> {
        let dims = images.dims();
        let rows = || images.clone().flatten::<2>(1, 3);
        let as_images = |y: Tensor<2>| match y.dims() {
            [_, width] if width == dims[1] * dims[2] * dims[3] => y.reshape(dims),
            [batch, width] => y.reshape([batch, width, 1, 1]),
        };
        activation::tanh(match layer {
            HiddenLayer::SpectralCirculant(layer) => as_images(layer.forward(rows())),
            HiddenLayer::SpatialCirculant(layer) => as_images(layer.forward(rows())),
            HiddenLayer::BlockCirculant(layer) => as_images(layer.forward(rows())),
            HiddenLayer::SpectralBccb(layer) => layer.forward(images),
            HiddenLayer::SpatialBccb(layer) => layer.forward(images),
            HiddenLayer::Convolution(layer) => layer.forward(images),
            HiddenLayer::Dense(layer) => as_images(layer.forward(rows())),
        })
    }

    /// All kinds, and those with a width or modes of their own.
    fn configs() -> Vec<ImageClassifierConfig> {
        let dense = || config(HiddenKind::Dense);
        let mut configs: Vec<_> = HiddenKind::ALL.map(config).to_vec();
        configs.extend([7, 1, 30].map(|width| dense().with_width(Some(width))));
        configs.push(dense().with_width(Some(4)).with_depth(1));
        configs.push(dense().with_lift(Some(9)));
        configs.push(dense().with_lift(Some(9)).with_width(Some(4)));
        let spectral = || config(HiddenKind::SpectralCirculant);
        configs.extend([1, 5, 16].map(|modes| spectral().with_modes(Some(modes))));
        let blocks = |block| config(HiddenKind::BlockCirculant).with_block(Some(block));
        configs.extend([1, 4, 5, 30].map(blocks));
        configs.push(blocks(4).with_modes(Some(2)).with_width(Some(9)));
        configs.extend([1, 2, 33].map(|lift| spectral().with_lift(Some(lift))));
        configs.push(
            config(HiddenKind::SpatialCirculant)
                .with_lift(Some(7))
                .with_depth(1),
        );
        configs
    }

    #[test]
    fn deep_models_apply_layer_after_layer() {
        for config in configs() {
            let model = config.init(&crate::cpu());
            let x = images(1, 7);
            let features = model
                .hidden_layers()
                .fold(x.clone(), |x, (_, layer)| plain(layer, x));
            let expected = model.output.forward(features.flatten::<2>(1, 3));
            let logits = model.forward(x.clone());
            logits
                .to_data()
                .assert_approx_eq::<f32>(&expected.to_data(), Default::default());
            let members = vec![model.clone(), config.with_seed(1).init(&crate::cpu())];
            let together = ImageClassifier::ensemble(members)(x);
            together
                .narrow(0, 0, 1)
                .reshape([7, 4])
                .to_data()
                .assert_approx_eq::<f32>(&logits.to_data(), Default::default());
        }
    }

    #[test]
    fn bounds_of_deep_models_hold() {
        for config in configs() {
            let model = config.init(&crate::cpu());
            let bound = model.network_bound().expect("finite").upper().get();
            let distance = |a: Tensor<2>| a.powf_scalar(2.0).sum_dim(1).sqrt();
            let (x, y) = (images(2, 200), images(3, 200));
            let outputs = distance(model.forward(x.clone()) - model.forward(y.clone()));
            let inputs = distance((x - y).flatten::<2>(1, 3));
            let largest = (outputs / inputs).max().into_scalar::<f64>();
            assert!(
                largest > 0.0 && largest <= bound,
                "{config} {largest} {bound}"
            );
        }
    }

    #[test]
    fn impossible_sizes_are_named() {
        let error = |config: ImageClassifierConfig| {
            let error = config.try_init(&crate::cpu()).expect_err("impossible");
            error.to_string()
        };
        let circulant = || ImageClassifierConfig::new(HiddenKind::SpectralCirculant);
        assert!(error(circulant().with_depth(0)).contains("hidden layers"));
        assert!(error(circulant().with_classes(0)).contains("classes"));
        assert!(error(circulant().with_image([1, 0, 4])).contains("height"));
        assert!(error(circulant().with_channels(Some(3))).contains("BCCB"));
        assert!(error(circulant().with_width(Some(3))).contains("dense"));
        assert!(error(circulant().with_modes(Some(0))).contains('0'));
        assert!(error(circulant().with_modes(Some(394))).contains("394"));
        let dense = || ImageClassifierConfig::new(HiddenKind::Dense);
        assert!(error(dense().with_modes(Some(3))).contains("spectral circulant"));
        assert!(error(dense().with_block(Some(3))).contains("block-circulant"));
        let blocks =
            |block| ImageClassifierConfig::new(HiddenKind::BlockCirculant).with_block(Some(block));
        assert!(error(blocks(0)).contains("from 1 to 784"));
        assert!(error(blocks(785)).contains("got 785"));
        assert!(error(dense().with_width(Some(0))).contains("width"));
        assert!(error(circulant().with_lift(Some(0))).contains("lift"));
        let bccb = ImageClassifierConfig::new(HiddenKind::SpatialBccb);
        assert!(error(bccb.with_channels(Some(0))).contains("channels"));
        let bccb = ImageClassifierConfig::new(HiddenKind::SpatialBccb);
        assert!(error(bccb.with_lift(Some(5))).contains("a lift"));
    }
}
