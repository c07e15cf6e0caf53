use circulant_kernels::Real;
use circulant_kernels::dense::large_product::*;
use circulant_kernels::runtime::chunks::best_isa;
use circulant_kernels::vector::Isa;

use crate::oracle::{normal, same_on_threads};

/// Whole numbers so small that every sum is exact in any order.
fn numbers<T: Real>(seed: usize, count: usize) -> Vec<T> {
    (0..count)
        .map(|i| T::of(((i * 7919 + seed * 104_729) % 7) as f64 - 3.0))
        .collect()
}

fn check<T: Real>(isa: Isa, [rows, steps, columns]: [usize; 3]) {
    let (a, b) = (
        numbers::<T>(1, rows * steps),
        numbers::<T>(2, steps * columns),
    );
    let before = numbers::<T>(3, rows * columns);
    for [turned_a, turned_b, accumulate] in (0..8).map(|i| [i & 1 > 0, i & 2 > 0, i & 4 > 0]) {
        let matrix = |values, rows, columns, turned: bool| {
            if turned {
                MatrixView::new(values, columns, rows).transposed()
            } else {
                MatrixView::new(values, rows, columns)
            }
        };
        let left = matrix(&a[..], rows, steps, turned_a);
        let right = matrix(&b[..], steps, columns, turned_b);
        let at = |values: &[T], [height, width]: [usize; 2], i: usize, j: usize, turned| {
            values[if turned {
                j * height + i
            } else {
                i * width + j
            }]
        };
        let a_at = |i, k| at(&a, [rows, steps], i, k, turned_a);
        let b_at = |k, n| at(&b, [steps, columns], k, n, turned_b);
        let mut out = if accumulate {
            before.clone()
        } else {
            vec![T::nan(); rows * columns]
        };
        own_product(isa, left, right, accumulate, &mut out);
        for (index, got) in out.into_iter().enumerate() {
            let (i, n) = (index / columns, index % columns);
            let start = if accumulate { before[index] } else { T::zero() };
            let expected = (0..steps).fold(start, |sum, k| sum + a_at(i, k) * b_at(k, n));
            assert!(
                got == expected,
                "{isa:?} {rows} x {steps} x {columns}, {turned_a} {turned_b} {accumulate}: {got:?} instead of {expected:?} at {i}, {n}"
            );
        }
    }
}

#[test]
fn equals_the_sums_on_every_instruction_set() {
    let shapes = [
        [1, 1, 1],
        [5, 3, 7],
        [6, 8, 16],
        [7, 9, 17],
        [12, 16, 64],
        [13, 401, 33],
        [97, 65, 47],
        [200, 31, 49],
        [3, 50, 300],
        [40, 20, 300],
        [4, 0, 5],
        [0, 4, 5],
        [4, 5, 0],
    ];
    for isa in Isa::available() {
        for shape in shapes {
            check::<f32>(isa, shape);
            check::<f64>(isa, shape);
        }
    }
}

#[test]
fn steps_beyond_one_round_are_added() {
    // More numbers of `B` than are packed at a time, few enough elsewhere for the slow sums.
    check::<f32>(best_isa(), [7, PACKED / 40 + 3, 41]);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (a, b) = (
        normal::<f32>(1, 0, 130 * 500),
        normal::<f32>(1, 1, 500 * 70),
    );
    same_on_threads(|| {
        let mut out = vec![0.0; 130 * 70];
        let (left, right) = (MatrixView::new(&a, 130, 500), MatrixView::new(&b, 500, 70));
        own_product(best_isa(), left, right, false, &mut out);
        out
    });
}
