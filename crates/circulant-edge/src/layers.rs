//! One input through one layer of one draw.

use circulant_core::{BccbOperator, Complex, HalfPlane, HalfSpectrum, RealTransform, elementary};

use crate::EdgeError;
use crate::dense::dense;
use crate::gaussian::{Draw, Drawn};
use crate::layer::{Activation, Kind, Layer};
use crate::memory::{Work, get, set};
use crate::number::Number;
use crate::pixels::Pixels;
use crate::runtime::Draws;
use crate::sums;

/// Where a layer's values come from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'m, T> {
    /// The first layer: its spectrum, divided by the length; of a dense layer the input itself.
    Input(&'m [Complex<T>]),
    /// The first layer: the sums over its channels.
    Sums(&'m [Complex<T>]),
    /// What the layer before gave.
    Between,
}

/// Fills the roots of unity of a layer.
pub(crate) fn fill_roots<T: Number>(kind: Kind, roots: &mut [Complex<T>]) {
    let fill = |roots: &mut [Complex<T>], order: usize| {
        for (k, root) in roots.iter_mut().enumerate() {
            // Turns as a fraction of 2^32.
            let turns = ((k as u64) << 32) / order.max(1) as u64;
            let (cosine, sine) = elementary::direction_of(turns as u32);
            *root = Complex::new(T::single(cosine), T::single(-sine));
        }
    };
    match kind {
        Kind::Circulant { length, .. } => fill(roots, length),
        Kind::Bccb { grid, .. } => {
            let (rows, columns) = roots.split_at_mut(grid[1] / 2 + 1);
            fill(rows, grid[1]);
            fill(columns, grid[0]);
        }
        Kind::Dense { .. } => {}
    }
}

/// The input of the first layer: its spectrum, divided by the length once for all draws, or its sums over channels.
#[inline(never)]
pub(crate) fn load<T: Number>(
    layer: &Layer<'_>,
    roots: &[Complex<T>],
    pixels: &Pixels<'_, '_>,
    [sums, exact]: [bool; 2],
    input: &mut [Complex<T>],
    work: &mut Work<'_, T>,
) -> Result<(), EdgeError> {
    match layer.kind {
        Kind::Circulant { length, .. } => {
            let transform = RealTransform::with_roots(length, roots)?;
            let input = &mut input[..transform.bins()];
            let scratch = &mut work.output[..transform.scratch_len()];
            pixels.fill(0, length, &mut scratch[..length.div_ceil(2)]);
            transform.forward_in_place(input, scratch)?;
            sums::divide(input, length);
        }
        Kind::Bccb {
            channels,
            grid,
            limit,
        } => {
            let plane = HalfPlane::with_limit(grid[0], grid[1], limit)?;
            let operator = BccbOperator::with_roots(&plane, channels, roots)?;
            if sums {
                let sums = &mut input[..layer.sums_len()];
                let work = &mut *work.spectrum;
                return sums::prepare(layer, &operator, channels, pixels, exact, sums, work);
            }
            let size = grid[0] * grid[1];
            let spectra = &mut input[..channels[0] * plane.bins()];
            let line = &mut work.spectrum[..operator.line_len()];
            for (channel, spectrum) in spectra.chunks_exact_mut(plane.bins()).enumerate() {
                operator.spectrum_of(&|at| pixels.at(at), channel * size, spectrum, line)?;
            }
            sums::divide(spectra, size);
        }
        Kind::Dense { inputs, .. } => {
            pixels.fill(0, inputs, &mut input[..inputs.div_ceil(2)]);
        }
    }
    Ok(())
}

/// Makes the output of the layer before the input of this one, with zeros for padding.
pub(crate) fn hand_over<T: Number>(layer: &Layer<'_>, work: &mut Work<'_, T>) {
    let pairs = layer.inputs().div_ceil(2);
    let (values, padding) = work.between.split_at_mut(pairs);
    values.copy_from_slice(&work.output[..pairs]);
    padding.fill(Complex::new(T::zero(), T::zero()));
}

/// A hidden layer with its activation: fills `work.output`.
#[inline(never)]
pub(crate) fn hidden<T: Number>(
    layer: &Layer<'_>,
    roots: &[Complex<T>],
    from: Origin<'_, T>,
    draw: Option<Draw>,
    bound: Option<f32>,
    work: &mut Work<'_, T>,
) -> Result<(), EdgeError> {
    match layer.kind {
        Kind::Circulant { length, modes } => {
            circulant([length, modes], layer, roots, from, draw, work)?
        }
        Kind::Bccb {
            channels,
            grid,
            limit,
        } => {
            let plane = HalfPlane::with_limit(grid[0], grid[1], limit)?;
            let operator = BccbOperator::with_roots(&plane, channels, roots)?;
            bccb(channels, layer, &operator, from, draw, work)?;
        }
        Kind::Dense { outputs, .. } => {
            let x = match from {
                Origin::Input(input) | Origin::Sums(input) => input,
                Origin::Between => &*work.between,
            };
            let out = &mut work.output[..outputs.div_ceil(2)];
            dense(layer, x, draw, bound, out, work.xi);
        }
    }
    let done = matches!(layer.kind, Kind::Dense { .. })
        || matches!(from, Origin::Sums(_)) && sums::folds(layer);
    if !done {
        add_bias(layer, draw, work);
    }
    // What integers follow.
    let coarse =
        draw.is_some_and(|draw| draw.draws == Draws::Sums) && layer.weights.mean.codes().is_some();
    activate(layer.activation, coarse, layer.outputs(), work.output)
}

fn circulant<T: Number>(
    [length, modes]: [usize; 2],
    layer: &Layer<'_>,
    roots: &[Complex<T>],
    from: Origin<'_, T>,
    draw: Option<Draw>,
    work: &mut Work<'_, T>,
) -> Result<(), EdgeError> {
    let layout = HalfSpectrum::with_modes(length, modes)?;
    let transform = RealTransform::with_roots(length, roots)?;
    let spectrum = &mut work.spectrum[..transform.bins()];
    let scratch = &mut work.output[..transform.scratch_len()];
    match from {
        Origin::Input(input) | Origin::Sums(input) => {
            spectrum.copy_from_slice(&input[..transform.bins()])
        }
        Origin::Between => {
            let between = &work.between;
            transform.forward_of(&|index| get(between, index), 0, spectrum, scratch)?;
            sums::divide(spectrum, length);
        }
    }
    multiply(&layout, &layer.weights.values(draw, work.xi), spectrum);
    transform.inverse_in_place(spectrum, scratch)?;
    Ok(())
}

/// `spectrum *= T(coordinates)`.
fn multiply<T: Number>(
    layout: &HalfSpectrum,
    drawn: &Drawn<'_, '_, T>,
    spectrum: &mut [Complex<T>],
) {
    let (kept, masked) = spectrum.split_at_mut(layout.modes());
    for (bin, value) in layout.iter().zip(kept) {
        *value = *value * bin.value(|coordinate| drawn.at(coordinate));
    }
    masked.fill(Complex::new(T::zero(), T::zero()));
}

#[inline(never)]
fn bccb<T: Number>(
    channels: [usize; 2],
    layer: &Layer<'_>,
    operator: &BccbOperator<'_, T>,
    from: Origin<'_, T>,
    draw: Option<Draw>,
    work: &mut Work<'_, T>,
) -> Result<(), EdgeError> {
    let plane = operator.layout();
    let (bins, pixels) = (plane.bins(), plane.height() * plane.width());
    let own = match from {
        Origin::Between => channels[0] * bins,
        _ => 0,
    };
    let (own, rest) = work.spectrum.split_at_mut(own);
    let (sum, rest) = rest.split_at_mut(bins);
    let line = &mut rest[..operator.line_len()];
    if let Origin::Between = from {
        let between = &work.between;
        for (channel, spectrum) in own.chunks_exact_mut(bins).enumerate() {
            let value = |pixel: usize| get(between, pixel);
            operator.spectrum_of(&value, channel * pixels, spectrum, line)?;
        }
        sums::divide(own, pixels);
    }
    for output in 0..channels[1] {
        match from {
            Origin::Sums(sums) => {
                sums::spectrum(&layer.weights, plane, output, draw, sums, work.xi, sum);
            }
            Origin::Input(_) | Origin::Between => {
                let spectra = match from {
                    Origin::Input(input) => input,
                    _ => &*own,
                };
                let drawn = layer.weights.values(draw, work.xi);
                operator.mix(output, |index| drawn.at(index), spectra, sum);
            }
        }
        let image = &mut work.output;
        if plane.height() == 1 && pixels.is_multiple_of(2) {
            // Pairs stay pairs.
            let rows = operator.rows();
            rows.inverse_in_place(sum, &mut line[..rows.scratch_len()])?;
            let (pairs, first) = (pixels / 2, output * pixels / 2);
            image[first..first + pairs].copy_from_slice(&line[..pairs]);
            continue;
        }
        operator.image_of(sum, line, |pixel, value| {
            set(image, output * pixels + pixel, value);
        })?;
    }
    Ok(())
}

fn add_bias<T: Number>(layer: &Layer<'_>, draw: Option<Draw>, work: &mut Work<'_, T>) {
    let bias = &layer.bias;
    let own = if bias.count == layer.outputs() {
        1
    } else {
        layer.kind.sizes()[1] / bias.count.max(1)
    };
    let mut add = |part: usize, bias: T| {
        for index in part * own..(part + 1) * own {
            let value = get(work.output, index) + bias;
            set(work.output, index, value);
        }
    };
    // One bias for every value costs as much as all the rest: codes are looked up without asking for the format.
    if let (Some(codes), Some(draw)) = (bias.codes(), draw)
        && draw.draws == Draws::Sums
    {
        let (key, unit) = (bias.counter(draw), bias.unit());
        if own == 1 {
            let count = bias.count;
            for (index, pair) in work.output[..count.div_ceil(2)].iter_mut().enumerate() {
                pair.re = pair.re + codes.draw(2 * index, unit, key);
                pair.im = pair.im + codes.draw(2 * index + 1, unit, key);
            }
            return;
        }
        for part in 0..bias.count {
            add(part, codes.draw(part, unit, key));
        }
        return;
    }
    let drawn = bias.values(draw, work.xi);
    for part in 0..bias.count {
        add(part, drawn.at(part));
    }
}

#[inline(never)]
fn activate<T: Number>(
    activation: Activation,
    coarse: bool,
    count: usize,
    values: &mut [Complex<T>],
) -> Result<(), EdgeError> {
    // Of an odd number the last half pair is nobody's.
    if !count.is_multiple_of(2) {
        set(values, count, T::zero());
    }
    let pairs = &mut values[..count.div_ceil(2)];
    let sound = match activation {
        Activation::Identity => each(pairs, |x| x),
        Activation::Tanh if coarse => each(pairs, T::coarse_tanh),
        Activation::Tanh => each(pairs, T::tanh),
        Activation::Relu => each(pairs, |x| if x > T::zero() { x } else { T::zero() }),
        Activation::MaxMin => {
            let sound = each(pairs, |x| x);
            for pair in &mut pairs[..count / 2] {
                if pair.re > pair.im {
                    *pair = Complex::new(pair.im, pair.re);
                }
            }
            sound
        }
    };
    // Integers would hide what is no number.
    if sound {
        Ok(())
    } else {
        Err(EdgeError::NotFinite {
            what: "the values of a layer",
        })
    }
}

/// Puts a function of every value in its place; whether all of them were numbers.
#[inline(always)]
fn each<T: Number>(pairs: &mut [Complex<T>], f: impl Fn(T) -> T) -> bool {
    let mut sound = true;
    for pair in pairs {
        sound &= pair.re.is_sound() && pair.im.is_sound();
        *pair = Complex::new(f(pair.re), f(pair.im));
    }
    sound
}
