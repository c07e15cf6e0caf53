//! What the paper reports for heads on frozen features of CIFAR-10, with CIFAR-10-C as the out-of-distribution data.

use crate::report::{Better, Metric};

/// A row of its tables; what a table does not have is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperHead {
    /// Of the folder.
    pub name: &'static str,
    /// Accuracy, NLL, ECE, mean AUROC, AUROC at severity 5, FPR@95 at severity 5.
    pub numbers: [Option<f64>; 6],
}

const fn whole(name: &'static str, [a, b, c, d, e, f]: [f64; 6]) -> PaperHead {
    PaperHead {
        name,
        numbers: [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)],
    }
}

const fn ablation(name: &'static str, accuracy: f64, auroc: f64, fpr: f64) -> PaperHead {
    PaperHead {
        name,
        numbers: [Some(accuracy), None, None, Some(auroc), None, Some(fpr)],
    }
}

const HEADS: [PaperHead; 9] = [
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

/// The numbers of a head.
pub fn row(name: &str) -> Option<[Option<f64>; 6]> {
    HEADS
        .iter()
        .find(|row| row.name == name)
        .map(|row| row.numbers)
}

/// The columns.
pub fn metrics() -> Vec<Metric> {
    [
        ("Accuracy", Better::Higher),
        ("NLL", Better::Lower),
        ("ECE", Better::Lower),
        ("AUROC", Better::Higher),
        ("AUROC S5", Better::Higher),
        ("FPR@95 S5", Better::Lower),
    ]
    .map(|(name, better)| Metric::new(name, better))
    .to_vec()
}
