//! A contact sheet: one row per corruption, the clean picture and the five severities from left to right.
//!
//! Row `r` shows picture `r mod n`, so one picture can be followed through all rows, or many be seen.
//! Rows are set in two columns when there are more than six. The sheet is an SVG page with the pictures in
//! it as PNG.

use std::fmt::Write;

use super::super::error::DataError;
use super::super::images::{ImageSet, Pixels};
use super::super::labels::Labels;
use super::corruption::{Corruption, Severity};
use super::{colour_bytes, corrupt};

/// The longer side of a picture on the sheet.
const SIDE: usize = 96;
/// Between pictures, and around the sheet.
const GAP: usize = 4;
const MARGIN: usize = 16;
/// The height of the headings, and the width of the names.
const HEADING: usize = 20;
const LABEL: usize = 150;
/// More rows are set in two columns.
const ROWS_OF_ONE_COLUMN: usize = 6;

/// Draws the sheet as an SVG page.
pub fn contact_sheet(
    set: &ImageSet,
    corruptions: &[Corruption],
    seed: u64,
) -> Result<String, DataError> {
    let layout = Layout::new(set, corruptions.len());
    let [width, height] = layout.size();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"14\" fill=\"#282c34\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for panel in 0..layout.panels {
        for level in 0..=Severity::ALL.len() {
            let [left, top] = layout.place(panel, 0, level);
            let heading = match level {
                0 => "clean".to_owned(),
                level => level.to_string(),
            };
            let middle = left + layout.cell[1] / 2;
            text(&mut svg, "middle", [middle, top - GAP], &heading);
        }
    }
    for (row, &corruption) in corruptions.iter().enumerate() {
        let (panel, line) = (row / layout.rows, row % layout.rows);
        let [left, top] = layout.place(panel, line, 0);
        let label = corruption.name().replace('_', " ");
        let middle = [left - 2 * GAP, top + layout.cell[0] / 2 + GAP];
        text(&mut svg, "end", middle, &label);
        let clean = picture(set, row % set.len())?;
        image(&mut svg, &clean, &layout, [left, top])?;
        for severity in Severity::ALL {
            let corrupted = corrupt(&clean, corruption, severity, seed)?;
            let place = layout.place(panel, line, severity.level());
            image(&mut svg, &corrupted, &layout, place)?;
        }
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Where things are, in units of the sheet.
struct Layout {
    /// Height and width of a picture.
    cell: [usize; 2],
    panels: usize,
    /// Of a panel.
    rows: usize,
}

impl Layout {
    fn new(set: &ImageSet, corruptions: usize) -> Self {
        let [_, _, height, width] = set.shape();
        let scale = SIDE as f64 / height.max(width) as f64;
        let panels = 1 + usize::from(corruptions > ROWS_OF_ONE_COLUMN);
        Self {
            cell: [height, width].map(|side| ((side as f64 * scale) as usize).max(1)),
            panels,
            rows: corruptions.div_ceil(panels).max(1),
        }
    }

    fn panel_width(&self) -> usize {
        LABEL + (Severity::ALL.len() + 1) * (self.cell[1] + GAP) + GAP
    }

    /// Left and top of a picture; level 0 is the clean one, which stands apart.
    fn place(&self, panel: usize, row: usize, level: usize) -> [usize; 2] {
        let first = MARGIN + panel * (self.panel_width() + MARGIN) + LABEL;
        let apart = if level == 0 { 0 } else { GAP };
        [
            first + level * (self.cell[1] + GAP) + apart,
            MARGIN + HEADING + row * (self.cell[0] + GAP),
        ]
    }

    /// Width and height.
    fn size(&self) -> [usize; 2] {
        [
            self.panels * (self.panel_width() + MARGIN) + MARGIN,
            self.place(0, self.rows, 0)[1] + MARGIN,
        ]
    }
}

fn text(svg: &mut String, anchor: &str, [x, y]: [usize; 2], text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

/// One picture as a set. Its place in the set does not matter to the sheet.
fn picture(set: &ImageSet, index: usize) -> Result<ImageSet, DataError> {
    let [_, channels, height, width] = set.shape();
    let bytes = colour_bytes(set)?[index * set.row()..][..set.row()].to_vec();
    let shape = [1, channels, height, width];
    ImageSet::new(Pixels::U8(bytes), shape, Labels::default(), set.source())
}

fn image(
    svg: &mut String,
    picture: &ImageSet,
    layout: &Layout,
    [x, y]: [usize; 2],
) -> Result<(), DataError> {
    let address = picture.png_address(0)?;
    let [height, width] = layout.cell;
    let _ = writeln!(
        svg,
        "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
         style=\"image-rendering:pixelated\" href=\"{address}\"/>"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::super::tests::{bytes, pictures};
    use super::*;

    /// The picture at a place of the sheet.
    fn found(sheet: &str, [x, y]: [usize; 2]) -> Vec<u8> {
        let start = format!("<image x=\"{x}\" y=\"{y}\" ");
        let line = sheet.lines().find(|line| line.starts_with(&start)).unwrap();
        let (_, rest) = line.split_once("base64,").unwrap();
        let file = STANDARD.decode(rest.trim_end_matches("\"/>")).unwrap();
        let set = crate::picture::parse(&file, "sheet").unwrap();
        bytes(&set).to_vec()
    }

    #[test]
    fn pictures_are_where_the_layout_says() {
        let set = pictures(3, 32, 32);
        let sheet = contact_sheet(&set, &Corruption::ALL, 4).unwrap();
        let layout = Layout::new(&set, Corruption::ALL.len());
        assert_eq!((layout.panels, layout.rows), (2, 10));
        // The twelfth corruption, contrast, is the second of the right half and shows picture 11 mod 3.
        let clean = picture(&set, 2).unwrap();
        let dull = corrupt(&clean, Corruption::Contrast, Severity::ALL[4], 4).unwrap();
        for (level, expected) in [(0, &clean), (5, &dull)] {
            assert_eq!(found(&sheet, layout.place(1, 1, level)), bytes(expected));
        }
        for word in [">gaussian noise</text>", ">clean</text>", ">5</text>"] {
            assert!(sheet.contains(word), "{word}");
        }
    }

    #[test]
    fn few_rows_and_large_pictures_fit() {
        let set = pictures(1, 130, 40);
        let sheet = contact_sheet(&set, &[Corruption::Fog], 1).unwrap();
        let layout = Layout::new(&set, 1);
        assert_eq!(layout.cell, [96, 29]);
        assert_eq!(found(&sheet, layout.place(0, 0, 0)), bytes(&set));
        assert!(contact_sheet(&set, &[], 1).is_ok());
    }
}
