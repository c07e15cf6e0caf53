//! One input through one layer of one draw.

use circulant_core::{BccbOperator, Complex, HalfPlane, HalfSpectrum, RealTransform, elementary};

use crate::EdgeError;
use crate::dense::{Local, dense};
use crate::gaussian::{Draw, Drawn};
use crate::layer::{Activation, Kind, Layer};
use crate::memory::{Work, get, set};
use crate::number::Number;

/// Where a layer's values come from.
pub(crate) enum Origin<'m, T> {
    /// The first layer: its spectrum, divided by the length; of a dense layer the input itself.
    Input(&'m [Complex<T>]),
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

/// The input of the first layer: its spectrum, divided by the length once for all draws.
pub(crate) fn load<T: Number>(
    kind: Kind,
    roots: &[Complex<T>],
    value: impl Fn(usize) -> T,
    input: &mut [Complex<T>],
    work: &mut Work<'_, T>,
) -> Result<(), EdgeError> {
    let size = match kind {
        Kind::Circulant { length, .. } => {
            let transform = RealTransform::with_roots(length, roots)?;
            let scratch = &mut work.output[..transform.scratch_len()];
            transform.forward_of(value, input, scratch)?;
            length
        }
        Kind::Bccb {
            channels,
            grid,
            cutoff,
        } => {
            let plane = HalfPlane::with_radius(grid[0], grid[1], cutoff)?;
            let operator = BccbOperator::with_roots(&plane, channels, roots)?;
            let pixels = grid[0] * grid[1];
            let line = &mut work.spectrum[..operator.line_len()];
            for (channel, spectrum) in input.chunks_exact_mut(plane.bins()).enumerate() {
                operator.spectrum_of(|pixel| value(channel * pixels + pixel), spectrum, line)?;
            }
            pixels
        }
        Kind::Dense { inputs, .. } => {
            (0..inputs).for_each(|index| set(input, index, value(index)));
            return Ok(());
        }
    };
    for bin in input {
        *bin = Complex::new(bin.re.divided(size), bin.im.divided(size));
    }
    Ok(())
}

/// A hidden layer with its activation: fills `work.output`.
pub(crate) fn hidden<T: Number>(
    layer: &Layer<'_>,
    roots: &[Complex<T>],
    from: &Origin<'_, T>,
    draw: Option<Draw>,
    local: Local,
    work: &mut Work<'_, T>,
) -> Result<(), EdgeError> {
    match layer.kind {
        Kind::Circulant { length, modes } => {
            let layout = HalfSpectrum::with_modes(length, modes)?;
            let transform = RealTransform::with_roots(length, roots)?;
            let bins = transform.bins();
            let scratch = transform.scratch_len();
            let spectrum = &mut work.spectrum[..bins];
            let divide = match from {
                Origin::Input(input) => {
                    spectrum.copy_from_slice(input);
                    false
                }
                Origin::Between => {
                    let between = &work.between;
                    let value = |index: usize| get(between, index);
                    transform.forward_of(value, spectrum, &mut work.output[..scratch])?;
                    true
                }
            };
            let mut drawn = layer.weights.values(draw, work.noise, work.xi)?;
            multiply(&layout, &mut drawn, spectrum);
            if divide {
                for bin in spectrum.iter_mut() {
                    *bin = Complex::new(bin.re.divided(length), bin.im.divided(length));
                }
            }
            transform.inverse_in_place(spectrum, &mut work.output[..scratch])?;
        }
        Kind::Bccb {
            channels,
            grid,
            cutoff,
        } => {
            let plane = HalfPlane::with_radius(grid[0], grid[1], cutoff)?;
            let operator = BccbOperator::with_roots(&plane, channels, roots)?;
            let (bins, pixels) = (plane.bins(), grid[0] * grid[1]);
            let mut drawn = layer.weights.values(draw, work.noise, work.xi)?;
            for index in 0..layer.weights.count {
                set(work.coordinates, index, drawn.draw());
            }
            let (own, rest) = work.spectrum.split_at_mut(channels[0] * bins);
            let (sum, rest) = rest.split_at_mut(bins);
            let line = &mut rest[..operator.line_len()];
            let spectra = match from {
                Origin::Input(input) => *input,
                Origin::Between => {
                    for (channel, spectrum) in own.chunks_exact_mut(bins).enumerate() {
                        let between = &work.between;
                        let value = |pixel: usize| get(between, channel * pixels + pixel);
                        operator.spectrum_of(value, spectrum, line)?;
                        for bin in spectrum.iter_mut() {
                            *bin = Complex::new(bin.re.divided(pixels), bin.im.divided(pixels));
                        }
                    }
                    &*own
                }
            };
            let coordinates = &work.coordinates;
            for output in 0..channels[1] {
                operator.mix(output, |index| get(coordinates, index), spectra, sum);
                let image = &mut work.output;
                operator.image_of(sum, line, |pixel, value| {
                    set(image, output * pixels + pixel, value);
                })?;
            }
        }
        Kind::Dense { outputs, .. } => {
            let (noise, xi) = (&mut *work.noise, &mut *work.xi);
            let out = &mut work.output[..outputs.div_ceil(2)];
            match from {
                Origin::Input(input) => {
                    dense(
                        layer,
                        |index| get(input, index),
                        draw,
                        local,
                        out,
                        noise,
                        xi,
                    )?;
                }
                Origin::Between => {
                    let value = |index: usize| get(work.between, index);
                    dense(layer, value, draw, local, out, noise, xi)?;
                }
            }
        }
    }
    if !matches!(layer.kind, Kind::Dense { .. }) {
        add_bias(layer, draw, work)?;
    }
    activate(layer.activation, layer.outputs(), work.output)
}

/// `spectrum *= T(coordinates)`; coordinates have the order of the bins.
fn multiply<T: Number>(
    layout: &HalfSpectrum,
    drawn: &mut Drawn<'_, '_, T>,
    spectrum: &mut [Complex<T>],
) {
    let (kept, masked) = spectrum.split_at_mut(layout.modes());
    for (k, value) in kept.iter_mut().enumerate() {
        let re = drawn.draw();
        if k == 0 || 2 * k == layout.length() {
            *value = Complex::new(value.re * re, value.im * re);
        } else {
            *value = *value * Complex::new(re, drawn.draw());
        }
    }
    masked.fill(Complex::new(T::zero(), T::zero()));
}

fn add_bias<T: Number>(
    layer: &Layer<'_>,
    draw: Option<Draw>,
    work: &mut Work<'_, T>,
) -> Result<(), EdgeError> {
    let own = layer.outputs() / layer.bias.count.max(1);
    let mut drawn = layer.bias.values(draw, work.noise, work.xi)?;
    for first in (0..layer.outputs()).step_by(own.max(1)) {
        let bias = drawn.draw();
        for index in first..first + own {
            let value = get(work.output, index) + bias;
            set(work.output, index, value);
        }
    }
    Ok(())
}

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
