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
    let deviations = check_deviations(rows, &log_deviation);
    let error = tensor(targets, &mean) - mean;
    let scaled = error * log_deviation.clone().neg().exp();
    let squares = (scaled.clone() * scaled).sum().mul_scalar(0.5);
    let logarithms = log_deviation
        .sum()
        .mul_scalar(rows as f64 / deviations as f64);
    (squares + logarithms).add_scalar(rows as f64 * (2.0 * PI).ln() / 2.0)
}

/// `sum w (log(2 pi)/2 + s + (y - m)^2 exp(-2 s)/2)`: [`gaussian_nll`] with a weight per example.
///
/// # Shapes
///
/// - mean: `[batch]`
/// - log_deviation: `[batch]` or `[1]`
/// - output: `[1]`
///
/// # Panics
///
/// Panics, naming both sizes, if there is not one target and one weight per row.
pub fn weighted_gaussian_nll(
    mean: Tensor<1>,
    log_deviation: Tensor<1>,
    targets: &[f32],
    weights: &[f32],
) -> Tensor<1> {
    let [rows] = mean.dims();
    check("mean", rows, targets.len());
    check_weights(rows, weights);
    check_deviations(rows, &log_deviation);
    let (error, weight) = (
        tensor(targets, &mean) - mean.clone(),
        tensor(weights, &mean),
    );
    let scaled = error * log_deviation.clone().neg().exp();
    let each = (scaled.clone() * scaled).mul_scalar(0.5) + log_deviation;
    let constant = (2.0 * PI).ln() / 2.0;
    (each.add_scalar(constant) * weight).sum()
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

/// `sum w (exp(r) - y r + log y!)`: [`poisson_nll`] with a weight per example.
///
/// # Shapes
///
/// - log_rate: `[batch]`
/// - output: `[1]`
///
/// # Panics
///
/// Panics, naming both sizes, if there is not one target and one weight per row.
pub fn weighted_poisson_nll(log_rate: Tensor<1>, targets: &[f32], weights: &[f32]) -> Tensor<1> {
    let [rows] = log_rate.dims();
    check("log rate", rows, targets.len());
    check_weights(rows, weights);
    let factorials = targets.iter().zip(weights).map(|(&y, &w)| {
        let weight: f64 = w.into();
        weight * libm::lgamma(f64::from(y) + 1.0)
    });
    let factorials: f64 = factorials.sum();
    let (y, weight) = (tensor(targets, &log_rate), tensor(weights, &log_rate));
    ((log_rate.clone().exp() - y * log_rate) * weight)
        .sum()
        .add_scalar(factorials)
}

/// `-sum w log softmax(z)[y]`: the cross-entropy with a weight per example.
///
/// # Shapes
///
/// - logits: `[batch, classes]`
/// - output: `[1]`
///
/// # Panics
///
/// Panics if there is not one label and one weight per row, or if a label is no class.
pub fn weighted_cross_entropy(
    logits: Tensor<2>,
    labels: impl Into<Labels>,
    weights: &[f32],
) -> Tensor<1> {
    let labels = labels.into();
    let [rows, classes] = logits.dims();
    check("logits", rows, labels.0.len());
    check_weights(rows, weights);
    let mut mask = vec![0.0_f32; rows * classes];
    for (row, &label) in labels.0.iter().enumerate() {
        assert!(
            label < classes,
            "label {label} of row {row} is outside 0..{classes}"
        );
        mask[row * classes + label] = weights[row];
    }
    let mask = Tensor::from_data(TensorData::new(mask, [rows, classes]), &logits.device());
    (activation::log_softmax(logits, 1) * mask).sum().neg()
}

fn check_weights(rows: usize, weights: &[f32]) {
    assert!(
        weights.len() == rows,
        "expected one weight per row of {rows}, got {}",
        weights.len()
    );
}

fn check_deviations(rows: usize, log_deviation: &Tensor<1>) -> usize {
    let [deviations] = log_deviation.dims();
    assert!(
        deviations == rows || deviations == 1,
        "expected one log deviation or {rows}, got {deviations}"
    );
    deviations
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
