//! `frost`: `a x + b texture`, cut at 255.
//!
//! The published program crops one of five photographs of frost, at a fifth of their size. They are not
//! part of this program: the texture is drawn. Its five palettes have the mean and the deviation per
//! channel of the five photographs; its correlation between pixels at distance 1, 2, 4, 8 and 16, about
//! 0.64, 0.54, 0.46, 0.39 and 0.28, is near theirs (0.59, 0.52, 0.47, 0.41 and 0.33 in the mean). It is
//! a sum of smooth fields of several wavelengths, of crystals (straight needles in directions 60 degrees
//! apart) and of grain. Numbers on real frost may still differ: use the published files for those.

use std::f64::consts::{FRAC_PI_3, PI};

use super::Operation;
use super::corruption::Severity;
use super::random::Random;

pub(super) fn frost(severity: Severity) -> Operation {
    let (a, b) = severity.of([
        (1.0, 0.2),
        (1.0, 0.3),
        (0.9, 0.4),
        (0.85, 0.4),
        (0.75, 0.45),
    ]);
    Box::new(move |picture, random, output| {
        let palette = &PALETTES[random.below(PALETTES.len())];
        let field = field(picture.height, picture.width, random);
        for (channel, output) in output.chunks_mut(picture.area()).enumerate() {
            let (mean, deviation) = palette[channel];
            let bytes = picture.channel(channel);
            for ((output, &x), field) in output.iter_mut().zip(bytes).zip(&field) {
                let ice = (mean + deviation * field).clamp(0.0, 255.0).round();
                *output = (a * f64::from(x) + b * ice).min(255.0) as u8;
            }
        }
    })
}

/// Mean and deviation of red, green and blue. Two of the photographs are the same.
const PALETTES: [[(f64, f64); 3]; 5] = [
    [(78.0, 27.0), (149.0, 16.0), (166.0, 15.0)],
    [(201.0, 21.0), (205.0, 22.0), (214.0, 23.0)],
    [(201.0, 21.0), (205.0, 22.0), (214.0, 23.0)],
    [(138.0, 29.0), (153.0, 29.0), (166.0, 30.0)],
    [(112.0, 44.0), (123.0, 43.0), (135.0, 42.0)],
];

/// Wavelengths in pixels and their shares of the variance.
const WAVES: [(f64, f64); 4] = [(48.0, 0.26), (16.0, 0.18), (4.0, 0.05), (2.0, 0.03)];
/// The shares of crystals and grain.
const CRYSTALS: f64 = 0.2;
const GRAIN: f64 = 0.28;

/// A field of mean 0 and variance 1, over many pictures.
fn field(height: usize, width: usize, random: &mut Random) -> Vec<f64> {
    let mut field = random.normals(height * width, 0.0, GRAIN.sqrt());
    for (wavelength, share) in WAVES {
        add_wave(&mut field, width, wavelength, share, random);
    }
    let crystals = crystals(height, width, random);
    let count = crystals.len() as f64;
    let mean = crystals.iter().sum::<f64>() / count;
    let variance = crystals.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    // A picture of one pixel has no variance.
    let scale = (CRYSTALS / variance.max(1e-6)).sqrt();
    for (field, crystal) in field.iter_mut().zip(crystals) {
        *field += (crystal - mean) * scale;
    }
    field
}

/// Adds normal numbers on a lattice with a random origin, interpolated linearly between.
fn add_wave(field: &mut [f64], width: usize, wavelength: f64, share: f64, random: &mut Random) {
    let height = field.len() / width;
    let [top, left] = [random.unit(), random.unit()];
    let columns = (width as f64 / wavelength) as usize + 3;
    let rows = (height as f64 / wavelength) as usize + 3;
    // The mean of the squared weights over a cell is 2/3 in each direction.
    let lattice = random.normals(rows * columns, 0.0, 1.5 * share.sqrt());
    for (pixel, value) in field.iter_mut().enumerate() {
        let row = (pixel / width) as f64 / wavelength + top;
        let column = (pixel % width) as f64 / wavelength + left;
        let (down, right) = (row.fract(), column.fract());
        let corner = &lattice[row as usize * columns + column as usize..];
        *value += (corner[0] * (1.0 - right) + corner[1] * right) * (1.0 - down)
            + (corner[columns] * (1.0 - right) + corner[columns + 1] * right) * down;
    }
}

/// Needles of light, one for about 20 pixels, in three directions of a random lattice.
fn crystals(height: usize, width: usize, random: &mut Random) -> Vec<f64> {
    const MARGIN: f64 = 6.0;
    let mut light = vec![0.0; height * width];
    let turn = random.range(0.0, PI);
    let area = (height as f64 + 2.0 * MARGIN) * (width as f64 + 2.0 * MARGIN);
    for _ in 0..(area / 20.0) as usize {
        let middle = [
            random.range(-MARGIN, height as f64 + MARGIN),
            random.range(-MARGIN, width as f64 + MARGIN),
        ];
        let angle = turn + random.below(3) as f64 * FRAC_PI_3 + random.normal(0.0, 0.1);
        let half = random.range(1.0, MARGIN);
        let bright = random.range(0.3, 1.0);
        add_needle(&mut light, width, middle, angle, half, bright);
    }
    light
}

/// Adds a line that is thinner towards its ends.
fn add_needle(
    light: &mut [f64],
    width: usize,
    middle: [f64; 2],
    angle: f64,
    half: f64,
    bright: f64,
) {
    const THICKNESS: f64 = 0.5;
    let height = light.len() / width;
    let (sine, cosine) = angle.sin_cos();
    let span = |middle: f64, size: usize| {
        let first = (middle - half - 1.0).max(0.0) as usize;
        first..((middle + half + 2.0).max(0.0) as usize).min(size)
    };
    for row in span(middle[0], height) {
        for column in span(middle[1], width) {
            let (y, x) = (row as f64 - middle[0], column as f64 - middle[1]);
            let along = (x * cosine + y * sine) / half;
            let across = (y * cosine - x * sine) / THICKNESS;
            let taper = (1.0 - along.abs()).max(0.0);
            light[row * width + column] += bright * taper * (-0.5 * across * across).exp();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textures_have_the_stated_moments_and_correlations() {
        const SIDE: usize = 32;
        let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
        let mut products = [(1, 0.0), (2, 0.0), (4, 0.0), (8, 0.0), (16, 0.0)];
        for seed in 0..400 {
            let field = field(SIDE, SIDE, &mut Random::new(seed, [0; 3]));
            sum += field.iter().sum::<f64>();
            squares += field.iter().map(|x| x * x).sum::<f64>();
            count += field.len() as f64;
            for (lag, product) in &mut products {
                for row in field.chunks(SIDE) {
                    let pairs = row.iter().zip(&row[*lag..]);
                    *product += pairs.map(|(a, b)| a * b).sum::<f64>()
                        / (SIDE * (SIDE - *lag)) as f64
                        / 400.0;
                }
            }
        }
        // The longest wave makes neighbouring pictures' means vary: 400 of them know 1 to about 0.05.
        assert!((sum / count).abs() < 0.15 && (squares / count - 1.0).abs() < 0.1);
        for ((lag, found), stated) in products.into_iter().zip([0.64, 0.54, 0.46, 0.39, 0.28]) {
            assert!((found - stated).abs() < 0.05, "{lag}: {found}");
        }
    }
}
