use circulant_kernels::dense::small_product::*;
use circulant_kernels::real::Real;
use circulant_kernels::vector::Vector;
use circulant_kernels::vector::{Isa, Kernel, Present};

/// Rows, inner length and vectors; `A` is transposed in memory if the flag says so.
struct Product(usize, usize, usize, bool);

impl<T: Real> Kernel<T> for Product {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let Self(rows, inner, vectors, transposed) = self;
        let columns = vectors * V::LANES;
        let number = |i: usize| T::of((i * 7919 % 101) as f64 - 50.0);
        let a: Vec<T> = (0..rows * inner).map(number).collect();
        let b: Vec<T> = (0..inner * columns).map(|i| number(i + 3)).collect();
        let mut c = vec![T::nan(); rows * columns];
        let (row, column) = if transposed { (1, rows) } else { (inner, 1) };
        let (left, right) = (
            Strided {
                start: a.as_ptr(),
                row,
                column,
            },
            RowMajor {
                start: b.as_ptr(),
                row: columns,
            },
        );
        let out = RowMajor {
            start: c.as_mut_ptr(),
            row: columns,
        };
        // SAFETY: the three vectors hold matrices of these sizes.
        unsafe { small_product::<V>((rows, inner, columns), left, right, out) };
        for i in 0..rows {
            for n in 0..columns {
                let terms = (0..inner).map(|k| a[i * row + k * column] * b[k * columns + n]);
                // Whole numbers: exact in any order.
                assert!(c[i * columns + n] == terms.fold(T::zero(), |sum, x| sum + x));
            }
        }
    }
}

#[test]
fn equals_the_sums_on_every_instruction_set() {
    for isa in Isa::available() {
        for rows in 1..14 {
            for (inner, vectors) in [(1, 1), (2, 2), (7, 3), (5, 4), (32, 9), (0, 2)] {
                for transposed in [false, true] {
                    isa.run::<f32, _>(Product(rows, inner, vectors, transposed));
                    isa.run::<f64, _>(Product(rows, inner, vectors, transposed));
                }
            }
        }
    }
}
