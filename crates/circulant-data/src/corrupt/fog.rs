//! `fog`: a plasma fractal over the picture, `(x + c f) max / (max + c)` with the greatest number of the
//! picture.
//!
//! The fractal is made by diamonds and squares on a torus whose side is a power of two: every new point
//! is the mean of four neighbours plus `w U(-w, w)` with a `w` that starts at 100 and is divided by the
//! decay at every halving; at the end 0..=1. Pictures of other sizes get the smallest torus that covers
//! them.

use super::Operation;
use super::corruption::Severity;
use super::picture::{unit, write};
use super::random::Random;

pub(super) fn fog(severity: Severity) -> Operation {
    let parameters = [(0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75)];
    let (amount, decay) = severity.of(parameters);
    Box::new(move |picture, random, output| {
        let (height, width) = (picture.height, picture.width);
        // A torus of one point has no halving.
        let side = height.max(width).max(2).next_power_of_two();
        let fractal = plasma(side, decay, random);
        let most = unit(picture.bytes.iter().max().copied().unwrap_or(0));
        for (plane, output) in picture.planes(output) {
            let foggy = plane.values.iter().enumerate().map(|(pixel, x)| {
                let fog = fractal[pixel / width * side + pixel % width];
                (x + amount * fog) * most / (most + amount)
            });
            write(output, foggy);
        }
    })
}

/// The fractal, `side * side` numbers of 0..=1.
fn plasma(side: usize, decay: f64, random: &mut Random) -> Vec<f64> {
    let mut map = vec![0.0; side * side];
    let mut step = side;
    let mut wobble = 100.0;
    while step >= 2 {
        let half = step / 2;
        // The middles of the squares, then those of the upper and of the left edges.
        for (start_row, start_column) in [(half, half), (0, half), (half, 0)] {
            for row in (start_row..side).step_by(step) {
                for column in (start_column..side).step_by(step) {
                    let at = |down: usize, right: usize| {
                        map[(row + side - half + down) % side * side
                            + (column + side - half + right) % side]
                    };
                    let sum = if start_row == start_column {
                        at(0, 0) + at(step, 0) + at(0, step) + at(step, step)
                    } else {
                        at(0, half) + at(step, half) + at(half, 0) + at(half, step)
                    };
                    map[row * side + column] = sum / 4.0 + wobble * random.range(-wobble, wobble);
                }
            }
        }
        step = half;
        wobble /= decay;
    }
    let low = map.iter().copied().fold(f64::INFINITY, f64::min);
    let high = map.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    map.iter_mut().for_each(|x| *x = (*x - low) / (high - low));
    map
}

#[cfg(test)]
mod tests {
    use super::super::tests::applied;
    use super::*;

    #[test]
    fn plasma_fills_zero_to_one_and_is_smoother_with_more_decay() {
        let roughness = |decay: f64| {
            let mut sum = 0.0;
            for index in 0..50 {
                let map = plasma(32, decay, &mut Random::new(index, [0; 3]));
                assert!(map.contains(&0.0) && map.contains(&1.0));
                assert!(map.iter().all(|x| (0.0..=1.0).contains(x)));
                sum += map
                    .windows(2)
                    .map(|pair| (pair[1] - pair[0]).abs())
                    .sum::<f64>();
            }
            sum
        };
        let values = [3.0, 2.5, 2.0, 1.75].map(roughness);
        assert!(values.is_sorted(), "{values:?}");
    }

    #[test]
    fn fog_keeps_black_pictures_black() {
        let black = [0; 3 * 5 * 7];
        assert_eq!(applied(&fog(Severity::ALL[4]), &black, [5, 7], 1), black);
    }
}
