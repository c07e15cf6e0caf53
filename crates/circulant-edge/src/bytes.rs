//! Little-endian numbers out of a slice that may end anywhere, and the checksum.

use crate::EdgeError;

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// Whether the numbers were checked before.
    checked: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self {
            rest,
            checked: false,
        }
    }

    /// Over bytes whose numbers were all checked.
    pub(crate) fn checked(rest: &'a [u8]) -> Self {
        Self {
            rest,
            checked: true,
        }
    }

    pub(crate) fn is_checked(&self) -> bool {
        self.checked
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], EdgeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(EdgeError::Length {
                expected: count,
                found: self.rest.len(),
            });
        };
        self.rest = rest;
        Ok(taken)
    }

    /// `count` values of `size` bytes, and what fills them up to a multiple of four.
    pub(crate) fn array(&mut self, count: usize, size: usize) -> Result<&'a [u8], EdgeError> {
        let bytes = count.checked_mul(size).ok_or(EdgeError::Size)?;
        let padded = bytes.checked_next_multiple_of(4).ok_or(EdgeError::Size)?;
        Ok(&self.take(padded)?[..bytes])
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], EdgeError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, EdgeError> {
        Ok(self.fixed::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, EdgeError> {
        Ok(u16::from_le_bytes(self.fixed()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, EdgeError> {
        Ok(u32::from_le_bytes(self.fixed()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, EdgeError> {
        Ok(u64::from_le_bytes(self.fixed()?))
    }

    /// A finite number.
    pub(crate) fn f32(&mut self, what: &'static str) -> Result<f32, EdgeError> {
        let value = f32::from_le_bytes(self.fixed()?);
        if value.is_finite() {
            Ok(value)
        } else {
            Err(EdgeError::NotFinite { what })
        }
    }

    /// A size of at least one and at most `limit`.
    pub(crate) fn size(&mut self, what: &'static str, limit: usize) -> Result<usize, EdgeError> {
        let found = self.u32()?;
        match usize::try_from(found) {
            Ok(size) if (1..=limit).contains(&size) => Ok(size),
            _ => Err(EdgeError::Value {
                what,
                found: found.into(),
            }),
        }
    }
}

/// Number `index` of an array of f32 that was checked when the model was read.
#[inline]
pub(crate) fn f32_at(bytes: &[u8], index: usize) -> f32 {
    match bytes.get(4 * index..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => f32::from_le_bytes(*bytes),
        None => 0.0,
    }
}

/// CRC-32 (the one of zip and Ethernet), four bits at a time: a table of 64 bytes.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = table();
    let mut crc = !0;
    for &byte in bytes {
        crc ^= u32::from(byte);
        crc = (crc >> 4) ^ TABLE[(crc & 15) as usize];
        crc = (crc >> 4) ^ TABLE[(crc & 15) as usize];
    }
    !crc
}

const fn table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut index = 0;
    while index < 16 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn reading_beyond_the_end_is_an_error() {
        let mut cursor = Cursor::new(&[1, 0, 0]);
        assert_eq!(cursor.u16(), Ok(1));
        assert!(cursor.u16().is_err());
        assert_eq!(cursor.u8(), Ok(0));
        assert!(cursor.array(usize::MAX, 4).is_err());
        assert!(cursor.array(1, 1).is_err());
    }
}
