//! Pictures side by side, each with a few words below it.

use super::canvas::{HPos, Lettering, VPos};
use super::ink::Ink;
use super::sheet::{Drawing, SMALL, Sheet, WIDTH};
use super::text::fit;

const MARGIN: f64 = 1.5;
const GAP: f64 = 10.0;
const COLUMNS: usize = 4;

/// One picture.
#[derive(Debug, Clone, Default)]
pub struct GalleryPicture {
    /// `data:image/png;base64,...`.
    pub address: String,
    /// Width divided by height.
    pub aspect: f64,
    /// Below it.
    pub lines: Vec<String>,
}

/// Pictures in rows of four.
#[derive(Debug, Clone, Default)]
pub struct Gallery {
    /// Above the figure.
    pub title: String,
    /// Row by row.
    pub pictures: Vec<GalleryPicture>,
}

impl Gallery {
    /// Draws the figure.
    pub fn draw(&self) -> Drawing {
        let words: Vec<String> = self
            .pictures
            .iter()
            .map(|picture| picture.lines.join(" "))
            .collect();
        let mut sheet = Sheet::new(&self.title, format!("Pictures: {}.", words.join("; ")));
        if self.pictures.is_empty() {
            return sheet.no_data();
        }
        let side = (WIDTH - 2.0 * MARGIN - GAP * (COLUMNS - 1) as f64) / COLUMNS as f64;
        for row in self.pictures.chunks(COLUMNS) {
            let height_of =
                |picture: &GalleryPicture| (side / picture.aspect.clamp(0.25, 4.0)).min(side);
            let height = row.iter().map(height_of).fold(0.0, f64::max);
            let lines = row
                .iter()
                .map(|picture| picture.lines.len())
                .max()
                .unwrap_or(0);
            for (column, picture) in row.iter().enumerate() {
                let left = MARGIN + column as f64 * (side + GAP);
                sheet
                    .canvas
                    .image((left, sheet.top), [side, height], &picture.address);
                for (line, text) in picture.lines.iter().enumerate() {
                    let top = sheet.top + height + 4.0 + line as f64 * (SMALL + 3.0);
                    let lettering = Lettering::new(SMALL, Ink::Text).at(HPos::Left, VPos::Top);
                    sheet
                        .canvas
                        .text((left, top), &fit(text, SMALL, side), lettering);
                }
            }
            sheet.top += height + 4.0 + lines as f64 * (SMALL + 3.0) + 8.0;
        }
        sheet.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_is_there_with_its_words() {
        let picture = |name: &str| GalleryPicture {
            address: format!("data:image/png;base64,{name}"),
            aspect: 1.0,
            lines: vec![format!("{name} <1>"), "0.98".to_owned()],
        };
        let gallery = Gallery {
            title: "Wrong".to_owned(),
            pictures: ["a", "b", "c", "d", "e"].map(picture).to_vec(),
        };
        let drawing = gallery.draw();
        assert_eq!(drawing.svg().matches("<image ").count(), 5);
        assert!(drawing.svg().contains("base64,e\"") && drawing.svg().contains("e &lt;1&gt;"));
        assert!(Gallery::default().draw().svg().contains("no data"));
    }
}
