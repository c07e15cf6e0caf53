//! A picture of a set as PNG inside an address, for pages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::array::interleaved;
use super::error::DataError;
use super::images::{ImageSet, Pixels};

impl ImageSet {
    /// The picture at `index` as `data:image/png;base64,...`. Floats are scaled from the picture's own least to its greatest number.
    ///
    /// # Panics
    /// If the index is not below [`ImageSet::len`].
    pub fn png_address(&self, index: usize) -> Result<String, DataError> {
        let [_, channels, height, width] = self.shape();
        let range = index * self.row()..(index + 1) * self.row();
        let planes = match self.pixels() {
            Pixels::U8(bytes) => bytes[range].to_vec(),
            Pixels::F32(values) => as_bytes(&values[range]),
        };
        let cannot = |found: String| {
            DataError::format(
                self.source(),
                "pictures that PNG can hold: 1 or 3 channels",
                found,
                "use other pictures",
            )
        };
        let colour = match channels {
            1 => png::ColorType::Grayscale,
            3 => png::ColorType::Rgb,
            _ => return Err(cannot(format!("{channels} channels"))),
        };
        let sides = (u32::try_from(width), u32::try_from(height));
        let (Ok(width), Ok(height)) = sides else {
            return Err(cannot(format!("{height} x {width} pixels")));
        };
        let mut file = Vec::new();
        let mut write = || -> Result<(), png::EncodingError> {
            let mut encoder = png::Encoder::new(&mut file, width, height);
            encoder.set_color(colour);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&interleaved(&planes, channels))?;
            writer.finish()
        };
        write().map_err(|error| cannot(error.to_string()))?;
        Ok(format!("data:image/png;base64,{}", STANDARD.encode(file)))
    }
}

fn as_bytes(values: &[f32]) -> Vec<u8> {
    let low = values.iter().copied().fold(f32::INFINITY, f32::min);
    let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let scale = if high > low {
        255.0 / (high - low)
    } else {
        0.0
    };
    // A cast cuts off what is outside.
    values
        .iter()
        .map(|x| ((x - low) * scale).round() as u8)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::labels::Labels;
    use super::*;

    fn set(pixels: Pixels, shape: [usize; 4]) -> ImageSet {
        ImageSet::new(pixels, shape, Labels::default(), "test").unwrap()
    }

    fn read_back(address: &str) -> Vec<u8> {
        let file = STANDARD
            .decode(address.strip_prefix("data:image/png;base64,").unwrap())
            .unwrap();
        let found = crate::picture::parse(&file, "test").unwrap();
        match found.pixels() {
            Pixels::U8(bytes) => bytes.clone(),
            Pixels::F32(_) => panic!("bytes"),
        }
    }

    #[test]
    fn addresses_hold_the_picture() {
        let bytes: Vec<u8> = (0..36).collect();
        let colour = set(Pixels::U8(bytes.clone()), [2, 3, 2, 3]);
        assert_eq!(read_back(&colour.png_address(1).unwrap()), bytes[18..]);
        let grey = set(
            Pixels::F32(vec![0.0, 1.0, -1.0, 7.0, 7.0, 7.0]),
            [2, 1, 1, 3],
        );
        assert_eq!(read_back(&grey.png_address(0).unwrap()), [128, 255, 0]);
        assert_eq!(read_back(&grey.png_address(1).unwrap()), [0, 0, 0]);
        let two = set(Pixels::U8(vec![0; 8]), [1, 2, 2, 2]);
        assert!(
            two.png_address(0)
                .unwrap_err()
                .to_string()
                .contains("2 channels")
        );
    }
}
