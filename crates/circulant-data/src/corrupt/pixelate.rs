//! `pixelate`: to `int(c size)` pixels and back, both with the box filter of the Python Imaging Library.
//!
//! A box takes the pixels whose middle lies within `max(scale, 1) / 2` of the middle of the new pixel,
//! all with the same weight, rows of the picture first; bytes are rounded after each direction.

use super::Operation;
use super::corruption::Severity;

pub(super) fn pixelate(severity: Severity) -> Operation {
    Box::new(move |picture, _, output| {
        let size = [picture.height, picture.width];
        let small = size.map(|size| fewer(size, severity));
        for (channel, output) in output.chunks_mut(picture.area()).enumerate() {
            let pixels = resize(picture.channel(channel), size, small);
            output.copy_from_slice(&resize(&pixels, small, size));
        }
    })
}

fn fewer(size: usize, severity: Severity) -> usize {
    let c = severity.of([0.95, 0.9, 0.85, 0.75, 0.65]);
    ((size as f64 * c) as usize).max(1)
}

/// The pixels `from..to` of each of `made` boxes over `size` pixels.
fn boxes(size: usize, made: usize) -> impl Iterator<Item = (usize, usize)> {
    let scale = size as f64 / made as f64;
    let reach = scale.max(1.0) * 0.5;
    (0..made).map(move |place| {
        let middle = (place as f64 + 0.5) * scale;
        let from = (middle - reach + 0.5) as usize;
        let to = ((middle + reach + 0.5) as usize).min(size);
        // The lower end of a box is open, the upper one closed.
        let inside = |pixel: usize| {
            let distance = (pixel as f64 - middle + 0.5) / scale.max(1.0);
            distance > -0.5 && distance <= 0.5
        };
        let from = (from..to).find(|&pixel| inside(pixel)).unwrap_or(from);
        let to = (from..to)
            .rfind(|&pixel| inside(pixel))
            .map_or(from + 1, |last| last + 1);
        (from, to)
    })
}

/// `[height, width]` pixels to others.
fn resize(pixels: &[u8], [height, width]: [usize; 2], [rows, columns]: [usize; 2]) -> Vec<u8> {
    let boxes_of_row: Vec<_> = boxes(width, columns).collect();
    let mut narrow = Vec::with_capacity(height * columns);
    for row in pixels.chunks(width) {
        for &(from, to) in &boxes_of_row {
            narrow.push(mean(row[from..to].iter().copied(), to - from));
        }
    }
    let mut small = Vec::with_capacity(rows * columns);
    for (from, to) in boxes(height, rows) {
        for column in 0..columns {
            let pixels = (from..to).map(|row| narrow[row * columns + column]);
            small.push(mean(pixels, to - from));
        }
    }
    small
}

/// The mean in fixed point with 22 bits, as there; halves are rounded as its coefficients happen to be.
fn mean(pixels: impl Iterator<Item = u8>, count: usize) -> u8 {
    const BITS: u32 = 22;
    let weight = (f64::from(1 << BITS) / count as f64 + 0.5) as u64;
    let sum: u64 = pixels.map(|x| u64::from(x) * weight).sum();
    ((sum + (1 << (BITS - 1))) >> BITS).min(255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_cover_the_row_without_gaps() {
        for size in [1, 2, 3, 7, 32, 33] {
            for severity in Severity::ALL {
                let small = fewer(size, severity);
                let found: Vec<_> = boxes(size, small).collect();
                assert_eq!(found[0].0, 0);
                assert_eq!(found.last().unwrap().1, size);
                assert!(
                    found.windows(2).all(|pair| pair[0].1 == pair[1].0),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn halving_is_the_mean_of_four_and_growing_repeats() {
        let pixels: Vec<u8> = (0..64).map(|i| (i * 37 % 256) as u8).collect();
        let small = resize(&pixels, [8, 8], [4, 4]);
        for (place, &found) in small.iter().enumerate() {
            let start = place / 4 * 16 + place % 4 * 2;
            let four = [0, 1, 8, 9].map(|offset| f64::from(pixels[start + offset]));
            let mean = four.iter().sum::<f64>() / 4.0;
            // Two roundings of a half.
            assert!((f64::from(found) - mean).abs() <= 0.76, "{found} {mean}");
        }
        let grown = resize(&small, [4, 4], [8, 8]);
        assert!((0..64).all(|i| grown[i] == small[i / 16 * 4 + i % 8 / 2]));
    }

    #[test]
    fn the_number_of_pixels_is_cut() {
        let counts = Severity::ALL.map(|severity| fewer(32, severity));
        assert_eq!(counts, [30, 28, 27, 24, 20]);
    }
}
