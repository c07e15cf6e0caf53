//! `Y[o] = IRFFT(sum_c K[o,c] * RFFT(X[c])) + b`: a `d_out x d_in` matrix of circulant blocks of length `b`, in the free
//! real coordinates of each block's half spectrum.
//!
//! The input is cut into `C_in = ceil(d_in/b)` parts of length `b` and the output into `C_out = ceil(d_out/b)`; the last part of
//! the input is padded with zeros, the last part of the output cropped. `b C_in C_out` parameters lie between a dense matrix (`b = 1`)
//! and a circulant one (`b = d`). A mask keeps the lowest `K` bins of every block.
//!
//! This is the 2D layer on images of one row: at every frequency a matrix `C_out x C_in` mixes the parts, and the largest singular
//! value of these matrices is the norm of the layer.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::layer_map::LayerMap;
use super::layers::{signal_layer, spectral_layer};
use super::spectrum_mark::SpectrumMark;
use super::{BiasKind, LayerValues, parameter, tensor};
use crate::LayerError;

/// Configuration of a [`BlockCirculant1d`] layer.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::nn::BlockCirculant1dConfig;
/// # let device = burn::tensor::Device::flex();
///
/// // A layer from 512 to 128 features: 4096 weights in blocks of 16 instead of 65,536.
/// let layer = BlockCirculant1dConfig::new(512, 128, 16).init(&device);
/// assert_eq!(layer.degrees_of_freedom(), 512 * 128 / 16);
/// assert_eq!(layer.forward(Tensor::<3>::ones([8, 65, 512], &device)).dims(), [8, 65, 128]);
/// // Sizes that the block does not divide: 7 x 13 blocks.
/// let odd = BlockCirculant1dConfig::new(100, 50, 8).init(&device);
/// assert_eq!(odd.degrees_of_freedom(), 13 * 7 * 8);
/// // Sizes from a file or a flag: an error instead of a panic.
/// let error = BlockCirculant1dConfig::new(8, 4, 9).try_init(&device).unwrap_err();
/// assert!(error.to_string().contains("from 1 to 8"));
/// ```
#[derive(Config, Debug)]
pub struct BlockCirculant1dConfig {
    /// The size of the input features.
    pub d_in: usize,
    /// The size of the output features.
    pub d_out: usize,
    /// The length of a block, `b`: 1 is a dense layer.
    pub block: usize,
    /// The number of lowest bins to keep in every block, `K`; all of them unless given.
    pub modes: Option<usize>,
    /// The kind of bias.
    #[config(default = "BiasKind::Vector")]
    pub bias: BiasKind,
    /// The seed of the initial coordinates. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A layer of circulant blocks in the free real coordinates of their spectra. Made by [`BlockCirculant1dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct BlockCirculant1d {
    /// `[coordinate, C_in, C_out]`: for every block `Re h_0, Re h_1, Im h_1, ...`
    pub coordinates: Param<Tensor<3>>,
    /// `[1]` or `[d_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    mark: SpectrumMark,
    #[module(skip)]
    map: LayerMap,
}

impl BlockCirculant1dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> BlockCirculant1d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("BlockCirculant1d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<BlockCirculant1d, LayerError> {
        let map = LayerMap::blocks(self.d_in, self.d_out, self.block, self.modes)?;
        let (kept, [channels_in, channels_out]) = (map.plane().coordinates(), map.channels());
        let values = map.initial_coordinates(self.seed);
        Ok(BlockCirculant1d {
            coordinates: parameter(values, [kept, channels_in, channels_out], device),
            bias: self.bias.init(map.d_out, device),
            mark: SpectrumMark::new(map.operator().layout()),
            map,
        })
    }
}

spectral_layer!(BlockCirculant1d, flatten(0, 2));

signal_layer!(
    BlockCirculant1d,
    "The stored bins `[k, C_in, C_out]`, row-major; masked ones are zero.",
    "The largest singular value of the matrix of blocks, `max over k of sigma_max(K(k))`; when `block` does not divide both sizes, \
     a bound of the cropped matrix. Not a number if a coordinate is not finite.",
    [block, modes]
);

impl BlockCirculant1d {
    /// The length of a block, `b`.
    pub fn block(&self) -> usize {
        self.map.plane().width()
    }

    /// The number of blocks, `[C_in, C_out]`.
    pub fn blocks(&self) -> [usize; 2] {
        self.map.channels()
    }

    /// The number of kept bins, `K`.
    pub fn modes(&self) -> usize {
        self.map.plane().coordinates() / 2 + 1
    }

    /// The layout of the spectrum of one block: a plane of one row.
    pub fn layout(&self) -> &circulant_kernels::HalfPlane {
        self.map.plane()
    }

    /// The filters of the blocks, `[C_out, C_in, b]`: block `(o, c)` is `w[o, c, (t-s) mod b]`.
    pub fn spatial_filter(&self) -> Tensor<3> {
        let [channels_in, channels_out] = self.blocks();
        let shape = [channels_out, channels_in, self.block()];
        tensor(self.host_filters(), shape, &self.device())
    }
}
