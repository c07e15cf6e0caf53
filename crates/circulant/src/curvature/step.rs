//! The step of the differences.

use super::parameters::Parameters;

/// The rounding error of a gradient, relative to its norm.
const ETA: f64 = 1e-15;

/// The part of its norm by which a tensor must change to change the gradient by as much as the gradient's own norm, `r`.
const CHANGE: f64 = 0.3;

/// The norm below which a tensor counts as this large.
const SMALLEST_NORM: f64 = 0.1;

/// How a derivative is differenced, and with which step.
///
/// With the step of section 10 of `docs/mathematics.md`. Along a unit vector a gradient (or the logits) is a function `g(t)` of the
/// displacement `t`:
///
/// | stencil | formula |
/// | --- | --- |
/// | second | `(g(t) - g(-t))/(2t)` |
/// | fourth | `(8(g(t) - g(-t)) - (g(2t) - g(-2t)))/(12t)` |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Stencil {
    /// Two evaluations, relative error about `1e-10`.
    #[default]
    Second,
    /// Four evaluations, relative error about `1e-12`.
    Fourth,
}

impl Stencil {
    /// Displacements in units of the step, and their weights for `g'` times the step.
    pub(super) fn points(self) -> &'static [(f64, f64)] {
        match self {
            Self::Second => &[(1.0, 0.5), (-1.0, -0.5)],
            Self::Fourth => &[
                (1.0, 2.0 / 3.0),
                (-1.0, -2.0 / 3.0),
                (2.0, -1.0 / 12.0),
                (-2.0, 1.0 / 12.0),
            ],
        }
    }

    /// `x`, the step relative to the length `L`.
    fn relative_step(self) -> f64 {
        match self {
            Self::Second => (3.0 * ETA).cbrt(),
            Self::Fourth => (45.0 / 4.0 * ETA).powf(0.2),
        }
    }

    /// The factor of `v` that makes the step; `None` if `v` is zero.
    pub(super) fn step(self, parameters: &Parameters, v: &[f64]) -> Option<f64> {
        let relative = |part: &super::parameters::Parameter| {
            let size = norm(&parameters.values[part.range.clone()]).max(SMALLEST_NORM);
            norm(&v[part.range.clone()]) / size
        };
        // For v instead of u, the sum is norm(v)/L.
        let changes: Vec<f64> = parameters.list.iter().map(relative).collect();
        let change = norm(&changes);
        (change > 0.0).then(|| CHANGE * self.relative_step() / change)
    }
}

/// The 2-norm, without overflow.
pub(super) fn norm(v: &[f64]) -> f64 {
    let largest = v.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        // The maximum passes over NaN, a sum does not.
        return v.iter().map(|x| x.abs()).sum();
    }
    largest * v.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stencils differentiate polynomials up to their order exactly.
    #[test]
    fn stencils_are_exact_for_polynomials() {
        for (stencil, degree) in [(Stencil::Second, 2), (Stencil::Fourth, 4)] {
            for power in 0..=degree {
                let g = |t: f64| (0.7 + t).powi(power);
                let exact = f64::from(power) * 0.7_f64.powi(power - 1);
                let step = 0.1;
                let points = stencil.points().iter();
                let got: f64 = points.map(|(t, w)| w / step * g(t * step)).sum();
                assert!((got - exact).abs() < 1e-13, "{stencil:?} {power}");
            }
        }
    }

    /// Errors of `sin` at the step of the analysis, where `L = 1`.
    #[test]
    fn the_errors_are_those_of_the_analysis() {
        for (stencil, error) in [(Stencil::Second, 2e-10), (Stencil::Fourth, 4e-12)] {
            for i in 0..100 {
                let x = 0.03 * f64::from(i);
                let step = stencil.relative_step();
                let points = stencil.points().iter();
                let got: f64 = points.map(|(t, w)| w / step * (x + t * step).sin()).sum();
                assert!((got - x.cos()).abs() < error, "{stencil:?} {x}");
            }
        }
    }

    #[test]
    fn norms_do_not_overflow() {
        assert!((norm(&[3e200, -4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!(norm(&[f64::NAN]).is_nan() && norm(&[f64::NAN, 1.0]).is_nan());
        assert_eq!(norm(&[]), 0.0);
        assert_eq!(norm(&[0.0]), 0.0);
        assert_eq!(norm(&[f64::INFINITY]), f64::INFINITY);
    }
}
