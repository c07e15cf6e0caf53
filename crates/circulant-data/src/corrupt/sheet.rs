//! A contact sheet: one row per corruption, the clean picture and the five severities from left to right.
//!
//! Row `r` shows picture `r mod n`, so one picture can be followed through all rows, or many be seen.
//! Rows are set in two columns when there are more than six, enlarged by whole factors.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};

use super::super::error::DataError;
use super::super::images::{ImageSet, Pixels};
use super::super::labels::Labels;
use super::corruption::{Corruption, Severity};
use super::{colour_bytes, corrupt, font};

const PAPER: Rgb<u8> = Rgb([255, 255, 255]);
const INK: Rgb<u8> = Rgb([40, 44, 52]);
/// Between pictures, and around the sheet.
const GAP: usize = 4;
const MARGIN: usize = 16;
/// Pixels per pixel of a letter.
const LETTER: usize = 2;
/// A picture of 32 x 32 is enlarged threefold.
const SIDE: usize = 96;
/// More rows are set in two columns.
const ROWS_OF_ONE_COLUMN: usize = 6;

/// Draws the sheet.
pub fn contact_sheet(
    set: &ImageSet,
    corruptions: &[Corruption],
    seed: u64,
) -> Result<RgbImage, DataError> {
    let layout = Layout::new(set, corruptions);
    let mut sheet = RgbImage::from_pixel(layout.width() as u32, layout.height() as u32, PAPER);
    for panel in 0..layout.panels {
        for level in 0..=Severity::ALL.len() {
            let heading = if level == 0 {
                "clean".to_owned()
            } else {
                level.to_string()
            };
            let [left, top] = layout.place(panel, 0, level);
            let indent = layout.cell[1].saturating_sub(text_width(&heading)) / 2;
            write(
                &mut sheet,
                &heading,
                left + indent,
                top.saturating_sub(GAP + LETTER * font::HEIGHT),
            );
        }
    }
    for (row, &corruption) in corruptions.iter().enumerate() {
        let (panel, line) = (row / layout.rows, row % layout.rows);
        let [left, top] = layout.place(panel, line, 0);
        let label = corruption.name().replace('_', " ");
        let middle = top + (layout.cell[0].saturating_sub(LETTER * 7)) / 2;
        write(
            &mut sheet,
            &label,
            left - GAP * 2 - text_width(&label),
            middle,
        );
        let clean = picture(set, row % set.len())?;
        paste(&mut sheet, &clean, &layout, [left, top])?;
        for severity in Severity::ALL {
            let corrupted = corrupt(&clean, corruption, severity, seed)?;
            let place = layout.place(panel, line, severity.level());
            paste(&mut sheet, &corrupted, &layout, place)?;
        }
    }
    Ok(sheet)
}

/// The sheet as a PNG file.
pub fn encode_png(sheet: &RgbImage) -> Result<Vec<u8>, DataError> {
    let mut file = Cursor::new(Vec::new());
    sheet
        .write_to(&mut file, ImageFormat::Png)
        .map_err(|error| {
            DataError::format(
                "contact sheet",
                "a picture that PNG can hold",
                error.to_string(),
                "choose fewer corruptions or smaller pictures",
            )
        })?;
    Ok(file.into_inner())
}

/// Where things are, in pixels of the sheet.
struct Layout {
    /// Enlargement.
    scale: usize,
    /// Height and width of a picture.
    cell: [usize; 2],
    /// The longest label with a gap.
    label: usize,
    panels: usize,
    /// Of a panel.
    rows: usize,
}

impl Layout {
    fn new(set: &ImageSet, corruptions: &[Corruption]) -> Self {
        let [_, _, height, width] = set.shape();
        let scale = (SIDE / height.max(width)).max(1);
        let panels = if corruptions.len() > ROWS_OF_ONE_COLUMN {
            2
        } else {
            1
        };
        let label = corruptions.iter().map(|one| text_width(one.name())).max();
        Self {
            scale,
            cell: [height * scale, width * scale],
            label: label.unwrap_or(0) + 2 * GAP,
            panels,
            rows: corruptions.len().div_ceil(panels).max(1),
        }
    }

    fn panel_width(&self) -> usize {
        self.label + (Severity::ALL.len() + 1) * (self.cell[1] + GAP) + GAP
    }

    /// Left and top of a picture; level 0 is the clean one.
    fn place(&self, panel: usize, row: usize, level: usize) -> [usize; 2] {
        let first = MARGIN + panel * (self.panel_width() + MARGIN) + self.label;
        // The clean picture stands apart.
        let apart = if level == 0 { 0 } else { GAP };
        let top = MARGIN + LETTER * font::HEIGHT + GAP;
        [
            first + level * (self.cell[1] + GAP) + apart,
            top + row * (self.cell[0] + GAP),
        ]
    }

    fn width(&self) -> usize {
        self.panels * (self.panel_width() + MARGIN) + MARGIN
    }

    fn height(&self) -> usize {
        self.place(0, self.rows, 0)[1] + MARGIN
    }
}

fn text_width(text: &str) -> usize {
    LETTER * font::ADVANCE * text.len()
}

fn write(sheet: &mut RgbImage, text: &str, left: usize, top: usize) {
    font::draw(text, |column, row| {
        fill(
            sheet,
            [left + LETTER * column, top + LETTER * row],
            LETTER,
            INK,
        );
    });
}

fn fill(sheet: &mut RgbImage, [left, top]: [usize; 2], side: usize, colour: Rgb<u8>) {
    for y in top..top + side {
        for x in left..left + side {
            if let Some(pixel) = sheet.get_pixel_mut_checked(x as u32, y as u32) {
                *pixel = colour;
            }
        }
    }
}

/// One picture as a set. Its place in the set does not matter to the sheet.
fn picture(set: &ImageSet, index: usize) -> Result<ImageSet, DataError> {
    let [_, channels, height, width] = set.shape();
    let bytes = colour_bytes(set)?[index * set.row()..][..set.row()].to_vec();
    let shape = [1, channels, height, width];
    ImageSet::new(Pixels::U8(bytes), shape, Labels::default(), set.source())
}

fn paste(
    sheet: &mut RgbImage,
    picture: &ImageSet,
    layout: &Layout,
    [left, top]: [usize; 2],
) -> Result<(), DataError> {
    let [_, _, height, width] = picture.shape();
    let bytes = colour_bytes(picture)?;
    for pixel in 0..height * width {
        let colour = Rgb([0, 1, 2].map(|channel| bytes[channel * height * width + pixel]));
        let (row, column) = (pixel / width, pixel % width);
        let place = [left + column * layout.scale, top + row * layout.scale];
        fill(sheet, place, layout.scale, colour);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bytes, pictures};
    use super::*;

    #[test]
    fn pictures_are_where_the_layout_says() {
        let set = pictures(3, 32, 32);
        let sheet = contact_sheet(&set, &Corruption::ALL, 4).unwrap();
        let layout = Layout::new(&set, &Corruption::ALL);
        assert_eq!((layout.panels, layout.rows, layout.scale), (2, 10, 3));
        // The twelfth corruption, contrast, is the second of the right half and shows picture 11 mod 3.
        let clean = picture(&set, 2).unwrap();
        let dull = corrupt(&clean, Corruption::Contrast, Severity::ALL[4], 4).unwrap();
        for (level, expected) in [(0, &clean), (5, &dull)] {
            let [left, top] = layout.place(1, 1, level);
            for (row, column) in [(0, 0), (31, 31), (7, 20)] {
                let found =
                    sheet.get_pixel((left + 3 * column + 1) as u32, (top + 3 * row + 2) as u32);
                let pixel = row * 32 + column;
                assert_eq!(
                    found.0,
                    [0, 1, 2].map(|c| bytes(expected)[c * 1024 + pixel])
                );
            }
        }
        let png = encode_png(&sheet).unwrap();
        assert_eq!(image::load_from_memory(&png).unwrap().into_rgb8(), sheet);
    }

    #[test]
    fn few_rows_and_large_pictures_fit() {
        let set = pictures(1, 130, 40);
        let sheet = contact_sheet(&set, &[Corruption::Fog], 1).unwrap();
        assert!(sheet.height() > 130 && sheet.width() > 6 * 40);
        assert!(contact_sheet(&set, &[], 1).is_ok());
    }
}
