//! From the unit box in which figures are defined to the pixels where they are drawn:
//! `p -> centre + A (p + field(p) - 1/2)`.
//!
//! `field` is a sum of a few random waves. As it depends on the place only, strokes that meet still
//! meet after it. `A` turns, shears and scales.

use std::f32::consts::TAU;

use super::noise::Noise;
use super::raster::SIDE;

/// A place: x to the right, y down.
pub(super) type Point = [f32; 2];

const WAVES: usize = 3;

struct Wave {
    direction: Point,
    phase: f32,
    push: Point,
}

/// One random map.
pub(super) struct Deformation {
    waves: [Wave; WAVES],
    matrix: [Point; 2],
    centre: Point,
}

impl Deformation {
    /// For digits: a box of 20 pixels, as in MNIST, strongly bent.
    pub fn handwriting(noise: &mut Noise) -> Self {
        Self::new(noise, 20.0, 0.05, 0.13, 0.22, 1.0)
    }

    /// For shapes: larger and stiffer.
    pub fn cloth(noise: &mut Noise) -> Self {
        Self::new(noise, 23.0, 0.02, 0.06, 0.06, 0.8)
    }

    fn new(noise: &mut Noise, side: f32, bend: f32, turn: f32, shear: f32, shift: f32) -> Self {
        let waves = std::array::from_fn(|_| {
            let angle = noise.range(0.0, TAU);
            let frequency = TAU * noise.range(0.35, 1.1);
            Wave {
                direction: [angle.cos() * frequency, angle.sin() * frequency],
                phase: noise.range(0.0, TAU),
                push: [noise.bell(bend), noise.bell(bend)],
            }
        });
        let (sin, cos) = noise.bell(turn).sin_cos();
        let shear = noise.bell(shear);
        let width = side * (1.0 + noise.bell(0.12));
        let height = side * (1.0 + noise.bell(0.06));
        let middle = SIDE as f32 / 2.0;
        Self {
            waves,
            matrix: [
                [cos * width, (-cos * shear - sin) * height],
                [sin * width, (cos - sin * shear) * height],
            ],
            centre: [middle + noise.bell(shift), middle + noise.bell(shift)],
        }
    }

    /// Where a point of the unit box is drawn.
    pub fn apply(&self, [x, y]: Point) -> Point {
        let mut moved = [x - 0.5, y - 0.5];
        for wave in &self.waves {
            let height = (wave.direction[0] * x + wave.direction[1] * y + wave.phase).sin();
            moved[0] += wave.push[0] * height;
            moved[1] += wave.push[1] * height;
        }
        let row = |row: usize| self.matrix[row][0] * moved[0] + self.matrix[row][1] * moved[1];
        [self.centre[0] + row(0), self.centre[1] + row(1)]
    }
}
