//! Distances to the nearest marked pixel by two passes over a neighbourhood of 5 x 5 (Borgefors 1986).
//!
//! Steps cost 1 along the sides, 1.4 along diagonals and 2.1969 for a knight's move, in units of 1/65536,
//! as OpenCV's `distanceTransform` with `DIST_L2` and mask 5.

const SIDE: u32 = 65_536;
const DIAGONAL: u32 = (1.4 * 65_536.0 + 0.5) as u32;
const KNIGHT: u32 = (2.1969 * 65_536.0 + 0.5) as u32;
/// Farther than any picture.
const FAR: u32 = u32::MAX >> 2;

/// Row, column and cost of the steps from pixels that the first pass has seen.
const STEPS: [(isize, isize, u32); 8] = [
    (-2, -1, KNIGHT),
    (-2, 1, KNIGHT),
    (-1, -2, KNIGHT),
    (-1, -1, DIAGONAL),
    (-1, 0, SIDE),
    (-1, 1, DIAGONAL),
    (-1, 2, KNIGHT),
    (0, -1, SIDE),
];

/// The distance of every pixel, in pixels; some thousands where nothing is marked.
pub(super) fn to_nearest(marked: &[bool], height: usize, width: usize) -> Vec<f32> {
    let start = |&marked: &bool| if marked { 0 } else { FAR };
    let mut costs: Vec<u32> = marked.iter().map(start).collect();
    let mut relax = |pixel: usize, sign: isize| {
        let (row, column) = ((pixel / width) as isize, (pixel % width) as isize);
        for (y, x, cost) in STEPS {
            let (row, column) = (row + sign * y, column + sign * x);
            if (0..height as isize).contains(&row) && (0..width as isize).contains(&column) {
                let through = costs[row as usize * width + column as usize] + cost;
                costs[pixel] = costs[pixel].min(through);
            }
        }
    };
    (0..height * width).for_each(|pixel| relax(pixel, 1));
    (0..height * width).rev().for_each(|pixel| relax(pixel, -1));
    costs
        .into_iter()
        .map(|cost| cost as f32 / SIDE as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_euclid_to_two_percent() {
        let (height, width) = (17, 23);
        let mut marked = vec![false; height * width];
        let points = [(2_usize, 3_usize), (15, 20), (9, 9)];
        for (row, column) in points {
            marked[row * width + column] = true;
        }
        for (pixel, found) in to_nearest(&marked, height, width).into_iter().enumerate() {
            let far = |&(row, column): &(usize, usize)| {
                let (y, x) = (row.abs_diff(pixel / width), column.abs_diff(pixel % width));
                ((y * y + x * x) as f32).sqrt()
            };
            let truth = points.iter().map(far).fold(f32::INFINITY, f32::min);
            assert!((found - truth).abs() <= 0.021 * truth, "{found} {truth}");
        }
        assert!(to_nearest(&[false; 6], 2, 3).iter().all(|&x| x > 1000.0));
    }
}
