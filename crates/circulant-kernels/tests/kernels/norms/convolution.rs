use super::*;
use crate::oracle::noise;
use circulant_kernels::norms::convolution_norm_bound;

/// The norm of the zero-padded convolution ("same", correlation as in neural networks), from its
/// matrix.
fn zero_padded_norm(
    weights: &[f64],
    [inputs, outputs]: [usize; 2],
    [kh, kw]: [usize; 2],
    [height, width]: [usize; 2],
) -> f64 {
    let n = height * width;
    let mut dense = Mat::<f64>::zeros(outputs * n, inputs * n);
    for (i, &weight) in weights.iter().enumerate() {
        let (o, c, a, b) = (
            i / (inputs * kh * kw),
            i / (kh * kw) % inputs,
            i / kw % kh,
            i % kw,
        );
        for y in 0..height {
            for x in 0..width {
                let (from_y, from_x) = (y + a, x + b);
                let (top, left) = ((kh - 1) / 2, (kw - 1) / 2);
                let inside =
                    (top..top + height).contains(&from_y) && (left..left + width).contains(&from_x);
                if inside {
                    let from = c * n + (from_y - top) * width + from_x - left;
                    dense[(o * n + y * width + x, from)] += weight;
                }
            }
        }
    }
    dense.singular_values().expect("converges")[0]
}

#[test]
fn the_bound_is_never_below_the_zero_padded_operator() {
    for (seed, &(inputs, outputs, kernel, grid)) in [
        (1, 1, [3, 3], [8, 8]),
        (1, 1, [1, 1], [3, 4]),
        (2, 3, [3, 3], [6, 5]),
        (3, 2, [5, 3], [7, 4]),
        (2, 2, [2, 4], [5, 6]),
        (1, 4, [7, 7], [3, 3]),
        (4, 1, [3, 1], [1, 9]),
        (2, 2, [3, 3], [14, 14]),
    ]
    .iter()
    .enumerate()
    {
        let unit = noise(seed as u64, inputs * outputs * kernel[0] * kernel[1]);
        let norm = zero_padded_norm(&unit, [inputs, outputs], kernel, grid);
        for exponent in [-900, 0, 900] {
            let scale = 2f64.powi(exponent);
            let weights: Vec<f64> = unit.iter().map(|x| x * scale).collect();
            let bound =
                convolution_norm_bound(&weights, inputs, outputs, kernel, grid).expect("finite");
            let ratio = bound / scale / norm;
            println!("{inputs} {outputs} {kernel:?} {grid:?}: bound/norm {ratio:.4}");
            assert!(ratio >= 1.0 - DECOMPOSITION, "{kernel:?} {grid:?}: {ratio}");
            // Of a kernel larger than the grid, part never meets the image.
            let larger = kernel[0] > grid[0] || kernel[1] > grid[1];
            let most = if larger { 3.0 } else { 1.25 };
            assert!(ratio < most, "{kernel:?} {grid:?}: {ratio}");
        }
    }
}

#[test]
fn a_pointwise_convolution_is_its_matrix() {
    let weights = noise(1, 12);
    let bound = convolution_norm_bound(&weights, 3, 4, [1, 1], [5, 5]).expect("finite");
    let norm = dense_norm(4, 3, &weights);
    assert!((bound / norm - 1.0).abs() < 1e-11, "{bound} {norm}");
}

#[test]
fn zeros_and_wrong_input() {
    assert_eq!(
        convolution_norm_bound(&[0.0; 9], 1, 1, [3, 3], [4, 4]),
        Ok(0.0)
    );
    assert!(convolution_norm_bound(&[1.0; 8], 1, 1, [3, 3], [4, 4]).is_err());
    assert!(convolution_norm_bound(&[], 1, 1, [0, 3], [4, 4]).is_err());
    assert!(convolution_norm_bound(&[1.0; 9], 1, 1, [3, 3], [0, 4]).is_err());
    assert!(convolution_norm_bound(&[1.0; 9], 1, 1, [3, 3], [usize::MAX; 2]).is_err());
    assert!(convolution_norm_bound(&[f64::NAN], 1, 1, [1, 1], [4, 4]).is_err());
}
