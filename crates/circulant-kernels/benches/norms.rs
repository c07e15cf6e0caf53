//! Times of the operator norms, f64, random coordinates, with how far each result lies above the norm.
//!
//! `cargo bench -p circulant-kernels --bench norms` prints a table; `-- --json` prints one line per case. Flags:
//! `--case SUBSTRING`, `--seconds S` (per case), `--threads N`.

mod timing;

use std::hint::black_box;

use circulant_kernels::{
    HalfPlane, HalfSpectrum, clip_norm_2d, convolution_norm_bound, gram_bound_2d,
    gram_bound_2d_with_gradient, gram_bound_matrix, matrix_norm, operator_norm_1d,
    operator_norm_2d, singular_values_2d,
};
use timing::Report;

fn numbers(len: usize) -> Vec<f64> {
    timing::numbers(0, len).collect()
}

/// Times `run`, which returns a bound; `norm` is what the bound is of.
fn case(report: &Report, case: &str, norm: f64, run: impl Fn() -> f64) {
    if report.wants(case) {
        let bound = run();
        let timed = move || {
            black_box(run());
        };
        let above = |_| bound / norm - 1.0;
        report.line(case, vec![("ours", Box::new(timed))], above, Some(bound));
    }
}

fn layer(report: &Report, channels: usize, side: usize) {
    let layout = HalfPlane::new(side, side).expect("a size");
    let a = numbers(layout.coordinates() * channels * channels);
    let name = format!("norm2d/{channels}x{channels}x{side}x{side}");
    let exact = || operator_norm_2d(&layout, channels, channels, &a).expect("finite");
    let norm = exact().lower;
    case(report, &format!("{name}/exact"), norm, || exact().upper);
    for squarings in [1, 2, 3, 4, 5, 6, 8] {
        case(report, &format!("{name}/gram{squarings}"), norm, || {
            gram_bound_2d(&layout, channels, channels, &a, squarings).expect("finite")
        });
    }
    case(report, &format!("{name}/gram4_gradient"), norm, || {
        let result = gram_bound_2d_with_gradient(&layout, channels, channels, &a, 4);
        result.expect("finite").0
    });
    case(report, &format!("{name}/all_singular_values"), norm, || {
        singular_values_2d(&layout, channels, channels, &a).expect("finite")[0]
    });
    // Half of the singular values of a square random matrix are above 0.4 of the largest.
    case(report, &format!("{name}/clip"), norm, || {
        let mut clipped = a.clone();
        clip_norm_2d(&layout, channels, channels, &mut clipped, 0.4 * norm).expect("finite");
        norm
    });
}

fn dense(report: &Report, rows: usize, columns: usize) {
    let a = numbers(rows * columns);
    let exact = || matrix_norm(rows, columns, &a).expect("finite");
    let (norm, name) = (exact().lower, format!("matrix/{rows}x{columns}"));
    case(report, &format!("{name}/exact"), norm, || exact().upper);
    case(report, &format!("{name}/gram4"), norm, || {
        gram_bound_matrix(rows, columns, &a, 4).expect("finite")
    });
}

fn main() {
    let report = Report::start("above norm");
    let layout = HalfSpectrum::new(16384).expect("a length");
    let a = numbers(16384);
    let exact = || operator_norm_1d(&layout, &a).expect("finite");
    case(&report, "norm1d/16384/exact", exact().lower, || {
        exact().upper
    });
    layer(&report, 64, 32);
    layer(&report, 8, 28);
    dense(&report, 784, 784);
    dense(&report, 6272, 10);
    let weights = numbers(64 * 64 * 9);
    let bound = || convolution_norm_bound(&weights, 64, 64, [3, 3], [32, 32]).expect("finite");
    case(&report, "convolution/64x64x3x3/32x32", bound(), bound);
}
