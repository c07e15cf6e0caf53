//! The page as a whole: well formed, self-contained, escaped, the same every time.

use super::xml::assert_well_formed;
use super::*;

/// A page with a table and a figure.
fn document() -> Document {
    let drawing = figure::Curves {
        curves: vec![figure::Curve::indexed("a", vec![1.0, 2.0])],
        ..figure::Curves::default()
    }
    .draw();
    let table = Table {
        caption: "counts".to_owned(),
        columns: vec![Column::text("model"), Column::number("weights")],
        rows: vec![vec![Cell::text("dense"), Cell::Count(1000)]],
        footnotes: Vec::new(),
    };
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
    let drawing = figure::Curves {
        title: evil(),
        x: figure::Axis::linear(EVIL),
        y: figure::Axis::linear(EVIL),
        curves: vec![figure::Curve::indexed(EVIL, vec![1.0, 2.0]).marked(1, EVIL)],
    }
    .draw();
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
    let table = Table {
        caption: "counts".to_owned(),
        columns: vec![Column::text("model"), Column::number("weights")],
        rows: vec![vec![Cell::text("dense")]],
        footnotes: Vec::new(),
    };
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
        Some(Estimate {
            mean,
            spread: Some(0.001),
        })
    };
    let row = |name: &str, ours: Vec<Option<Estimate>>, paper: Vec<Option<f64>>| ComparisonRow {
        name: name.to_owned(),
        facts: Vec::new(),
        ours,
        paper,
    };
    let table = Comparison {
        subject: "model".to_owned(),
        metrics: vec![
            Metric::new("accuracy", Better::Higher),
            Metric::new("ECE", Better::Lower),
        ],
        rows: vec![
            row(
                "a",
                vec![estimate(0.93), estimate(0.03)],
                vec![Some(0.92), Some(0.02)],
            ),
            row("b", vec![estimate(0.9), None], vec![Some(0.9001), None]),
        ],
        ..Comparison::default()
    }
    .table();
    let html = table.html().unwrap();
    assert!(
        html.contains("<small class=\"better\">+0.010</small>"),
        "{html}"
    );
    assert!(
        html.contains("<small class=\"worse\">+0.010</small>"),
        "{html}"
    );
    assert!(
        html.contains("<small class=\"even\">0.000</small>"),
        "{html}"
    );
    assert!(
        html.contains("<strong>0.930</strong><small>±0.001</small>"),
        "{html}"
    );
    assert_eq!(html.matches("class=\"none\"").count(), 2, "{html}");
    assert!(
        html.contains("accuracy ↑") && html.contains("ECE ↓"),
        "{html}"
    );
}
