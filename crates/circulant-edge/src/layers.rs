//! One input through one layer of one draw.

use circulant_core::{BccbOperator, Complex, HalfPlane, HalfSpectrum, RealTransform, elementary};

use crate::EdgeError;
use crate::dense::dense;
use crate::gaussian::{Draw, Drawn};
use crate::layer::{Activation, Kind, Layer};
use crate::memory::{Work, get, set};
use crate::number::Number;
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
    value: &dyn Fn(usize) -> T,
    sums: bool,
    input: &mut [Complex<T>],
    work: &mut Work<'_, T>,
) -> Result<(), EdgeError> {
    match layer.kind {
        Kind::Circulant { length, .. } => {
            let transform = RealTransform::with_roots(length, roots)?;
            let input = &mut input[..transform.bins()];
            let scratch = &mut work.output[..transform.scratch_len()];
            transform.forward_of(value, 0, input, scratch)?;
            divide(input, length);
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
                sums::prepare(
                    &layer.weights,
                    &operator,
                    channels,
                    value,
                    sums,
                    work.spectrum,
                )?;
                return Ok(());
            }
            let pixels = grid[0] * grid[1];
            let spectra = &mut input[..channels[0] * plane.bins()];
            let line = &mut work.spectrum[..operator.line_len()];
            for (channel, spectrum) in spectra.chunks_exact_mut(plane.bins()).enumerate() {
                operator.spectrum_of(value, channel * pixels, spectrum, line)?;
            }
            divide(spectra, pixels);
        }
        Kind::Dense { inputs, .. } => {
            (0..inputs).for_each(|index| set(input, index, value(index)));
        }
    }
    Ok(())
}

fn divide<T: Number>(spectrum: &mut [Complex<T>], by: usize) {
    for bin in spectrum {
        *bin = Complex::new(bin.re.divided(by), bin.im.divided(by));
    }
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
    if !matches!(layer.kind, Kind::Dense { .. }) {
        add_bias(layer, draw, work);
    }
    activate(layer.activation, layer.outputs(), work.output)
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
            divide(spectrum, length);
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
        divide(own, pixels);
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
        operator.image_of(sum, line, |pixel, value| {
            set(image, output * pixels + pixel, value);
        })?;
    }
    Ok(())
}

fn add_bias<T: Number>(layer: &Layer<'_>, draw: Option<Draw>, work: &mut Work<'_, T>) {
    let bias = &layer.bias;
    let own = (layer.outputs() / bias.count.max(1)).max(1);
    let mut add = |part: usize, bias: T| {
        for index in part * own..(part + 1) * own {
            let value = get(work.output, index) + bias;
            set(work.output, index, value);
        }
    };
    // One bias for every value costs as much as all the rest: codes are looked up without asking for the format.
    if let (Some(codes), Some(draw)) = (bias.codes(), draw)
        && bias.rank == 0
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
    count: usize,
    values: &mut [Complex<T>],
) -> Result<(), EdgeError> {
    // Integers would hide what is no number.
    if !(0..count).all(|index| get(values, index).is_sound()) {
        return Err(EdgeError::NotFinite {
            what: "the values of a layer",
        });
    }
    let pairs = &mut values[..count.div_ceil(2)];
    let each = |pairs: &mut [Complex<T>], f: fn(T) -> T| {
        for pair in pairs {
            *pair = Complex::new(f(pair.re), f(pair.im));
        }
    };
    match activation {
        Activation::Identity => {}
        Activation::Tanh => each(pairs, T::tanh),
        Activation::Relu => each(pairs, |x| if x > T::zero() { x } else { T::zero() }),
        Activation::MaxMin => {
            for pair in &mut pairs[..count / 2] {
                if pair.re > pair.im {
                    *pair = Complex::new(pair.im, pair.re);
                }
            }
        }
    }
    Ok(())
}
