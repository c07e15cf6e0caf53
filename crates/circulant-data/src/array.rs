//! Arrays of numbers from NPY, NPZ and safetensors files, and how they become sets.
//!
//! | shape of the inputs | set |
//! | --- | --- |
//! | `[n, d]` | features |
//! | `[n, height, width]` | images of one channel |
//! | `[n, channels, height, width]` | images |
//! | `[n, height, width, channels]` with 1, 3 or 4 channels | images, put into the order above |
//!
//! Labels are whole numbers, `[n]` or `[n, 1]`. Inputs of the types u8 stay bytes; all others become f32.

use std::io::Read;

use half::{bf16, f16};

use super::error::{DataError, Setting};
use super::features::FeatureSet;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::options::ReadOptions;
use super::read::DataSet;
use super::stream::{damage, read_exactly};

/// The type of one number in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Unsigned byte, also for truth values.
    U8,
    /// Signed byte.
    I8,
    /// 16 bits, signed.
    I16,
    /// 16 bits, unsigned.
    U16,
    /// 32 bits, signed.
    I32,
    /// 32 bits, unsigned.
    U32,
    /// 64 bits, signed.
    I64,
    /// 64 bits, unsigned.
    U64,
    /// IEEE half precision.
    F16,
    /// The upper half of an f32.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Element {
    /// Bytes per number.
    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// Numbers as they are kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// From bytes.
    U8(Vec<u8>),
    /// From all other whole numbers.
    I64(Vec<i64>),
    /// From all floats.
    F32(Vec<f32>),
}

/// Numbers with a shape, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The sizes.
    pub shape: Vec<usize>,
    /// The numbers.
    pub numbers: Numbers,
}

/// The product of the sizes, if the bytes can be counted at all. Sizes beside a 0 must be countable
/// too, so that no part of the shape overflows later.
pub(crate) fn count(shape: &[usize], size: usize, place: &str) -> Result<usize, DataError> {
    let bytes = shape
        .iter()
        .try_fold(size, |bytes, &size| bytes.checked_mul(size.max(1)))
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| {
            DataError::format(
                place,
                "sizes that fit into memory",
                format!("{shape:?}"),
                "the header is damaged: get the file again",
            )
        })?;
    Ok(if shape.contains(&0) { 0 } else { bytes / size })
}

/// Reads `count` numbers, piece by piece: a file of doubles never lies in memory as doubles.
pub(crate) fn read_numbers(
    reader: &mut dyn Read,
    element: Element,
    big_endian: bool,
    count: usize,
    place: &str,
) -> Result<Numbers, DataError> {
    if element == Element::U8 {
        return Ok(Numbers::U8(read_exactly(reader, count, place, "numbers")?));
    }
    let is_float = matches!(
        element,
        Element::F16 | Element::Bf16 | Element::F32 | Element::F64
    );
    let mut floats = Vec::new();
    let mut integers = Vec::new();
    let size = element.size();
    let mut buffer = vec![0; size * count.min(1 << 15)];
    let mut left = count;
    while left > 0 {
        let part = left.min(1 << 15);
        let bytes = &mut buffer[..part * size];
        fill(reader, bytes, place, count * size)?;
        if big_endian {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        if is_float {
            floats.extend(bytes.chunks_exact(size).map(|x| float(element, x)));
        } else {
            for x in bytes.chunks_exact(size) {
                integers.push(integer(element, x, place)?);
            }
        }
        left -= part;
    }
    Ok(if is_float {
        Numbers::F32(floats)
    } else {
        Numbers::I64(integers)
    })
}

fn fill(
    reader: &mut dyn Read,
    bytes: &mut [u8],
    place: &str,
    total: usize,
) -> Result<(), DataError> {
    reader.read_exact(bytes).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            DataError::Truncated {
                place: place.to_owned(),
                expected: format!("{total} bytes of numbers"),
                found: "fewer".to_owned(),
            }
        } else {
            damage(error, place)
        }
    })
}

fn float(element: Element, x: &[u8]) -> f32 {
    match (element, x) {
        (Element::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f32(),
        (Element::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f32(),
        (Element::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
        (_, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
        _ => f32::NAN,
    }
}

fn integer(element: Element, x: &[u8], place: &str) -> Result<i64, DataError> {
    let mut wide = [0; 8];
    wide[..x.len()].copy_from_slice(x);
    let bits = u64::from_le_bytes(wide);
    Ok(match element {
        Element::I8 => i64::from(bits as i8),
        Element::I16 => i64::from(bits as i16),
        Element::I32 => i64::from(bits as i32),
        Element::I64 => bits as i64,
        _ => i64::try_from(bits).map_err(|_| {
            DataError::format(
                place,
                "whole numbers below 2^63",
                bits.to_string(),
                "store the numbers in a smaller type",
            )
        })?,
    })
}

/// Inputs, and labels if there are any.
#[derive(Debug)]
pub(crate) struct Arrays {
    pub(crate) inputs: Array,
    pub(crate) labels: Option<Array>,
    /// Empty when unknown.
    pub(crate) class_names: Vec<String>,
}

impl Arrays {
    /// Inputs and labels as a set, by the table above.
    pub(crate) fn into_set(self, place: String) -> Result<DataSet, DataError> {
        let values = self.labels.map(|labels| labels.into_labels(&place));
        let values = values.transpose()?;
        let names = values.is_some().then_some(self.class_names);
        let labels = Labels {
            values,
            names: names.unwrap_or_default(),
        };
        self.inputs.into_set(labels, place)
    }
}

impl Array {
    pub(crate) fn into_floats(self) -> Vec<f32> {
        match self.numbers {
            Numbers::U8(values) => values.into_iter().map(f32::from).collect(),
            Numbers::I64(values) => values.into_iter().map(|x| x as f32).collect(),
            Numbers::F32(values) => values,
        }
    }

    /// The numbers as labels.
    pub fn into_labels(self, place: &str) -> Result<Vec<i64>, DataError> {
        if !matches!(self.shape[..], [_] | [_, 1]) {
            return Err(DataError::format(
                place,
                "labels of the shape [n]",
                format!("{:?}", self.shape),
                "store class numbers (of one-hot rows, the argmax)",
            ));
        }
        match self.numbers {
            Numbers::U8(values) => Ok(values.into_iter().map(i64::from).collect()),
            Numbers::I64(values) => Ok(values),
            Numbers::F32(values) => values
                .into_iter()
                .enumerate()
                .map(|(example, x)| {
                    if x.fract() == 0.0 && x.abs() < 16_777_216.0 {
                        return Ok(x as i64);
                    }
                    Err(DataError::Label {
                        place: place.to_owned(),
                        example,
                        label: x.to_string(),
                        expected: "a whole number".to_owned(),
                    })
                })
                .collect(),
        }
    }

    /// Inputs and labels as a set, by the table above.
    pub fn into_set(self, labels: Labels, place: String) -> Result<DataSet, DataError> {
        let (shape, channels_last) = match self.shape[..] {
            [n, d] => {
                let values = self.into_floats();
                return FeatureSet::new(values, [n, d], labels, place).map(DataSet::Features);
            }
            [n, height, width] => ([n, 1, height, width], false),
            [n, h, w, c] if is_channels(c) && !is_channels(h) => ([n, c, h, w], true),
            [n, c, h, w] => ([n, c, h, w], false),
            _ => {
                return Err(DataError::format(
                    place,
                    "inputs of rank 2 (features), 3 or 4 (images)",
                    format!("the shape {:?}", self.shape),
                    "reshape the array, or name another one",
                ));
            }
        };
        let row = shape[1..].iter().product();
        let pixels = match self.numbers {
            Numbers::U8(values) if channels_last => Pixels::U8(planes(&values, shape[1], row)),
            Numbers::U8(values) => Pixels::U8(values),
            _ => {
                let values = self.into_floats();
                Pixels::F32(if channels_last {
                    planes(&values, shape[1], row)
                } else {
                    values
                })
            }
        };
        ImageSet::new(pixels, shape, labels, place).map(DataSet::Images)
    }
}

fn is_channels(size: usize) -> bool {
    matches!(size, 1 | 3 | 4)
}

/// `[n, pixels, channels]` to `[n, channels, pixels]`.
pub(crate) fn planes<T: Copy>(values: &[T], channels: usize, row: usize) -> Vec<T> {
    let mut planes = Vec::with_capacity(values.len());
    for image in values.chunks(row.max(1)) {
        for channel in 0..channels {
            planes.extend(image.iter().skip(channel).step_by(channels));
        }
    }
    planes
}

/// `[channels, pixels]` to `[pixels, channels]`.
pub(crate) fn interleaved<T: Copy>(planes: &[T], channels: usize) -> Vec<T> {
    let pixels = planes.len() / channels;
    (0..planes.len())
        .map(|index| planes[index % channels * pixels + index / channels])
        .collect()
}

/// The names of inputs and labels among the arrays of a file.
pub(crate) fn choose(
    names: &[String],
    options: &ReadOptions,
    place: &str,
) -> Result<(String, Option<String>), DataError> {
    let missing = |expected: String| {
        DataError::format(
            place,
            expected,
            format!("the arrays {}", names.join(", ")),
            "give the names of the arrays",
        )
        .by(Setting::ArrayNames)
    };
    let named = |wanted: &String| {
        let found = names.iter().find(|name| *name == wanted);
        found
            .cloned()
            .ok_or_else(|| missing(format!("an array {wanted:?}")))
    };
    let guess = |bases: &[&str], last: &str| {
        let split = options.split.words().iter().flat_map(|word| {
            bases.iter().flat_map(move |base| {
                [
                    format!("{base}_{word}"),
                    format!("{word}_{base}"),
                    format!("{word}.{base}"),
                ]
            })
        });
        let plain = bases.iter().map(|base| (*base).to_owned());
        split
            .chain(plain)
            .chain([last.to_owned()])
            .find_map(|wanted| names.iter().find(|name| name.eq_ignore_ascii_case(&wanted)))
            .cloned()
    };
    let inputs = match &options.input_name {
        Some(name) => named(name)?,
        None => guess(&["images", "features", "inputs", "data", "x"], "arr_0")
            .or_else(|| (names.len() == 1).then(|| names[0].clone()))
            .ok_or_else(|| {
                missing("an array named images, features, inputs, data or x".to_owned())
            })?,
    };
    let labels = match &options.label_name {
        Some(name) => Some(named(name)?),
        None => guess(&["labels", "label", "targets", "y"], "arr_1").filter(|name| *name != inputs),
    };
    Ok((inputs, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_exact() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
        ] {
            assert_eq!(float(Element::F16, &u16::to_le_bytes(bits)), value);
        }
        assert!(float(Element::F16, &[0x01, 0x7c]).is_nan());
        assert_eq!(float(Element::Bf16, &[0x80, 0x3f]), 1.0);
    }

    #[test]
    fn channels_last_is_put_first() {
        assert_eq!(planes(&[1, 2, 3, 4, 5, 6], 3, 6), [1, 4, 2, 5, 3, 6]);
        assert_eq!(interleaved(&[1, 4, 2, 5, 3, 6], 3), [1, 2, 3, 4, 5, 6]);
        let array = Array {
            shape: vec![1, 5, 2, 3],
            numbers: Numbers::U8((0..30).collect()),
        };
        let DataSet::Images(set) = array.into_set(Labels::default(), "test".into()).unwrap() else {
            panic!("images");
        };
        assert_eq!(set.shape(), [1, 3, 5, 2]);
    }

    #[test]
    fn names_follow_the_split() {
        let names = ["x_train", "y_train", "x_test", "y_test"].map(str::to_owned);
        let mut options = ReadOptions::default();
        let pick = |options: &ReadOptions| choose(&names, options, "test").unwrap();
        assert_eq!(pick(&options), ("x_train".into(), Some("y_train".into())));
        options.split = super::super::options::Split::Test;
        assert_eq!(pick(&options), ("x_test".into(), Some("y_test".into())));
        options.label_name = Some("z".into());
        let error = choose(&names, &options, "test").unwrap_err();
        assert_eq!(error.setting(), Some(Setting::ArrayNames), "{error}");
    }
}
