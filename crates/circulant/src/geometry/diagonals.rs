//! Norm, rounding, penalty and norm control of circulant matrices between diagonals, `sum_j D2_j C_j D1_j`.
//!
//! With `a = max|D1|`, `b = max|D2|` and `L = max_k|h_k|` a product has a norm of at most `b L a`. Its kernel rounds the input times
//! `D1`, runs the circulant kernel (off by `c` per unit of its input's norm) and rounds the output times `D2`: it is off by
//! `a b ((c (1 + u) + L u)(1 + u) + u L)`. The sum of `m` products and the bias add `gamma_m` of the norms.

use burn::module::Param;
use burn::tensor::Tensor;

use super::control::{scaled, upper, within_limit};
use super::norms::bias_norm;
use super::rounding::{LinearRounding, OWN_ROUNDING, UNIT, gamma};
use super::singular_values::of_matrix;
use super::{
    GeometryError, LayerBound, LowerBound, NormBounds, NormControl, NormPenalty, OperatorNorm,
    SingularValues, UpperBound,
};
use crate::nn::{DiagonalCirculant1d, to_host};

impl OperatorNorm for DiagonalCirculant1d {
    fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError> {
        let (mut norm, mut input) = (UpperBound::ZERO, 0.0);
        let (mut growth, mut size) = (0.0_f64, 0.0_f64);
        for term in &self.terms {
            let inner = term.circulant.layer_bound(name)?;
            let [before, after] = term.largest().map(UpperBound::new);
            if !before.is_finite() || !after.is_finite() {
                let layer = name.to_owned();
                return Err(GeometryError::NotFinite { layer });
            }
            norm = norm + after * inner.norm().upper() * before;
            let (c, largest) = (inner.rounding().input, inner.norm().upper().get());
            let own = (c * (1.0 + UNIT) + largest * UNIT) * (1.0 + UNIT) + UNIT * largest;
            input += before.get() * after.get() * own;
            let around = before.get().max(1.0) * after.get().max(1.0);
            growth += inner.rounding().growth * around;
            size += inner.rounding().size;
        }
        let bias = bias_norm(self.bias.as_ref(), self.d_out(), name)?;
        let sums = gamma(self.terms.len(), UNIT);
        let whole = norm.get();
        let input = input + sums * (whole + input);
        let rounding = LinearRounding {
            input: (input + UNIT * (whole + input)) * OWN_ROUNDING,
            bias: UNIT * bias.get() * OWN_ROUNDING,
            growth,
            size,
        };
        let bounds = NormBounds::new(LowerBound::ZERO, norm);
        let dtype = self.terms[0].circulant.coordinates.val().dtype();
        let sizes = [self.d_in(), self.d_out()];
        Ok(LayerBound::new(name, bounds, bias, sizes, rounding, dtype))
    }
}

/// `max|D|` as a tensor `[1]`.
fn largest(diagonal: Option<&Param<Tensor<1>>>) -> Option<Tensor<1>> {
    diagonal.map(|diagonal| diagonal.val().abs().max())
}

impl NormPenalty for DiagonalCirculant1d {
    fn gram_bound(&self, squarings: usize) -> Result<Tensor<1>, GeometryError> {
        let mut sum: Option<Tensor<1>> = None;
        for term in &self.terms {
            let mut bound = term.circulant.gram_bound(squarings)?;
            let diagonals = [&term.before, &term.after].map(|diagonal| largest(diagonal.as_ref()));
            for diagonal in diagonals.into_iter().flatten() {
                bound = bound * diagonal;
            }
            sum = Some(match sum {
                None => bound,
                Some(sum) => sum + bound,
            });
        }
        Ok(sum.expect("there is a product at least"))
    }
}

/// All circulant matrices are scaled alike.
impl NormControl for DiagonalCirculant1d {
    fn clip_norm(&mut self, limit: f64) -> Result<(), GeometryError> {
        let norm = upper(self)?;
        let terms = self.terms.iter();
        let original: Vec<_> = terms
            .map(|term| term.circulant.coordinates.clone())
            .collect();
        within_limit(
            limit,
            || Ok(norm),
            |aim| {
                for (term, original) in self.terms.iter_mut().zip(&original) {
                    term.circulant.coordinates = scaled(original, aim / norm);
                }
                upper(self)
            },
        )
    }
}

impl SingularValues for DiagonalCirculant1d {
    fn singular_values(&self) -> Result<Vec<f64>, GeometryError> {
        let matrix = self.dense_matrix();
        of_matrix(matrix.dims(), &to_host(matrix))
    }
}
