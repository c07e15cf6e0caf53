//! The strokes of the digits in the unit box, with the variants that people write.

use std::f32::consts::TAU;

use super::deform::Point;
use super::noise::Noise;

/// The strokes of a digit as polylines.
pub(super) fn strokes(digit: usize, noise: &mut Noise) -> Vec<Vec<Point>> {
    match digit {
        0 => {
            let (rx, start) = (noise.range(0.22, 0.37), noise.range(-2.2, -1.0));
            vec![arc([0.5, 0.5], [rx, 0.48], start, start + TAU)]
        }
        1 => one(noise),
        2 => two(noise),
        3 => three(noise),
        4 => four(noise),
        5 => five(noise),
        6 => six(noise),
        7 => seven(noise),
        8 => eight(noise),
        _ => nine(noise),
    }
}

fn one(noise: &mut Noise) -> Vec<Vec<Point>> {
    let mut strokes = vec![line(&[[0.5, 0.02], [0.5, 0.98]])];
    if noise.chance(0.25) {
        strokes.push(line(&[
            [0.5, 0.02],
            [noise.range(0.3, 0.4), noise.range(0.16, 0.26)],
        ]));
        if noise.chance(0.4) {
            strokes.push(line(&[[0.3, 0.98], [0.7, 0.98]]));
        }
    }
    strokes
}

fn two(noise: &mut Noise) -> Vec<Vec<Point>> {
    let top = [
        [0.2, 0.24],
        [0.32, 0.07],
        [0.56, 0.02],
        [0.75, 0.16],
        [0.68, 0.4],
        [0.47, 0.66],
    ];
    if noise.chance(0.35) {
        let loop_ = [
            [0.3, 0.9],
            [0.17, 0.93],
            [0.2, 0.8],
            [0.38, 0.79],
            [0.58, 0.92],
            [0.85, 0.93],
        ];
        vec![curve(&[&top[..], &loop_[..]].concat())]
    } else {
        let foot = [0.2, 0.95];
        vec![
            curve(&[&top[..], &[foot][..]].concat()),
            line(&[foot, [0.82, noise.range(0.88, 0.97)]]),
        ]
    }
}

fn three(noise: &mut Noise) -> Vec<Vec<Point>> {
    let middle = [noise.range(0.36, 0.52), 0.47];
    let top = if noise.chance(0.2) {
        let corner = [0.7, 0.05];
        return vec![
            line(&[[0.22, 0.06], corner, [0.44, 0.4]]),
            curve(&[
                [0.44, 0.4],
                [0.7, 0.5],
                [0.75, 0.76],
                [0.52, 0.96],
                [0.2, 0.88],
            ]),
        ];
    } else {
        curve(&[
            [0.24, 0.13],
            [0.45, 0.02],
            [0.69, 0.1],
            [0.69, 0.32],
            middle,
        ])
    };
    let bottom = curve(&[
        middle,
        [0.72, 0.55],
        [0.77, 0.78],
        [0.52, 0.97],
        [0.2, 0.87],
    ]);
    vec![top, bottom]
}

fn four(noise: &mut Noise) -> Vec<Vec<Point>> {
    let bar = noise.range(0.5, 0.64);
    if noise.chance(0.35) {
        let top = [0.6, 0.02];
        vec![
            line(&[top, [0.18, bar], [0.85, bar]]),
            line(&[top, [0.6, 0.98]]),
        ]
    } else {
        vec![
            line(&[[0.29, 0.05], [0.21, bar], [0.8, bar - 0.03]]),
            line(&[[0.7, 0.03], [noise.range(0.58, 0.68), 0.98]]),
        ]
    }
}

fn five(noise: &mut Noise) -> Vec<Vec<Point>> {
    let corner = [0.33, 0.06];
    let waist = [0.29, noise.range(0.38, 0.48)];
    vec![
        line(&[[noise.range(0.66, 0.84), 0.04], corner, waist]),
        curve(&[
            waist,
            [0.52, 0.37],
            [0.75, 0.53],
            [0.73, 0.8],
            [0.48, 0.97],
            [0.19, 0.88],
        ]),
    ]
}

fn six(noise: &mut Noise) -> Vec<Vec<Point>> {
    let top = [noise.range(0.55, 0.72), 0.03];
    vec![curve(&[
        top,
        [0.4, 0.22],
        [0.25, 0.52],
        [0.27, 0.82],
        [0.49, 0.97],
        [0.73, 0.83],
        [0.69, 0.59],
        [0.49, 0.51],
        [0.28, 0.68],
    ])]
}

fn seven(noise: &mut Noise) -> Vec<Vec<Point>> {
    let corner = [0.78, 0.06];
    let mut strokes = vec![
        line(&[[0.2, noise.range(0.05, 0.12)], corner]),
        curve(&[
            corner,
            [0.62, 0.4],
            [0.48, 0.7],
            [noise.range(0.36, 0.48), 0.98],
        ]),
    ];
    if noise.chance(0.25) {
        strokes.push(line(&[[0.36, 0.5], [0.74, 0.48]]));
    }
    if noise.chance(0.2) {
        strokes.push(line(&[[0.2, 0.08], [0.2, 0.22]]));
    }
    strokes
}

fn eight(noise: &mut Noise) -> Vec<Vec<Point>> {
    let cross = [0.5, noise.range(0.42, 0.5)];
    let top = noise.range(0.16, 0.23);
    vec![curve(&[
        cross,
        [0.5 - top, 0.3],
        [0.5 - top, 0.11],
        [0.5, 0.02],
        [0.5 + top, 0.11],
        [0.5 + top, 0.3],
        cross,
        [0.27, 0.66],
        [0.27, 0.87],
        [0.5, 0.98],
        [0.73, 0.87],
        [0.73, 0.66],
        cross,
    ])]
}

fn nine(noise: &mut Noise) -> Vec<Vec<Point>> {
    let joint = [0.72, 0.26];
    let head = curve(&[
        joint,
        [0.62, 0.07],
        [0.4, 0.04],
        [0.26, 0.22],
        [0.33, 0.43],
        [0.55, 0.45],
        joint,
    ]);
    let tail = if noise.chance(0.6) {
        line(&[joint, [noise.range(0.55, 0.7), 0.98]])
    } else {
        curve(&[joint, [0.71, 0.6], [0.58, 0.9], [0.3, 0.95]])
    };
    vec![head, tail]
}

/// A polyline with points close enough to be bent.
fn line(points: &[Point]) -> Vec<Point> {
    const PIECES: usize = 5;
    let mut fine = vec![points[0]];
    for pair in points.windows(2) {
        for piece in 1..=PIECES {
            let t = piece as f32 / PIECES as f32;
            fine.push(std::array::from_fn(|axis| {
                pair[0][axis] + t * (pair[1][axis] - pair[0][axis])
            }));
        }
    }
    fine
}

/// A Catmull-Rom spline through the points.
fn curve(points: &[Point]) -> Vec<Point> {
    const PIECES: usize = 5;
    let last = points.len() - 1;
    let mut fine = vec![points[0]];
    for index in 0..last {
        let p: [Point; 4] =
            std::array::from_fn(|offset| points[(index + offset).saturating_sub(1).min(last)]);
        for piece in 1..=PIECES {
            let t = piece as f32 / PIECES as f32;
            fine.push(std::array::from_fn(|axis| {
                let [a, b, c, d] = [p[0][axis], p[1][axis], p[2][axis], p[3][axis]];
                let square = 2.0 * a - 5.0 * b + 4.0 * c - d;
                let cube = 3.0 * b - a - 3.0 * c + d;
                0.5 * (2.0 * b + t * (c - a + t * (square + t * cube)))
            }));
        }
    }
    fine
}

fn arc(centre: Point, radius: Point, from: f32, to: f32) -> Vec<Point> {
    const PIECES: usize = 28;
    (0..=PIECES)
        .map(|piece| {
            let angle = from + (to - from) * piece as f32 / PIECES as f32;
            [
                centre[0] + radius[0] * angle.cos(),
                centre[1] + radius[1] * angle.sin(),
            ]
        })
        .collect()
}
