//! Predictions without samples: the first two moments of every value go through the network.
//!
//! With `X` the input's spectrum and independent coordinates, the pre-activations of a circulant layer have the mean
//! `IFFT(mean h * X)`, and a variance whose average over positions is `v = sum_k m_k |X_k|^2 Var(h_k)/n^2` by Parseval's
//! identity (`m_k` the multiplicity, `n` the length); all positions get that average. A tanh of `N(m, v)` has the moments
//! of three-point Gauss-Hermite quadrature, `m` and `m +- sqrt(3 v)` with the weights 2/3, 1/6 and 1/6. A dense layer adds
//! `Var(x) mean^2 + E(x^2) deviation^2`, as if its inputs were independent. Probabilities of Gaussian logits are those of
//! logits divided by `sqrt(1 + pi v/8)` (MacKay).
//!
//! One hidden layer with tanh and the read-out have this, if it is circulant or its sums over channels are normal; other
//! networks are predicted at the posterior's mean in the hidden layers. The expected entropy is not available: it is reported
//! equal to that of the mean logits.

use circulant_core::elementary::root;
use circulant_core::{Complex, HalfPlane, HalfSpectrum};

use crate::EdgeError;
use crate::layer::{Activation, Kind, Layer};
use crate::layers::{self, Origin};
use crate::memory::{Work, get};
use crate::model::Model;
use crate::number::Number;
use crate::prediction::{Prediction, Tally};
use crate::sums;

pub(crate) fn predict<'m, T: Number>(
    model: &Model<'_>,
    roots: &[Complex<T>],
    input: Origin<'_, T>,
    work: &mut Work<'_, T>,
    heads: &'m mut [Complex<T>],
) -> Result<Prediction<'m, T>, EdgeError> {
    let mut tally = Tally::new(*model, heads);
    let (mut rest, mut from, mut hidden) = (roots, input, None);
    for (index, layer) in model.layers().enumerate() {
        let (own, others) = rest.split_at(layer.roots_len());
        rest = others;
        if index + 1 == model.layer_count() {
            read_out(&layer, from, hidden.as_ref(), input, work, &mut tally);
            break;
        }
        if let Origin::Between = from {
            layers::hand_over(&layer, work);
        }
        let last = index + 2 == model.layer_count();
        if last && layer.activation == Activation::Tanh && spread(&layer, from, 0) > 0.0 {
            // Its tanh is part of the read-out.
            let linear = Layer {
                activation: Activation::Identity,
                ..layer
            };
            layers::hidden(&linear, own, from, None, None, work)?;
            hidden = Some(layer);
        } else {
            layers::hidden(&layer, own, from, None, None, work)?;
        }
        from = Origin::Between;
    }
    tally.add_gaussian()?;
    Ok(tally.finish(None))
}

/// The average variance of the values of a channel before the activation.
fn spread<T: Number>(layer: &Layer<'_>, input: Origin<'_, T>, channel: usize) -> f32 {
    let weights = &layer.weights;
    let own = match (layer.kind, input) {
        (Kind::Circulant { length, modes }, Origin::Input(input)) => {
            let Ok(layout) = HalfSpectrum::with_modes(length, modes) else {
                return 0.0;
            };
            let mut coordinate = 0;
            let mut sum = 0.0;
            for (k, bin) in input.iter().enumerate().take(modes) {
                let parts = layout.multiplicity(k);
                let variance = (coordinate..coordinate + parts).map(|c| weights.variance(c));
                let (re, im) = (bin.re.to_single(), bin.im.to_single());
                sum += parts as f32 * variance.sum::<f32>() * (re * re + im * im);
                coordinate += parts;
            }
            sum
        }
        (Kind::Bccb { grid, limit, .. }, Origin::Sums(sums)) => {
            let Ok(plane) = HalfPlane::with_limit(grid[0], grid[1], limit) else {
                return 0.0;
            };
            sums::variance(weights.rank, &plane, channel, sums)
        }
        _ => return 0.0,
    };
    if matches!(input, Origin::Sums(_)) && sums::folds(layer) {
        return own;
    }
    let biases = layer.bias.count;
    own + layer.bias.variance(if biases > 1 { channel } else { 0 })
}

/// Mean and variance of the logits, from values before the tanh of a hidden layer, or from values without variance.
fn read_out<T: Number>(
    layer: &Layer<'_>,
    from: Origin<'_, T>,
    hidden: Option<&Layer<'_>>,
    input: Origin<'_, T>,
    work: &mut Work<'_, T>,
    tally: &mut Tally<'_, '_, T>,
) {
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    let weights = &layer.weights;
    let positions = match hidden.map(|hidden| hidden.kind) {
        Some(Kind::Bccb { grid, .. }) => grid[0] * grid[1],
        _ => inputs,
    };
    let mut step = T::zero();
    for t in 0..inputs {
        let value: T = match from {
            Origin::Input(input) | Origin::Sums(input) => get(input, t),
            Origin::Between => get(work.output, t),
        };
        let (mut mean, mut variance) = (value.to_single(), 0.0);
        if let Some(hidden) = hidden {
            if t.is_multiple_of(positions) {
                step = T::single(root(3.0 * spread(hidden, input, t / positions)));
            }
            let middle = value.tanh().to_single();
            let low = (value - step).tanh().to_single();
            let high = (value + step).tanh().to_single();
            mean = (4.0 * middle + low + high) * (1.0 / 6.0);
            let square = (4.0 * middle * middle + low * low + high * high) * (1.0 / 6.0);
            variance = (square - mean * mean).max(0.0);
        }
        let square = mean * mean + variance;
        for k in 0..outputs {
            let index = t * outputs + k;
            let weight: f32 = weights.mean.at(index);
            let deviation = weights.deviation.map_or(0.0, |all| all.at(index));
            tally.add_moments(
                k,
                mean * weight,
                variance * weight * weight + square * deviation * deviation,
            );
        }
    }
    for k in 0..outputs {
        tally.add_moments(k, layer.bias.mean.at(k), layer.bias.variance(k));
    }
}
