//! Figures of data with faults.

use super::figures::filter;
use crate::report::figure::*;

/// What is left of them, and what they say about the rest.
pub fn broken() -> Vec<Drawing> {
    let values = vec![3.0, 1.0, f64::NAN, 0.4, 0.0, 0.1, -1.0, 0.05, 0.03];
    let curves = |y: Axis| Curves {
        title: y.label.clone(),
        x: Axis::linear("step"),
        y,
        curves: vec![Curve::indexed("loss", values.clone())],
    };
    let mut spoiled = filter(2);
    spoiled.values[300] = f64::NAN;
    vec![
        curves(Axis::log("log axis")).draw(),
        curves(Axis::linear("linear axis")).draw(),
        Filters {
            filters: vec![spoiled, filter(6)],
            ..Filters::default()
        }
        .draw(),
    ]
}
