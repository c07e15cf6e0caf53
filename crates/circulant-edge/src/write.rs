//! Writes models, as [`model`](crate::model) describes them.

use std::vec::Vec;

use circulant_core::HalfPlane;

use crate::VERSION;
use crate::bytes::crc32;
use crate::gaussian::{COORDINATES, Gaussian};
use crate::layer::Activation;
use crate::model::{COUNTS, MAGIC, Model, NOISE, PREFIX, RADII, Task, UNIT};
use crate::values::{Format, Groups};

mod integers;

use integers::{Places, coded, shared};

/// Values that share a scale, as a binary logarithm.
const SHIFT: u8 = 5;
/// Values of a coordinate that share a scale at least.
const FEWEST: usize = 16;

/// The posterior of one parameter, as it is written.
#[derive(Debug, Clone, Default)]
pub struct WrittenGaussian {
    /// `[d]`.
    pub mean: Vec<f32>,
    /// `[d, rank]`: the low-rank factor times its scales; empty for none.
    pub factor: Vec<f32>,
    /// `[d]`, with the jitter in it; empty for a point.
    pub deviation: Vec<f32>,
    /// The stream of noise: the parameter's number in the posterior.
    pub stream: u16,
}

impl WrittenGaussian {
    /// All mass at one point.
    pub fn point(mean: Vec<f32>) -> Self {
        Self {
            mean,
            ..Self::default()
        }
    }
}

/// How inputs are normalised.
#[derive(Debug, Clone, Default)]
pub struct WrittenNormalisation {
    /// Whether bytes are divided by 255 first.
    pub unit: bool,
    /// Then subtracted: none, one per channel or one per input.
    pub mean: Vec<f32>,
    /// Then divided by.
    pub deviation: Vec<f32>,
}

/// What radii rest on.
#[derive(Debug, Clone)]
pub struct WrittenRadii {
    /// A Lipschitz bound of every difference of two logits: `(1,0), (2,0), (2,1), ...`, rounded up.
    pub differences: Vec<f32>,
    /// How far a computed logit can be from the exact one: per norm of the input, and besides.
    pub rounding: [f32; 2],
}

/// A real output in its own units: the network's times `scale` plus `offset`.
#[derive(Debug, Clone, Copy)]
pub struct WrittenTarget {
    /// Times.
    pub scale: f32,
    /// Plus.
    pub offset: f32,
    /// The standard deviation of the noise around it; where noise depends on the input, what `exp(3 tanh(u/3))` is multiplied by.
    pub noise: f32,
}

/// A model that is being written. Sizes that do not fit are found by [`Model::read`](crate::Model::read).
#[derive(Debug, Clone)]
pub struct ModelWriter {
    image: [usize; 3],
    outputs: usize,
    format: Format,
    task: Task,
    activation: Activation,
    samples: u32,
    normalisation: WrittenNormalisation,
    targets: Vec<WrittenTarget>,
    noise: bool,
    radii: Option<WrittenRadii>,
    layers: Vec<u8>,
    layer_count: u16,
    names: Vec<u8>,
}

impl ModelWriter {
    /// A classifier of `[channels, height, width]` into `outputs` classes without layers yet, its numbers in this format.
    pub fn new(image: [usize; 3], outputs: usize, format: Format) -> Self {
        Self {
            image,
            outputs,
            format,
            task: Task::Classes,
            activation: Activation::Tanh,
            samples: 8,
            normalisation: WrittenNormalisation::default(),
            targets: Vec::new(),
            noise: false,
            radii: None,
            layers: Vec::new(),
            layer_count: 0,
            names: Vec::new(),
        }
    }

    /// Posterior samples unless the device says.
    pub fn samples(&mut self, samples: u32) {
        self.samples = samples;
    }

    /// How inputs are normalised.
    pub fn normalisation(&mut self, normalisation: WrittenNormalisation) {
        self.normalisation = normalisation;
    }

    /// Real outputs in the place of classes, one target each.
    pub fn targets(&mut self, targets: Vec<WrittenTarget>) {
        self.task = Task::Values;
        self.targets = targets;
    }

    /// Real outputs whose noise depends on the input: the read-out has twice as many values, the second half for the noise.
    pub fn targets_with_noise_per_input(&mut self, targets: Vec<WrittenTarget>) {
        self.targets(targets);
        self.noise = true;
    }

    /// Counts in the place of classes: outputs are logarithms of rates.
    pub fn counts(&mut self) {
        self.task = Task::Counts;
    }

    /// What radii rest on.
    pub fn radii(&mut self, radii: WrittenRadii) {
        self.radii = Some(radii);
    }

    /// The name of the next output; longer ones are cut at 255 bytes.
    pub fn name(&mut self, name: &str) {
        let mut end = name.len().min(255);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        self.names.push(end as u8);
        self.names.extend_from_slice(&name.as_bytes()[..end]);
    }

    /// What follows the circulant and BCCB layers from here on; tanh unless it is said.
    pub fn activation(&mut self, activation: Activation) {
        self.activation = activation;
    }

    /// A hidden circulant layer.
    pub fn circulant(
        &mut self,
        length: usize,
        modes: usize,
        weights: &WrittenGaussian,
        bias: &WrittenGaussian,
    ) {
        self.head(1, self.activation);
        self.size(length);
        self.size(modes);
        self.gaussian(weights, &Places::Vector(1));
        self.gaussian(bias, &Places::Vector(1));
    }

    /// A hidden BCCB layer.
    pub fn bccb(
        &mut self,
        channels: [usize; 2],
        grid: [usize; 2],
        cutoff: f64,
        weights: &WrittenGaussian,
        bias: &WrittenGaussian,
    ) {
        let sizes = channels.map(|count| count.saturating_mul(grid[0].saturating_mul(grid[1])));
        self.padded_bccb(channels, grid, sizes, cutoff, weights, bias);
    }

    /// A hidden BCCB layer of so many inputs and outputs: zeros fill up the last channel of the input, and values at the end of the last
    /// channel of the output are left out.
    pub fn padded_bccb(
        &mut self,
        channels: [usize; 2],
        grid: [usize; 2],
        sizes: [usize; 2],
        cutoff: f64,
        weights: &WrittenGaussian,
        bias: &WrittenGaussian,
    ) {
        let pixels = grid[0].saturating_mul(grid[1]);
        let padded = sizes != channels.map(|count| count.saturating_mul(pixels));
        self.head(2, self.activation);
        if padded && let [.., padding, _] = self.layers.as_mut_slice() {
            *padding = 1;
        }
        for size in channels.into_iter().chain(grid) {
            self.size(size);
        }
        // A size that is refused is refused again by those who read.
        let plane = HalfPlane::with_radius(grid[0], grid[1], cutoff);
        let limit = plane.as_ref().map_or(u64::MAX, HalfPlane::limit);
        self.layers.extend_from_slice(&limit.to_le_bytes());
        if padded {
            sizes.into_iter().for_each(|size| self.size(size));
        }
        let run = channels[0].saturating_mul(channels[1]);
        let places = match plane {
            Ok(plane) if run >= FEWEST => Places::Coordinates { plane, run },
            _ => Places::Vector(1),
        };
        self.gaussian(weights, &places);
        let positions = if bias.mean.len() == channels[1] {
            1
        } else {
            pixels
        };
        self.gaussian(bias, &Places::Vector(positions));
    }

    /// A hidden dense layer, weights `[inputs, outputs]`.
    pub fn dense(
        &mut self,
        sizes: [usize; 2],
        activation: Activation,
        weights: &WrittenGaussian,
        bias: &WrittenGaussian,
    ) {
        self.head(3, activation);
        for size in sizes {
            self.size(size);
        }
        self.gaussian(weights, &Places::Matrix(sizes[1]));
        self.gaussian(bias, &Places::Vector(1));
    }

    /// The last layer, weights `[inputs, outputs]`.
    pub fn read_out(&mut self, inputs: usize, weights: &WrittenGaussian, bias: &WrittenGaussian) {
        let sizes = [inputs, self.outputs * if self.noise { 2 } else { 1 }];
        self.dense(sizes, Activation::Identity, weights, bias);
    }

    fn head(&mut self, kind: u8, activation: Activation) {
        let activation = match activation {
            Activation::Identity => 0,
            Activation::Tanh => 1,
            Activation::Relu => 2,
            Activation::MaxMin => 3,
        };
        self.layers.extend_from_slice(&[kind, activation, 0, 0]);
        self.layer_count += 1;
    }

    fn size(&mut self, size: usize) {
        self.layers.extend_from_slice(&word(size));
    }

    fn gaussian(&mut self, gaussian: &WrittenGaussian, places: &Places) {
        let count = gaussian.mean.len();
        let rank = gaussian.factor.len().checked_div(count).unwrap_or(0);
        let kind = match (gaussian.deviation.is_empty(), rank) {
            (true, _) => 0,
            (false, 0) => 1,
            _ => 2,
        };
        let (format, short) = match self.format {
            Format::F32 => (0, false),
            Format::F16 => (1, false),
            Format::Int8 => (2, true),
        };
        let groups = |rank: usize| match places {
            Places::Coordinates { run, .. } if short => Groups::Runs(run * rank),
            Places::Matrix(columns) => Groups::Columns(*columns),
            _ => Groups::Blocks(SHIFT),
        };
        let shift = match groups(1) {
            Groups::Runs(_) => COORDINATES,
            _ => SHIFT,
        };
        let sharing = if short && kind > 0 {
            shared(&gaussian.deviation, places)
        } else {
            None
        };
        let flag = match (&sharing, places) {
            (Some(_), Places::Vector(positions)) => *positions as u16,
            (Some(_), _) => 1,
            (None, _) => 0,
        };
        self.layers
            .extend_from_slice(&[kind, format, shift, rank as u8]);
        self.layers.extend_from_slice(&word(count));
        self.layers
            .extend_from_slice(&gaussian.stream.to_le_bytes());
        self.layers.extend_from_slice(&flag.to_le_bytes());
        self.values(&gaussian.mean, groups(1), places);
        if rank > 0 {
            self.values(&gaussian.factor, groups(rank), places);
        }
        match sharing {
            _ if kind == 0 => {}
            Some(stored) => self.deviations(&stored),
            None => self.deviations(&gaussian.deviation),
        }
    }

    fn values(&mut self, values: &[f32], groups: Groups, places: &Places) {
        if self.format != Format::Int8 {
            return self.floats(values);
        }
        let (scales, codes) = coded(values, groups, places);
        scales
            .iter()
            .for_each(|scale| self.layers.extend(scale.to_le_bytes()));
        self.layers.extend(codes);
        self.fill_up();
    }

    fn deviations(&mut self, deviations: &[f32]) {
        if self.format != Format::Int8 {
            return self.floats(deviations);
        }
        let scale = deviations
            .iter()
            .fold(0.0_f32, |largest, x| largest.max(*x));
        self.layers.extend(scale.to_le_bytes());
        for deviation in deviations {
            let code = (-16.0 * (deviation / scale).log2()).round();
            self.layers.push(code.clamp(0.0, 255.0) as u8);
        }
        self.fill_up();
    }

    fn floats(&mut self, values: &[f32]) {
        for value in values {
            match self.format {
                Format::F16 => self.layers.extend(half(*value).to_le_bytes()),
                _ => self.layers.extend(value.to_le_bytes()),
            }
        }
        self.fill_up();
    }

    fn fill_up(&mut self) {
        self.layers.resize(self.layers.len().next_multiple_of(4), 0);
    }

    /// The file.
    pub fn finish(&self) -> Vec<u8> {
        let mut bytes = Vec::from(MAGIC.as_slice());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(u16::from(self.task != Task::Classes).to_le_bytes());
        bytes.extend([0; 8]);
        for size in self.image.into_iter().chain([self.outputs]) {
            bytes.extend(word(size));
        }
        bytes.extend(self.layer_count.to_le_bytes());
        let unit = if self.normalisation.unit { UNIT } else { 0 };
        let radii = if self.radii.is_some() { RADII } else { 0 };
        let noise = if self.noise { NOISE } else { 0 };
        let counts = if self.task == Task::Counts { COUNTS } else { 0 };
        bytes.extend((unit | radii | noise | counts).to_le_bytes());
        bytes.extend(self.samples.to_le_bytes());
        bytes.extend(word(self.normalisation.mean.len()));
        let rounding = self.radii.as_ref().map_or([0.0; 2], |radii| radii.rounding);
        rounding
            .iter()
            .for_each(|part| bytes.extend(part.to_le_bytes()));
        bytes.extend(word(self.names.len()));
        let mut floats = |values: &[f32]| values.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        floats(&self.normalisation.mean);
        floats(&self.normalisation.deviation);
        for target in &self.targets {
            floats(&[target.scale, target.offset, target.noise]);
        }
        if let Some(radii) = &self.radii {
            floats(&radii.differences);
        }
        bytes.extend(&self.layers);
        bytes.extend(&self.names);
        seal(&mut bytes);
        bytes
    }
}

/// The means of all layers as they were rounded: weights and bias.
pub fn means(model: &Model<'_>) -> Vec<[Vec<f32>; 2]> {
    let layers = model.layers();
    let all = |gaussian: &Gaussian<'_>| {
        let values = (0..gaussian.count).map(|index| gaussian.mean.at(index));
        values.collect()
    };
    layers
        .map(|layer| [all(&layer.weights), all(&layer.bias)])
        .collect()
}

/// Puts length and checksum into a file.
pub fn seal(bytes: &mut [u8]) {
    if bytes.len() < PREFIX {
        return;
    }
    let (length, crc) = (word(bytes.len()), crc32(&bytes[PREFIX..]));
    bytes[8..12].copy_from_slice(&length);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// A size; one that does not fit becomes one that is refused.
fn word(size: usize) -> [u8; 4] {
    u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes()
}

/// The nearest half-precision number; beyond the largest, infinity.
fn half(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16 & 0x8000) as u16;
    let magnitude = value.abs();
    if !magnitude.is_finite() || magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // The sum rounds to the spacing of half-precision numbers of this size, 2^-24 at least.
    let exponent = (magnitude.to_bits() >> 23).max(113);
    let spacing = f32::from_bits((exponent + 13) << 23);
    let rounded = (magnitude + spacing) - spacing;
    let scaled = rounded * f32::from_bits(15 << 23);
    sign | (scaled.to_bits() >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_to_the_nearest() {
        let expected: [(f32, u16); 9] = [
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65520.0, 0x7c00),
            (5.960_464_5e-8, 0x0001),
            (2.9e-8, 0x0000),
            (0.333_333_34, 0x3555),
            (1.000_976_6, 0x3c01),
            (6.1e-5, 0x03ff),
        ];
        for (value, bits) in expected {
            assert_eq!(half(value), bits, "{value}");
        }
    }
}
