//! A model in a slice of bytes, checked whole before it is used.
//!
//! All numbers are little-endian.
//!
//! | bytes | |
//! | --- | --- |
//! | 4 | `CIRC` |
//! | 2, 2 | version, 3 (or 2, which has neither counts, noise per input nor padding); task: 0 classes, 1 values or counts |
//! | 4, 4 | length of the file; CRC-32 of everything behind these 16 bytes |
//! | 4, 4, 4 | channels, height, width of an input |
//! | 4 | outputs `n` |
//! | 2, 2 | layers; flags: 1 bytes are divided by 255, 2 radii, 4 noise per input, 8 counts |
//! | 4 | posterior samples unless the caller says |
//! | 4 | means and deviations of the normalisation: none, one per channel or one per input |
//! | 4, 4 | rounding of the logits: per norm of the input, and besides (f32) |
//! | 4 | bytes of the names |
//! | 4 each | means, then deviations (f32) |
//! | 12 each | per output that is a value: scale, offset, deviation of the noise (f32); with noise per input the last layer has `2 n` values, and the deviation of output `k` is this number times `exp(3 tanh(z_(n+k)/3))` |
//! | 4 each | with radii: a Lipschitz bound of every difference of two logits, `(1,0), (2,0), (2,1), ...` (f32) |
//! | | layers: kind (1 circulant, 2 BCCB or, with images of one row, block-circulant, 3 dense), activation (0 none, 1 tanh, 2 relu, 3 MaxMin of neighbours), padding (2: 0 none, 1 of a layer of kind 2); sizes; weights; bias |
//! | | names of the outputs: a byte of length, UTF-8 |
//!
//! Sizes are length and modes; channels in and out, height, width and the largest radius of the mask (`HalfPlane::limit`, u64), and with padding
//! the values of its input, behind which zeros are added up to whole channels, and of its output, behind which values are left out;
//! inputs and outputs. A posterior is its kind (0 point, 1 independent, 2 low-rank), number format (0 f32, 1 f16, 2 int8), binary logarithm of
//! the block that shares a scale (255: the values of a coordinate share one), rank, count (4), stream of noise (2), sharing of
//! deviations (2: 0 none; of a matrix 1, products of a number per row and a share per column; of a vector how many neighbours have
//! the same; int8 alone); then the mean, the low-rank factor `[count, rank]` and the deviations, arrays that are filled up to a
//! multiple of four bytes.

use crate::bytes::{Cursor, crc32, f32_at};
use crate::layer::{Activation, Kind, Layer, MAX_SIZE, limited, value};
use crate::memory::Plan;
use crate::runtime::Draws;
use crate::{EdgeError, OLDEST_VERSION, VALUES, VERSION};

/// Bytes before what the checksum covers.
pub(crate) const PREFIX: usize = 16;
/// The first bytes of a model.
pub(crate) const MAGIC: &[u8; 4] = b"CIRC";
/// Bytes are divided by 255.
pub(crate) const UNIT: u16 = 1;
/// The file has Lipschitz bounds.
pub(crate) const RADII: u16 = 2;
/// The noise of a value depends on the input.
pub(crate) const NOISE: u16 = 4;
/// Values are counts. What the checksum covers says so, not the task.
pub(crate) const COUNTS: u16 = 8;

/// Layers at most.
const MAX_LAYERS: u16 = 64;
/// Outputs at most.
const MAX_OUTPUTS: usize = 1 << 12;

/// What the outputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Logits of classes.
    Classes,
    /// Real values.
    Values,
    /// Logarithms of the rates of counts.
    Counts,
}

/// A model that was checked. It borrows the bytes and copies nothing.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    task: Task,
    image: [usize; 3],
    outputs: usize,
    /// Whether the last layer has the noise of every output besides.
    noise: bool,
    layer_count: usize,
    pub(crate) unit: bool,
    samples: u32,
    normalised: usize,
    normalisation: &'a [u8],
    pub(crate) rounding: [f32; 2],
    targets: &'a [u8],
    radii: Option<&'a [u8]>,
    layers: &'a [u8],
    names: &'a [u8],
}

impl<'a> Model<'a> {
    /// Reads and checks a model: every size, every number that is not an integer, and the checksum.
    pub fn read(bytes: &'a [u8]) -> Result<Self, EdgeError> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(4).ok() != Some(MAGIC.as_slice()) {
            return Err(EdgeError::Magic);
        }
        let version = cursor.u16()?;
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(EdgeError::Version { found: version });
        }
        let task = match cursor.u16()? {
            0 => Task::Classes,
            1 if !VALUES => return Err(EdgeError::LeftOut { what: "values" }),
            1 => Task::Values,
            other => return Err(value("the task", other)),
        };
        let length = cursor.u32()? as usize;
        let expected = cursor.u32()?;
        if length != bytes.len() {
            return Err(EdgeError::Length {
                expected: length,
                found: bytes.len(),
            });
        }
        let found = crc32(&bytes[PREFIX..]);
        if found != expected {
            return Err(EdgeError::Checksum { expected, found });
        }
        Self::body(task, cursor)
    }

    fn body(task: Task, mut cursor: Cursor<'a>) -> Result<Self, EdgeError> {
        let image = [
            cursor.size("the channels of an input", MAX_SIZE)?,
            cursor.size("the height of an input", MAX_SIZE)?,
            cursor.size("the width of an input", MAX_SIZE)?,
        ];
        let inputs = limited(&image)?;
        let outputs = cursor.size("the outputs", MAX_OUTPUTS)?;
        if task == Task::Classes && outputs < 2 {
            return Err(value("the classes", outputs as u64));
        }
        let layer_count = cursor.u16()?;
        if !(1..=MAX_LAYERS).contains(&layer_count) {
            return Err(value("the layers", layer_count));
        }
        let flags = cursor.u16()?;
        let noise = flags & NOISE != 0;
        let allowed = match task {
            Task::Classes => UNIT | RADII,
            _ if noise => UNIT | NOISE,
            _ => UNIT | COUNTS,
        };
        if flags & !allowed != 0 {
            return Err(value("the flags", flags));
        }
        let task = if flags & COUNTS != 0 {
            Task::Counts
        } else {
            task
        };
        let samples = cursor.u32()?;
        check_samples(samples)?;
        let normalised = cursor.u32()? as usize;
        if ![0, image[0], inputs].contains(&normalised) {
            return Err(EdgeError::Mismatch {
                what: "the normalisation",
                expected: image[0],
                found: normalised,
            });
        }
        let rounding = [cursor.f32("the rounding")?, cursor.f32("the rounding")?];
        let names_length = cursor.u32()? as usize;
        let normalisation = floats(&mut cursor, 2 * normalised, "the normalisation")?;
        if (normalised..2 * normalised).any(|index| f32_at(normalisation, index) <= 0.0) {
            return Err(value("a deviation of the normalisation", 0_u8));
        }
        let targets = match task {
            Task::Classes | Task::Counts => &[],
            Task::Values => floats(&mut cursor, 3 * outputs, "the scales of the outputs")?,
        };
        let radii = if flags & RADII == 0 {
            None
        } else {
            let pairs = outputs * (outputs - 1) / 2;
            let bounds = floats(&mut cursor, pairs, "the Lipschitz bounds")?;
            if (0..pairs).any(|pair| f32_at(bounds, pair) < 0.0) {
                return Err(value("a Lipschitz bound", 0_u8));
            }
            Some(bounds)
        };
        let layers = cursor.rest();
        let mut width = inputs;
        for _ in 0..layer_count {
            let layer = Layer::read(&mut cursor)?;
            if layer.inputs() != width {
                return Err(EdgeError::Mismatch {
                    what: "the inputs of a layer",
                    expected: width,
                    found: layer.inputs(),
                });
            }
            width = layer.outputs();
        }
        let expected = if VALUES && noise {
            2 * outputs
        } else {
            outputs
        };
        if width != expected {
            return Err(EdgeError::Mismatch {
                what: "the outputs of the last layer",
                expected,
                found: width,
            });
        }
        let layers = &layers[..layers.len() - cursor.rest().len()];
        let names = cursor.rest();
        if names.len() != names_length {
            return Err(EdgeError::Length {
                expected: names_length,
                found: names.len(),
            });
        }
        let model = Self {
            task,
            image,
            outputs,
            noise,
            layer_count: layer_count.into(),
            unit: flags & UNIT != 0,
            samples,
            normalised,
            normalisation,
            rounding,
            targets,
            radii,
            layers,
            names,
        };
        model.check_last()?;
        model.check_names()?;
        Ok(model)
    }

    /// The last layer is a dense read-out.
    fn check_last(&self) -> Result<(), EdgeError> {
        match self.layers().last() {
            Some(layer)
                if matches!(layer.kind, Kind::Dense { .. })
                    && layer.activation == Activation::Identity =>
            {
                Ok(())
            }
            _ => Err(value("the kind of the last layer", 0_u8)),
        }
    }

    fn check_names(&self) -> Result<(), EdgeError> {
        let (mut cursor, mut count) = (Cursor::new(self.names), 0);
        while !cursor.rest().is_empty() {
            let length = cursor.u8()?;
            let name = cursor.take(length.into())?;
            if core::str::from_utf8(name).is_err() {
                return Err(value("the name of an output", length));
            }
            count += 1;
        }
        if count != 0 && count != self.outputs {
            return Err(EdgeError::Mismatch {
                what: "the names of the outputs",
                expected: self.outputs,
                found: count,
            });
        }
        Ok(())
    }

    /// The layers in order.
    pub(crate) fn layers(&self) -> impl Iterator<Item = Layer<'a>> {
        let mut cursor = Cursor::checked(self.layers);
        core::iter::from_fn(move || Layer::read(&mut cursor).ok()).take(self.layer_count)
    }

    pub(crate) fn layer_count(&self) -> usize {
        self.layer_count
    }

    /// What the outputs are.
    pub fn task(&self) -> Task {
        // What was left out is nowhere else.
        if VALUES { self.task } else { Task::Classes }
    }

    /// Whether the noise of a value depends on the input.
    pub fn has_noise_per_input(&self) -> bool {
        VALUES && self.noise
    }

    /// Values of the last layer.
    pub(crate) fn logits(&self) -> usize {
        if self.has_noise_per_input() {
            2 * self.outputs
        } else {
            self.outputs
        }
    }

    /// `[channels, height, width]` of an input.
    pub fn image(&self) -> [usize; 3] {
        self.image
    }

    /// Values of an input.
    pub fn inputs(&self) -> usize {
        self.image[0] * self.image[1] * self.image[2]
    }

    /// The number of classes, of values or of counts.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Posterior samples that the file recommends.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// The name of an output, if outputs have names.
    pub fn name(&self, output: usize) -> Option<&'a str> {
        let mut cursor = Cursor::new(self.names);
        let mut name = None;
        for _ in 0..=output {
            let length = cursor.u8().ok()?;
            name = cursor.take(length.into()).ok();
        }
        core::str::from_utf8(name?).ok()
    }

    /// Numbers of memory that a [`Runtime`](crate::Runtime) needs for everything, as complex ones.
    pub fn memory_len(&self) -> usize {
        self.memory_len_for(Draws::Weights)
    }

    /// The same if only this is drawn: for [`Draws::Sums`] it can be much less.
    pub fn memory_len_for(&self, draws: Draws) -> usize {
        Plan::of(self, draws).total()
    }

    /// Complex numbers of the sums over the channels of the first layer, which are drawn in the place of its weights; zero for
    /// none.
    pub fn sums_len(&self) -> usize {
        self.layers().next().map_or(0, |first| first.sums_len())
    }

    /// Mean number `index` of the weights of a layer (`part` 0) or of its bias (1), as they were rounded; none behind the last.
    pub fn mean(&self, layer: usize, part: usize, index: usize) -> Option<f32> {
        let layer = self.layers().nth(layer)?;
        let gaussian = match part {
            0 => layer.weights,
            1 => layer.bias,
            _ => return None,
        };
        (index < gaussian.count).then(|| gaussian.mean.at(index))
    }

    /// Whether the file has what radii need.
    pub fn has_radii(&self) -> bool {
        self.radii.is_some()
    }

    /// How fast the difference of two logits can change.
    pub(crate) fn difference_bound(&self, one: usize, other: usize) -> Option<f32> {
        let (low, high) = (one.min(other), one.max(other));
        Some(f32_at(self.radii?, high * high.saturating_sub(1) / 2 + low))
    }

    /// Mean and deviation that input `index` is normalised by.
    pub(crate) fn normalisation(&self, index: usize) -> (f32, f32) {
        let place = match self.normalised {
            0 => return (0.0, 1.0),
            channels if channels == self.image[0] => index / (self.image[1] * self.image[2]),
            _ => index,
        };
        (
            f32_at(self.normalisation, place),
            f32_at(self.normalisation, self.normalised + place),
        )
    }

    /// Whether all inputs are normalised by the same numbers.
    pub(crate) fn is_normalised_alike(&self) -> bool {
        self.normalised <= 1
    }

    /// Scale, offset and deviation of the noise of a real output.
    pub(crate) fn target(&self, output: usize) -> [f32; 3] {
        [0, 1, 2].map(|part| f32_at(self.targets, 3 * output + part))
    }
}

/// `count` finite numbers.
fn floats<'a>(
    cursor: &mut Cursor<'a>,
    count: usize,
    what: &'static str,
) -> Result<&'a [u8], EdgeError> {
    let bytes = cursor.array(count, 4)?;
    if (0..count).all(|index| f32_at(bytes, index).is_finite()) {
        Ok(bytes)
    } else {
        Err(EdgeError::NotFinite { what })
    }
}

pub(crate) fn check_samples(samples: u32) -> Result<(), EdgeError> {
    if (1..=1 << 16).contains(&samples) {
        Ok(())
    } else {
        Err(EdgeError::Samples { found: samples })
    }
}
