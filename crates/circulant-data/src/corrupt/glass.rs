//! `glass_blur`: a Gaussian, pixels replaced by neighbours, and the Gaussian again.
//!
//! The published program means to swap a pixel with a random neighbour. With NumPy's views its
//! exchange copies the neighbour and leaves it in its place; the published pictures are made that way,
//! and so are these. Neighbours are 0 or 1 pixels up and left: the upper end of the range is excluded.

use super::Operation;
use super::corruption::Severity;
use super::gaussian::Gaussian;
use super::picture::write;

/// Farthest neighbour.
const REACH: usize = 1;

pub(super) fn glass_blur(severity: Severity) -> Operation {
    let parameters = [(0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2)];
    let (sigma, rounds) = severity.of(parameters);
    let filter = Gaussian::new(sigma);
    Box::new(move |picture, random, output| {
        for (plane, output) in picture.planes(output) {
            write(output, filter.filter(&plane).values);
        }
        let (area, width) = (picture.area(), picture.width);
        // From the last row and column to the second after REACH.
        let places = |size: usize| (REACH + 1..(size + 1).saturating_sub(REACH)).rev();
        for _ in 0..rounds {
            for row in places(picture.height) {
                for column in places(width) {
                    let left = REACH - random.below(2 * REACH);
                    let up = REACH - random.below(2 * REACH);
                    // REACH is 1: a neighbour is never right or below.
                    let from = (row - up) * width + column - left;
                    for channel in output.chunks_mut(area) {
                        channel[row * width + column] = channel[from];
                    }
                }
            }
        }
        for output in output.chunks_mut(area) {
            let plane = picture.plane(output);
            write(output, filter.filter(&plane).values);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::applied;
    use super::*;

    #[test]
    fn pixels_come_from_above_and_left_and_stay_whole() {
        // The value of a pixel is its place, in all channels.
        let (height, width) = (9, 11);
        let bytes: Vec<u8> = (0..3).flat_map(|_| 0..(height * width) as u8).collect();
        // Severity 1 has a filter of one tap: only the moves are left. Cutting may cost 1.
        let output = applied(&glass_blur(Severity::ALL[0]), &bytes, [height, width], 3);
        let mut moved = 0;
        for (pixel, &found) in output[..height * width].iter().enumerate() {
            let back = pixel as isize - isize::from(found);
            let allowed = [0, 1, width as isize, width as isize + 1];
            assert!(
                allowed.iter().any(|a| (back - a).abs() <= 1),
                "{pixel} {found}"
            );
            moved += usize::from(back > 1);
            assert_eq!(output[height * width + pixel], found);
        }
        assert!(moved > 20, "{moved}");
        assert_eq!(output[0], 0);
    }
}
