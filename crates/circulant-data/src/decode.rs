//! One PNG or JPEG file as bytes, `[channels, height, width]` with one channel or three. Transparency is
//! left out, 16 bits become 8, and a JPEG file is turned as its EXIF data say.

use std::io::{BufRead, Read, Seek, SeekFrom};

use png::{BitDepth, ColorType, Transformations};
use resize::{Pixel, Type};
use rgb::FromSlice;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::array::planes;
use super::error::DataError;
use super::exif::Orientation;
use super::stream::damage;

/// The most pixels of one picture, 8192 x 8192: a few bytes of a file can claim any number.
const MOST_PIXELS: usize = 1 << 26;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// Whether a file that starts like this is one that [`Picture::decode`] knows.
pub(crate) fn is_picture(start: &[u8]) -> bool {
    start.starts_with(PNG) || start.starts_with(JPEG)
}

/// A decoded picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picture {
    /// One for grey, three for colour.
    pub channels: usize,
    /// `[height, width]`.
    pub size: [usize; 2],
    /// `[channels, height, width]`.
    pub bytes: Vec<u8>,
}

/// What a decoder found wrong, as text.
type Reason = String;

impl Picture {
    /// Decodes a file, whose kind its first bytes tell. `place` names it in errors.
    pub fn decode(mut file: impl BufRead + Seek, place: &str) -> Result<Self, DataError> {
        let mut start = Vec::new();
        file.by_ref()
            .take(PNG.len() as u64)
            .read_to_end(&mut start)
            .and_then(|_| file.seek(SeekFrom::Start(0)))
            .map_err(|error| damage(error, place))?;
        let decoded = if start.starts_with(PNG) {
            from_png(file)
        } else if start.starts_with(JPEG) {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)
                .map_err(|error| damage(error, place))?;
            from_jpeg(&bytes)
        } else {
            Err(format!("a file that starts with {start:02x?}"))
        };
        decoded.map_err(|found| {
            DataError::format(
                place,
                format!("a PNG or JPEG picture of at most {MOST_PIXELS} pixels"),
                found,
                "the file is cut short, damaged or of another kind: replace or remove it",
            )
        })
    }

    /// The same picture with three channels.
    pub fn into_colour(mut self) -> Self {
        if self.channels == 1 {
            self.bytes = self.bytes.repeat(3);
            self.channels = 3;
        }
        self
    }

    /// The same picture with one channel: `0.299 R + 0.587 G + 0.114 B`.
    pub fn into_grey(mut self) -> Self {
        if self.channels == 3 {
            let (red, others) = self.bytes.split_at(self.size[0] * self.size[1]);
            let (green, blue) = others.split_at(red.len());
            let grey = |((r, g), b): ((&u8, &u8), &u8)| {
                let [r, g, b] = [*r, *g, *b].map(u32::from);
                ((299 * r + 587 * g + 114 * b + 500) / 1000) as u8
            };
            self.bytes = red.iter().zip(green).zip(blue).map(grey).collect();
            self.channels = 1;
        }
        self
    }

    /// Scaled linearly.
    pub fn scaled(self, size: [usize; 2]) -> Result<Self, resize::Error> {
        if size == self.size {
            return Ok(self);
        }
        let mut scaler = resize::new(
            self.size[1],
            self.size[0],
            size[1],
            size[0],
            Pixel::Gray8,
            Type::Triangle,
        )?;
        let mut bytes = vec![0; self.channels * size[0] * size[1]];
        let from = self.bytes.chunks_exact(self.size[0] * self.size[1]);
        for (from, to) in from.zip(bytes.chunks_exact_mut(size[0] * size[1])) {
            scaler.resize(from.as_gray(), to.as_gray_mut())?;
        }
        Ok(Self {
            size,
            bytes,
            channels: self.channels,
        })
    }

    /// From samples, one pixel after the other, of which the first one or three per pixel count.
    fn from_pixels(size: [usize; 2], samples: usize, pixels: Vec<u8>) -> Self {
        let channels = if samples < 3 { 1 } else { 3 };
        let pixels: Vec<u8> = match samples == channels {
            true => pixels,
            false => pixels
                .chunks_exact(samples)
                .flat_map(|pixel| pixel[..channels].iter().copied())
                .collect(),
        };
        let bytes = planes(&pixels, channels, channels * size[0] * size[1]);
        Self {
            channels,
            size,
            bytes,
        }
    }
}

fn within_limit([height, width]: [usize; 2]) -> Result<[usize; 2], Reason> {
    match height.checked_mul(width) {
        Some(1..=MOST_PIXELS) => Ok([height, width]),
        _ => Err(format!("{height} x {width} (height x width)")),
    }
}

fn from_png(file: impl BufRead + Seek) -> Result<Picture, Reason> {
    let mut decoder = png::Decoder::new(file);
    decoder.set_transformations(Transformations::EXPAND);
    let failed = |error: png::DecodingError| error.to_string();
    let mut reader = decoder.read_info().map_err(failed)?;
    let size = within_limit([reader.info().height as usize, reader.info().width as usize])?;
    // The decoder panics at such a palette.
    if let Some(palette) = &reader.info().palette
        && (palette.len() % 3 != 0 || palette.len() > 3 * 256)
    {
        return Err(format!("a palette of {} bytes", palette.len()));
    }
    let bytes = reader.output_buffer_size().ok_or("sizes without end")?;
    let mut pixels = vec![0; bytes];
    reader.next_frame(&mut pixels).map_err(failed)?;
    let (kind, depth) = reader.output_color_type();
    if depth == BitDepth::Sixteen {
        // 65535 / 257 = 255; to the nearest.
        let narrow = |wide: u16| ((u32::from(wide) + 128) / 257) as u8;
        let wide = pixels.chunks_exact(2);
        pixels = wide
            .map(|x| narrow(u16::from_be_bytes([x[0], x[1]])))
            .collect();
    }
    let samples = match kind {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb | ColorType::Indexed => 3,
        ColorType::Rgba => 4,
    };
    Ok(Picture::from_pixels(size, samples, pixels))
}

fn from_jpeg(bytes: &[u8]) -> Result<Picture, Reason> {
    let failed = |error: zune_jpeg::errors::DecodeErrors| format!("{error:?}");
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(MOST_PIXELS)
        .set_max_height(MOST_PIXELS);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(failed)?;
    let info = decoder.info().ok_or("no sizes")?;
    let size = within_limit([info.height.into(), info.width.into()])?;
    // Every block of 8 x 8 has one bit at least; the decoder would make up what is missing.
    if size[0] * size[1] > 64 * 8 * bytes.len() {
        return Err(format!(
            "{} bytes for {} x {} pixels",
            bytes.len(),
            size[0],
            size[1]
        ));
    }
    let (colours, samples) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, 1),
        _ => (ColorSpace::RGB, 3),
    };
    decoder.set_options(decoder.options().jpeg_set_out_colorspace(colours));
    let pixels = decoder.decode().map_err(failed)?;
    let exif = decoder.exif().map_or(&[][..], Vec::as_slice);
    let orientation = Orientation::of(exif);
    if pixels.len() != samples * size[0] * size[1] {
        return Err(format!("{} bytes for {size:?} pixels", pixels.len()));
    }
    let lying = Picture::from_pixels(size, samples, pixels);
    let (size, bytes) = orientation.upright(size, lying.bytes);
    Ok(Picture {
        size,
        bytes,
        ..lying
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::imageops::FilterType;
    use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb};

    use super::*;

    fn pixel(x: u32, y: u32) -> u8 {
        (x * 37 + y * 91 + x * y) as u8
    }

    fn colour(width: u32, height: u32) -> DynamicImage {
        let at = |x, y| Rgb([pixel(x, y), pixel(y, x), pixel(x, x)]);
        ImageBuffer::from_fn(width, height, at).into()
    }

    fn grey(width: u32, height: u32) -> DynamicImage {
        ImageBuffer::from_fn(width, height, |x, y| Luma([pixel(x, y)])).into()
    }

    fn file(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        picture
            .write_to(&mut Cursor::new(&mut bytes), format)
            .unwrap();
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Picture, DataError> {
        Picture::decode(Cursor::new(bytes), "test")
    }

    /// What the crate `image` makes of a picture.
    fn expected(picture: DynamicImage) -> Picture {
        let size = [picture.height() as usize, picture.width() as usize];
        if picture.color().has_color() {
            Picture::from_pixels(size, 3, picture.into_rgb8().into_raw())
        } else {
            Picture::from_pixels(size, 1, picture.into_luma8().into_raw())
        }
    }

    #[test]
    fn a_palette_of_half_a_colour_is_an_error() {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 2, 1);
        encoder.set_color(ColorType::Indexed);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_palette((0..13).collect::<Vec<u8>>());
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&[0, 3]).unwrap();
        writer.finish().unwrap();
        let error = Picture::decode(Cursor::new(file), "a.png").unwrap_err();
        assert!(error.to_string().contains("palette of 13"), "{error}");
    }

    #[test]
    fn pictures_are_those_of_the_crate_image() {
        let deep: DynamicImage = ImageBuffer::from_fn(5, 3, |x, y| {
            Rgb([x * 9000, y * 20_000, 127 + 128 * x].map(|wide| wide as u16))
        })
        .into();
        for picture in [
            colour(7, 5),
            grey(7, 5),
            DynamicImage::from(colour(4, 6).into_rgba8()),
            DynamicImage::from(grey(4, 6).into_luma_alpha8()),
            deep.clone(),
            DynamicImage::from(deep.into_luma16()),
        ] {
            let bytes = file(&picture, ImageFormat::Png);
            assert_eq!(decode(&bytes).unwrap(), expected(picture));
        }
        for picture in [colour(33, 17), grey(16, 24)] {
            let bytes = file(&picture, ImageFormat::Jpeg);
            let reference = image::load_from_memory(&bytes).unwrap();
            assert_eq!(decode(&bytes).unwrap(), expected(reference));
        }
    }

    #[test]
    fn a_turned_photograph_is_read_upright() {
        let plain = file(&colour(24, 16), ImageFormat::Jpeg);
        let upright = decode(&plain).unwrap();
        for value in 1..=8_u16 {
            let exif = super::super::exif::tests::exif(value, value > 4);
            let mut bytes = plain[..2].to_vec();
            bytes.extend([0xff, 0xe1]);
            bytes.extend((exif.len() as u16 + 8).to_be_bytes());
            bytes.extend(b"Exif\0\0");
            bytes.extend(&exif);
            bytes.extend(&plain[2..]);
            let found = decode(&bytes).unwrap();
            let (size, expected) =
                Orientation::of(&exif).upright(upright.size, upright.bytes.clone());
            assert_eq!((found.size, found.bytes), (size, expected), "{value}");
            assert_eq!(found.size, if value > 4 { [24, 16] } else { [16, 24] });
        }
    }

    #[test]
    fn scaling_is_that_of_the_crate_image() {
        for size in [[3, 4], [20, 11], [12, 9]] {
            let picture = colour(9, 12);
            let reference = expected(picture.resize_exact(
                size[1] as u32,
                size[0] as u32,
                FilterType::Triangle,
            ));
            let scaled = expected(picture).scaled(size).unwrap();
            // One pass rounds before the other; which one comes first differs.
            let close = |(a, b): (&u8, &u8)| a.abs_diff(*b) <= 1;
            assert_eq!(scaled.bytes.len(), reference.bytes.len());
            assert!(scaled.bytes.iter().zip(&reference.bytes).all(close));
        }
    }

    #[test]
    fn claims_of_a_header_are_checked_before_anything_is_decoded() {
        let mut bytes = file(&grey(2, 3), ImageFormat::Png);
        // Width and height are at 16..24 of a PNG file, then five bytes and their checksum.
        bytes[16..20].copy_from_slice(&20_000_u32.to_be_bytes());
        bytes[20..24].copy_from_slice(&20_000_u32.to_be_bytes());
        let sum = crc(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&sum.to_be_bytes());
        let error = decode(&bytes).unwrap_err().to_string();
        assert!(
            error.contains("20000 x 20000") && error.contains("at most"),
            "{error}"
        );
    }

    /// Found by fuzzing: a file of 200 bytes took ten seconds to decode.
    #[test]
    fn a_short_jpeg_file_cannot_claim_many_pixels() {
        let mut bytes = file(&grey(16, 16), ImageFormat::Jpeg);
        let frame = bytes.windows(2).position(|mark| mark == [0xff, 0xc0]);
        let sizes = frame.unwrap() + 5;
        bytes[sizes..sizes + 4].copy_from_slice(&[0x1f, 0, 0x1f, 0]);
        let error = decode(&bytes).unwrap_err().to_string();
        assert!(error.contains("bytes for 7936 x 7936 pixels"), "{error}");
    }

    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |sum, &byte| {
            (0..8).fold(sum ^ u32::from(byte), |sum, _| {
                sum >> 1 ^ (0xedb8_8320 * (sum & 1))
            })
        })
    }
}
