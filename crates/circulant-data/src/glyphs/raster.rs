//! A canvas of coverages in 0..=1, drawn by distance: a pixel at distance `e` inside an edge has
//! coverage `clamp(1/2 + e, 0, 1)`, which smooths edges over one pixel.

use std::f32::consts::TAU;

use super::deform::Point;
use super::noise::Noise;

/// Pixels per side.
pub(super) const SIDE: usize = 28;

/// One image while it is drawn.
pub(super) struct Canvas([[f32; SIDE]; SIDE]);

impl Canvas {
    /// All dark.
    pub fn new() -> Self {
        Self([[0.0; SIDE]; SIDE])
    }

    /// Draws a polyline with a round pen.
    pub fn stroke(&mut self, points: &[Point], radius: f32) {
        for pair in points.windows(2) {
            let [a, b] = [pair[0], pair[1]];
            // Only the pixels that the pen can reach.
            let reach = radius + 1.0;
            let span = |axis: usize| {
                let low = (a[axis].min(b[axis]) - reach).max(0.0) as usize;
                let high = (a[axis].max(b[axis]) + reach).clamp(0.0, SIDE as f32) as usize;
                low..high.min(SIDE)
            };
            for y in span(1) {
                for x in span(0) {
                    let inside = radius - distance([x as f32 + 0.5, y as f32 + 0.5], a, b);
                    let pixel = &mut self.0[y][x];
                    *pixel = pixel.max((inside + 0.5).clamp(0.0, 1.0));
                }
            }
        }
    }

    /// Fills closed outlines by the even-odd rule.
    pub fn fill(&mut self, outlines: &[Vec<Point>]) {
        for y in 0..SIDE {
            for x in 0..SIDE {
                let place = [x as f32 + 0.5, y as f32 + 0.5];
                let mut nearest = f32::INFINITY;
                let mut inside = false;
                for outline in outlines {
                    for (index, &a) in outline.iter().enumerate() {
                        let b = outline[(index + 1) % outline.len()];
                        nearest = nearest.min(distance(place, a, b));
                        let crosses = (a[1] > place[1]) != (b[1] > place[1]);
                        inside ^= crosses
                            && place[0] < a[0] + (place[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
                    }
                }
                let depth = if inside { nearest } else { -nearest };
                self.0[y][x] = (depth + 0.5).clamp(0.0, 1.0);
            }
        }
    }

    /// Shades what is drawn by a gradient and stripes, as cloth has.
    pub fn texture(&mut self, noise: &mut Noise) {
        let level = noise.range(0.45, 0.95);
        let slope = noise.bell(0.25) / SIDE as f32;
        let stripes = if noise.chance(0.5) {
            noise.range(0.05, 0.3)
        } else {
            0.0
        };
        let (sin, cos) = noise.range(0.0, TAU).sin_cos();
        let frequency = TAU / noise.range(3.0, 8.0);
        for (y, row) in self.0.iter_mut().enumerate() {
            for (x, pixel) in row.iter_mut().enumerate() {
                let wave = ((x as f32 * cos + y as f32 * sin) * frequency).sin();
                let shade = level + slope * (y as f32 - SIDE as f32 / 2.0) + stripes * wave;
                *pixel *= shade.clamp(0.1, 1.0);
            }
        }
    }

    /// Noise on what is drawn, and a rare speckle beside it.
    pub fn grain(&mut self, noise: &mut Noise) {
        let strength = noise.range(0.02, 0.08);
        for pixel in self.0.iter_mut().flatten() {
            if *pixel > 0.0 {
                *pixel += *pixel * (noise.bell(strength) - strength);
            } else if noise.chance(0.004) {
                *pixel = noise.range(0.05, 0.3);
            }
        }
    }

    /// Rounds to bytes, row by row.
    pub fn write(&self, pixels: &mut [u8]) {
        for (byte, pixel) in pixels.iter_mut().zip(self.0.iter().flatten()) {
            *byte = (pixel * 255.0).round().clamp(0.0, 255.0) as u8;
        }
    }
}

/// From a point to a segment.
fn distance(p: Point, a: Point, b: Point) -> f32 {
    let edge = [b[0] - a[0], b[1] - a[1]];
    let from = [p[0] - a[0], p[1] - a[1]];
    let length = edge[0] * edge[0] + edge[1] * edge[1];
    let t = if length > 0.0 {
        ((from[0] * edge[0] + from[1] * edge[1]) / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let off = [from[0] - t * edge[0], from[1] - t * edge[1]];
    (off[0] * off[0] + off[1] * off[1]).sqrt()
}
