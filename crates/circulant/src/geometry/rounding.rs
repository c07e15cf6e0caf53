//! How far the f32 forward pass can be from the network in exact arithmetic, layer by layer: `docs/mathematics.md`, section 9, whose
//! names are used here. The state of `Values` is its `N` and `E`; `LinearRounding` is what it says of a layer.

use super::{GeometryError, NetworkBound, UpperBound, padding};

/// Unit roundoff of f32.
pub(super) const UNIT: f64 = 1.0 / 16_777_216.0;
/// Unit roundoff of f64, times eight: a twiddle is the cosine of an angle of up to `2 pi` that was itself rounded three times, so in f64 it is off by up
/// to 20 units instead of one. (In f32 it is rounded from f64, where this does not show.)
pub(super) const UNIT_DOUBLE: f64 = 4.0 * f64::EPSILON;
/// A spectrum times `h/n`, which was rounded twice: a complex product.
pub(super) const PRODUCT: f64 = 8.0 * UNIT;
/// Intermediate values beyond this could overflow.
const OVERFLOW: f64 = 1e37;
/// `2^-130`.
const UNDERFLOW: f64 = 7.346_839_692_639_297e-40;
/// Covers the rounding of the analysis itself.
pub(super) const OWN_ROUNDING: f64 = 1.0 + 1e-9;

/// How far a kernel is from its linear map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LinearRounding {
    /// `c`: the error per unit of the input's norm.
    pub(super) input: f64,
    /// The error from the bias, already times its norm.
    pub(super) bias: f64,
    /// Intermediate values are at most this times the input's norm.
    pub(super) growth: f64,
    /// `n` of the underflow term.
    pub(super) size: f64,
}

/// Bounds of the values at one place of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Values {
    /// `N`.
    pub(super) norm: f64,
    /// `E`.
    pub(super) error: f64,
    /// How many values, where it is known.
    pub(super) size: Option<usize>,
}

/// `gamma_n`; infinite where it says nothing.
pub(super) fn gamma(n: usize, unit: f64) -> f64 {
    let product = n as f64 * unit;
    if product < 0.5 {
        product / (1.0 - product)
    } else {
        f64::INFINITY
    }
}

/// Prime factors with multiplicity.
pub(super) fn prime_factors(mut n: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let mut p = 2;
    while p * p <= n {
        while n.is_multiple_of(p) {
            factors.push(p);
            n /= p;
        }
        p += 1;
    }
    if n > 1 {
        factors.push(n);
    }
    factors
}

/// `epsilon(n)` when butterflies cover all primes up to `largest_butterfly`.
fn one_axis(n: usize, largest_butterfly: usize, unit: f64) -> f64 {
    let factors = prime_factors(n);
    if factors.iter().any(|&p| p > largest_butterfly) {
        let n = n as f64;
        let inner = 26.0 * unit * (4.0 * n + 64.0).log2();
        return (16.0 * n.sqrt() + 64.0) * (inner + 6.0 * unit);
    }
    let stage = |p: &usize| match p {
        2 => 6.0 * unit,
        p => (2.0 * *p as f64).sqrt() * gamma((p - 1) / 2 + 5, unit) + 5.0 * unit,
    };
    factors.iter().map(stage).sum()
}

/// Sums of first-order errors as a true relative error: `(1 + a)(1 + b).. - 1 <= s/(1 - s)`.
pub(super) fn compounded(sum: f64) -> f64 {
    if sum < 0.5 {
        sum / (1.0 - sum)
    } else {
        f64::INFINITY
    }
}

/// `epsilon` of the lanes on a grid: both axes, by butterflies up to 13, otherwise by rustfft.
pub(super) fn lane_error([height, width]: [usize; 2], unit: f64) -> f64 {
    let axis = |n: usize| {
        if prime_factors(n).iter().all(|&p| p <= 13) {
            one_axis(n, 13, unit)
        } else {
            one_axis(n, 11, unit)
        }
    };
    compounded(axis(height) + axis(width))
}

/// `epsilon'` of realfft on rows.
pub(super) fn row_error(length: usize, unit: f64) -> f64 {
    compounded(1.5 * one_axis(length, 11, unit) + 24.0 * unit)
}

/// Transform, product and inverse, relative to the norm of the operator.
pub(super) fn there_and_back(epsilon: f64, product: f64) -> f64 {
    (1.0 + epsilon).powi(2) * (1.0 + product) - 1.0
}

/// `||Delta K||` of filters of the norm `filter` that were transformed with the unit roundoff `unit`.
pub(super) fn filter_error(grid: [usize; 2], filter: UpperBound, unit: f64) -> UpperBound {
    let pixels = (grid[0] * grid[1]) as f64;
    let relative = lane_error(grid, unit) + 4.0 * unit;
    UpperBound::new(relative * pixels.sqrt() * OWN_ROUNDING) * filter
}

impl LinearRounding {
    /// A circulant layer of the norm `norm` on a grid; a signal has the height 1. `filter` is the norm of the spatial filters, if
    /// there are any.
    pub(super) fn circulant(
        grid: [usize; 2],
        [channels_in, channels_out]: [usize; 2],
        norm: UpperBound,
        bias: UpperBound,
        filter: Option<UpperBound>,
    ) -> Self {
        let (norm, bias, pixels) = (norm.get(), bias.get(), (grid[0] * grid[1]) as f64);
        let pair = std::f64::consts::SQRT_2;
        let lanes = lane_error(grid, UNIT);
        let product = if channels_in * channels_out == 1 {
            PRODUCT
        } else {
            let smaller = channels_in.min(channels_out) as f64;
            (10.0 * smaller).sqrt() * gamma(channels_in + 6, UNIT) + 4.0 * UNIT
        };
        let mut relative = pair * there_and_back(lanes, product);
        let (mut longest, mut largest) = (pixels, norm);
        if grid[0] == 1 && channels_in * channels_out == 1 {
            let by_row = there_and_back(row_error(grid[1], UNIT), product);
            relative = relative.max(by_row);
            if padding::may_be_used(grid[1]) {
                relative = relative.max(padding::error(grid[1]));
                longest = padding::longest(grid[1]);
                largest *= padding::norm(grid[1]);
            }
        }
        let filters = filter.map_or(0.0, |filter| filter_error(grid, filter, UNIT).get());
        let input = relative * norm + pair * (1.0 + relative) * filters;
        Self {
            input: (input + UNIT * (norm + input)) * OWN_ROUNDING,
            bias: UNIT * bias * OWN_ROUNDING,
            growth: 32.0 * longest * largest.max(1.0),
            size: longest * channels_in.max(channels_out) as f64,
        }
    }

    /// A sum of `terms` products per output, `absolute` the norm of the map with absolute values for weights.
    pub(super) fn sums(
        terms: usize,
        outputs: usize,
        absolute: UpperBound,
        norm: UpperBound,
        bias: UpperBound,
    ) -> Self {
        let input = gamma(terms + 2, UNIT) * absolute.get();
        Self {
            input: (input + UNIT * (norm.get() + input)) * OWN_ROUNDING,
            bias: gamma(terms + 2, UNIT) * bias.get() * OWN_ROUNDING,
            growth: 2.0 * absolute.get().max(1.0),
            size: (terms + outputs) as f64,
        }
    }
}

impl Values {
    /// Inputs as they are, of a number of values and up to a norm.
    pub(super) fn of_inputs(norm: UpperBound, size: usize) -> Self {
        Self {
            norm: norm.get(),
            error: 0.0,
            size: Some(size),
        }
    }

    /// Through a layer `A x + b`.
    pub(super) fn linear(
        self,
        norm: UpperBound,
        bias: UpperBound,
        rounding: &LinearRounding,
        outputs: usize,
    ) -> Self {
        let computed = self.norm + self.error;
        let underflow = UNDERFLOW * rounding.size.powi(2) * (1.0 + norm.get()) * (1.0 + computed);
        let error = norm.get() * self.error + rounding.input * computed + rounding.bias + underflow;
        let error = if (computed + bias.get()) * rounding.growth < OVERFLOW {
            error * OWN_ROUNDING
        } else {
            f64::INFINITY
        };
        Self {
            norm: (norm.get() * self.norm + bias.get()) * OWN_ROUNDING,
            error,
            size: Some(outputs),
        }
    }

    /// Through an activation.
    pub(super) fn activation(self, activation: super::LipschitzActivation) -> Self {
        let computed = self.norm + self.error;
        let own = activation.error(computed, self.size);
        Self {
            norm: activation.output_norm(self.norm, self.size),
            error: (activation.lipschitz().get() * self.error + own) * OWN_ROUNDING,
            size: self.size,
        }
    }

    /// The sum of several vectors.
    pub(super) fn sum(parts: &[Self]) -> Self {
        let norm: f64 = parts.iter().map(|part| part.norm).sum();
        let error: f64 = parts.iter().map(|part| part.error).sum();
        let rounding = gamma(parts.len(), UNIT) * (norm + error);
        Self {
            norm: norm * OWN_ROUNDING,
            error: (error + rounding) * OWN_ROUNDING,
            size: parts.last().and_then(|part| part.size),
        }
    }

    /// Several vectors in one.
    pub(super) fn concatenation(parts: &[Self]) -> Self {
        let root = |of: fn(&Self) -> f64| {
            parts
                .iter()
                .map(|part| of(part).powi(2))
                .sum::<f64>()
                .sqrt()
        };
        let sizes: Option<Vec<usize>> = parts.iter().map(|part| part.size).collect();
        Self {
            norm: root(|part| part.norm) * OWN_ROUNDING,
            error: root(|part| part.error) * OWN_ROUNDING,
            size: sizes.map(|sizes| sizes.iter().sum()),
        }
    }
}

impl NetworkBound {
    /// `e(B)`: the largest 2-norm of the difference between the f32 logits that the CPU kernels compute and the exact ones, over
    /// all batches of f32 inputs with norms of at most `input_norm`. Infinite where values could overflow.
    ///
    /// An error names a part whose rounding is not known.
    pub fn rounding_error(&self, input_norm: UpperBound) -> Result<UpperBound, GeometryError> {
        self.rounding_error_of(input_norm, None)
    }

    /// [`Self::rounding_error`] for inputs of a known number of values, which must fit the first layer.
    pub(super) fn rounding_error_of(
        &self,
        input_norm: UpperBound,
        size: Option<usize>,
    ) -> Result<UpperBound, GeometryError> {
        let start = Values {
            size,
            ..Values::of_inputs(input_norm, 0)
        };
        Ok(UpperBound::new(self.values(start)?.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_stages() {
        assert_eq!(prime_factors(784), [2, 2, 2, 2, 7, 7]);
        assert_eq!(prime_factors(1), [] as [usize; 0]);
        assert_eq!(prime_factors(97), [97]);
        assert_eq!(lane_error([1, 1], UNIT), 0.0);
        // 784: four twos and two sevens are below 100 roundings.
        let error = lane_error([1, 784], UNIT) / UNIT;
        assert!((24.0..100.0).contains(&error), "{error}");
        assert!(lane_error([1, 97], UNIT) > 10.0 * error * UNIT);
    }

    #[test]
    fn too_large_numbers_have_no_bound() {
        let (norm, bias) = (UpperBound::ONE, UpperBound::ZERO);
        let rounding = LinearRounding::sums(10, 3, norm, norm, bias);
        let values = |norm| Values {
            norm,
            error: 0.0,
            size: Some(10),
        };
        assert!(values(1.0).linear(norm, bias, &rounding, 3).error < 1e-5);
        let large = values(1e37).linear(norm, bias, &rounding, 3);
        assert!(large.error.is_infinite());
        assert_eq!(gamma(usize::MAX, UNIT), f64::INFINITY);
    }
}
