//! Sums and maxima of short rows, in `N` places side by side (16 or 32: one alone would wait for its
//! own additions) that are joined as a tree: the same result on every run, and but for fused products
//! on every processor.

use crate::real::Real;
use crate::vector::Vector;

/// The sum of a row.
#[inline(always)]
pub fn sum<T: Real, const N: usize>(row: &[T]) -> T {
    let mut lanes = [T::zero(); N];
    let (groups, rest) = row.as_chunks::<N>();
    for group in groups {
        for (lane, &x) in lanes.iter_mut().zip(group) {
            *lane = *lane + x;
        }
    }
    let mut total = total(lanes);
    for &x in rest {
        total = total + x;
    }
    total
}

/// The sum of the products of two rows of one length.
#[inline(always)]
pub fn dot<V: Vector, const N: usize>(a: &[V::Scalar], b: &[V::Scalar]) -> V::Scalar {
    let mut lanes = [num_traits::Zero::zero(); N];
    let ((groups, rest), (others, other_rest)) = (a.as_chunks::<N>(), b.as_chunks::<N>());
    for (group, other) in groups.iter().zip(others) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(group).zip(other) {
            *lane = V::fused(x, y, *lane);
        }
    }
    let mut total = total(lanes);
    for (&x, &y) in rest.iter().zip(other_rest) {
        total = V::fused(x, y, total);
    }
    total
}

/// The sum of `(x - center)^2` over a row.
#[inline(always)]
pub fn sum_of_squares<V: Vector, const N: usize>(
    row: &[V::Scalar],
    center: V::Scalar,
) -> V::Scalar {
    let mut lanes = [num_traits::Zero::zero(); N];
    let (groups, rest) = row.as_chunks::<N>();
    for group in groups {
        for (lane, &x) in lanes.iter_mut().zip(group) {
            *lane = V::fused(x - center, x - center, *lane);
        }
    }
    let mut total = total(lanes);
    for &x in rest {
        total = V::fused(x - center, x - center, total);
    }
    total
}

/// The largest number of a row.
#[inline(always)]
pub fn largest<T: Real, const N: usize>(row: &[T]) -> T {
    let mut lanes = [T::neg_infinity(); N];
    let (groups, rest) = row.as_chunks::<N>();
    for group in groups {
        for (lane, &x) in lanes.iter_mut().zip(group) {
            *lane = larger(*lane, x);
        }
    }
    let mut largest = T::neg_infinity();
    for &x in rest {
        largest = larger(largest, x);
    }
    // One loop per width: the compiler unrolls loops with constant bounds only.
    if N == 32 {
        for i in 0..16 {
            lanes[i] = larger(lanes[i], lanes[i + 16]);
        }
    }
    for i in 0..8 {
        lanes[i] = larger(lanes[i], lanes[i + 8]);
    }
    for i in 0..4 {
        lanes[i] = larger(lanes[i], lanes[i + 4]);
    }
    for lane in &lanes[..4] {
        largest = larger(largest, *lane);
    }
    largest
}

#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

/// The sum of all lanes, by halves.
#[inline(always)]
pub(crate) fn total<T: Real, const N: usize>(mut lanes: [T; N]) -> T {
    const { assert!(N == 16 || N == 32) };
    if N == 32 {
        for i in 0..16 {
            lanes[i] = lanes[i] + lanes[i + 16];
        }
    }
    for i in 0..8 {
        lanes[i] = lanes[i] + lanes[i + 8];
    }
    for i in 0..4 {
        lanes[i] = lanes[i] + lanes[i + 4];
    }
    (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}
