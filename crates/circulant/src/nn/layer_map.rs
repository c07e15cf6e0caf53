//! What all layers share: one operator, and zeros behind its input or a crop behind its output where the sizes of the layer are not
//! those of the operator.
//!
//! | layer | operator | input | output |
//! | --- | --- | --- | --- |
//! | 1D | length `n = max(d_in, d_out)` | `d_in` of `n` | `d_out` of `n` |
//! | blocks | length `b`, `ceil(d_in/b)` to `ceil(d_out/b)` channels | `d_in` of `b C_in` | `d_out` of `b C_out` |
//! | 2D | `H x W`, `C_in` to `C_out` channels | all | all |
//!
//! # Initialisation in the spectrum
//!
//! With `w = (1/n) sum_k h_k e^{2 pi i k t/n}` over the `n` bins of the grid and independent bins of `E|h_k|^2 = v`, the filter of a
//! channel pair has `E w_t^2 = v m/n^2`, where `m` bins of the full spectrum are kept (one real degree of freedom per bin). An
//! output sums `d_in` products, so its variance is `d_in v m/n^2` times that of the input, and `v = n^2/(d_in m)` keeps it. A
//! real bin's coordinate has variance `v`, each part of a complex one `v/2`.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::{Activation, Bin, Complex, HalfPlane, HalfSpectrum};
use circulant_kernels::{operator_norm_1d, operator_norm_2d};

use super::InitialNumbers;
use crate::LayerError;
use crate::functional::{bccb_2d, bccb_2d_filters, circulant_1d, circulant_1d_filters};
use crate::operator::{Isometries, Layout, Operator};

#[derive(Debug, Clone)]
pub(crate) struct LayerMap {
    pub(super) d_in: usize,
    pub(super) d_out: usize,
    operator: Operator,
}

impl LayerMap {
    pub(super) fn signal(
        d_in: usize,
        d_out: usize,
        modes: Option<usize>,
    ) -> Result<Self, LayerError> {
        positive(d_in, d_out)?;
        let length = d_in.max(d_out);
        let half = HalfSpectrum::with_modes(length, modes.unwrap_or(length / 2 + 1))?;
        Ok(Self {
            d_in,
            d_out,
            operator: Operator::signal(half),
        })
    }

    pub(super) fn blocks(
        d_in: usize,
        d_out: usize,
        block: usize,
        modes: Option<usize>,
    ) -> Result<Self, LayerError> {
        positive(d_in, d_out)?;
        let most = d_in.max(d_out);
        if block == 0 || block > most {
            return Err(LayerError::Block { got: block, most });
        }
        let half = HalfSpectrum::with_modes(block, modes.unwrap_or(block / 2 + 1))?;
        Ok(Self {
            d_in,
            d_out,
            operator: Operator::blocks(&half, d_in.div_ceil(block), d_out.div_ceil(block))?,
        })
    }

    pub(super) fn image(
        [channels_in, channels_out]: [usize; 2],
        [height, width]: [usize; 2],
        radius: f64,
    ) -> Result<Self, LayerError> {
        let plane = HalfPlane::with_radius(height, width, radius)?;
        let operator = Operator::image(plane, channels_in, channels_out)?;
        Ok(Self {
            d_in: operator.input_len(),
            d_out: operator.output_len(),
            operator,
        })
    }

    /// Isometries at every frequency of a layer with channels.
    pub(super) fn isometries(&self) -> Result<Arc<Isometries>, LayerError> {
        let [channels_in, channels_out] = self.channels();
        let isometries = Isometries::new(self.plane(), channels_in, channels_out)?;
        Ok(Arc::new(isometries))
    }

    pub(crate) fn operator(&self) -> &Operator {
        &self.operator
    }

    pub(crate) fn d_in(&self) -> usize {
        self.d_in
    }

    pub(crate) fn d_out(&self) -> usize {
        self.d_out
    }

    /// The operator, if nothing is padded or cropped around it.
    pub(crate) fn exact_operator(&self) -> Option<&Operator> {
        let sizes = (self.operator.input_len(), self.operator.output_len());
        (sizes == (self.d_in, self.d_out)).then_some(&self.operator)
    }

    /// The layout of a circulant layer.
    pub(super) fn half(&self) -> &HalfSpectrum {
        let Layout::Signal(half) = self.operator.layout() else {
            unreachable!("built from a half spectrum")
        };
        half
    }

    /// The layout of a layer with channels.
    pub(super) fn plane(&self) -> &HalfPlane {
        let Layout::Image { plane, .. } = self.operator.layout() else {
            unreachable!("built from a half plane")
        };
        plane
    }

    /// `[C_in, C_out]`.
    pub(super) fn channels(&self) -> [usize; 2] {
        self.operator.layout().channels().into()
    }

    /// `[H, W]`.
    pub(super) fn grid(&self) -> [usize; 2] {
        self.operator.layout().grid().into()
    }

    /// Random coordinates that keep the variance of the input.
    pub(super) fn initial_coordinates(&self, seed: Option<u64>) -> Vec<f64> {
        let layout = self.operator.layout();
        let ([height, _], kept) = (self.grid(), layout.pair_coordinates());
        let pairs: usize = self.channels().iter().product();
        let length = self.grid().iter().product::<usize>() as f64;
        let variance = length * length / (self.d_in as f64 * kept as f64);
        let mut values =
            InitialNumbers::of_layer(seed).normal(kept * pairs, (variance / 2.0).sqrt());
        for (u, v) in (0..height).flat_map(|u| (0..layout.columns()).map(move |v| (u, v))) {
            if let Bin::Real { coordinate } = layout.bin(u, v) {
                for value in &mut values[coordinate * pairs..(coordinate + 1) * pairs] {
                    *value *= std::f64::consts::SQRT_2;
                }
            }
        }
        values
    }

    /// Over the last axis: `coordinates: [d_eff]`, `bias: [1]` or `[d_out]`.
    pub(super) fn apply<const D: usize>(
        &self,
        x: Tensor<D>,
        coordinates: Tensor<1>,
        bias: Option<Tensor<1>>,
        activation: Activation,
    ) -> Tensor<D> {
        self.check_input(x.dims().as_slice());
        let operator = self.operator.with_activation(activation);
        let bias = bias.map(|bias| self.operator_bias(bias));
        let x = padded(x, self.operator.input_len());
        cropped(circulant_1d(x, coordinates, bias, &operator), self.d_out)
    }

    /// [`Self::apply`] with several filters: `coordinates: [members, d_eff]`, `bias: [members, 1]` or `[members, d_out]`, output
    /// `[members, batch, d_out]`.
    pub(super) fn apply_members(
        &self,
        x: Tensor<2>,
        coordinates: Tensor<2>,
        bias: Option<Tensor<2>>,
        activation: Activation,
    ) -> Tensor<3> {
        self.check_input(x.dims().as_slice());
        let operator = self.operator.with_activation(activation);
        let bias = bias.map(|bias| self.operator_bias(bias));
        let x = padded(x, self.operator.input_len());
        let y = circulant_1d_filters(x, coordinates, bias, &operator);
        cropped(y, self.d_out)
    }

    /// On images: `coordinates` of one filter, `bias: [C_out]`.
    pub(super) fn apply_images(
        &self,
        x: Tensor<4>,
        coordinates: Tensor<1>,
        bias: Option<Tensor<1>>,
        activation: Activation,
    ) -> Tensor<4> {
        let operator = self.operator.with_activation(activation);
        bccb_2d(x, coordinates, bias, &operator)
    }

    /// [`Self::apply_images`] with several filters, `[members, batch, C_out, H, W]`.
    pub(super) fn apply_images_members(
        &self,
        x: Tensor<4>,
        coordinates: Tensor<2>,
        bias: Option<Tensor<2>>,
        activation: Activation,
    ) -> Tensor<5> {
        let operator = self.operator.with_activation(activation);
        bccb_2d_filters(x, coordinates, bias, &operator)
    }

    fn check_input(&self, dims: &[usize]) {
        assert!(
            dims.last() == Some(&self.d_in),
            "input must be [..., {}], got {dims:?}",
            self.d_in
        );
    }

    /// The bias as the operator takes it: one number per output channel or one per output element.
    pub(super) fn operator_bias<const D: usize>(&self, bias: Tensor<D>) -> Tensor<D> {
        let [_, channels_out] = self.channels();
        match bias.dims()[D - 1] {
            1 if channels_out == 1 => bias,
            1 => bias.repeat_dim(D - 1, channels_out),
            len if len == self.d_out => padded(bias, self.operator.output_len()),
            _ => bias,
        }
    }

    pub(crate) fn half_spectrum(&self, coordinates: &[f64]) -> Vec<Complex<f64>> {
        const SIZES: &str = "one number per coordinate";
        match self.operator.layout() {
            Layout::Signal(half) => {
                let mut bins = vec![Complex::default(); half.bins()];
                half.unpack(coordinates, &mut bins).expect(SIZES);
                bins
            }
            Layout::Image { plane, .. } => {
                let pairs = self.channels().iter().product();
                let mut bins = vec![Complex::default(); plane.bins() * pairs];
                plane.unpack(coordinates, pairs, &mut bins).expect(SIZES);
                bins
            }
        }
    }

    /// The filters `[C_out, C_in, H, W]` of these coordinates.
    pub(super) fn filters(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut filters = vec![0.0; self.channels()[0] * self.operator.output_len()];
        let transform = &self.operator.plans::<f64>().filters;
        transform
            .synthesise(coordinates, &mut filters)
            .expect("sizes of one layout");
        filters
    }

    /// The coordinates of filters `[C_out, C_in, H, W]`.
    pub(crate) fn coordinates(&self, filters: &[f64]) -> Vec<f64> {
        let mut coordinates = vec![0.0; self.operator.coordinates()];
        let transform = &self.operator.plans::<f64>().filters;
        transform
            .analyse(filters, &mut coordinates)
            .expect("sizes of one layout");
        coordinates
    }

    /// `M[(c,y,x),(o,Y,X)] = w[o,c,(Y-y) mod H,(X-x) mod W]`, stored as `[in, out]` and cropped.
    pub(super) fn dense_matrix(&self, filters: &[f64], device: &Device) -> Tensor<2> {
        let ([channels_in, _], [height, width]) = (self.channels(), self.grid());
        let pixels = height * width;
        let entry = |row: usize, column: usize| {
            let (c, y, x) = (row / pixels, row % pixels / width, row % width);
            let (o, y_out, x_out) = (column / pixels, column % pixels / width, column % width);
            let (dy, dx) = ((y_out + height - y) % height, (x_out + width - x) % width);
            filters[((o * channels_in + c) * height + dy) * width + dx]
        };
        let row = |row: usize| (0..self.d_out).map(move |column| entry(row, column));
        let entries: Vec<f64> = (0..self.d_in).flat_map(row).collect();
        Tensor::from_data(TensorData::new(entries, [self.d_in, self.d_out]), device)
    }

    /// Not a number if a coordinate is not finite.
    pub(super) fn operator_norm(&self, coordinates: &[f64]) -> f64 {
        match self.operator.layout() {
            Layout::Signal(half) => operator_norm_1d(half, coordinates),
            Layout::Image {
                plane,
                channels_in,
                channels_out,
            } => operator_norm_2d(plane, *channels_in, *channels_out, coordinates),
        }
        .map_or(f64::NAN, |norm| norm.estimate())
    }
}

/// Both must be positive, not only the larger one.
fn positive(d_in: usize, d_out: usize) -> Result<(), LayerError> {
    HalfSpectrum::new(d_in)?;
    HalfSpectrum::new(d_out)?;
    Ok(())
}

fn cropped<const D: usize>(y: Tensor<D>, d_out: usize) -> Tensor<D> {
    if y.dims()[D - 1] == d_out {
        y
    } else {
        y.narrow(D - 1, 0, d_out)
    }
}

/// Zeros behind the last axis up to `length`.
fn padded<const D: usize>(x: Tensor<D>, length: usize) -> Tensor<D> {
    let mut dims = x.dims();
    let missing = length - dims[D - 1];
    if missing == 0 {
        return x;
    }
    dims[D - 1] = missing;
    let zeros = Tensor::zeros(dims, (&x.device(), x.dtype()));
    Tensor::cat(vec![x, zeros], D - 1)
}
