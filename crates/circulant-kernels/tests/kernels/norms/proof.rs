use crate::oracle::noise;
use circulant_kernels::Real;
use circulant_kernels::norms::leading::to_faer;
use circulant_kernels::norms::matrix::{Matrix, Scale};
use circulant_kernels::norms::proof::*;
use circulant_kernels::vector::Isa;

fn matrix<T: Real>(rows: usize, columns: usize, complex: bool) -> Matrix<T> {
    let values = noise(3, rows * columns * (1 + usize::from(complex)));
    let mut matrix = Matrix::zeros(rows, columns, complex);
    let scale = Scale::of(&values).expect("not zero");
    matrix.load(rows, columns, &values, scale);
    matrix
}

fn check<T: Real>(slack: fn(usize, usize) -> Option<Slack>) {
    for (rows, columns) in [(1, 1), (5, 3), (9, 8), (40, 33), (64, 64)] {
        for complex in [false, true] {
            let exact = matrix::<f64>(rows, columns, complex);
            let sigma = to_faer(&exact).singular_values().expect("converges")[0];
            let slack = slack(rows, columns).expect("a small matrix");
            for isa in Isa::available() {
                let mut matrix = matrix::<T>(rows, columns, complex);
                let shift = slack.shift_above(sigma, 2.0);
                assert!(proves(isa, &mut matrix, shift), "{isa:?} {rows} {columns}");
                assert!(residual(&matrix, T::of(shift).wide()) <= slack.squared * shift);
                assert!(slack.proven(shift) >= sigma);
                assert!(slack.proven(slack.shift_below(sigma)) <= sigma);
                let below = slack.shift_below(sigma * (1.0 - 1e-3));
                assert!(!proves(isa, &mut matrix, below), "{isa:?} {rows} {columns}");
            }
        }
    }
}

/// `|W^H W - t^2 I|_F` of a finished factorisation, which is at least the norm of `E`.
fn residual<T: Real>(matrix: &Matrix<T>, shift: f64) -> f64 {
    let (rows, n) = (matrix.rows, matrix.columns);
    let at = |plane: &[T], r: usize, j: usize| {
        // The factor is triangular; what is left of its diagonal is not part of it.
        if r < rows || r - rows <= j {
            plane[r * matrix.stride + j].wide()
        } else {
            0.0
        }
    };
    let mut sum = 0.0;
    for j in 0..n {
        for o in j..n {
            let (mut re, mut im) = (if j == o { -shift } else { 0.0 }, 0.0);
            for r in 0..rows + n {
                let (a, b) = (at(&matrix.re, r, j), at(&matrix.re, r, o));
                re += a * b;
                if matrix.complex {
                    let (c, d) = (at(&matrix.im, r, j), at(&matrix.im, r, o));
                    re += c * d;
                    im += a * d - c * b;
                }
            }
            sum += (re * re + im * im) * if j == o { 1.0 } else { 2.0 };
        }
    }
    sum.sqrt()
}

#[test]
fn proofs_hold_on_every_instruction_set() {
    check::<f32>(Slack::single);
    check::<f64>(Slack::double);
}

#[test]
fn a_shift_outside_the_range_of_the_proof_proves_nothing() {
    let mut matrix = Matrix::<f64>::zeros(2, 2, true);
    for shift in [0.0, 0.2, f64::NAN, f64::INFINITY, -1.0] {
        assert!(!proves(Isa::PORTABLE, &mut matrix, shift));
    }
    assert!(proves(Isa::PORTABLE, &mut matrix, 0.25));
}
