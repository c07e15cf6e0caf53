//! How a camera was held: the orientation in the EXIF data of a JPEG file.
//!
//! EXIF is a TIFF file: `II*\0` or `MM\0*` for the order of bytes, the place of a directory, and there a count and entries of twelve bytes: tag, type,
//! count, value. Only the tag `0x0112` counts. What is damaged counts as upright: it is not the picture.

/// Turns and flips; the number is EXIF's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orientation(u8);

const TAG: u16 = 0x0112;
/// The type of two bytes.
const SHORT: u16 = 3;

impl Orientation {
    /// From the TIFF header on.
    pub(crate) fn of(exif: &[u8]) -> Self {
        Self(find(exif).unwrap_or(1))
    }

    /// Planes `[channels, height, width]` upright, and their `[height, width]`.
    pub(crate) fn upright(
        self,
        [height, width]: [usize; 2],
        planes: Vec<u8>,
    ) -> ([usize; 2], Vec<u8>) {
        let turned = self.0 >= 5;
        let size = if turned {
            [width, height]
        } else {
            [height, width]
        };
        if self.0 == 1 {
            return (size, planes);
        }
        let (bottom, right) = (height.saturating_sub(1), width.saturating_sub(1));
        let mut upright = Vec::with_capacity(planes.len());
        for plane in planes.chunks_exact((height * width).max(1)) {
            for y in 0..size[0] {
                for x in 0..size[1] {
                    let (row, column) = match self.0 {
                        2 => (y, right - x),
                        3 => (bottom - y, right - x),
                        4 => (bottom - y, x),
                        5 => (x, y),
                        6 => (bottom - x, y),
                        7 => (bottom - x, right - y),
                        _ => (x, right - y),
                    };
                    upright.push(plane[row * width + column]);
                }
            }
        }
        (size, upright)
    }
}

fn find(exif: &[u8]) -> Option<u8> {
    let little = match exif.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |bytes: &[u8]| -> Option<u16> {
        let pair: [u8; 2] = bytes.get(..2)?.try_into().ok()?;
        Some(if little {
            u16::from_le_bytes(pair)
        } else {
            u16::from_be_bytes(pair)
        })
    };
    let place: [u8; 4] = exif.get(4..8)?.try_into().ok()?;
    let place = if little {
        u32::from_le_bytes(place)
    } else {
        u32::from_be_bytes(place)
    };
    let directory = exif.get(usize::try_from(place).ok()?..)?;
    let count = usize::from(short(directory)?);
    let mut entries = directory.get(2..)?.chunks_exact(12).take(count);
    let entry = entries.find(|entry| short(entry) == Some(TAG))?;
    let value = short(&entry[8..])?;
    let known = short(&entry[2..]) == Some(SHORT) && (1..=8).contains(&value);
    known.then_some(value as u8)
}

#[cfg(test)]
pub(crate) mod tests {
    use image::metadata::Orientation as Published;
    use image::{DynamicImage, ImageBuffer, Luma};

    use super::*;

    /// EXIF data with one other entry before the orientation.
    pub(crate) fn exif(value: u16, little: bool) -> Vec<u8> {
        let short = |x: u16| {
            if little {
                x.to_le_bytes()
            } else {
                x.to_be_bytes()
            }
        };
        let long = |x: u32| {
            if little {
                x.to_le_bytes()
            } else {
                x.to_be_bytes()
            }
        };
        let mut bytes = if little {
            b"II*\0".to_vec()
        } else {
            b"MM\0*".to_vec()
        };
        bytes.extend(long(10));
        bytes.extend([0, 0]);
        bytes.extend(short(2));
        for (tag, value) in [(0x010f, 7), (TAG, value)] {
            bytes.extend(short(tag));
            bytes.extend(short(SHORT));
            bytes.extend(long(1));
            bytes.extend(short(value));
            bytes.extend([0, 0]);
        }
        bytes.extend(long(0));
        bytes
    }

    #[test]
    fn turns_are_those_of_the_crate_image() {
        for (width, height) in [(3, 2), (1, 4), (1, 1), (5, 5)] {
            let picture =
                ImageBuffer::from_fn(width, height, |x, y| Luma([(7 * x + 31 * y) as u8]));
            for value in 1..=8 {
                let orientation = Orientation::of(&exif(value, value.is_multiple_of(2)));
                assert_eq!(orientation, Orientation(value as u8));
                let mut expected = DynamicImage::from(picture.clone());
                expected.apply_orientation(Published::from_exif(value as u8).unwrap());
                let planes = picture.as_raw().repeat(2);
                let (size, upright) =
                    orientation.upright([height as usize, width as usize], planes);
                assert_eq!(
                    size,
                    [expected.height() as usize, expected.width() as usize]
                );
                assert_eq!(
                    upright,
                    expected.into_luma8().into_raw().repeat(2),
                    "{value}"
                );
            }
        }
    }

    #[test]
    fn damage_counts_as_upright() {
        let whole = exif(6, true);
        for end in 0..whole.len() {
            let found = Orientation::of(&whole[..end]).0;
            assert!(found == 1 || end >= 32 && found == 6, "{end}");
        }
        for value in [0, 9, 65_535] {
            assert_eq!(Orientation::of(&exif(value, false)).0, 1);
        }
        let mut far = whole.clone();
        far[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Orientation::of(&far).0, 1);
    }
}
