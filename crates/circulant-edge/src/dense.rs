//! Dense layers of one draw: `out = x W + b`.

use circulant_core::random::Normals;
use circulant_core::{Complex, elementary};

use crate::EdgeError;
use crate::gaussian::Draw;
use crate::layer::Layer;
use crate::memory::{get, set};
use crate::number::Number;
use crate::values::share_of;

/// `out = x W + b` of a draw. With `local` the sums are drawn in the place of the weights: given `x`, sum `k` is normal with
/// mean `sum_t x_t mean_tk` and variance `sum_t x_t^2 deviation_tk^2`, independent of all others, as it is with drawn
/// weights.
pub(crate) fn dense<T: Number>(
    layer: &Layer<'_>,
    value: impl Fn(usize) -> T,
    draw: Option<Draw>,
    local: Local,
    out: &mut [Complex<T>],
    noise: &mut [Complex<T>],
    xi: &mut [Complex<T>],
) -> Result<(), EdgeError> {
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    let bias_rank = layer.bias.rank;
    if let (Some(_), false) = (draw, local.drawn && bias_rank == 0) {
        (0..outputs).for_each(|k| set(out, k, T::zero()));
        let mut drawn = layer.weights.values(draw, noise, xi)?;
        for t in 0..inputs {
            let x = value(t);
            for k in 0..outputs {
                let sum = get(out, k) + x * drawn.draw();
                set(out, k, sum);
            }
        }
        let mut drawn = layer.bias.values(draw, noise, xi)?;
        for k in 0..outputs {
            let sum = get(out, k) + drawn.draw();
            set(out, k, sum);
        }
        return Ok(());
    }
    let mut normals = match draw {
        Some(draw) => Some(Normals::new(layer.weights.local_key(draw), outputs, noise)?),
        None => None,
    };
    let spread = draw.is_some();
    let bound = match local.bound {
        Some(bound) => bound,
        None => largest(inputs, &value),
    };
    let mut put = |k: usize, (mean, variance): (f32, f32)| {
        let mean = mean + layer.bias.mean.at::<f32>(k);
        let mut sum = T::single(mean);
        if let Some(normals) = &mut normals {
            let variance = variance + layer.bias.variance(k);
            sum = sum + T::single(elementary::root(variance)) * normals.draw();
        }
        set(out, k, sum);
    };
    let mut k = 0;
    while k + BLOCK <= outputs {
        let block = columns::<BLOCK, T>(layer, &value, k, spread, bound);
        block.into_iter().for_each(|sums| {
            put(k, sums);
            k += 1;
        });
    }
    while k < outputs {
        let [sums] = columns::<1, T>(layer, &value, k, spread, bound);
        put(k, sums);
        k += 1;
    }
    Ok(())
}

/// How dense layers are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local {
    /// Whether sums are drawn in the place of weights.
    pub(crate) drawn: bool,
    /// What no input exceeds, where it is known.
    pub(crate) bound: Option<f32>,
}

/// The largest absolute value, or one if all are zero.
fn largest<T: Number>(count: usize, value: &impl Fn(usize) -> T) -> f32 {
    let mut largest = 0.0_f32;
    for index in 0..count {
        let x = value(index).to_single();
        largest = largest.max(if x < 0.0 { -x } else { x });
    }
    if largest > 0.0 { largest } else { 1.0 }
}

/// Columns whose sums stay in registers.
const BLOCK: usize = 5;
/// Rows whose sums of integers cannot overflow.
const ROWS: usize = 128;

/// Mean and variance of the sums of `N` columns from `first` on; integers of `bound/2^14` stand for inputs of at most `bound`
/// where weights are integers.
fn columns<const N: usize, T: Number>(
    layer: &Layer<'_>,
    value: &impl Fn(usize) -> T,
    first: usize,
    spread: bool,
    bound: f32,
) -> [(f32, f32); N] {
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    let weights = &layer.weights;
    let mut sums = [(0.0, 0.0); N];
    let deviations = weights.deviation.filter(|_| spread);
    if let Some(means) = weights.mean.floats() {
        let spreads = deviations.and_then(|deviation| deviation.floats());
        for t in 0..inputs {
            let (x, place) = (value(t).to_single(), t * outputs + first);
            if let Some(means) = means.get(place..).and_then(<[_]>::first_chunk::<N>) {
                for (sum, mean) in sums.iter_mut().zip(means) {
                    sum.0 += x * f32::from_le_bytes(*mean);
                }
            }
            let spreads = spreads.and_then(|spreads| spreads.get(place..));
            if let Some(spreads) = spreads.and_then(<[_]>::first_chunk::<N>) {
                for (sum, spread) in sums.iter_mut().zip(spreads) {
                    let part = x * f32::from_le_bytes(*spread);
                    sum.1 += part * part;
                }
            }
        }
        return sums;
    }
    let Some(codes) = weights.mean.codes() else {
        for t in 0..inputs {
            let x = value(t).to_single();
            for (column, sum) in sums.iter_mut().enumerate() {
                let index = t * outputs + first + column;
                sum.0 += x * weights.mean.at::<f32>(index);
                if let Some(deviation) = deviations {
                    let part = x * deviation.at(index);
                    sum.1 += part * part;
                }
            }
        }
        return sums;
    };
    let spreads = deviations.and_then(|deviation| deviation.codes());
    let factor = 16384.0 / bound;
    for start in (0..inputs).step_by(ROWS) {
        let (mut means, mut variances) = ([0_i32; N], [0_u32; N]);
        for t in start..inputs.min(start + ROWS) {
            let (x, place) = (value(t).fraction(factor), t * outputs + first);
            if let Some(codes) = codes.get(place..).and_then(<[u8]>::first_chunk::<N>) {
                for (mean, &code) in means.iter_mut().zip(codes) {
                    *mean += x * i32::from(code as i8);
                }
            }
            let spreads = spreads.and_then(|(codes, _)| codes.get(place..));
            if let Some(codes) = spreads.and_then(<[u8]>::first_chunk::<N>) {
                let square = ((x * x) >> 18) as u32;
                for (variance, &code) in variances.iter_mut().zip(codes) {
                    *variance += square * u32::from(SQUARES[usize::from(code)]);
                }
            }
        }
        for (column, sum) in sums.iter_mut().enumerate() {
            sum.0 += means[column] as f32;
            sum.1 += variances[column] as f32;
        }
    }
    let scale = spreads.map_or(0.0, |(_, scale)| scale * bound);
    for (column, sum) in sums.iter_mut().enumerate() {
        sum.0 *= weights.mean.scale(first + column) / factor;
        sum.1 *= scale * scale * (1.0 / 16_777_216.0);
    }
    sums
}

/// `2^14 share_of(code)^2`.
const SQUARES: [u16; 256] = {
    let mut squares = [0; 256];
    let mut code = 0;
    while code < squares.len() {
        let share = share_of(code as u8);
        squares[code] = (16384.0 * share * share + 0.5) as u16;
        code += 1;
    }
    squares
};
