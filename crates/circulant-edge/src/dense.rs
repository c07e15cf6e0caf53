//! Dense layers of one draw: `out = x W + b`.

use circulant_core::{Complex, elementary};

use crate::gaussian::Draw;
use crate::layer::Layer;
use crate::memory::{get, set};
use crate::number::Number;
use crate::values::{SQUARES, share_of};

/// `out = x W + b` of a draw, or of the mean. Where sums are drawn in the place of weights, sum `k` is, given `x`, normal with
/// mean `sum_t x_t mean_tk` and variance `sum_t x_t^2 deviation_tk^2`, independent of all others, as it is with drawn
/// weights. No `x` exceeds `bound`, where that is known.
pub(crate) fn dense<T: Number>(
    layer: &Layer<'_>,
    x: &[Complex<T>],
    draw: Option<Draw>,
    bound: Option<f32>,
    out: &mut [Complex<T>],
    xi: &mut [Complex<T>],
) {
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    if let Some(draw) = draw
        && (draw.is_of_weights() || layer.bias.rank > 0)
    {
        let drawn = layer.bias.values(Some(draw), xi);
        (0..outputs).for_each(|k| set(out, k, drawn.at(k)));
        let drawn = layer.weights.values(Some(draw), xi);
        for t in 0..inputs {
            let x = get(x, t);
            for k in 0..outputs {
                let sum = get(out, k) + x * drawn.at(t * outputs + k);
                set(out, k, sum);
            }
        }
        return;
    }
    let noise = draw.map(|draw| layer.weights.noise(draw));
    let bound = bound.unwrap_or_else(|| largest(inputs, x));
    let product = noise.and_then(|_| product(layer, x, bound));
    let mut put = |k: usize, (mean, variance): (f32, f32)| {
        let mut sum = T::single(mean + layer.bias.mean.at::<f32>(k));
        if let Some(noise) = noise {
            let variance = match product {
                Some((squares, columns)) => {
                    let share = share_of(columns.get(k).copied().unwrap_or(0));
                    squares * (share * share)
                }
                None => variance,
            };
            let variance = variance + layer.bias.variance(k);
            sum = sum + T::single(elementary::near_root(variance)) * noise.at(k);
        }
        set(out, k, sum);
    };
    let mut k = 0;
    while k < outputs {
        let block = BLOCK.min(outputs - k);
        let sums = columns(layer, x, k, noise.is_some() && product.is_none(), bound);
        for &sum in sums.iter().take(block) {
            put(k, sum);
            k += 1;
        }
    }
}

/// The largest absolute value, or one if all are zero.
fn largest<T: Number>(count: usize, x: &[Complex<T>]) -> f32 {
    let mut largest = 0.0_f32;
    for index in 0..count {
        let x = get(x, index).to_single();
        largest = largest.max(if x < 0.0 { -x } else { x });
    }
    if largest > 0.0 { largest } else { 1.0 }
}

/// `sum_t x_t^2 deviation_t^2` where deviations are products of rows and columns, and the codes of the columns.
#[inline(never)]
fn product<'a, T: Number>(
    layer: &Layer<'a>,
    x: &[Complex<T>],
    bound: f32,
) -> Option<(f32, &'a [u8])> {
    let deviations = layer.weights.deviation?;
    let (rows, columns) = deviations.product()?;
    let factor = 16384.0 / bound;
    let square_of = |x: T, code: u8| {
        let x = x.fraction(factor);
        ((x * x) >> 18) as u32 * u32::from(SQUARES[usize::from(code)])
    };
    let mut total = 0.0;
    for (rows, x) in rows.chunks(ROWS).zip(x.chunks(ROWS / 2)) {
        let (pairs, last) = rows.as_chunks::<2>();
        let mut sum = 0;
        for ([first, second], x) in pairs.iter().zip(x) {
            sum += square_of(x.re, *first) + square_of(x.im, *second);
        }
        if let ([code], Some(x)) = (last, x.get(pairs.len())) {
            sum += square_of(x.re, *code);
        }
        total += sum as f32;
    }
    let unit = deviations.unit() * bound;
    Some((total * (unit * unit * (1.0 / 16_777_216.0)), columns))
}

/// Columns whose sums stay in registers.
const BLOCK: usize = 5;
/// Rows whose sums of integers cannot overflow.
const ROWS: usize = 128;

/// Mean and variance of the sums of the columns from `first` on; integers of `bound/2^14` stand for inputs of at most `bound`
/// where weights are integers. Sums of columns that there are not are of no use.
#[inline(never)]
fn columns<'a, T: Number>(
    layer: &Layer<'a>,
    x: &[Complex<T>],
    first: usize,
    spread: bool,
    bound: f32,
) -> [(f32, f32); BLOCK] {
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    let weights = &layer.weights;
    let mut sums = [(0.0, 0.0); BLOCK];
    let deviations = weights.deviation.filter(|_| spread);
    let Some(codes) = weights.mean.codes() else {
        let floats = weights.mean.floats();
        let spreads = deviations.and_then(|deviation| deviation.floats());
        for t in 0..inputs {
            let (x, place) = (get(x, t).to_single(), t * outputs + first);
            let row = |values: Option<&'a [[u8; 4]]>| values?.get(place..)?.first_chunk::<BLOCK>();
            if let (Some(means), Some(spreads)) = (row(floats), row(spreads)) {
                // Whole rows of f32 become vectors.
                let own = sums.iter_mut().zip(means.iter().zip(spreads));
                for (sum, (mean, spread)) in own {
                    let part = x * f32::from_le_bytes(*spread);
                    sum.0 += x * f32::from_le_bytes(*mean);
                    sum.1 += part * part;
                }
                continue;
            }
            let own = sums.iter_mut().zip(first..outputs);
            for (sum, column) in own {
                let index = t * outputs + column;
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
    for (part, x) in x[..inputs.div_ceil(2)].chunks(ROWS / 2).enumerate() {
        let start = part * ROWS;
        let count = ROWS.min(inputs - start);
        let (from, end) = (
            start * outputs + first,
            (start + count - 1) * outputs + first,
        );
        let (means, variances) = if outputs < BLOCK {
            // Blocks would overlap.
            let rows = |codes: &'a [u8]| codes.get(from..).unwrap_or(&[]).chunks(outputs);
            let square_of = |x: i32| ((x * x) >> 18) as u32;
            let means = few(
                rows(codes),
                x,
                count,
                |x| x.fraction(factor) as u32,
                |code| i32::from(code as i8) as u32,
            );
            let variances = few(
                rows(spreads.map_or(&[], |(codes, _)| codes)),
                x,
                count,
                |x| square_of(x.fraction(factor)),
                |code| SQUARES[usize::from(code)].into(),
            );
            (means.map(|sum| sum as i32), variances)
        } else {
            let last = cut_off(codes, end);
            let own = Rows::new(codes, from, outputs, &last);
            let means = means(own, x, count, factor);
            let variances = match spreads {
                Some((codes, _)) => {
                    let last = cut_off(codes, end);
                    variances(Rows::new(codes, from, outputs, &last), x, count, factor)
                }
                None => [0; BLOCK],
            };
            (means, variances)
        };
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

/// The block at this place, which may be cut off: then it is filled up with zeros.
fn cut_off(codes: &[u8], place: usize) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let codes = codes.get(place..).unwrap_or(&[]);
    block
        .iter_mut()
        .zip(codes)
        .for_each(|(to, from)| *to = *from);
    block
}

/// Sums over rows of few columns, modulo `2^32`.
#[inline(never)]
fn few<'a, T: Number>(
    rows: impl Iterator<Item = &'a [u8]>,
    x: &[Complex<T>],
    count: usize,
    value: impl Fn(T) -> u32,
    number: impl Fn(u8) -> u32,
) -> [u32; BLOCK] {
    let mut sums = [0_u32; BLOCK];
    for (t, row) in (0..count).zip(rows) {
        let x = value(get(x, t));
        for (sum, code) in sums.iter_mut().zip(row) {
            *sum = sum.wrapping_add(x.wrapping_mul(number(*code)));
        }
    }
    sums
}

/// `sum_t x_t code_tk`. Written out, as the sums below, so that they stay in registers.
#[inline(never)]
fn means<T: Number>(codes: Rows<'_>, x: &[Complex<T>], count: usize, factor: f32) -> [i32; BLOCK] {
    let (mut a, mut b, mut c, mut d, mut e) = (0, 0, 0, 0, 0);
    let code = |code: u8| i32::from(code as i8);
    let mut add = |x, row: &[u8; BLOCK]| {
        a += x * code(row[0]);
        b += x * code(row[1]);
        c += x * code(row[2]);
        d += x * code(row[3]);
        e += x * code(row[4]);
    };
    let mut pairs = codes.pairs();
    for pair in &x[..count / 2] {
        let (first, second) = pairs.next();
        add(pair.re.fraction(factor), first);
        add(pair.im.fraction(factor), second);
    }
    if !count.is_multiple_of(2) {
        add(x[count / 2].re.fraction(factor), codes.last);
    }
    [a, b, c, d, e]
}

/// `sum_t x_t^2 share_tk^2`, times `2^-4`.
#[inline(never)]
fn variances<T: Number>(
    codes: Rows<'_>,
    x: &[Complex<T>],
    count: usize,
    factor: f32,
) -> [u32; BLOCK] {
    let (mut a, mut b, mut c, mut d, mut e) = (0, 0, 0, 0, 0);
    let square_of = |x: i32| ((x * x) >> 18) as u32;
    let share = |code: u8| u32::from(SQUARES[usize::from(code)]);
    let mut add = |x, row: &[u8; BLOCK]| {
        a += x * share(row[0]);
        b += x * share(row[1]);
        c += x * share(row[2]);
        d += x * share(row[3]);
        e += x * share(row[4]);
    };
    let mut pairs = codes.pairs();
    for pair in &x[..count / 2] {
        let (first, second) = pairs.next();
        add(square_of(pair.re.fraction(factor)), first);
        add(square_of(pair.im.fraction(factor)), second);
    }
    if !count.is_multiple_of(2) {
        add(square_of(x[count / 2].re.fraction(factor)), codes.last);
    }
    [a, b, c, d, e]
}

/// Blocks of codes, a row of the matrix apart.
#[derive(Clone, Copy)]
struct Rows<'a> {
    codes: &'a [u8],
    step: usize,
    /// The last block, filled up with zeros.
    last: &'a [u8; BLOCK],
}

impl<'a> Rows<'a> {
    fn new(codes: &'a [u8], from: usize, step: usize, last: &'a [u8; BLOCK]) -> Self {
        let codes = codes.get(from..).unwrap_or(&[]);
        Self { codes, step, last }
    }

    fn pairs(self) -> Pairs<'a> {
        Pairs {
            rest: self.codes,
            rows: self,
        }
    }
}

/// Two blocks after the other.
struct Pairs<'a> {
    rest: &'a [u8],
    rows: Rows<'a>,
}

impl<'a> Pairs<'a> {
    #[inline(always)]
    fn next(&mut self) -> (&'a [u8; BLOCK], &'a [u8; BLOCK]) {
        let (step, last) = (self.rows.step, self.rows.last);
        let Some(own) = self.rest.get(..step + BLOCK) else {
            // The last two rows: the second block is cut off.
            return (self.rest.first_chunk().unwrap_or(last), last);
        };
        let first = own.first_chunk().unwrap_or(last);
        let second = own[step..].first_chunk().unwrap_or(last);
        self.rest = self.rest.get(2 * step..).unwrap_or(&[]);
        (first, second)
    }
}
