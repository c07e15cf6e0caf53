//! MaxMin (GroupSort of pairs): an activation that loses no gradient.

use burn::tensor::Tensor;

/// The larger values of pairs, then the smaller ones: with the halves `a` and `b` of an axis, `[max(a, b), min(a, b)]`.
///
/// Its derivative only swaps numbers, so that norms of gradients stay as they are, and its Lipschitz constant is 1.
///
/// # Shapes
///
/// - x: any, with an even number of values along `axis`
/// - output: as `x`
///
/// # Panics
///
/// Panics, naming the axis, if its number of values is odd.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::functional::max_min;
///
/// let x = Tensor::<2>::from_data([[1.0, 5.0, 4.0, 2.0]], &circulant::cpu());
/// max_min(x, 1).into_data().assert_eq(&[[4.0_f32, 5.0, 1.0, 2.0]].into(), true);
/// ```
pub fn max_min<const D: usize>(x: Tensor<D>, axis: usize) -> Tensor<D> {
    let size = x.dims()[axis];
    assert!(
        size.is_multiple_of(2),
        "max_min takes pairs: expected an even number of values along axis {axis}, got {size}"
    );
    let half = |start: usize| x.clone().narrow(axis, start, size / 2);
    let (a, b) = (half(0), half(size / 2));
    // One comparison decides both, so that the derivative is a permutation even where two values are equal.
    let swap = a.clone().lower(b.clone());
    let larger = a.clone().mask_where(swap.clone(), b.clone());
    let smaller = b.mask_where(swap, a);
    Tensor::cat(vec![larger, smaller], axis)
}
