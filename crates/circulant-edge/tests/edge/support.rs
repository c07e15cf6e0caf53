//! Networks of numbers that look random, and oracles in f64.

use std::f64::consts::TAU;

use circulant_edge::write::{ModelWriter, WrittenGaussian, WrittenTarget};
use circulant_edge::{Complex, EdgeError, Format, Model, Number, Runtime};

/// Numbers that look random.
pub fn numbers(seed: u64, count: usize, size: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| size * next()).collect()
}

pub fn gaussian(seed: u64, count: usize, rank: usize, size: f32) -> WrittenGaussian {
    let deviation = numbers(seed + 1, count, 0.3 * size);
    WrittenGaussian {
        mean: numbers(seed, count, size),
        factor: numbers(seed + 2, count * rank, 0.2 * size),
        deviation: deviation.iter().map(|x| x.abs()).collect(),
        stream: seed as u16,
    }
}

pub fn run<R>(
    bytes: &[u8],
    use_it: impl FnOnce(&mut Runtime<'_, '_, f32>) -> R,
) -> Result<R, EdgeError> {
    run_as(bytes, f32::NAN, use_it)
}

/// The same with other numbers; memory is full of `rubbish`.
pub fn run_as<T: Number, R>(
    bytes: &[u8],
    rubbish: T,
    use_it: impl FnOnce(&mut Runtime<'_, '_, T>) -> R,
) -> Result<R, EdgeError> {
    let model = Model::read(bytes)?;
    let mut memory = vec![Complex::new(rubbish, rubbish); model.memory_len()];
    Ok(use_it(&mut Runtime::new(model, &mut memory)?))
}

/// `T(a)` of a signal as a circulant matrix times `x`, in f64 by the definition.
pub fn circulant(coordinates: &[f32], modes: usize, x: &[f64]) -> Vec<f64> {
    let d = x.len();
    let bin = |k: usize| -> (f64, f64) {
        let (k, sign) = if k > d / 2 { (d - k, -1.0) } else { (k, 1.0) };
        if k >= modes {
            return (0.0, 0.0);
        }
        let at = |index: usize| f64::from(coordinates[index]);
        if k == 0 {
            (at(0), 0.0)
        } else if 2 * k == d {
            (at(2 * k - 1), 0.0)
        } else {
            (at(2 * k - 1), sign * at(2 * k))
        }
    };
    let filter: Vec<f64> = (0..d)
        .map(|t| {
            let terms = (0..d).map(|k| {
                let (re, im) = bin(k);
                let angle = TAU * (k * t % d) as f64 / d as f64;
                re * angle.cos() - im * angle.sin()
            });
            terms.sum::<f64>() / d as f64
        })
        .collect();
    (0..d)
        .map(|t| (0..d).map(|s| filter[(t + d - s) % d] * x[s]).sum())
        .collect()
}

pub fn softmax(logits: &[f64]) -> Vec<f64> {
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|x| (x - highest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|x| x / total).collect()
}

pub fn dense(x: &[f64], weights: &[f32], bias: &[f32]) -> Vec<f64> {
    let outputs = bias.len();
    (0..outputs)
        .map(|k| {
            let products = x.iter().enumerate();
            let sum: f64 = products
                .map(|(t, x)| x * f64::from(weights[t * outputs + k]))
                .sum();
            sum + f64::from(bias[k])
        })
        .collect()
}

/// A Bayesian network of 12 inputs and 4 classes.
pub fn bayesian(format: Format) -> ModelWriter {
    let mut writer = ModelWriter::new([1, 1, 12], 4, format);
    writer.circulant(12, 5, &gaussian(1, 9, 3, 1.0), &gaussian(2, 1, 0, 0.5));
    writer.read_out(12, &gaussian(3, 48, 0, 1.0), &gaussian(4, 4, 0, 0.5));
    writer
}

/// A Bayesian network whose first layer has many channels and two outputs: `[channels, grid]` pixels, 4 classes.
pub fn blocks(format: Format, channels: usize, grid: [usize; 2], rank: usize) -> ModelWriter {
    let pixels = grid[0] * grid[1];
    let mut writer = ModelWriter::new([channels, grid[0], grid[1]], 4, format);
    let size = 1.0 / (channels as f32).sqrt();
    let weights = gaussian(1, 2 * channels * pixels, rank, size);
    let bias = gaussian(2, 2 * pixels, 0, 0.5);
    writer.bccb([channels, 2], grid, 1.0, &weights, &bias);
    let weights = gaussian(3, 8 * pixels, 0, 1.0);
    writer.read_out(2 * pixels, &weights, &gaussian(4, 4, 0, 0.5));
    writer
}

/// Two layers of blocks of three from 8 values to 4 and to 5, which the blocks do not divide, and 2 classes.
pub fn padded(format: Format) -> ModelWriter {
    let mut writer = ModelWriter::new([1, 1, 8], 2, format);
    for (seed, sizes) in [(1, [8, 4]), (5, [4, 5])] {
        let channels = [sizes[0], sizes[1]].map(|size: usize| size.div_ceil(3));
        let weights = gaussian(seed, 3 * channels[0] * channels[1], 1, 0.5);
        let bias = gaussian(seed + 1, sizes[1], 0, 0.5);
        writer.padded_bccb(channels, [1, 3], sizes, 1.0, &weights, &bias);
    }
    writer.read_out(5, &gaussian(8, 10, 0, 1.0), &gaussian(9, 2, 0, 0.5));
    writer
}

/// A number of four inputs, with noise that depends on them.
pub fn noisy(format: Format) -> ModelWriter {
    let mut writer = ModelWriter::new([1, 1, 4], 1, format);
    writer.targets_with_noise_per_input(vec![WrittenTarget {
        scale: 2.0,
        offset: 5.0,
        noise: 0.5,
    }]);
    writer.circulant(4, 3, &gaussian(1, 4, 1, 1.0), &gaussian(2, 1, 0, 0.5));
    writer.read_out(4, &gaussian(3, 8, 0, 1.0), &gaussian(4, 2, 0, 0.5));
    writer
}

/// A count of four inputs.
pub fn counts(format: Format) -> ModelWriter {
    let mut writer = ModelWriter::new([1, 1, 4], 1, format);
    writer.counts();
    writer.circulant(4, 3, &gaussian(1, 4, 1, 1.0), &gaussian(2, 1, 0, 0.5));
    writer.read_out(4, &gaussian(3, 4, 0, 1.0), &gaussian(4, 1, 0, 0.5));
    writer
}
