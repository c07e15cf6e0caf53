//! One picture in bytes, one channel in floats, and what lies beyond their edges.

/// A colour picture `[3, height, width]` of bytes.
#[derive(Clone, Copy)]
pub(super) struct Picture<'a> {
    pub bytes: &'a [u8],
    pub height: usize,
    pub width: usize,
}

impl Picture<'_> {
    /// Pixels per channel.
    pub fn area(&self) -> usize {
        self.height * self.width
    }

    /// A channel of bytes.
    pub fn channel(&self, channel: usize) -> &[u8] {
        &self.bytes[channel * self.area()..][..self.area()]
    }

    /// Every channel as floats in 0..=1, with the place for what becomes of it.
    pub fn planes<'b>(&self, output: &'b mut [u8]) -> impl Iterator<Item = (Plane, &'b mut [u8])> {
        let planes = self
            .bytes
            .chunks(self.area())
            .map(|bytes| self.plane(bytes));
        planes.zip(output.chunks_mut(self.area()))
    }

    /// A channel of this size as floats in 0..=1.
    pub fn plane(&self, bytes: &[u8]) -> Plane {
        Plane {
            values: bytes.iter().map(|&byte| unit(byte)).collect(),
            height: self.height,
            width: self.width,
        }
    }

    /// Red, green and blue of a pixel as floats in 0..=1.
    pub fn colour(&self, pixel: usize) -> [f64; 3] {
        let area = self.area();
        [0, 1, 2].map(|channel| unit(self.bytes[channel * area + pixel]))
    }
}

/// One channel, row-major.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plane {
    pub values: Vec<f64>,
    pub height: usize,
    pub width: usize,
}

impl Plane {
    /// The number at a place that may lie outside.
    pub fn at(&self, row: isize, column: isize, border: Border) -> f64 {
        let row = border.inside(row, self.height);
        let column = border.inside(column, self.width);
        self.values[row * self.width + column]
    }

    /// Rounds to the nearest `f32`, where the published program keeps that type: its bytes are cut, not
    /// rounded, so a last digit can decide.
    pub fn single(mut self) -> Self {
        for value in &mut self.values {
            *value = f64::from(*value as f32);
        }
        self
    }
}

/// What lies beyond the edge of `a b c d`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Border {
    /// `a a | a b c d | d d`.
    Nearest,
    /// `b a | a b c d | d c`.
    Reflect,
    /// `c b | a b c d | c b`.
    Mirror,
}

impl Border {
    /// The place in `0..size` with the content of `index`.
    pub fn inside(self, index: isize, size: usize) -> usize {
        let size = size as isize;
        if (0..size).contains(&index) {
            return index as usize;
        }
        let folded = match self {
            Self::Nearest => index.clamp(0, size - 1),
            Self::Reflect => {
                let place = index.rem_euclid(2 * size);
                place.min(2 * size - 1 - place)
            }
            Self::Mirror => {
                let period = (2 * (size - 1)).max(1);
                let place = index.rem_euclid(period);
                place.min(period - place).min(size - 1)
            }
        };
        folded as usize
    }
}

/// A byte as a float of 0..=1.
pub(super) fn unit(byte: u8) -> f64 {
    f64::from(byte) / 255.0
}

/// A float of 0..=1 as a byte, cut as NumPy's `uint8` does.
pub(super) fn byte(unit: f64) -> u8 {
    (unit.clamp(0.0, 1.0) * 255.0) as u8
}

/// Floats of 0..=1 as bytes.
pub(super) fn write(output: &mut [u8], units: impl IntoIterator<Item = f64>) {
    for (output, unit) in output.iter_mut().zip(units) {
        *output = byte(unit);
    }
}

/// The same in single precision.
pub(super) fn byte_of_single(unit: f32) -> u8 {
    (unit.clamp(0.0, 1.0) * 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_continue_the_row() {
        let row = b"abcd";
        let text = |border: Border| -> String {
            let place = |index| char::from(row[border.inside(index, 4)]);
            (-5..9).map(place).collect()
        };
        assert_eq!(text(Border::Nearest), "aaaaaabcdddddd");
        assert_eq!(text(Border::Reflect), "ddcbaabcddcbaa");
        assert_eq!(text(Border::Mirror), "bcdcbabcdcbabc");
        for border in [Border::Nearest, Border::Reflect, Border::Mirror] {
            assert!((-3..4).all(|index| border.inside(index, 1) == 0));
        }
    }

    #[test]
    fn bytes_are_cut() {
        assert_eq!([0.999, 1.2, -3.0, f64::NAN].map(byte), [254, 255, 0, 0]);
    }
}
