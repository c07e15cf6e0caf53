//! Times of the operator norms, f64, random coordinates.
//!
//! `cargo bench -p circulant-kernels --bench norms` prints a table with how far each result lies
//! above the norm; `-- --json` prints one line per case. Flags: `--case SUBSTRING`, `--seconds S`
//! (per case), `--threads N`.

mod timing;

use std::hint::black_box;

use circulant_kernels::{
    HalfPlane, HalfSpectrum, clip_norm_2d, convolution_norm_bound, gram_bound_2d,
    gram_bound_2d_with_gradient, gram_bound_matrix, matrix_norm, operator_norm_1d,
    operator_norm_2d, singular_values_2d,
};
use timing::{Options, time};

/// Uniform numbers of variance 1, from the indices by SplitMix64: `bench/peers` makes the same.
fn numbers(len: usize) -> Vec<f64> {
    let number = |index: u64| {
        let z = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        (unit - 0.5) * 12_f64.sqrt()
    };
    (0..len as u64).map(number).collect()
}

struct Report {
    options: Options,
}

impl Report {
    /// Times `run`, which returns a bound, and prints a line; `norm` is what the bound is of.
    fn case(&self, case: &str, norm: f64, mut run: impl FnMut() -> f64) {
        if !case.contains(&self.options.case) {
            return;
        }
        let bound = run();
        let mut versions: Vec<Box<dyn FnMut() + '_>> = vec![Box::new(|| {
            black_box(run());
        })];
        let times = time(self.options.seconds, &mut versions)[0];
        if self.options.json {
            self.options.print_json(case, times, Some(bound));
            return;
        }
        println!(
            "{case:<40} {:>9.4} {:>9.4} {:>12.2e}",
            times.best,
            times.median,
            bound / norm - 1.0
        );
    }

    fn layer(&self, channels_in: usize, channels_out: usize, side: usize) {
        let layout = HalfPlane::new(side, side).expect("a size");
        let a = numbers(layout.coordinates() * channels_in * channels_out);
        let name = format!("norm2d/{channels_in}x{channels_out}x{side}x{side}");
        let norm = operator_norm_2d(&layout, channels_in, channels_out, &a)
            .expect("finite")
            .lower;
        self.case(&format!("{name}/exact"), norm, || {
            operator_norm_2d(&layout, channels_in, channels_out, &a)
                .expect("finite")
                .upper
        });
        for squarings in [1, 2, 3, 4, 5, 6, 8] {
            self.case(&format!("{name}/gram{squarings}"), norm, || {
                gram_bound_2d(&layout, channels_in, channels_out, &a, squarings).expect("finite")
            });
        }
        self.case(&format!("{name}/gram4_gradient"), norm, || {
            gram_bound_2d_with_gradient(&layout, channels_in, channels_out, &a, 4)
                .expect("finite")
                .0
        });
        self.case(&format!("{name}/all_singular_values"), norm, || {
            singular_values_2d(&layout, channels_in, channels_out, &a).expect("finite")[0]
        });
        // Half of the singular values of a square random matrix are above 0.4 of the largest.
        self.case(&format!("{name}/clip"), norm, || {
            let mut clipped = a.clone();
            clip_norm_2d(&layout, channels_in, channels_out, &mut clipped, 0.4 * norm)
                .expect("finite");
            norm
        });
    }

    fn dense(&self, rows: usize, columns: usize) {
        let a = numbers(rows * columns);
        let norm = matrix_norm(rows, columns, &a).expect("finite").lower;
        let name = format!("matrix/{rows}x{columns}");
        self.case(&format!("{name}/exact"), norm, || {
            matrix_norm(rows, columns, &a).expect("finite").upper
        });
        self.case(&format!("{name}/gram4"), norm, || {
            gram_bound_matrix(rows, columns, &a, 4).expect("finite")
        });
    }

    fn all(&self) {
        let layout = HalfSpectrum::new(16384).expect("a length");
        let a = numbers(16384);
        let norm = operator_norm_1d(&layout, &a).expect("finite").lower;
        self.case("norm1d/16384/exact", norm, || {
            operator_norm_1d(&layout, &a).expect("finite").upper
        });
        self.layer(64, 64, 32);
        self.layer(8, 8, 28);
        self.dense(784, 784);
        self.dense(6272, 10);
        let weights = numbers(64 * 64 * 9);
        let bound = || {
            convolution_norm_bound(&weights, 64, 64, [3, 3], [32, 32]).expect("sizes are positive")
        };
        self.case("convolution/64x64x3x3/32x32", bound(), bound);
    }
}

fn main() {
    let options = Options::start();
    if !options.json {
        println!("f64, {} threads, milliseconds", options.threads);
        println!(
            "{:<40} {:>9} {:>9} {:>12}",
            "case", "best", "median", "above norm"
        );
    }
    Report { options }.all();
}
