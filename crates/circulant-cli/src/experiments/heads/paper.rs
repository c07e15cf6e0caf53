//! What the paper reports for heads on frozen features of CIFAR-10, with CIFAR-10-C as the out-of-distribution data.

use crate::report::Metric;

/// A row of its tables: the head's name, accuracy, NLL, ECE, mean AUROC, AUROC and FPR@95 at severity 5.
type Row = (&'static str, [Option<f64>; 6]);

const fn whole(name: &'static str, [a, b, c, d, e, f]: [f64; 6]) -> Row {
    (name, [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)])
}

/// The tables of ablations have less.
const fn ablation(name: &'static str, accuracy: f64, auroc: f64, fpr: f64) -> Row {
    (
        name,
        [Some(accuracy), None, None, Some(auroc), None, Some(fpr)],
    )
}

const HEADS: [Row; 9] = [
    whole("dense-32", [0.971, 0.098, 0.009, 0.6986, 0.7819, 0.5727]),
    whole("dense-128", [0.971, 0.118, 0.012, 0.7076, 0.7946, 0.5648]),
    whole("circulant", [0.965, 0.433, 0.026, 0.6400, 0.7182, 0.6323]),
    whole("spectral", [0.971, 0.136, 0.017, 0.6816, 0.7165, 0.5966]),
    ablation("spectral-768", 0.967, 0.6846, 0.6102),
    ablation("spectral-512", 0.967, 0.6710, 0.6264),
    ablation("spectral-256", 0.967, 0.6664, 0.6300),
    ablation("spectral-128", 0.965, 0.6650, 0.6447),
    ablation("spectral-64", 0.964, 0.6615, 0.6512),
];

pub fn row(name: &str) -> Option<[Option<f64>; 6]> {
    let mut rows = HEADS.into_iter();
    rows.find_map(|(head, numbers)| (head == name).then_some(numbers))
}

pub const METRICS: [Metric; 6] = [
    Metric::higher("Accuracy"),
    Metric::lower("NLL"),
    Metric::lower("ECE"),
    Metric::higher("AUROC"),
    Metric::higher("AUROC S5"),
    Metric::lower("FPR@95 S5"),
];
