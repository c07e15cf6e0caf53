//! `y = sum_j D2_j C_j D1_j x + b`: circulant matrices `C_j` between diagonal ones, more expressive than a circulant matrix for
//! `d_in + d_out` more numbers per product.
//!
//! Every `C_j` is a [`SpectralCirculant1d`] without a bias, so priors, posteriors and masks are those of its coordinates; the
//! diagonals are ordinary parameters. The norm is at most `sum_j max|D2_j| max_k|h_k| max|D1_j|`.
//!
//! # Initialisation
//!
//! `D1` holds random signs and `D2` ones, which change no variance; with `m` products the coordinates are divided by `sqrt(m)`.

use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor};

use super::layers::one_line;
use super::{
    BiasKind, InitialNumbers, SpectralCirculant1d, SpectralCirculant1dConfig, bias, parameter,
    tensor, to_host, with_values,
};
use crate::LayerError;
use crate::functional;

/// Configuration of a [`DiagonalCirculant1d`] layer.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::nn::DiagonalCirculant1dConfig;
/// # let device = burn::tensor::Device::flex();
///
/// let layer = DiagonalCirculant1dConfig::new(64).with_terms(2).init(&device);
/// assert_eq!(layer.degrees_of_freedom(), 2 * 3 * 64);
/// assert_eq!(layer.forward(Tensor::<2>::ones([8, 64], &device)).dims(), [8, 64]);
/// assert!(layer.operator_norm() <= layer.norm_bound());
/// ```
#[derive(Config, Debug)]
pub struct DiagonalCirculant1dConfig {
    /// The size of the input features.
    pub d_in: usize,
    /// The size of the output features; the same as `d_in` unless given.
    pub d_out: Option<usize>,
    /// The number of lowest bins to keep, `K`; all of them unless given.
    pub modes: Option<usize>,
    /// The number of products, `m`.
    #[config(default = 1)]
    pub terms: usize,
    /// If there is a diagonal before each circulant matrix.
    #[config(default = true)]
    pub before: bool,
    /// If there is one after it.
    #[config(default = true)]
    pub after: bool,
    /// The kind of bias.
    #[config(default = "BiasKind::Vector")]
    pub bias: BiasKind,
    /// The seed of the initial values. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A sum of circulant matrices between diagonals. Made by [`DiagonalCirculant1dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct DiagonalCirculant1d {
    /// The products.
    pub terms: Vec<DiagonalTerm>,
    /// `[1]` or `[d_out]`.
    pub bias: Option<Param<Tensor<1>>>,
}

/// One product `D2 C D1`.
#[derive(Module, Debug)]
pub struct DiagonalTerm {
    /// `D1`, `[d_in]`.
    pub before: Option<Param<Tensor<1>>>,
    /// `C`.
    pub circulant: SpectralCirculant1d,
    /// `D2`, `[d_out]`.
    pub after: Option<Param<Tensor<1>>>,
}

impl DiagonalCirculant1dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> DiagonalCirculant1d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("DiagonalCirculant1d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<DiagonalCirculant1d, LayerError> {
        if self.terms == 0 {
            return Err(LayerError::Zero {
                what: "the products of a layer",
            });
        }
        let d_out = self.d_out.unwrap_or(self.d_in);
        let mut numbers = InitialNumbers::of_layer(self.seed);
        let share = (self.terms as f64).sqrt().recip();
        let mut term = || -> Result<DiagonalTerm, LayerError> {
            let mut circulant = SpectralCirculant1dConfig::new(self.d_in)
                .with_d_out(Some(d_out))
                .with_modes(self.modes)
                .with_bias(BiasKind::None)
                .with_seed(Some(numbers.seed()))
                .try_init(device)?;
            let values = to_host(circulant.coordinates.val());
            let values = values.iter().map(|value| value * share).collect();
            circulant.coordinates = with_values(&circulant.coordinates, values);
            let signs = numbers.uniform(self.d_in, 1.0).into_iter();
            let signs = signs.map(f64::signum).collect();
            Ok(DiagonalTerm {
                before: self.before.then(|| parameter(signs, [self.d_in], device)),
                circulant,
                after: self
                    .after
                    .then(|| parameter(vec![1.0; d_out], [d_out], device)),
            })
        };
        Ok(DiagonalCirculant1d {
            terms: (0..self.terms).map(|_| term()).collect::<Result<_, _>>()?,
            bias: self.bias.init(d_out, device),
        })
    }
}

/// The largest absolute value; 1 without a diagonal.
fn largest(diagonal: Option<&Param<Tensor<1>>>) -> f64 {
    diagonal.map_or(1.0, |diagonal| {
        let values = to_host(diagonal.val());
        // `max` would drop a NaN.
        values.iter().fold(0.0, |largest: f64, value| {
            if value.is_nan() {
                f64::NAN
            } else {
                largest.max(value.abs())
            }
        })
    })
}

impl DiagonalTerm {
    fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let x = match &self.before {
            Some(before) => x * before.val().unsqueeze(),
            None => x,
        };
        let y = self.circulant.forward(x);
        match &self.after {
            Some(after) => y * after.val().unsqueeze(),
            None => y,
        }
    }

    /// `max|D1|` and `max|D2|`.
    pub(crate) fn largest(&self) -> [f64; 2] {
        [largest(self.before.as_ref()), largest(self.after.as_ref())]
    }
}

impl DiagonalCirculant1d {
    /// Applies the layer over the last axis.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_in]`
    /// - output: `[..., d_out]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_in`.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let dims = input.dims();
        assert!(
            dims.last() == Some(&self.d_in()),
            "input must be [..., {}], got {dims:?}",
            self.d_in()
        );
        let outputs = self.terms.iter().map(|term| term.forward(input.clone()));
        let y = outputs
            .reduce(|sum, output| sum + output)
            .expect("there is a product at least");
        match &self.bias {
            Some(bias) => y + bias.val().unsqueeze(),
            None => y,
        }
    }

    /// `tanh(forward(input))`.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_in]`
    /// - output: `[..., d_out]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_in`.
    pub fn forward_tanh<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        functional::tanh(self.forward(input))
    }

    /// The size of the input.
    pub fn d_in(&self) -> usize {
        self.terms[0].circulant.d_in()
    }

    /// The size of the output.
    pub fn d_out(&self) -> usize {
        self.terms[0].circulant.d_out()
    }

    /// The numbers of the linear map, without the bias. (A factor can move between a diagonal and its circulant matrix, so
    /// one number per product and diagonal is not free.)
    pub fn degrees_of_freedom(&self) -> usize {
        let diagonal = |d: &Option<Param<Tensor<1>>>| d.as_ref().map_or(0, |d| d.dims()[0]);
        let terms = self.terms.iter();
        terms
            .map(|term| {
                let circulant = term.circulant.degrees_of_freedom();
                circulant + diagonal(&term.before) + diagonal(&term.after)
            })
            .sum()
    }

    /// The matrix of the layer as `[d_in, d_out]`, so that `forward(x) = x.matmul(matrix) + bias`.
    pub fn dense_matrix(&self) -> Tensor<2> {
        let (d_in, d_out) = (self.d_in(), self.d_out());
        let mut matrix = vec![0.0; d_in * d_out];
        let diagonal = |d: &Option<Param<Tensor<1>>>, len: usize| match d {
            Some(d) => to_host(d.val()),
            None => vec![1.0; len],
        };
        for term in &self.terms {
            let (before, after) = (diagonal(&term.before, d_in), diagonal(&term.after, d_out));
            let circulant = to_host(term.circulant.dense_matrix());
            for (at, value) in circulant.into_iter().enumerate() {
                matrix[at] += before[at / d_out] * value * after[at % d_out];
            }
        }
        let device = self.terms[0].circulant.coordinates.val().device();
        tensor(matrix, [d_in, d_out], &device)
    }

    /// The largest singular value, from the whole matrix: for reports. Not a number if a value is not finite.
    pub fn operator_norm(&self) -> f64 {
        let matrix = self.dense_matrix();
        let [d_in, d_out] = matrix.dims();
        circulant_kernels::matrix_norm(d_in, d_out, &to_host(matrix))
            .map_or(f64::NAN, |norm| norm.estimate())
    }

    /// `sum_j max|D2_j| max_k|h_k| max|D1_j|`, which the norm does not exceed; not rounded up.
    pub fn norm_bound(&self) -> f64 {
        let terms = self.terms.iter();
        terms
            .map(|term| {
                let [before, after] = term.largest();
                after * term.circulant.operator_norm() * before
            })
            .sum()
    }
}

impl ModuleDisplay for DiagonalCirculant1d {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        one_line()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("d_in", &self.d_in())
            .add("d_out", &self.d_out())
            .add("terms", &self.terms.len())
            .add("degrees_of_freedom", &self.degrees_of_freedom())
            .add("bias", &bias::name(self.bias.as_ref()))
            .optional()
    }
}
