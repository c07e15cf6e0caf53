//! `brightness`, `saturate` (both in HSV) and `contrast`.
//!
//! HSV as in scikit-image: value `v = max`, saturation `s = (max - min) / max`, hue in sixths of a turn.
//! `brightness`: `v + c`. `saturate`: `a s + b`. `contrast`: `(x - mean) c + mean`, mean per channel.

use super::Operation;
use super::corruption::Severity;
use super::picture::{byte, write};

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

pub(super) fn brightness(severity: Severity) -> Operation {
    tone(1.0, 0.0, severity.of([0.05, 0.1, 0.15, 0.2, 0.3]))
}

pub(super) fn saturate(severity: Severity) -> Operation {
    let (factor, more) = severity.of([(0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)]);
    tone(factor, more, 0.0)
}

/// Saturation becomes `factor s + more`, value `v + light`.
fn tone(factor: f64, more: f64, light: f64) -> Operation {
    Box::new(move |picture, _, output| {
        for pixel in 0..picture.area() {
            let [hue, saturation, value] = hsv(picture.colour(pixel));
            let saturation = (saturation * factor + more).clamp(0.0, 1.0);
            let value = (value + light).clamp(0.0, 1.0);
            for (channel, x) in rgb([hue, saturation, value]).into_iter().enumerate() {
                output[channel * picture.area() + pixel] = byte(x);
            }
        }
    })
}

pub(super) fn contrast(severity: Severity) -> Operation {
    let c = severity.of([0.75, 0.5, 0.4, 0.3, 0.15]);
    Box::new(move |picture, _, output| {
        for (plane, output) in picture.planes(output) {
            let mean = plane.values.iter().sum::<f64>() / plane.values.len() as f64;
            write(output, plane.values.iter().map(|x| (x - mean) * c + mean));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::super::tests::applied;
    use super::*;

    fn run(operation: Operation, colours: &[[u8; 3]]) -> Vec<[u8; 3]> {
        let count = colours.len();
        let channel = |c: usize| colours.iter().map(move |colour| colour[c]);
        let bytes: Vec<u8> = (0..3).flat_map(channel).collect();
        let output = applied(&operation, &bytes, [1, count], 0);
        let colour = |i| [0, 1, 2].map(|c| output[c * count + i]);
        (0..count).map(colour).collect()
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
            let bright = run(brightness(severity), &colours);
            let saturated = run(saturate(severity), &colours);
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
            let found = run(contrast(severity), &colours);
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
