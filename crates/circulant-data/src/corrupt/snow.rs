//! `snow`: a whitened picture, and flakes with a motion blur, once as they fall and once turned by 180
//! degrees.
//!
//! Flakes are normal numbers, zoomed, kept above a threshold and blurred along an angle of -135..-45
//! degrees. The picture becomes `m x + (1 - m) max(x, 1.5 grey(x) + 0.5)`.

use super::corruption::Severity;
use super::motion::Motion;
use super::picture::{Picture, byte};
use super::random::Random;
use super::zoom::Zoom;
use super::{Bytes, Operation};

pub(super) struct Snow {
    mean: f64,
    deviation: f64,
    zoom: Zoom,
    threshold: f64,
    motion: Motion,
    /// The share of the picture that is not whitened.
    kept: f64,
}

impl Snow {
    pub fn new(severity: Severity, height: usize, width: usize) -> Self {
        let (mean, deviation, zoom, threshold, radius, sigma, kept) = severity.of([
            (0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
            (0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
        ]);
        Self {
            mean,
            deviation,
            zoom: Zoom::new(height, width, zoom),
            threshold,
            motion: Motion::new(radius, sigma),
            kept,
        }
    }

    /// The falling flakes.
    fn flakes(&self, height: usize, width: usize, random: &mut Random) -> Vec<u8> {
        let values = random.normals(height * width, self.mean, self.deviation);
        let mut flakes = vec![0; height * width];
        self.zoom.each(&values, |pixel, value| {
            flakes[pixel] = if value < self.threshold {
                0
            } else {
                byte(value)
            };
        });
        let mut blurred = vec![0; height * width];
        let angle = random.range(-135.0, -45.0);
        self.motion
            .blur(&flakes, height, width, angle, &mut blurred);
        blurred
    }
}

impl Operation for Snow {
    fn apply(&self, picture: &Picture<'_>, random: &mut Random, output: Bytes<'_>) {
        let area = picture.area();
        let flakes = self.flakes(picture.height, picture.width, random);
        let kept = self.kept as f32;
        let whitened = (1.0 - self.kept) as f32;
        for pixel in 0..area {
            let colour = picture.colour(pixel).map(|x| x as f32);
            let grey = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
            let flake = |pixel: usize| f64::from(flakes[pixel]) / 255.0;
            for (channel, x) in colour.into_iter().enumerate() {
                let white = kept * x + whitened * x.max(grey * 1.5 + 0.5);
                // The last pixel is the first of the picture turned by 180 degrees.
                let snowy = f64::from(white) + flake(pixel) + flake(area - 1 - pixel);
                output[channel * area + pixel] = byte(snowy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snow_only_brightens_and_falls_both_ways() {
        let bytes = vec![0; 3 * 32 * 32];
        let picture = Picture {
            bytes: &bytes,
            height: 32,
            width: 32,
        };
        for severity in Severity::ALL {
            let mut output = vec![0; bytes.len()];
            Snow::new(severity, 32, 32).apply(&picture, &mut Random::new(1, [0; 3]), &mut output);
            // Black whitens to half of what is not kept.
            let floor = (1.0 - severity.of([0.95, 0.9, 0.9, 0.85, 0.8])) * 0.5 * 255.0;
            let least = f64::from(*output.iter().min().unwrap());
            assert!(
                (floor - 1.0..floor + 40.0).contains(&least),
                "{least} {floor}"
            );
            let turned: Vec<u8> = output[..1024].iter().rev().copied().collect();
            assert_eq!(output[..1024], turned);
        }
    }
}
