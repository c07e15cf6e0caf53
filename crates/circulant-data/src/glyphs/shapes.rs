//! Filled outlines in the unit box. Several outlines of one figure are filled by the even-odd rule, so
//! one inside another is a hole.

use std::f32::consts::{FRAC_PI_2, TAU};

use super::deform::Point;

/// The names of the classes.
pub(super) const NAMES: [&str; 10] = [
    "shirt", "trousers", "dress", "bag", "boot", "shoe", "star", "ring", "cross", "hexagon",
];

/// The outlines of a class.
pub(super) fn outlines(class: usize) -> Vec<Vec<Point>> {
    match class {
        0 => vec![vec![
            [0.3, 0.05],
            [0.42, 0.12],
            [0.58, 0.12],
            [0.7, 0.05],
            [0.98, 0.32],
            [0.86, 0.47],
            [0.74, 0.37],
            [0.74, 0.95],
            [0.26, 0.95],
            [0.26, 0.37],
            [0.14, 0.47],
            [0.02, 0.32],
        ]],
        1 => vec![vec![
            [0.28, 0.02],
            [0.72, 0.02],
            [0.79, 0.98],
            [0.58, 0.98],
            [0.5, 0.33],
            [0.42, 0.98],
            [0.21, 0.98],
        ]],
        2 => vec![vec![
            [0.36, 0.02],
            [0.45, 0.08],
            [0.55, 0.08],
            [0.64, 0.02],
            [0.6, 0.38],
            [0.85, 0.98],
            [0.15, 0.98],
            [0.4, 0.38],
        ]],
        3 => vec![
            vec![[0.08, 0.36], [0.92, 0.36], [0.98, 0.92], [0.02, 0.92]],
            vec![
                [0.26, 0.36],
                [0.3, 0.1],
                [0.7, 0.1],
                [0.74, 0.36],
                [0.65, 0.36],
                [0.62, 0.19],
                [0.38, 0.19],
                [0.35, 0.36],
            ],
        ],
        4 => vec![vec![
            [0.26, 0.04],
            [0.6, 0.04],
            [0.6, 0.58],
            [0.93, 0.74],
            [0.95, 0.94],
            [0.24, 0.94],
        ]],
        5 => vec![vec![
            [0.02, 0.5],
            [0.2, 0.46],
            [0.32, 0.56],
            [0.52, 0.44],
            [0.78, 0.62],
            [0.98, 0.7],
            [0.98, 0.84],
            [0.02, 0.84],
        ]],
        6 => vec![star(5, 0.5, 0.22)],
        7 => vec![star(12, 0.46, 0.46), star(10, 0.22, 0.22)],
        8 => vec![vec![
            [0.36, 0.05],
            [0.64, 0.05],
            [0.64, 0.36],
            [0.95, 0.36],
            [0.95, 0.64],
            [0.64, 0.64],
            [0.64, 0.95],
            [0.36, 0.95],
            [0.36, 0.64],
            [0.05, 0.64],
            [0.05, 0.36],
            [0.36, 0.36],
        ]],
        _ => vec![star(3, 0.48, 0.48)],
    }
}

/// `2 * tips` points, on two radii in turn; with equal radii a regular polygon.
fn star(tips: usize, outer: f32, inner: f32) -> Vec<Point> {
    (0..2 * tips)
        .map(|index| {
            let radius = if index % 2 == 0 { outer } else { inner };
            let angle = TAU * index as f32 / (2 * tips) as f32 - FRAC_PI_2;
            [0.5 + radius * angle.cos(), 0.5 + radius * angle.sin()]
        })
        .collect()
}
