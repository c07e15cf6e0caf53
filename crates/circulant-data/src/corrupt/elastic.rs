//! `elastic_transform`: an affine map of three points moved by `U(-a, a)`, then a smooth random field.
//!
//! With `size` the smaller side, the three parameters of a severity are `size` times: the height of the
//! field, the deviation of the Gaussian that smooths it (border `reflect`, truncate 3), and `a`. The
//! affine map samples as OpenCV's `warpAffine`: linear, at places rounded to 1/32 pixel, border
//! `mirror`; the field as `scipy.ndimage.map_coordinates`: linear, border `reflect`.

use super::Operation;
use super::corruption::Severity;
use super::gaussian::Gaussian;
use super::picture::{Border, Picture, Plane, byte_of_single};
use super::random::Random;

pub(super) fn elastic_transform(severity: Severity, [height, width]: [usize; 2]) -> Operation {
    let size = height.min(width) as f64;
    let (top, sigma, reach) = severity.of([
        (0.0, 0.0, 0.08),
        (0.05, 0.2, 0.07),
        (0.08, 0.06, 0.06),
        (0.1, 0.04, 0.05),
        (0.1, 0.03, 0.03),
    ]);
    let filter = Gaussian::truncated(size * sigma, 3.0, Border::Reflect);
    // One component of the field.
    let field = move |random: &mut Random| {
        let values = random.uniforms(height * width, -1.0, 1.0);
        let mut field = filter.filter(&Plane {
            values,
            height,
            width,
        });
        field.values.iter_mut().for_each(|x| *x *= size * top);
        field.single()
    };
    Box::new(move |picture: &Picture<'_>, random, output| {
        let affine = Affine::draw(height, width, size * reach, random);
        let (right, down) = (field(random), field(random));
        for (plane, output) in picture.planes(output) {
            let moved = affine.warp(&plane.single());
            for (pixel, output) in output.iter_mut().enumerate() {
                let row = (pixel / width) as f64 + down.values[pixel];
                let column = (pixel % width) as f64 + right.values[pixel];
                let value = linear(&moved, row, column, Border::Reflect);
                *output = byte_of_single(value as f32);
            }
        }
    })
}

/// Linear interpolation.
fn linear(plane: &Plane, row: f64, column: f64, border: Border) -> f64 {
    let (y, x) = (row.floor(), column.floor());
    let (down, right) = (row - y, column - x);
    let at = |i: isize, j: isize| plane.at(y as isize + i, x as isize + j, border);
    at(0, 0) * (1.0 - down) * (1.0 - right)
        + at(0, 1) * (1.0 - down) * right
        + at(1, 0) * down * (1.0 - right)
        + at(1, 1) * down * right
}

/// `source = matrix (x, y, 1)`, `x` the column.
struct Affine([[f64; 3]; 2]);

impl Affine {
    const IDENTITY: Self = Self([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);

    /// Draws the images of three corners of a square in the middle; the map from these back.
    fn draw(height: usize, width: usize, reach: f64, random: &mut Random) -> Self {
        // Rows count as the first coordinate, as in the published program: the same for squares.
        let middle = [height / 2, width / 2].map(|x| x as f64);
        let side = (height.min(width) / 3) as f64;
        let points = [[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
            .map(|[a, b]| [middle[0] + a * side, middle[1] + b * side]);
        let moved = points.map(|point| {
            point.map(|x| f64::from((x + f64::from(random.range(-reach, reach) as f32)) as f32))
        });
        // Pictures of fewer than 3 pixels have no square.
        if side == 0.0 {
            return Self::IDENTITY;
        }
        Self::between(points, moved).inverse()
    }

    /// The map that takes the corners `(1, 1), (1, -1), (-1, -1)` of a square to three points.
    fn between(points: [[f64; 2]; 3], moved: [[f64; 2]; 3]) -> Self {
        let side = points[0][0] - points[2][0];
        Self([0, 1].map(|axis| {
            let x = (moved[1][axis] - moved[2][axis]) / side;
            let y = (moved[0][axis] - moved[1][axis]) / side;
            [x, y, moved[0][axis] - x * points[0][0] - y * points[0][1]]
        }))
    }

    fn inverse(&self) -> Self {
        let [[a, b, u], [c, d, v]] = self.0;
        let determinant = a * d - b * c;
        let scale = if determinant == 0.0 {
            0.0
        } else {
            1.0 / determinant
        };
        let (a, b, c, d) = (d * scale, -b * scale, -c * scale, a * scale);
        Self([[a, b, -a * u - b * v], [c, d, -c * u - d * v]])
    }

    /// The place that pixel `(column, row)` comes from, in 1/32 pixels.
    fn source(&self, column: usize, row: usize) -> [i64; 2] {
        // OpenCV has 10 bits after the point and rounds the two products for themselves.
        let fixed = |x: f64| (x * 1024.0).round_ties_even() as i64;
        self.0.map(|[x, y, constant]| {
            (fixed(x * column as f64) + fixed(y * row as f64 + constant) + 16) >> 5
        })
    }

    fn warp(&self, plane: &Plane) -> Plane {
        let mut warped = plane.clone();
        for (pixel, value) in warped.values.iter_mut().enumerate() {
            let source = self.source(pixel % plane.width, pixel / plane.width);
            let [column, row] = source.map(|x| x as f64 / 32.0);
            *value = linear(plane, row, column, Border::Mirror);
        }
        warped.single()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affine_maps_take_the_points_back() {
        let mut random = Random::new(2, [0; 3]);
        let points = [[26.0, 26.0], [26.0, 6.0], [6.0, 6.0]];
        let moved = points.map(|point| point.map(|x| x + random.range(-2.5, 2.5)));
        let back = Affine::between(points, moved).inverse();
        for (point, moved) in points.iter().zip(moved) {
            for ([x, y, constant], truth) in back.0.iter().zip(point) {
                let found = x * moved[0] + y * moved[1] + constant;
                assert!((found - truth).abs() < 1e-12);
            }
        }
        assert_eq!(Affine::IDENTITY.source(5, 7), [160, 224]);
    }

    #[test]
    fn shifts_move_a_ramp() {
        let (height, width) = (6, 8);
        let values = (0..48).map(|i| f64::from(i % 8)).collect();
        let plane = Plane {
            values,
            height,
            width,
        };
        let shifted = Affine([[1.0, 0.0, 0.25], [0.0, 1.0, 0.0]]).warp(&plane);
        assert!((0..7).all(|x| shifted.values[x] == x as f64 + 0.25));
        // Beyond the last column lies the one before it.
        assert_eq!(shifted.values[7], 6.75);
        assert_eq!(linear(&plane, 2.0, 3.5, Border::Reflect), 3.5);
        assert_eq!(linear(&plane, -3.0, 7.5, Border::Reflect), 7.0);
    }
}
