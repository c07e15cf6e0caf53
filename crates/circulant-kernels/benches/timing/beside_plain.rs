//! Ours beside a plain scalar version on one thread.

use circulant_kernels::{NoiseKey, standard_normal};

use crate::timing::{Options, time};

/// Standard normal values.
pub fn noise(stream: u64, len: usize) -> Vec<f32> {
    let mut out = vec![0.0; len];
    standard_normal(NoiseKey { seed: 1, stream }, &mut out);
    out
}

/// Prints a line per case.
pub struct Report {
    options: Options,
}

impl Report {
    /// Reads the flags and prints the head of the table; `about` says more about the plain version.
    pub fn start(about: &str) -> Self {
        let options = Options::start();
        if !options.json {
            println!(
                "f32, {} threads, milliseconds; the plain version is scalar, on one thread{about}",
                options.threads
            );
            println!(
                "{:<34} {:>9} {:>9} {:>12} {:>9}",
                "case", "best", "median", "plain best", "factor"
            );
        }
        Self { options }
    }

    /// Times `ours` and `plain` and prints a line.
    pub fn case(&self, case: &str, ours: impl FnMut(), plain: impl FnMut()) {
        if !case.contains(&self.options.case) {
            return;
        }
        let mut versions: Vec<Box<dyn FnMut()>> = vec![Box::new(ours)];
        if !self.options.json {
            versions.push(Box::new(plain));
        }
        let times = time(self.options.seconds, &mut versions);
        let ours = times[0];
        if self.options.json {
            self.options.print_json(case, ours, None);
            return;
        }
        println!(
            "{case:<34} {:>9.4} {:>9.4} {:>12.4} {:>8.1}x",
            ours.best,
            ours.median,
            times[1].best,
            times[1].best / ours.best
        );
    }
}
