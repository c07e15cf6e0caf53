//! `snow`: a whitened picture, and flakes with a motion blur, once as they fall and once turned by 180
//! degrees.
//!
//! Flakes are normal numbers, zoomed, kept above a threshold and blurred along an angle of -135..-45
//! degrees. The picture becomes `m x + (1 - m) max(x, 1.5 grey(x) + 0.5)`.

use super::Operation;
use super::corruption::Severity;
use super::motion::Motion;
use super::picture::{byte, unit};
use super::zoom::Zoom;

pub(super) fn snow(severity: Severity, [height, width]: [usize; 2]) -> Operation {
    // Last: the share of the picture that is not whitened.
    let (mean, deviation, zoom, threshold, radius, sigma, kept) = severity.of([
        (0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
        (0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
    ]);
    let (zoom, motion) = (Zoom::new(height, width, zoom), Motion::new(radius, sigma));
    let (kept, whitened) = (kept as f32, (1.0 - kept) as f32);
    Box::new(move |picture, random, output| {
        let area = picture.area();
        let values = random.normals(area, mean, deviation);
        let (mut sharp, mut flakes) = (vec![0; area], vec![0; area]);
        zoom.each(&values, |pixel, value| {
            sharp[pixel] = if value < threshold { 0 } else { byte(value) };
        });
        let angle = random.range(-135.0, -45.0);
        motion.blur(&sharp, width, angle, &mut flakes);
        for pixel in 0..area {
            let colour = picture.colour(pixel).map(|x| x as f32);
            let grey = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
            // The last pixel is the first of the picture turned by 180 degrees.
            let [falling, turned] = [pixel, area - 1 - pixel].map(|pixel| unit(flakes[pixel]));
            for (channel, x) in colour.into_iter().enumerate() {
                let white = kept * x + whitened * x.max(grey * 1.5 + 0.5);
                output[channel * area + pixel] = byte(f64::from(white) + falling + turned);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::applied;
    use super::*;

    #[test]
    fn snow_only_brightens_and_falls_both_ways() {
        for severity in Severity::ALL {
            let output = applied(&snow(severity, [32; 2]), &[0; 3 * 32 * 32], [32; 2], 1);
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
