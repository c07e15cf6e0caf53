//! Times of the metrics: a million rows of ten classes in f32, a million scores on each side.
//!
//! ```text
//! cargo bench -p circulant --bench metrics -- [--json] [--case PART] [--seconds S] [--threads N] [--rows N]
//! ```

#[path = "options/line.rs"]
mod line;
mod options;

use std::hint::black_box;

use circulant::metrics::{
    Bootstrap, DEFAULT_BINS, KernelDensity, Logits, Probabilities, accuracy,
    adaptive_calibration_error, aupr, auroc, brier_score, classification_report, energies,
    entropies, entropy_density, expected_calibration_error, fpr95, max_probabilities,
    mutual_information, negative_log_likelihood, ood_report,
};
use options::{Options, number, time};

const CLASSES: usize = 10;
const POINTS: usize = 512;
/// Posterior samples of the mutual information; the rows are samples x inputs.
const SAMPLES: usize = 10;
const RESAMPLES: usize = 100;

/// Numbers in [0, 1) that look random and are the same everywhere.
fn uniform(i: usize) -> f64 {
    let mut z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (z ^ z >> 32) as f64 / 2.0_f64.powi(64)
}

fn main() {
    let mut rows = 1_000_000_usize;
    let options = Options::start(1.0, |flag, value| {
        let known = flag == "--rows";
        if known {
            rows = number(flag, &value());
        }
        known
    });
    let rows = rows.next_multiple_of(SAMPLES);
    let logit = |i: usize| {
        // One class stands out, in most rows by far.
        let (row, class) = (i / CLASSES, i % CLASSES);
        let top = if class == row % CLASSES { 9.0 } else { 0.0 };
        (top * uniform(row + 7) + 2.0 * uniform(i)) as f32
    };
    let logits: Vec<f32> = (0..rows * CLASSES).map(logit).collect();
    let logits = Logits::new(&logits, CLASSES).expect("finite");
    let softmax: Vec<f32> = logits.softmax().iter().map(|&p| p as f32).collect();
    let probabilities = Probabilities::new(&softmax, CLASSES).expect("normalised");
    let labels: Vec<i64> = (0..rows)
        .map(|row| ((row + usize::from(uniform(row) < 0.1)) % CLASSES) as i64)
        .collect();
    let entropies_of_rows = entropies(&probabilities);
    let id: Vec<f64> = entropies_of_rows.iter().map(|h| -h).collect();
    let ood: Vec<f64> = id.iter().enumerate().map(|(i, s)| s - uniform(i)).collect();
    let narrow: Vec<f64> = entropies_of_rows.iter().map(|h| h * 1e-3).collect();
    let bootstrap = Bootstrap::new(1).with_resamples(RESAMPLES);

    let (p, l, bins) = (&probabilities, &labels[..], DEFAULT_BINS);
    let cases: [(&str, &dyn Fn()); 19] = [
        ("check", &|| {
            drop(black_box(Probabilities::new(&softmax, CLASSES)))
        }),
        ("accuracy", &|| drop(black_box(accuracy(p, l)))),
        ("nll", &|| drop(black_box(negative_log_likelihood(p, l)))),
        ("brier", &|| drop(black_box(brier_score(p, l)))),
        ("ece", &|| {
            drop(black_box(expected_calibration_error(p, l, bins)))
        }),
        ("adaptive_ece", &|| {
            drop(black_box(adaptive_calibration_error(p, l, bins)))
        }),
        ("classification_report", &|| {
            drop(black_box(classification_report(p, l, bins)))
        }),
        ("entropy", &|| drop(black_box(entropies(p)))),
        ("max_probability", &|| drop(black_box(max_probabilities(p)))),
        ("mutual_information", &|| {
            drop(black_box(mutual_information(p, SAMPLES)))
        }),
        ("energy", &|| drop(black_box(energies(&logits, 1.0)))),
        ("auroc", &|| drop(black_box(auroc(&id, &ood)))),
        ("aupr", &|| drop(black_box(aupr(&id, &ood)))),
        ("fpr95", &|| drop(black_box(fpr95(&id, &ood)))),
        ("ood_report", &|| drop(black_box(ood_report(&id, &ood)))),
        ("density", &|| {
            drop(black_box(entropy_density(
                &entropies_of_rows,
                CLASSES,
                POINTS,
            )))
        }),
        ("density_narrow", &|| {
            let density = KernelDensity::new(&narrow, [0.0, 1.0]).expect("valid");
            drop(black_box(density.curve(POINTS)));
        }),
        ("bootstrap_classification", &|| {
            drop(black_box(bootstrap.classification(p, l, bins)));
        }),
        ("bootstrap_ood", &|| {
            drop(black_box(bootstrap.ood(&id, &ood)))
        }),
    ];
    for (name, work) in cases {
        let case = format!("metrics/{name}/{rows}");
        if !case.contains(&options.case) {
            continue;
        }
        options.print(&case, time(options.seconds, work), "");
    }
}
