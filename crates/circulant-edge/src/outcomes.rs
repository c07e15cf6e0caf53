//! Numbers and counts out of the outputs `z` of a draw.
//!
//! | | the value of a draw | variance of its noise | out of moments, `z = N(m, v)` |
//! | --- | --- | --- | --- |
//! | value | `scale z + offset` | `noise^2` | mean `scale m + offset`, variance `scale^2 v` |
//! | value, noise per input | the same | `noise^2 exp(6 tanh(u/3))`, `u` a second output | the same; of `exp(6 tanh(u/3))` three points |
//! | count | `r = exp(z)` | `r` | `exp(m + v/2)`, `(exp(v) - 1) exp(2 m + v)` |

use circulant_core::elementary::{exp, root, tanh};

use crate::EdgeError;
use crate::model::Task;
use crate::number::Number;
use crate::prediction::{MEAN, SQUARES, SUMS, Tally, finite};

/// The variance of the noise in units of the file's.
fn spread_of(u: f32) -> f32 {
    // The logarithm of the largest factor of a deviation, as `circulant::models::TargetNetwork` has it.
    const LARGEST: f32 = 3.0;
    exp(2.0 * LARGEST * tanh(u / LARGEST))
}

/// Takes the outputs of a draw.
pub(crate) fn add<T: Number>(tally: &mut Tally<'_, '_, T>) -> Result<(), EdgeError> {
    let outputs = tally.model.outputs();
    for k in 0..outputs {
        let output = finite(tally.logit(k))?;
        // Squares without the offset keep their digits, and of counts those of differences from the first rate.
        let mut value = 0.0;
        if tally.model.task() == Task::Counts {
            let rate = finite(exp(output))?;
            if tally.draws == 1 {
                tally.put(MEAN, k, rate);
            }
            value += rate - tally.sum(MEAN, k);
        } else {
            value += output * tally.model.target(k)[0];
            if tally.model.has_noise_per_input() {
                let own = finite(tally.logit(outputs + k))?;
                tally.add_to(MEAN, k, spread_of(own));
            }
        }
        tally.add_to(SUMS, k, value);
        tally.add_to(SQUARES, k, finite(value * value)?);
    }
    Ok(())
}

/// Takes mean and variance of the outputs, which are in the sums, in the place of draws.
pub(crate) fn add_gaussian<T: Number>(tally: &mut Tally<'_, '_, T>) -> Result<(), EdgeError> {
    let outputs = tally.model.outputs();
    for k in 0..outputs {
        let (mean, variance) = (tally.sum(SUMS, k), finite(tally.sum(SQUARES, k))?);
        let (mean, square) = if tally.model.task() == Task::Counts {
            let rate = exp(finite(mean)? + 0.5 * variance);
            tally.put(MEAN, k, finite(rate)?);
            (0.0, (exp(variance) - 1.0) * rate * rate)
        } else {
            let scale = tally.model.target(k)[0];
            let mean = finite(mean)? * scale;
            (mean, variance * scale * scale + mean * mean)
        };
        if tally.model.has_noise_per_input() {
            let own = finite(tally.sum(SUMS, outputs + k))?;
            let step = root(3.0 * finite(tally.sum(SQUARES, outputs + k))?);
            let sides = spread_of(own - step) + spread_of(own + step);
            tally.put(MEAN, k, (4.0 * spread_of(own) + sides) * (1.0 / 6.0));
        }
        tally.put(SUMS, k, mean);
        tally.put(SQUARES, k, finite(square)?);
    }
    Ok(())
}

/// The mean of output `k` in its unit, from the mean of what was added up; puts the deviation of the noise into its place. `share` is
/// one divided by the number of draws.
pub(crate) fn finish<T: Number>(
    tally: &mut Tally<'_, '_, T>,
    k: usize,
    mean: f32,
    share: f32,
) -> f32 {
    let kept = tally.sum(MEAN, k);
    if tally.model.task() == Task::Counts {
        let rate = (kept + mean).max(0.0);
        tally.put(MEAN, k, root(rate));
        return rate;
    }
    let [_, offset, noise] = tally.model.target(k);
    let factor = if tally.model.has_noise_per_input() {
        root(kept * share)
    } else {
        1.0
    };
    tally.put(MEAN, k, noise * factor);
    mean + offset
}
