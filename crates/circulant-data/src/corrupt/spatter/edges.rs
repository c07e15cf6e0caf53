//! Canny's edges (1986), as OpenCV's `Canny` with aperture 3 and the sum of absolute gradients.
//!
//! A pixel is an edge where the gradient of Sobel is greatest across its direction, and exceeds `high`,
//! or exceeds `low` and is connected to such a pixel.

use super::super::picture::Border;

/// The edges of a picture of bytes.
pub(super) fn canny(bytes: &[u8], height: usize, width: usize, low: i32, high: i32) -> Vec<bool> {
    let gradients: Vec<[i32; 2]> = (0..bytes.len())
        .map(|pixel| sobel(bytes, height, width, pixel))
        .collect();
    let size = |[x, y]: [i32; 2]| x.abs() + y.abs();
    // Outside the picture there is no gradient.
    let at = |row: isize, column: isize| {
        let inside = (0..height as isize).contains(&row) && (0..width as isize).contains(&column);
        if inside {
            size(gradients[row as usize * width + column as usize])
        } else {
            0
        }
    };
    let is_greatest = |pixel: usize| {
        let (row, column) = ((pixel / width) as isize, (pixel % width) as isize);
        let [x, y] = gradients[pixel];
        let here = size([x, y]);
        // The tangents of 22.5 and 67.5 degrees in 15 bits.
        let flat = i64::from(x.abs()) * 13_573;
        let steep = flat + (i64::from(x.abs()) << 16);
        let slope = i64::from(y.abs()) << 15;
        if slope < flat {
            here > at(row, column - 1) && here >= at(row, column + 1)
        } else if slope > steep {
            here > at(row - 1, column) && here >= at(row + 1, column)
        } else {
            let side = if (x ^ y) < 0 { -1 } else { 1 };
            here > at(row - 1, column - side) && here > at(row + 1, column + side)
        }
    };
    let candidate: Vec<bool> = (0..bytes.len())
        .map(|pixel| size(gradients[pixel]) > low && is_greatest(pixel))
        .collect();
    let mut edges = vec![false; bytes.len()];
    let is_strong = |&pixel: &usize| candidate[pixel] && size(gradients[pixel]) > high;
    let mut open: Vec<usize> = (0..bytes.len()).filter(is_strong).collect();
    while let Some(pixel) = open.pop() {
        if std::mem::replace(&mut edges[pixel], true) {
            continue;
        }
        let (row, column) = (pixel / width, pixel % width);
        for row in row.saturating_sub(1)..(row + 2).min(height) {
            for column in column.saturating_sub(1)..(column + 2).min(width) {
                let next = row * width + column;
                if candidate[next] && !edges[next] {
                    open.push(next);
                }
            }
        }
    }
    edges
}

/// The gradient to the right and down.
fn sobel(bytes: &[u8], height: usize, width: usize, pixel: usize) -> [i32; 2] {
    let (row, column) = ((pixel / width) as isize, (pixel % width) as isize);
    let at = |y: isize, x: isize| {
        let row = Border::Nearest.inside(row + y, height);
        i32::from(bytes[row * width + Border::Nearest.inside(column + x, width)])
    };
    [
        at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1),
        at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_one_edge_of_one_pixel() {
        let (height, width) = (6, 9);
        let step = |pixel: usize| if pixel % width >= 4 { 200 } else { 0 };
        let bytes: Vec<u8> = (0..height * width).map(step).collect();
        let edges = canny(&bytes, height, width, 50, 150);
        assert!((0..height * width).all(|pixel| edges[pixel] == (pixel % width == 3)));
        // A weak step is none, but one that touches a strong one is.
        let weak = |pixel: usize| match (pixel / width < 3, pixel % width >= 4) {
            (_, false) => 0,
            (true, true) => 200,
            (false, true) => 25,
        };
        let bytes: Vec<u8> = (0..height * width).map(weak).collect();
        assert!(canny(&bytes, height, width, 50, 150)[5 * width + 3]);
        let faint: Vec<u8> = bytes.iter().map(|&x| x / 8).collect();
        assert!(!canny(&faint, height, width, 50, 150).contains(&true));
    }
}
