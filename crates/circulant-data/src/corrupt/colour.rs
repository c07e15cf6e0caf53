//! `brightness`, `saturate` (both in HSV) and `contrast`.
//!
//! HSV as in scikit-image: value `v = max`, saturation `s = (max - min) / max`, hue in sixths of a turn.
//! `brightness`: `v + c`. `saturate`: `a s + b`. `contrast`: `(x - mean) c + mean`, mean per channel.

use super::corruption::Severity;
use super::picture::{Picture, byte};
use super::random::Random;
use super::{Bytes, Operation};

/// Hue, saturation and value, all in 0..=1, of red, green and blue.
fn hsv([red, green, blue]: [f64; 3]) -> [f64; 3] {
    let value = red.max(green).max(blue);
    let delta = value - red.min(green).min(blue);
    if delta == 0.0 {
        return [0.0, 0.0, value];
    }
    // Of equal greatest channels the last counts.
    let sixths = if blue == value {
        4.0 + (red - green) / delta
    } else if green == value {
        2.0 + (blue - red) / delta
    } else {
        (green - blue) / delta
    };
    [(sixths / 6.0).rem_euclid(1.0), delta / value, value]
}

/// Red, green and blue.
fn rgb([hue, saturation, value]: [f64; 3]) -> [f64; 3] {
    let sixth = (hue * 6.0).floor();
    let rest = hue * 6.0 - sixth;
    let low = value * (1.0 - saturation);
    let falling = value * (1.0 - rest * saturation);
    let rising = value * (1.0 - (1.0 - rest) * saturation);
    match sixth as u8 % 6 {
        0 => [value, rising, low],
        1 => [falling, value, low],
        2 => [low, value, rising],
        3 => [low, falling, value],
        4 => [rising, low, value],
        _ => [value, low, falling],
    }
}

/// Saturation becomes `factor s + more`, value `v + light`.
pub(super) struct Tone {
    factor: f64,
    more: f64,
    light: f64,
}

impl Tone {
    pub fn brightness(severity: Severity) -> Self {
        Self {
            factor: 1.0,
            more: 0.0,
            light: severity.of([0.05, 0.1, 0.15, 0.2, 0.3]),
        }
    }

    pub fn saturate(severity: Severity) -> Self {
        let (factor, more) =
            severity.of([(0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)]);
        Self {
            factor,
            more,
            light: 0.0,
        }
    }
}

impl Operation for Tone {
    fn apply(&self, picture: &Picture<'_>, _: &mut Random, output: Bytes<'_>) {
        for pixel in 0..picture.area() {
            let [hue, saturation, value] = hsv(picture.colour(pixel));
            let saturation = (saturation * self.factor + self.more).clamp(0.0, 1.0);
            let value = (value + self.light).clamp(0.0, 1.0);
            for (channel, x) in rgb([hue, saturation, value]).into_iter().enumerate() {
                output[channel * picture.area() + pixel] = byte(x);
            }
        }
    }
}

/// `contrast`; the factor of the distance from the mean.
pub(super) struct Contrast(f64);

impl Contrast {
    pub fn new(severity: Severity) -> Self {
        Self(severity.of([0.75, 0.5, 0.4, 0.3, 0.15]))
    }
}

impl Operation for Contrast {
    fn apply(&self, picture: &Picture<'_>, _: &mut Random, output: Bytes<'_>) {
        for (channel, output) in output.chunks_mut(picture.area()).enumerate() {
            let plane = picture.plane(channel);
            let mean = plane.values.iter().sum::<f64>() / plane.values.len() as f64;
            for (output, x) in output.iter_mut().zip(plane.values) {
                *output = byte((x - mean) * self.0 + mean);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(operation: &dyn Operation, colours: &[[u8; 3]]) -> Vec<[u8; 3]> {
        let count = colours.len();
        let bytes: Vec<u8> = (0..3)
            .flat_map(|c| colours.iter().map(move |x| x[c]))
            .collect();
        let picture = Picture {
            bytes: &bytes,
            height: 1,
            width: count,
        };
        let mut output = vec![0; bytes.len()];
        operation.apply(&picture, &mut Random::new(0, [0; 3]), &mut output);
        (0..count)
            .map(|i| [0, 1, 2].map(|c| output[c * count + i]))
            .collect()
    }

    fn some_colours() -> Vec<[u8; 3]> {
        let mut random = Random::new(3, [0; 3]);
        let mut colours = vec![
            [0; 3],
            [255; 3],
            [255, 0, 0],
            [0, 255, 0],
            [0, 0, 255],
            [9, 9, 200],
            [70; 3],
        ];
        colours.extend((0..500).map(|_| [(); 3].map(|()| random.below(256) as u8)));
        colours
    }

    /// Cutting and a last digit.
    const STEP: f64 = 1.001;

    /// Adding to `v` scales all channels by `(v + c) / v`; scaling `s` moves them to or from `v`.
    #[test]
    fn tones_equal_the_formulas_without_hue() {
        let colours = some_colours();
        for severity in Severity::ALL {
            let light = severity.of([0.05, 0.1, 0.15, 0.2, 0.3]);
            let (factor, more) =
                severity.of([(0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)]);
            let bright = run(&Tone::brightness(severity), &colours);
            let saturated = run(&Tone::saturate(severity), &colours);
            for ((colour, bright), saturated) in colours.iter().zip(bright).zip(saturated) {
                let value = f64::from(*colour.iter().max().unwrap()) / 255.0;
                let least = f64::from(*colour.iter().min().unwrap()) / 255.0;
                let grey = value == least;
                for channel in 0..3 {
                    let x = f64::from(colour[channel]) / 255.0;
                    let scale = if value > 0.0 { x / value } else { 1.0 };
                    let expected = 255.0 * (value + light).min(1.0) * scale;
                    let found = f64::from(bright[channel]);
                    assert!(
                        (-1e-9..STEP).contains(&(expected - found)),
                        "{expected} {found}"
                    );
                    if !grey {
                        let s = (value - least) / value;
                        let more = (s * factor + more).min(1.0) / s;
                        let expected = 255.0 * (value - (value - x) * more);
                        let found = f64::from(saturated[channel]);
                        assert!(
                            (-1e-9..STEP).contains(&(expected - found)),
                            "{expected} {found}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn hue_is_kept_and_read_back() {
        for colour in some_colours() {
            let colour = colour.map(|x| f64::from(x) / 255.0);
            let back = rgb(hsv(colour));
            let error = [0, 1, 2].map(|c| (colour[c] - back[c]).abs());
            assert!(error.iter().all(|&e| e < 1e-12), "{colour:?} {back:?}");
        }
    }

    #[test]
    fn contrast_draws_to_the_mean() {
        let colours = some_colours();
        for severity in Severity::ALL {
            let c = severity.of([0.75, 0.5, 0.4, 0.3, 0.15]);
            let found = run(&Contrast::new(severity), &colours);
            for channel in 0..3 {
                let mean = colours.iter().map(|x| f64::from(x[channel])).sum::<f64>()
                    / colours.len() as f64;
                for (colour, found) in colours.iter().zip(&found) {
                    let expected = mean + c * (f64::from(colour[channel]) - mean);
                    let error = expected - f64::from(found[channel]);
                    assert!((-1e-9..STEP).contains(&error), "{error}");
                }
            }
        }
    }
}
