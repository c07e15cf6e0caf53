//! MaxMin (GroupSort of pairs): an activation that loses no gradient.

use burn::backend::Dispatch;
use burn::tensor::{DType, Tensor};

use crate::backend::fused::{FusedOps, is_native};

/// The larger values of pairs, then the smaller ones: with the halves `a` and `b` of an axis, `[max(a, b), min(a, b)]`.
///
/// Its derivative only swaps numbers, so that norms of gradients stay as they are, and its Lipschitz constant is 1. On the CPU it is one pass
/// over memory, and one more on the way back.
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
    let has_kernel = matches!(x.dtype(), DType::F32 | DType::F64);
    if has_kernel && is_native(&x.device()) {
        return Tensor::from_dispatch(Dispatch::max_min(x.into_dispatch(), axis));
    }
    composed(x, axis)
}

/// The same of ordinary tensor operations.
fn composed<const D: usize>(x: Tensor<D>, axis: usize) -> Tensor<D> {
    let size = x.dims()[axis];
    let half = |start: usize| x.clone().narrow(axis, start, size / 2);
    let (a, b) = (half(0), half(size / 2));
    // One comparison decides both, so that the derivative is a permutation even where two values are equal.
    let swap = a.clone().lower(b.clone());
    let larger = a.clone().mask_where(swap.clone(), b.clone());
    let smaller = b.mask_where(swap, a);
    Tensor::cat(vec![larger, smaller], axis)
}

#[cfg(test)]
mod tests {
    use burn::tensor::TensorData;

    use super::*;

    #[test]
    fn one_pass_gives_what_tensor_operations_give() {
        let device = crate::cpu().autodiff();
        for shape in [[1, 2, 1], [3, 4, 5], [2, 6, 1], [5, 2, 7]] {
            for axis in 0..3 {
                if shape[axis] % 2 == 1 {
                    continue;
                }
                let count = shape.iter().product::<usize>();
                // Some pairs are equal.
                let numbers = |seed: usize| -> Vec<f32> {
                    (0..count)
                        .map(|i| ((i * 7 + seed) % 5) as f32 - 2.0)
                        .collect()
                };
                let tensor = |seed| {
                    let data = TensorData::new(numbers(seed), shape);
                    Tensor::<3>::from_data(data, &device)
                };
                let weights = tensor(1);
                let [one, other] = [max_min::<3>, composed::<3>].map(|f| {
                    let x = tensor(3).require_grad();
                    let y = f(x.clone(), axis);
                    let gradients = (y.clone() * weights.clone()).sum().backward();
                    let gradient = x.grad(&gradients).expect("tracked");
                    [y.inner().into_data(), gradient.into_data()]
                });
                for (one, other) in one.iter().zip(&other) {
                    one.assert_eq(other, true);
                }
            }
        }
    }
}
