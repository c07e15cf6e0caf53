//! The page as a whole: well formed, self-contained, escaped, the same every time.

use super::xml::assert_well_formed;
use super::*;

/// A figure with this word at every place for one.
fn curve(word: &str) -> figure::Drawing {
    figure::Curves {
        title: word.to_owned(),
        x: figure::Axis::linear(word),
        y: figure::Axis::linear(word),
        curves: vec![figure::Curve::new(word, vec![0.0, 1.0], vec![1.0, 2.0]).marked(1, word)],
    }
    .draw()
}

fn counts(cells: Vec<Cell>) -> Table {
    Table {
        caption: "counts".to_owned(),
        columns: vec![Column::text("model"), Column::number("weights")],
        rows: vec![cells],
        footnotes: Vec::new(),
    }
}

/// A page with a table and a figure.
fn document() -> Document {
    let drawing = curve("a");
    let table = counts(vec![Cell::text("dense"), Cell::Count(1000)]);
    Document {
        title: "A page".to_owned(),
        sections: vec![
            Section::new("Numbers").table(table),
            Section::new("Curves")
                .figure(Figure::new("one", "first", drawing.clone()))
                .figure(Figure::of("two", "second", vec![drawing.clone(), drawing])),
        ],
        ..Document::default()
    }
}

#[test]
fn a_page_is_well_formed_and_needs_nothing_else() {
    let page = document().html().unwrap();
    assert_well_formed(&page);
    for outside in ["<script", "<link", "<img", "@import", "url(", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The name of the SVG language is no address that anybody asks for anything.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http"));
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    assert_eq!(document().html().unwrap(), document().html().unwrap());
}

#[test]
fn everything_from_data_is_escaped() {
    const EVIL: &str = "<script>alert('x')</script>\"&\u{0}";
    let evil = || EVIL.to_owned();
    let mut document = document();
    document.title = evil();
    document.intro.push(evil());
    document.warnings.push(evil());
    document.provenance = Provenance {
        command: evil(),
        seeds: Vec::new(),
        versions: vec![(evil(), evil())],
        commit: evil(),
        machine: evil(),
        date: evil(),
        duration: evil(),
        config: evil(),
    };
    let drawing = curve(EVIL);
    let table = Table {
        caption: evil(),
        columns: vec![Column::text(EVIL).grouped(EVIL), Column::text(EVIL)],
        rows: vec![vec![Cell::text(EVIL), Cell::text(EVIL)]],
        footnotes: vec![evil()],
    };
    document.sections.push(
        Section::new(EVIL)
            .text(EVIL)
            .table(table)
            .figure(Figure::new(EVIL, EVIL, drawing))
            .with(Block::Code(evil())),
    );
    let page = document.html().unwrap();
    assert_well_formed(&page);
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn ids_stay_unique() {
    let mut document = Document::default();
    for _ in 0..3 {
        document.sections.push(Section::new("Same"));
    }
    document.sections.push(Section::new("Provenance"));
    assert_well_formed(&document.html().unwrap());
}

#[test]
fn a_row_that_does_not_fit_is_an_error_that_names_it() {
    let table = counts(vec![Cell::text("dense")]);
    let document = Document {
        sections: vec![Section::new("s").table(table)],
        ..Document::default()
    };
    let message = document.html().unwrap_err().to_string();
    assert!(
        message.contains("\"counts\", row 1: expected 2 cells, got 1"),
        "{message}"
    );
}

#[test]
fn differences_are_signed_and_coloured_by_what_is_better() {
    let estimate = |mean| {
        let spread = Some(0.001);
        Some(Estimate { mean, spread })
    };
    let row = |name: &str, ours, paper| ComparisonRow {
        name: name.to_owned(),
        facts: Vec::new(),
        ours,
        paper,
    };
    let [ours, paper] = [[0.93, 0.03], [0.92, 0.02]];
    let table = Comparison {
        subject: "model".to_owned(),
        metrics: vec![Metric::higher("accuracy"), Metric::lower("ECE")],
        rows: vec![
            row("a", ours.map(estimate).to_vec(), paper.map(Some).to_vec()),
            row("b", vec![estimate(0.9), None], vec![Some(0.9001), None]),
        ],
        ..Comparison::default()
    }
    .table();
    let html = table.html().unwrap();
    for part in [
        "<small class=\"better\">+0.010</small>",
        "<small class=\"worse\">+0.010</small>",
        "<small class=\"even\">0.000</small>",
        "<strong>0.930</strong><small>±0.001</small>",
        "accuracy ↑",
        "ECE ↓",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
    assert_eq!(html.matches("class=\"none\"").count(), 2, "{html}");
}
