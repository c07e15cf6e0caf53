//! An [`OrthogonalBccb2d`](super::OrthogonalBccb2d) layer whose generators are convolutions with small kernels: the Cayley transform of a local
//! operator. With `S(t)[i, j] = -S(-t)[j, i]` for the taps `t` of a centred kernel, `S` is skew-Hermitian at every frequency, and `V` is any
//! convolution with such a kernel. The layer itself reaches as far as the image, with weights that fall off with the distance.
//!
//! `k^2 q (q - 1)/2 + q (k^2 - 1)/2 + k^2 q (n - q)` parameters for an odd `k x k` kernel, `n` and `q` the larger and the smaller number of
//! channels, whatever the size of the images is.

use std::sync::Arc;

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::layer_map::LayerMap;
use super::layers::{image_layer, orthogonal_layer};
use super::{InitialNumbers, parameter};
use crate::LayerError;
use crate::functional::{coordinates_of_filter_2d, isometry_coordinates};
use crate::operator::{HalfPlane, Isometries, Operator};

/// Configuration of an [`OrthogonalConv2d`] layer.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::nn::OrthogonalConv2dConfig;
/// # let device = burn::tensor::Device::flex();
///
/// let layer = OrthogonalConv2dConfig::new([16, 16], [14, 14]).init(&device);
/// assert_eq!(layer.degrees_of_freedom(), 9 * 16 * 15 / 2 + 4 * 16);
/// assert!((layer.operator_norm() - 1.0).abs() < 1e-5);
/// let y = layer.forward(Tensor::ones([2, 16, 14, 14], &device));
/// assert_eq!(y.dims(), [2, 16, 14, 14]);
/// // A kernel that does not fit is an error.
/// let error = OrthogonalConv2dConfig::new([4, 4], [2, 2]).try_init(&device).unwrap_err();
/// assert!(error.to_string().contains("kernel"));
/// ```
#[derive(Config, Debug)]
pub struct OrthogonalConv2dConfig {
    /// The number of channels, `[C_in, C_out]`.
    pub channels: [usize; 2],
    /// The size of the images, `[H, W]`.
    pub grid: [usize; 2],
    /// The side of the kernel, odd and no longer than the images.
    #[config(default = 3)]
    pub kernel: usize,
    /// If a bias per output channel is added.
    #[config(default = true)]
    pub bias: bool,
    /// The size of the generators at the start: 1 is far from any other layer, 0 the identity.
    #[config(default = 1.0)]
    pub spread: f64,
    /// The seed of the initial parameters. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A convolution of circular images that keeps norms, with local generators. Made by [`OrthogonalConv2dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct OrthogonalConv2d {
    /// The free taps of S, then those of V as `[n - q, q, k, k]`.
    pub taps: Param<Tensor<1>>,
    /// `[C_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    local: Arc<Local>,
    #[module(skip)]
    map: LayerMap,
}

/// How taps become generators.
#[derive(Debug)]
struct Local {
    isometries: Arc<Isometries>,
    /// From `q` to `q` and from `q` to `n - q` channels.
    operators: [Option<Operator>; 2],
    /// For every tap of S, `[q, q, k, k]`, the free tap that it is, and its sign.
    skew: Vec<(usize, f64)>,
    /// Free taps of S.
    free: usize,
    /// Where the taps stand in an image, `[k k, H W]`.
    embedding: Vec<f64>,
    /// [`Isometries::places_in_operators`].
    places: Vec<i64>,
    sizes: Sizes,
}

#[derive(Debug, Clone, Copy)]
struct Sizes {
    n: usize,
    q: usize,
    kernel: usize,
    grid: [usize; 2],
}

impl Sizes {
    fn taps(self) -> usize {
        self.kernel * self.kernel
    }

    fn pixels(self) -> usize {
        self.grid[0] * self.grid[1]
    }

    /// Every tap of S, and the one that it is or mirrors.
    fn skew(self) -> (Vec<(usize, f64)>, usize) {
        let (q, taps) = (self.q, self.taps());
        let mut skew = vec![(0, 0.0); q * q * taps];
        let mut free = 0;
        for i in 0..q {
            for j in 0..q {
                for tap in 0..taps {
                    let own = (i * q + j) * taps + tap;
                    let mirrored = (j * q + i) * taps + (taps - 1 - tap);
                    if own < mirrored {
                        (skew[own], skew[mirrored]) = ((free, 1.0), (free, -1.0));
                        free += 1;
                    }
                }
            }
        }
        (skew, free)
    }

    /// The taps of a centred kernel in an image, around its first pixel.
    fn embedding(self) -> Vec<f64> {
        let ([height, width], kernel) = (self.grid, self.kernel);
        let mut embedding = vec![0.0; self.taps() * self.pixels()];
        for (row, column) in (0..kernel).flat_map(|row| (0..kernel).map(move |c| (row, c))) {
            let y = (row + height - kernel / 2) % height;
            let x = (column + width - kernel / 2) % width;
            embedding[(row * kernel + column) * self.pixels() + y * width + x] = 1.0;
        }
        embedding
    }
}

impl Local {
    fn new(map: &LayerMap, kernel: usize) -> Result<Self, LayerError> {
        let (grid @ [height, width], [c_in, c_out]) = (map.grid(), map.channels());
        if kernel.is_multiple_of(2) || kernel > height.min(width) {
            return Err(LayerError::Kernel {
                got: kernel,
                most: height.min(width),
            });
        }
        let sizes = Sizes {
            n: c_in.max(c_out),
            q: c_in.min(c_out),
            kernel,
            grid,
        };
        let isometries = map.isometries()?;
        let plane = || HalfPlane::new(height, width);
        let tail = sizes.n - sizes.q;
        let behind = (tail > 0).then(|| Operator::image(plane()?, sizes.q, tail));
        let (skew, free) = sizes.skew();
        let places = isometries.places_in_operators();
        Ok(Self {
            operators: [
                Some(Operator::image(plane()?, sizes.q, sizes.q)?),
                behind.transpose()?,
            ],
            skew,
            free,
            embedding: sizes.embedding(),
            places: places.into_iter().map(|place| place as i64).collect(),
            isometries,
            sizes,
        })
    }

    fn parameters(&self) -> usize {
        let Sizes { n, q, .. } = self.sizes;
        self.free + (n - q) * q * self.sizes.taps()
    }

    /// The coordinates of the operator.
    fn spectrum(&self, taps: Tensor<1>) -> Tensor<1> {
        let (sizes @ Sizes { n, q, .. }, device) = (self.sizes, taps.device());
        let shape = [sizes.taps(), sizes.pixels()];
        let embedding = TensorData::new(self.embedding.clone(), shape);
        let embedding = Tensor::<2>::from_data(embedding, (&device, taps.dtype()));
        let coordinates = |operator: &Operator, filters: Tensor<1>, outputs: usize| {
            let [height, width] = sizes.grid;
            let filters = filters.reshape([outputs * q, sizes.taps()]);
            let filters = filters.matmul(embedding.clone());
            let filters = filters.reshape([outputs, q, height, width]);
            coordinates_of_filter_2d(filters, operator).flatten::<1>(0, 2)
        };
        let mut parts = Vec::new();
        if let [Some(operator), _] = &self.operators {
            parts.push(coordinates(operator, self.skew_filters(taps.clone()), q));
        }
        if let [_, Some(operator)] = &self.operators {
            let count = (n - q) * q * sizes.taps();
            let filters = taps.narrow(0, self.free, count);
            parts.push(coordinates(operator, filters, n - q));
        }
        let places = Tensor::<1, Int>::from_data(
            TensorData::new(self.places.clone(), [self.places.len()]),
            &device,
        );
        let generators = Tensor::cat(parts, 0).select(0, places);
        isometry_coordinates(generators, &self.isometries)
    }

    /// `[q, q, k, k]` as one row.
    fn skew_filters(&self, taps: Tensor<1>) -> Tensor<1> {
        let (device, count) = (taps.device(), self.skew.len());
        let signs: Vec<f64> = self.skew.iter().map(|(_, sign)| *sign).collect();
        let signs = TensorData::new(signs, [count]);
        let signs = Tensor::<1>::from_data(signs, (&device, taps.dtype()));
        if self.free == 0 {
            return signs;
        }
        let places: Vec<i64> = self.skew.iter().map(|(place, _)| *place as i64).collect();
        let places = Tensor::<1, Int>::from_data(TensorData::new(places, [count]), &device);
        taps.narrow(0, 0, self.free).select(0, places) * signs
    }
}

impl OrthogonalConv2dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> OrthogonalConv2d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("OrthogonalConv2d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<OrthogonalConv2d, LayerError> {
        let map = LayerMap::image(self.channels, self.grid, 1.0)?;
        let local = Local::new(&map, self.kernel)?;
        let sizes = local.sizes;
        // A row of the generators at one frequency sums `k^2` taps of `n` channels.
        let deviation = self.spread / ((sizes.n * sizes.taps()) as f64).sqrt();
        let count = local.parameters();
        let values = InitialNumbers::of_layer(self.seed).normal(count, deviation);
        let [_, channels_out] = self.channels;
        let bias = parameter(vec![0.0; channels_out], [channels_out], device);
        Ok(OrthogonalConv2d {
            taps: parameter(values, [count], device),
            bias: self.bias.then_some(bias),
            local: Arc::new(local),
            map,
        })
    }
}

orthogonal_layer!(OrthogonalConv2d, taps);

image_layer!(
    OrthogonalConv2d,
    "The stored bins `[u, v, C_in, C_out]`, row-major.",
    "The largest singular value of the layer: 1, but for rounding. Not a number if a tap is not finite.",
    ["kernel": |layer: &OrthogonalConv2d| layer.kernel()]
);

impl OrthogonalConv2d {
    /// The side of the kernel of the generators.
    pub fn kernel(&self) -> usize {
        self.local.sizes.kernel
    }

    fn spectrum(&self) -> Tensor<1> {
        self.local.spectrum(self.taps.val())
    }
}
