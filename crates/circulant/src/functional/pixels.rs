//! Images with fewer pixels and more channels, without loss.

use burn::tensor::Tensor;

/// Squares of `factor x factor` pixels become channels: `y[c f^2 + i f + j, Y, X] = x[c, f Y + i, f X + j]`. A permutation, so that
/// norms and Lipschitz constants stay as they are.
///
/// # Shapes
///
/// - images: `[batch, C, H, W]`
/// - output: `[batch, C f^2, H/f, W/f]`
///
/// # Panics
///
/// Panics, naming the sizes, if `factor` is 0 or does not divide both sides.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::functional::pixel_unshuffle;
///
/// let images = Tensor::<4>::from_data([[[[1.0, 2.0], [3.0, 4.0]]]], &circulant::cpu());
/// let channels = pixel_unshuffle(images, 2);
/// channels.into_data().assert_eq(&[[[[1.0_f32]], [[2.0]], [[3.0]], [[4.0]]]].into(), true);
/// ```
pub fn pixel_unshuffle(images: Tensor<4>, factor: usize) -> Tensor<4> {
    let [batch, channels, height, width] = images.dims();
    assert!(
        factor > 0 && height.is_multiple_of(factor) && width.is_multiple_of(factor),
        "pixel_unshuffle: expected sides that {factor} divides, got {height} x {width}"
    );
    let (rows, columns) = (height / factor, width / factor);
    let squares = images.reshape([batch, channels, rows, factor, columns, factor]);
    let channels = channels * factor * factor;
    squares
        .permute([0, 1, 3, 5, 2, 4])
        .reshape([batch, channels, rows, columns])
}
