//! Arrays of numbers in a file: f32, f16, or int8 with a scale per group.
//!
//! | format | a value | a deviation |
//! | --- | --- | --- |
//! | f32, f16 | itself | itself |
//! | int8 | code times the scale of its group | scale times `2^(-code/16)`: 4 % steps over five decades |
//!
//! Groups of a vector are blocks of `2^shift` values after each other. Those of a dense matrix `[inputs, outputs]` are its columns,
//! those of a layer of many channels its coordinates, so that a sum over inputs or channels is a sum of integers.
//! Deviations may be shared as [`Sharing`] says.

use circulant_core::Complex;

use crate::bytes::{Cursor, f32_at};
use crate::memory::get;
use crate::number::Number;
use crate::{EdgeError, FLOATS};

/// How numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Four bytes each.
    F32,
    /// Two bytes each.
    F16,
    /// One byte each, with a scale per group.
    Int8,
}

impl Format {
    pub(crate) fn of(tag: u8) -> Result<Self, EdgeError> {
        match tag {
            0 | 1 if !FLOATS => Err(EdgeError::LeftOut { what: "floats" }),
            0 => Ok(Self::F32),
            1 => Ok(Self::F16),
            2 => Ok(Self::Int8),
            _ => Err(EdgeError::Value {
                what: "the number format",
                found: tag.into(),
            }),
        }
    }

    fn size(self) -> usize {
        match self {
            Self::F32 if FLOATS => 4,
            Self::F16 if FLOATS => 2,
            _ => 1,
        }
    }

    /// Integers.
    fn is_short(self) -> bool {
        !FLOATS || self == Self::Int8
    }
}

/// Which values share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Groups {
    /// `2^shift` values after each other.
    Blocks(u8),
    /// So many values after each other.
    Runs(usize),
    /// The columns of a matrix of so many.
    Columns(usize),
}

impl Groups {
    pub(crate) fn count(self, values: usize) -> usize {
        match self {
            Self::Blocks(shift) => values.div_ceil(1 << shift),
            Self::Runs(length) => values.div_ceil(length),
            Self::Columns(columns) => columns,
        }
    }

    #[inline]
    pub(crate) fn of(self, index: usize) -> usize {
        match self {
            Self::Blocks(shift) => index >> shift,
            Self::Runs(length) => index / length,
            Self::Columns(columns) => index % columns,
        }
    }
}

/// Values of either sign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    format: Format,
    groups: Groups,
    scales: &'a [u8],
    codes: &'a [u8],
}

impl<'a> Values<'a> {
    pub(crate) fn read(
        cursor: &mut Cursor<'a>,
        format: Format,
        groups: Groups,
        count: usize,
    ) -> Result<Self, EdgeError> {
        let scales = match format {
            Format::Int8 => groups.count(count),
            _ => 0,
        };
        let values = Self {
            format,
            groups,
            scales: cursor.array(scales, 4)?,
            codes: cursor.array(count, format.size())?,
        };
        let finite = match format {
            _ if cursor.is_checked() => true,
            Format::Int8 => (0..scales).all(|group| values.scale(group).is_finite()),
            _ => (0..count).all(|index| values.single(index).is_finite()),
        };
        if finite {
            Ok(values)
        } else {
            Err(EdgeError::NotFinite {
                what: "the values of a layer",
            })
        }
    }

    /// The numbers, if they are f32.
    pub(crate) fn floats(&self) -> Option<&'a [[u8; 4]]> {
        (FLOATS && self.format == Format::F32).then_some(self.codes.as_chunks().0)
    }

    /// Codes and scales of blocks, if they are integers.
    pub(crate) fn blocks(&self) -> Option<Blocks<'a>> {
        let Groups::Blocks(shift) = self.groups else {
            return None;
        };
        self.codes().map(|codes| Blocks {
            codes,
            scales: self.scales.as_chunks().0,
            shift,
        })
    }

    /// Codes of runs of this length that share a scale each, if they are that.
    pub(crate) fn runs(&self, length: usize) -> Option<&'a [u8]> {
        self.codes().filter(|_| self.groups == Groups::Runs(length))
    }

    /// The codes, if they are integers.
    pub(crate) fn codes(&self) -> Option<&'a [u8]> {
        self.format.is_short().then_some(self.codes)
    }

    pub(crate) fn scale(&self, group: usize) -> f32 {
        f32_at(self.scales, group)
    }

    /// What a code of value `index` counts.
    pub(crate) fn scale_of(&self, index: usize) -> f32 {
        self.scale(self.groups.of(index))
    }

    fn single(&self, index: usize) -> f32 {
        match self.format {
            Format::F32 if FLOATS => f32_at(self.codes, index),
            Format::F16 if FLOATS => half_at(self.codes, index),
            _ => f32::from(self.code(index)) * self.scale(self.groups.of(index)),
        }
    }

    fn code(&self, index: usize) -> i8 {
        self.codes.get(index).map_or(0, |&code| code as i8)
    }

    /// Value `index`.
    #[inline]
    pub(crate) fn at<T: Number>(&self, index: usize) -> T {
        if self.format.is_short() {
            let unscaled = T::one().times_code(self.code(index));
            unscaled.scaled(self.scale(self.groups.of(index)))
        } else {
            T::single(self.single(index))
        }
    }

    /// The scalar product of the values from `first` on with `count` real numbers.
    pub(crate) fn dot<T: Number>(&self, first: usize, count: usize, with: &[Complex<T>]) -> T {
        let group = self.groups.of(first);
        let mut sum = T::zero();
        if self.format.is_short() && self.groups.of(first + count - 1) == group {
            let codes = self.codes.get(first..first + count).unwrap_or(&[]);
            for (index, &code) in codes.iter().enumerate() {
                sum = sum + get(with, index).times_code(code as i8);
            }
            return sum.scaled(self.scale(group));
        }
        for index in 0..count {
            sum = sum + self.at::<T>(first + index) * get(with, index);
        }
        sum
    }
}

/// Integers in blocks that share a scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks<'a> {
    codes: &'a [u8],
    scales: &'a [[u8; 4]],
    shift: u8,
}

impl Blocks<'_> {
    #[inline(always)]
    pub(crate) fn at<T: Number>(&self, index: usize) -> T {
        let code = self.codes.get(index).map_or(0, |&code| code as i8);
        let scale = self.scales.get(index >> self.shift);
        let scale = scale.map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
        T::one().times_code(code).scaled(scale)
    }
}

/// Which values have which deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Each its own.
    Own,
    /// So many after each other the same.
    Runs(usize),
    /// Those of a matrix are products of one number per row and one share per column: then the variance of every sum over rows
    /// is the same sum of squares, times a number.
    Product { rows: usize, columns: usize },
}

impl Sharing {
    /// How many numbers are stored for so many values.
    pub(crate) fn stored(self, values: usize) -> usize {
        match self {
            Self::Own => values,
            Self::Runs(length) => values.div_ceil(length),
            Self::Product { rows, columns } => rows + columns,
        }
    }
}

/// Standard deviations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deviations<'a> {
    format: Format,
    sharing: Sharing,
    /// Of all, in the integer format.
    scale: f32,
    codes: &'a [u8],
}

impl<'a> Deviations<'a> {
    /// Only integers are shared otherwise than [`Sharing::Own`].
    pub(crate) fn read(
        cursor: &mut Cursor<'a>,
        format: Format,
        sharing: Sharing,
        count: usize,
    ) -> Result<Self, EdgeError> {
        let scale = match format {
            Format::Int8 => cursor.f32("the scale of deviations")?,
            _ => 1.0,
        };
        let deviations = Self {
            format,
            sharing,
            scale,
            codes: cursor.array(sharing.stored(count), format.size())?,
        };
        let sound = |value: f32| value.is_finite() && value >= 0.0;
        let sound = match format {
            _ if cursor.is_checked() => true,
            Format::Int8 => sound(scale),
            _ => (0..count).all(|index| sound(deviations.at(index))),
        };
        if sound {
            Ok(deviations)
        } else {
            Err(EdgeError::NotFinite {
                what: "the deviations of a layer",
            })
        }
    }

    /// The numbers, if they are f32.
    pub(crate) fn floats(&self) -> Option<&'a [[u8; 4]]> {
        (FLOATS && self.format == Format::F32).then_some(self.codes.as_chunks().0)
    }

    /// The codes and their scale, if they are integers and every value has its own.
    pub(crate) fn codes(&self) -> Option<(&'a [u8], f32)> {
        let own = self.format.is_short() && self.sharing == Sharing::Own;
        own.then_some((self.codes, self.scale))
    }

    /// The codes of rows and those of columns, if deviations are products.
    pub(crate) fn product(&self) -> Option<(&'a [u8], &'a [u8])> {
        match self.sharing {
            Sharing::Product { rows, .. } => self.codes.split_at_checked(rows),
            _ => None,
        }
    }

    /// Whether so many values after each other have the same deviation.
    pub(crate) fn is_the_same_for(&self, values: usize) -> bool {
        self.sharing == Sharing::Runs(values)
    }

    /// Code `index` of the integer format, and the one that it is multiplied by.
    #[inline]
    fn codes_of(&self, index: usize) -> (u8, u8) {
        let code = |index: usize| self.codes.get(index).copied().unwrap_or(0);
        match self.sharing {
            Sharing::Own => (code(index), 0),
            Sharing::Runs(length) => (code(index / length), 0),
            Sharing::Product { rows, columns } => {
                (code(index / columns), code(rows + index % columns))
            }
        }
    }

    #[inline]
    pub(crate) fn at(&self, index: usize) -> f32 {
        match self.format {
            Format::F32 if FLOATS => f32_at(self.codes, index),
            Format::F16 if FLOATS => half_at(self.codes, index),
            _ => {
                let (code, other) = self.codes_of(index);
                let own = self.scale * share_of(code);
                if other == 0 {
                    own
                } else {
                    own * share_of(other)
                }
            }
        }
    }

    /// What a share of one stands for.
    pub(crate) fn unit(&self) -> f32 {
        match self.format {
            Format::Int8 => self.scale,
            _ => 1.0,
        }
    }

    /// Deviation `index` times a number.
    #[inline]
    pub(crate) fn times<T: Number>(&self, index: usize, value: T) -> T {
        if !self.format.is_short() {
            return value * T::single(self.at(index));
        }
        let (code, other) = self.codes_of(index);
        let mut value = value.share(code);
        if other > 0 {
            value = value.share(other);
        }
        value.scaled(self.scale)
    }
}

/// `2^(-code/16)`.
#[inline]
pub(crate) const fn share_of(code: u8) -> f32 {
    /// `2^(-i/16)`.
    const SIXTEENTHS: [f32; 16] = [
        1.0,
        0.957_603_3,
        0.917_004_05,
        0.878_126_1,
        0.840_896_4,
        0.805_245_16,
        0.771_105_4,
        0.738_413_1,
        0.707_106_77,
        0.677_127_8,
        0.648_419_8,
        0.620_928_9,
        0.594_603_54,
        0.569_394_3,
        0.545_253_9,
        0.522_136_9,
    ];
    let halvings = (code >> 4) as u32;
    f32::from_bits(SIXTEENTHS[(code & 15) as usize].to_bits() - (halvings << 23))
}

/// `2^14 share_of(code)^2`.
pub(crate) static SQUARES: [u16; 256] = {
    let mut squares = [0; 256];
    let mut code = 0;
    while code < squares.len() {
        let share = share_of(code as u8);
        squares[code] = (16384.0 * share * share + 0.5) as u16;
        code += 1;
    }
    squares
};

/// A half-precision number as f32.
fn half_at(bytes: &[u8], index: usize) -> f32 {
    let Some(bytes) = bytes.get(2 * index..).and_then(<[u8]>::first_chunk) else {
        return 0.0;
    };
    let half = u32::from(u16::from_le_bytes(*bytes));
    let (sign, rest) = ((half & 0x8000) << 16, half & 0x7fff);
    if rest >= 0x7c00 {
        return f32::NAN;
    }
    // The exponent is 112 too small; the product corrects it, subnormal numbers too.
    let magnitude = f32::from_bits(rest << 13) * f32::from_bits(239 << 23);
    f32::from_bits(magnitude.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_read_as_they_are() {
        let halves: [(u16, f32); 7] = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x7bff, 65504.0),
            (0x8000, -0.0),
            (0x3555, 0.333_251_95),
        ];
        for (bits, expected) in halves {
            assert_eq!(
                half_at(&bits.to_le_bytes(), 0).to_bits(),
                expected.to_bits()
            );
        }
        assert!(half_at(&0x7c00_u16.to_le_bytes(), 0).is_nan());
    }

    #[test]
    fn deviations_shrink_by_sixteenths_of_an_octave() {
        for code in 0..=255_u8 {
            let expected = (-f64::from(code) / 16.0).exp2();
            let error = f64::from(share_of(code)) / expected - 1.0;
            assert!(error.abs() < 1e-7, "{code} {error}");
        }
    }
}
