//! Numbers `a + b e1 + c e2 + d e1 e2` with `e1^2 = e2^2 = 0`: a function of them carries its exact first and second derivatives,
//! `f(x + e1 + e2) = f + f' e1 + f' e2 + f'' e1 e2`. The oracle of Hessians and Jacobians.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::ops::{Add, Mul, Sub};

/// A hyper-dual number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyperDual {
    /// The value.
    pub value: f64,
    /// By the first direction.
    pub first: f64,
    /// By the second direction.
    pub second: f64,
    /// By both.
    pub both: f64,
}

impl HyperDual {
    /// A number that does not depend on anything.
    pub fn constant(value: f64) -> Self {
        Self {
            value,
            first: 0.0,
            second: 0.0,
            both: 0.0,
        }
    }

    /// A function by its value and two derivatives.
    fn apply(self, f: f64, df: f64, ddf: f64) -> Self {
        Self {
            value: f,
            first: df * self.first,
            second: df * self.second,
            both: df * self.both + ddf * self.first * self.second,
        }
    }

    pub fn tanh(self) -> Self {
        let t = self.value.tanh();
        self.apply(t, 1.0 - t * t, -2.0 * t * (1.0 - t * t))
    }

    pub fn exp(self) -> Self {
        let e = self.value.exp();
        self.apply(e, e, e)
    }

    pub fn ln(self) -> Self {
        let x = self.value;
        self.apply(x.ln(), x.recip(), -x.recip() * x.recip())
    }
}

impl Add for HyperDual {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            first: self.first + other.first,
            second: self.second + other.second,
            both: self.both + other.both,
        }
    }
}

impl Sub for HyperDual {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * Self::constant(-1.0)
    }
}

impl Mul for HyperDual {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            first: self.first * other.value + self.value * other.first,
            second: self.second * other.value + self.value * other.second,
            both: self.both * other.value
                + self.first * other.second
                + self.second * other.first
                + self.value * other.both,
        }
    }
}

/// The matrix of second derivatives of `f` at `x`, row by row.
pub fn hessian(x: &[f64], f: impl Fn(&[HyperDual]) -> HyperDual) -> Vec<f64> {
    let entry = |i: usize, j: usize| {
        let mut numbers: Vec<_> = x.iter().copied().map(HyperDual::constant).collect();
        numbers[i].first = 1.0;
        numbers[j].second = 1.0;
        f(&numbers).both
    };
    let rows = (0..x.len()).flat_map(|i| (0..x.len()).map(move |j| (i, j)));
    rows.map(|(i, j)| entry(i, j)).collect()
}

/// The derivatives of the outputs of `f` by `x[i]`, one list per `i`.
pub fn jacobian_columns(x: &[f64], f: impl Fn(&[HyperDual]) -> Vec<HyperDual>) -> Vec<Vec<f64>> {
    let column = |i: usize| {
        let mut numbers: Vec<_> = x.iter().copied().map(HyperDual::constant).collect();
        numbers[i].first = 1.0;
        f(&numbers).into_iter().map(|output| output.first).collect()
    };
    (0..x.len()).map(column).collect()
}
