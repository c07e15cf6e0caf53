//! `exp`, `ln`, `sin` and `cos` that the compiler can turn into vector code.
//!
//! Those of f32 are polynomials without branches, in `circulant-core`, written on one number: a loop over a slice below
//! [`crate::vector::Isa::run`] becomes vector instructions, and a number has the same bits on every instruction set.

use circulant_core::elementary::{self, mantissa_and_exponent};

/// Functions of one number, inlined into the loops of the kernels.
pub trait Elementary: Copy + Sized {
    /// `e^x`; zero where it is below `2^-125`, NaN for NaN.
    fn exponential(self) -> Self;
    /// Natural logarithm; NaN for NaN and for negative values, minus infinity for zero and, in f32,
    /// below the smallest normal number.
    fn logarithm(self) -> Self;
    /// Square root, correctly rounded.
    fn root(self) -> Self;
    /// The sum of the logarithms of at most [`LOGARITHMS`] values.
    fn sum_of_logarithms(numbers: &[Self]) -> f64;
}

/// Values of a [`Elementary::sum_of_logarithms`].
pub const LOGARITHMS: usize = 128;

impl Elementary for f32 {
    #[inline(always)]
    fn exponential(self) -> Self {
        elementary::exp(self)
    }

    #[inline(always)]
    fn logarithm(self) -> Self {
        elementary::ln(self)
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }

    /// `sum ln x = ln 2 * sum e + ln prod m` with `x = m 2^e`: one logarithm for all.
    #[inline(always)]
    fn sum_of_logarithms(numbers: &[Self]) -> f64 {
        const LANES: usize = 8;
        const SIGN: u32 = 1 << 31;
        debug_assert!(numbers.len() <= LOGARITHMS);
        let mut products = [1.0; LANES];
        let mut exponents = [0; LANES];
        let mut flags = [0; LANES];
        let (groups, rest) = numbers.as_chunks::<LANES>();
        let mut last = [1.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for group in groups.iter().chain([&last]) {
            for l in 0..LANES {
                let (m, e) = mantissa_and_exponent(group[l], 0);
                products[l] *= m;
                exponents[l] += e;
                // The sign of one of these is set unless the number is positive and normal.
                let bits = group[l].to_bits();
                let above = bits.wrapping_sub(f32::MIN_POSITIVE.to_bits());
                flags[l] |= bits | above | f32::MAX.to_bits().wrapping_sub(bits);
            }
        }
        let (mut product, mut exponent, mut flag) = (1.0, 0, 0);
        for l in 0..LANES {
            product *= f64::from(products[l]);
            exponent += exponents[l];
            flag |= flags[l];
        }
        if flag & SIGN != 0 {
            return numbers.iter().map(|x| f64::from(*x).ln()).sum();
        }
        product.ln() + f64::from(exponent) * std::f64::consts::LN_2
    }
}

/// The standard library's functions: f64 is for checks, not for speed.
impl Elementary for f64 {
    #[inline(always)]
    fn exponential(self) -> Self {
        self.exp()
    }
    #[inline(always)]
    fn logarithm(self) -> Self {
        self.ln()
    }
    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn sum_of_logarithms(numbers: &[Self]) -> f64 {
        let mut sum = 0.0;
        for x in numbers {
            sum += x.ln();
        }
        sum
    }
}
