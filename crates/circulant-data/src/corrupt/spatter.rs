//! `spatter`: drops of water (severities 1 to 3) or of mud (4 and 5).
//!
//! Normal numbers, smoothed, are liquid where they exceed a threshold. Mud covers the picture where the
//! smoothed mask is at least 0.8. Water adds a pale turquoise, shaded by how far the edge of a drop is:
//! edges by Canny (`spatter/edges.rs`), distance by chamfers (`spatter/distance.rs`), cut at 20, equal
//! histogram, an embossing kernel, and means of 3 x 3 around it.

mod distance;
mod edges;

use super::Operation;
use super::corruption::Severity;
use super::gaussian::Gaussian;
use super::picture::{Border, Plane, byte_of_single};

/// Pale turquoise and brown.
const WATER: [f32; 3] = [175.0 / 255.0, 238.0 / 255.0, 238.0 / 255.0];
const MUD: [f32; 3] = [63.0 / 255.0, 42.0 / 255.0, 20.0 / 255.0];

pub(super) fn spatter(severity: Severity) -> Operation {
    // Last: the strength of water, or the deviation of the Gaussian that smooths the mask of mud.
    let (mean, deviation, sigma, threshold, last, is_mud) = severity.of([
        (0.62, 0.1, 0.7, 0.7, 0.5, false),
        (0.65, 0.1, 0.8, 0.7, 0.5, false),
        (0.65, 0.3, 1.0, 0.69, 0.5, false),
        (0.65, 0.1, 0.7, 0.69, 0.6, true),
        (0.65, 0.1, 0.5, 0.68, 0.6, true),
    ]);
    let [filter, mask] = [sigma, last].map(Gaussian::new);
    Box::new(move |picture, random, output| {
        let mut layer = filter.filter(&Plane {
            values: random.normals(picture.area(), mean, deviation),
            height: picture.height,
            width: picture.width,
        });
        for value in &mut layer.values {
            if *value < threshold {
                *value = 0.0;
            }
        }
        // What is left of the picture, and what is added.
        let (cover, colour) = match is_mud {
            false => (water(&layer, last as f32), WATER),
            true => (mud(layer, threshold, &mask), MUD),
        };
        for (channel, output) in output.chunks_mut(picture.area()).enumerate() {
            let bytes = picture.channel(channel);
            for ((output, &x), &cover) in output.iter_mut().zip(bytes).zip(&cover) {
                let x = f32::from(x) / 255.0;
                let left = if is_mud { x * (1.0 - cover) } else { x };
                *output = byte_of_single(left + cover * colour[channel]);
            }
        }
    })
}

/// How much mud lies on each pixel.
fn mud(mut layer: Plane, threshold: f64, filter: &Gaussian) -> Vec<f32> {
    for value in &mut layer.values {
        *value = f64::from(u8::from(*value > threshold));
    }
    let mask = filter.filter_single(&layer).values;
    let thick = |x: f64| if x < 0.8 { 0.0 } else { x as f32 };
    mask.into_iter().map(thick).collect()
}

/// How much light the water adds to each pixel.
fn water(layer: &Plane, strength: f32) -> Vec<f32> {
    let (height, width) = (layer.height, layer.width);
    // Beyond 1 the byte starts again at 0, as NumPy's does: a dark core in one of fifty pictures.
    let liquid: Vec<u8> = layer
        .values
        .iter()
        .map(|x| (x * 255.0) as u32 as u8)
        .collect();
    let edges = edges::canny(&liquid, height, width, 50, 150);
    let plane = |values: Vec<f64>| Plane {
        values,
        height,
        width,
    };
    let distances = distance::to_nearest(&edges, height, width);
    let distances = plane(distances.into_iter().map(|x| x.min(20.0).into()).collect());
    let near = correlate(&distances, SUM).map(|x| (x / 9.0) as f32 as u8);
    let shade = equalised(&near.collect::<Vec<_>>());
    let emboss = plane(shade.into_iter().map(f64::from).collect());
    let emboss = correlate(&emboss, EMBOSS).map(|x| x.clamp(0.0, 255.0));
    let emboss = plane(emboss.collect());
    let shade = correlate(&emboss, SUM).map(|x| (x / 9.0).round() as f32);
    let light: Vec<f32> = shade
        .zip(&liquid)
        .map(|(x, &liquid)| x * f32::from(liquid))
        .collect();
    let most = light.iter().copied().fold(0.0, f32::max);
    // The published program divides by zero on a picture without a drop.
    if most == 0.0 {
        return light;
    }
    light.into_iter().map(|x| x / most * strength).collect()
}

const SUM: [f64; 9] = [1.0; 9];
const EMBOSS: [f64; 9] = [-2.0, -1.0, 0.0, -1.0, 1.0, 1.0, 0.0, 1.0, 2.0];

/// Sums of products with a kernel of 3 x 3.
fn correlate(plane: &Plane, kernel: [f64; 9]) -> impl Iterator<Item = f64> {
    (0..plane.values.len()).map(move |pixel| {
        let (row, column) = (
            (pixel / plane.width) as isize,
            (pixel % plane.width) as isize,
        );
        let at = |(tap, weight): (usize, f64)| {
            let (y, x) = (tap as isize / 3 - 1, tap as isize % 3 - 1);
            weight * plane.at(row + y, column + x, Border::Mirror)
        };
        kernel.into_iter().enumerate().map(at).sum()
    })
}

/// Bytes with an even histogram, as OpenCV's `equalizeHist`.
fn equalised(bytes: &[u8]) -> Vec<u8> {
    let mut counts = [0_usize; 256];
    bytes.iter().for_each(|&x| counts[usize::from(x)] += 1);
    let lowest = bytes.iter().min().map_or(0, |&x| counts[usize::from(x)]);
    if lowest == bytes.len() {
        return bytes.to_vec();
    }
    let scale = 255.0 / (bytes.len() - lowest) as f32;
    let mut sum = 0;
    let table = counts.map(|count| {
        sum += count;
        // The lowest byte becomes 0.
        (sum.saturating_sub(lowest) as f32 * scale).round_ties_even() as u8
    });
    bytes.iter().map(|&x| table[usize::from(x)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::applied;
    use super::*;

    fn spattered(severity: usize, value: u8) -> Vec<u8> {
        let operation = spatter(Severity::ALL[severity - 1]);
        applied(&operation, &[value; 3 * 32 * 32], [32, 32], 1)
    }

    #[test]
    fn water_brightens_and_mud_is_brown() {
        for severity in 1..=3 {
            let output = spattered(severity, 100);
            assert!(output.iter().all(|&x| x >= 99));
            let most = f64::from(*output[1024..].iter().max().unwrap());
            assert!((most - (100.0 + 0.5 * 238.0)).abs() <= 1.0, "{most}");
        }
        for severity in 4..=5 {
            let output = spattered(severity, 200);
            let colour = |i: usize| [0, 1, 2].map(|channel| output[channel * 1024 + i]);
            // Mud of 0.8 to 1 over 200.
            let is_brown = |[red, green, blue]: [u8; 3]| red <= 91 && green < red && blue < green;
            let brown = (0..1024).filter(|&i| is_brown(colour(i))).count();
            let clean = (0..1024).filter(|&i| colour(i)[0] >= 199).count();
            assert!(brown > 10 && brown + clean == 1024, "{brown} {clean}");
        }
    }

    #[test]
    fn no_drop_changes_nothing() {
        let layer = Plane {
            values: vec![0.0; 30],
            height: 5,
            width: 6,
        };
        assert!(water(&layer, 0.5).iter().all(|&x| x == 0.0));
    }

    #[test]
    fn equal_histograms_reach_both_ends() {
        assert_eq!(equalised(&[7, 7, 7]), [7, 7, 7]);
        assert_eq!(equalised(&[3, 9, 5, 3]), [0, 255, 128, 0]);
    }
}
