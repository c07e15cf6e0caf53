//! The document: a title, sections, and where the numbers come from, rendered to one HTML page.

use std::collections::HashSet;
use std::path::Path;

use super::escape::{escape, slug};
use super::figure::{Drawing, figure_css};
use super::provenance::Provenance;
use super::style::PAGE_CSS;
use super::table::{RowError, Table};
use crate::files::write;

/// Drawings under one caption. They stand beside each other where there is room.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    /// For links; made unique and safe.
    pub id: String,
    /// What to see in it.
    pub caption: String,
    /// One or more.
    pub drawings: Vec<Drawing>,
}

impl Figure {
    pub fn new(id: impl Into<String>, caption: impl Into<String>, drawing: Drawing) -> Self {
        Self::of(id, caption, vec![drawing])
    }

    pub fn of(id: impl Into<String>, caption: impl Into<String>, drawings: Vec<Drawing>) -> Self {
        Self {
            id: id.into(),
            caption: caption.into(),
            drawings,
        }
    }
}

/// A part of a section.
#[derive(Debug, Clone)]
pub enum Block {
    Text(String),
    Table(Table),
    /// A figure over the whole width, or half of it when it has one drawing and a neighbour too.
    Figure(Figure),
    /// Text as it is, in a fixed-width font.
    Code(String),
}

#[derive(Debug, Clone, Default)]
pub struct Section {
    pub heading: String,
    pub blocks: Vec<Block>,
}

impl Section {
    pub fn new(heading: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            blocks: Vec::new(),
        }
    }

    /// The section with one more paragraph.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.with(Block::Text(text.into()))
    }

    /// The section with one more table.
    pub fn table(self, table: Table) -> Self {
        self.with(Block::Table(table))
    }

    /// The section with one more figure.
    pub fn figure(self, figure: Figure) -> Self {
        self.with(Block::Figure(figure))
    }

    /// The section with one more block.
    pub fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The heading, and the name of the browser's tab.
    pub title: String,
    pub intro: Vec<String>,
    /// Boxes above everything else: what changes the meaning of the numbers.
    pub warnings: Vec<String>,
    pub sections: Vec<Section>,
    pub provenance: Provenance,
}

impl Document {
    pub fn html(&self) -> Result<String, RowError> {
        let mut ids = Ids::default();
        // Reserved: the footer's own.
        ids.unique("provenance");
        let title = escape(&self.title);
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{title}</title>\n\
             <style>\n{PAGE_CSS}{}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n",
            figure_css()
        );
        for line in &self.intro {
            html.push_str(&format!("<p class=\"intro\">{}</p>\n", escape(line)));
        }
        html.push_str("</header>\n");
        for text in &self.warnings {
            html.push_str(&format!(
                "<div class=\"warning\" role=\"note\"><strong>Warning</strong> <span>{}</span></div>\n",
                escape(text)
            ));
        }
        let names: Vec<String> = self
            .sections
            .iter()
            .map(|section| ids.unique(&section.heading))
            .collect();
        if self.sections.len() > 1 {
            html.push_str("<nav aria-label=\"contents\"><ul>\n");
            for (section, id) in self.sections.iter().zip(&names) {
                html.push_str(&format!(
                    "<li><a href=\"#{id}\">{}</a></li>\n",
                    escape(&section.heading)
                ));
            }
            html.push_str("</ul></nav>\n");
        }
        for (section, id) in self.sections.iter().zip(&names) {
            html.push_str(&format!(
                "<section id=\"{id}\">\n<h2>{}</h2>\n",
                escape(&section.heading)
            ));
            blocks(&section.blocks, &mut ids, &mut html)?;
            html.push_str("</section>\n");
        }
        html.push_str(&self.provenance.html());
        html.push_str("</main>\n</body>\n</html>\n");
        Ok(html)
    }

    /// All drawings under the names of their figures; those of one figure are numbered.
    pub fn drawings(&self) -> Vec<(String, &Drawing)> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        let figures = blocks.filter_map(|block| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        });
        let named = figures.flat_map(|figure| {
            let single = figure.drawings.len() == 1;
            let drawings = figure.drawings.iter().enumerate();
            drawings.map(move |(index, drawing)| {
                let name = slug(&figure.id);
                let name = if single {
                    name
                } else {
                    format!("{name}-{}", index + 1)
                };
                (name, drawing)
            })
        });
        named.collect()
    }

    /// Writes the page; a reader sees all of it or none.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        write(path, self.html()?)
    }
}

/// Figures of one drawing that follow each other share a row.
fn blocks(blocks: &[Block], ids: &mut Ids, html: &mut String) -> Result<(), RowError> {
    let single =
        |block: &Block| matches!(block, Block::Figure(figure) if figure.drawings.len() == 1);
    for run in blocks.chunk_by(|one, other| single(one) && single(other)) {
        if run.len() > 1 {
            html.push_str("<div class=\"row\">\n");
        }
        for block in run {
            match block {
                Block::Text(text) => html.push_str(&format!("<p>{}</p>\n", escape(text))),
                Block::Table(table) => html.push_str(&table.html()?),
                Block::Figure(part) => html.push_str(&figure(part, ids)),
                Block::Code(text) => html.push_str(&format!("<pre>{}</pre>\n", escape(text))),
            }
        }
        if run.len() > 1 {
            html.push_str("</div>\n");
        }
    }
    Ok(())
}

fn figure(figure: &Figure, ids: &mut Ids) -> String {
    let mut html = format!(
        "<figure id=\"{}\">\n<div class=\"row\">\n",
        ids.unique(&figure.id)
    );
    for drawing in &figure.drawings {
        html.push_str(drawing.svg());
    }
    html.push_str("</div>\n");
    if !figure.caption.is_empty() {
        html.push_str(&format!(
            "<figcaption>{}</figcaption>\n",
            escape(&figure.caption)
        ));
    }
    html.push_str("</figure>\n");
    html
}

/// Names already used in the page.
#[derive(Default)]
struct Ids(HashSet<String>);

impl Ids {
    fn unique(&mut self, text: &str) -> String {
        let base = slug(text);
        let mut name = base.clone();
        let mut count = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{base}-{count}");
            count += 1;
        }
        name
    }
}
