//! What the two 1D layers share: a circulant operator of length `n = max(d_in, d_out)` between an
//! input padded with zeros and an output cropped.

use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::{Activation, Complex, HalfSpectrum, operator_norm_1d};

use super::BiasKind;
use crate::LayerError;
use crate::functional::{circulant_1d, circulant_1d_filters};
use crate::operator::{Layout, Operator};

#[derive(Debug, Clone)]
pub(super) struct SignalMap {
    pub(super) d_in: usize,
    pub(super) d_out: usize,
    operator: Operator,
}

impl SignalMap {
    pub(super) fn new(d_in: usize, d_out: usize, modes: Option<usize>) -> Result<Self, LayerError> {
        // Both must be positive, not only the larger one.
        HalfSpectrum::new(d_in)?;
        HalfSpectrum::new(d_out)?;
        let length = d_in.max(d_out);
        let half = HalfSpectrum::with_modes(length, modes.unwrap_or(length / 2 + 1))?;
        Ok(Self {
            d_in,
            d_out,
            operator: Operator::signal(half),
        })
    }

    pub(super) fn half(&self) -> &HalfSpectrum {
        let Layout::Signal(half) = self.operator.layout() else {
            unreachable!("built from a half spectrum")
        };
        half
    }

    pub(super) fn operator(&self) -> &Operator {
        &self.operator
    }

    /// The operator, if nothing is padded or cropped around it.
    pub(super) fn exact_operator(&self) -> Option<&Operator> {
        (self.d_in == self.d_out).then_some(&self.operator)
    }

    pub(super) fn length(&self) -> usize {
        self.half().length()
    }

    pub(super) fn apply<const D: usize>(
        &self,
        x: Tensor<D>,
        coordinates: Tensor<1>,
        bias: Option<Tensor<1>>,
        activation: Activation,
    ) -> Tensor<D> {
        self.check_input(x.dims().as_slice());
        let operator = self.operator.with_activation(activation);
        let bias = bias.map(|bias| self.padded_bias(bias));
        self.cropped(circulant_1d(self.padded(x), coordinates, bias, &operator))
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
        let bias = bias.map(|bias| self.padded_bias(bias));
        self.cropped(circulant_1d_filters(
            self.padded(x),
            coordinates,
            bias,
            &operator,
        ))
    }

    fn check_input(&self, dims: &[usize]) {
        assert!(
            dims.last() == Some(&self.d_in),
            "input must be [..., {}], got {dims:?}",
            self.d_in
        );
    }

    fn padded_bias<const D: usize>(&self, bias: Tensor<D>) -> Tensor<D> {
        match bias.dims()[D - 1] {
            1 => bias,
            _ => self.padded(bias),
        }
    }

    fn cropped<const D: usize>(&self, y: Tensor<D>) -> Tensor<D> {
        if self.d_out == self.length() {
            y
        } else {
            y.narrow(D - 1, 0, self.d_out)
        }
    }

    /// Zeros behind the last axis up to the length of the transform.
    fn padded<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let mut dims = x.dims();
        let missing = self.length() - dims[D - 1];
        if missing == 0 {
            return x;
        }
        dims[D - 1] = missing;
        let zeros = Tensor::zeros(dims, (&x.device(), x.dtype()));
        Tensor::cat(vec![x, zeros], D - 1)
    }

    pub(super) fn half_spectrum(&self, coordinates: &[f64]) -> Vec<Complex<f64>> {
        let mut bins = vec![Complex::default(); self.half().bins()];
        self.half()
            .unpack(coordinates, &mut bins)
            .expect("one number per coordinate");
        bins
    }

    /// `C[t,s] = w[(t-s) mod n]`, stored as `[in, out]`.
    pub(super) fn dense_matrix(&self, filter: &[f64], device: &Device) -> Tensor<2> {
        let length = self.length();
        let entries = (0..self.d_in)
            .flat_map(|s| (0..self.d_out).map(move |t| filter[(t + length - s) % length]));
        Tensor::from_data(
            TensorData::new(entries.collect::<Vec<_>>(), [self.d_in, self.d_out]),
            device,
        )
    }

    pub(super) fn operator_norm(&self, coordinates: &[f64]) -> f64 {
        operator_norm_1d(self.half(), coordinates).map_or(f64::NAN, |norm| norm.estimate())
    }
}

/// `none`, `scalar` or `vector`, for display.
pub(super) fn bias_name(kind: Option<usize>) -> String {
    match kind {
        None => "none",
        Some(1) => "scalar",
        Some(_) => "vector",
    }
    .into()
}

/// The default of both 1D layers.
pub(super) const DEFAULT_BIAS: BiasKind = BiasKind::Scalar;
