//! The page as a whole: well formed, self-contained, escaped, the same every time.

use super::demo;
use super::xml::assert_well_formed;
use super::*;

#[test]
fn the_demo_is_well_formed_and_needs_nothing_else() {
    let page = demo::document().html().unwrap();
    assert_well_formed(&page);
    for outside in ["<script", "<link", "<img", "@import", "url(", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The name of the SVG language is no address that anybody asks for anything.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http"));
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    assert_eq!(
        demo::document().html().unwrap(),
        demo::document().html().unwrap()
    );
}

#[test]
fn everything_from_data_is_escaped() {
    const EVIL: &str = "<script>alert('x')</script>\"&\u{0}";
    let evil = || EVIL.to_owned();
    let mut document = demo::document();
    document.title = evil();
    document.intro.push(evil());
    document.banners.push((BannerKind::Warning, evil()));
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
            .with(Block::Code(evil()))
            .with(Block::Banner(BannerKind::Note, evil())),
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

/// Writes the demo for a look in a browser, into the folder named by `REPORT_DEMO`:
/// `REPORT_DEMO=target cargo test -p circulant-cli write_the_demo -- --ignored`.
#[test]
#[ignore = "for looking at, not for checking"]
fn write_the_demo() {
    let folder = std::path::PathBuf::from(std::env::var_os("REPORT_DEMO").unwrap());
    demo::document()
        .write(&folder.join("report-demo.html"))
        .unwrap();
    for (name, drawing) in demo::drawings() {
        write_atomically(&folder.join(format!("{name}.svg")), &drawing.standalone()).unwrap();
    }
}
