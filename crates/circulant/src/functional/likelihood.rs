//! Negative log likelihoods of numbers and counts, composed of ordinary tensor operations.

use std::f64::consts::PI;

use burn::tensor::{Tensor, TensorData, activation};

use crate::data::Labels;

/// `sum log(2 pi)/2 + s + (y - m)^2 exp(-2 s)/2`.
///
/// # Shapes
///
/// - mean: `[batch]`
/// - log_deviation: `[batch]` or `[1]`
/// - output: `[1]`
///
/// # Panics
///
/// Panics, naming both sizes, if there is not one target per row.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::functional::gaussian_nll;
///
/// let device = circulant::cpu();
/// let (mean, log_deviation) = (Tensor::zeros([2], &device), Tensor::zeros([1], &device));
/// let nll: f32 = gaussian_nll(mean, log_deviation, &[0.0, 2.0]).into_scalar();
/// assert!((nll - (std::f32::consts::TAU.ln() + 2.0)).abs() < 1e-6);
/// ```
pub fn gaussian_nll(mean: Tensor<1>, log_deviation: Tensor<1>, targets: &[f32]) -> Tensor<1> {
    let [rows] = mean.dims();
    check("mean", rows, targets.len());
    let [deviations] = log_deviation.dims();
    assert!(
        deviations == rows || deviations == 1,
        "expected one log deviation or {rows}, got {deviations}"
    );
    let error = tensor(targets, &mean) - mean;
    let scaled = error * log_deviation.clone().neg().exp();
    let squares = (scaled.clone() * scaled).sum().mul_scalar(0.5);
    let logarithms = log_deviation
        .sum()
        .mul_scalar(rows as f64 / deviations as f64);
    (squares + logarithms).add_scalar(rows as f64 * (2.0 * PI).ln() / 2.0)
}

/// `sum exp(r) - y r + log y!`.
///
/// # Shapes
///
/// - log_rate: `[batch]`
/// - output: `[1]`
///
/// # Panics
///
/// Panics, naming both sizes, if there is not one target per row.
pub fn poisson_nll(log_rate: Tensor<1>, targets: &[f32]) -> Tensor<1> {
    check("log rate", log_rate.dims()[0], targets.len());
    let factorials: f64 = targets
        .iter()
        .map(|&y| libm::lgamma(f64::from(y) + 1.0))
        .sum();
    let y = tensor(targets, &log_rate);
    (log_rate.clone().exp() - y * log_rate)
        .sum()
        .add_scalar(factorials)
}

/// `-sum w[y] log softmax(z)[y]`: the cross-entropy with a weight per class.
///
/// # Shapes
///
/// - logits: `[batch, classes]`
/// - output: `[1]`
///
/// # Panics
///
/// Panics if there is not one label per row or one weight per class, or if a label is no class.
pub fn weighted_cross_entropy(
    logits: Tensor<2>,
    labels: impl Into<Labels>,
    weights: &[f32],
) -> Tensor<1> {
    let labels = labels.into();
    let [rows, classes] = logits.dims();
    check("logits", rows, labels.0.len());
    assert!(
        weights.len() == classes,
        "expected one weight per class of {classes}, got {}",
        weights.len()
    );
    let mut mask = vec![0.0_f32; rows * classes];
    for (row, &label) in labels.0.iter().enumerate() {
        assert!(
            label < classes,
            "label {label} of row {row} is outside 0..{classes}"
        );
        mask[row * classes + label] = weights[label];
    }
    let mask = Tensor::from_data(TensorData::new(mask, [rows, classes]), &logits.device());
    (activation::log_softmax(logits, 1) * mask).sum().neg()
}

fn tensor(targets: &[f32], like: &Tensor<1>) -> Tensor<1> {
    let data = TensorData::new(targets.to_vec(), [targets.len()]);
    Tensor::from_data(data, (&like.device(), like.dtype()))
}

fn check(what: &str, rows: usize, targets: usize) {
    assert!(
        targets == rows,
        "expected one target per row of the {what}, {rows}, got {targets}"
    );
}
