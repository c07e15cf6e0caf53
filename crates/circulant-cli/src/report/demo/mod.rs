//! A document with every kind of figure and table, for the tests and for looking at: the ignored test
//! `write_the_demo` writes it.

mod broken;
mod figures;
mod noise;

pub use figures::{drawings, filter};

use super::*;
use figures::{MODELS, PAPER, WEIGHTS};
use noise::Noise;

fn comparison() -> Comparison {
    let mut noise = Noise::new(1);
    let metrics = ["Accuracy", "Brier", "ECE", "MCE", "AUROC", "FPR@95"].map(|name| {
        let higher = ["Accuracy", "AUROC"].contains(&name);
        Metric::new(
            name,
            if higher {
                Better::Higher
            } else {
                Better::Lower
            },
        )
    });
    let rows = MODELS
        .iter()
        .zip(PAPER)
        .zip(WEIGHTS)
        .map(|((name, paper), weights)| ComparisonRow {
            name: (*name).to_owned(),
            facts: vec![Cell::Count(weights)],
            ours: paper
                .iter()
                .map(|value| {
                    Some(Estimate {
                        mean: value * (1.0 + 0.02 * noise.normal()),
                        spread: Some(0.004 * noise.uniform()),
                    })
                })
                .collect(),
            paper: paper.map(Some).to_vec(),
        });
    let mut rows: Vec<ComparisonRow> = rows.collect();
    rows[4].ours[3] = None;
    rows.push(ComparisonRow {
        name: "two BCCB channels".to_owned(),
        facts: vec![Cell::Count(17_258)],
        ours: rows[0].ours.clone(),
        paper: vec![None; 6],
    });
    Comparison {
        caption: "MNIST, OOD Fashion-MNIST, 1000 steps, three seeds".to_owned(),
        subject: "model".to_owned(),
        facts: vec![Column::number("weights")],
        metrics: metrics.to_vec(),
        rows,
        footnotes: vec!["ECE and MCE with 10 bins.".to_owned()],
    }
}

/// A report with everything in it.
pub fn document() -> Document {
    let mut drawings = drawings().into_iter();
    let mut section = |heading: &str, count: usize| {
        let mut section = Section::new(heading);
        for (id, drawing) in drawings.by_ref().take(count) {
            section = section.figure(Figure::new(id, "What is to be seen here, in a sentence or two of plain words, for example the mean over three seeds.", drawing));
        }
        section
    };
    let sections = vec![
        section("Training and size", 2),
        section("Knowing what it does not know", 2).text("The window on the right is enlarged."),
        section("Calibration", 2),
        section("Spectra and filters", 4),
        section("Norms, radii, certificates", 4),
        section("Learning curves", 2),
    ];
    let mut all = vec![Section::new("Results beside the paper's")
        .text("Six models with the same number of steps, the same batches and the same optimiser.")
        .table(comparison().table())];
    all.extend(sections);
    all.push(
        Section::new("One figure of several drawings")
            .with(Block::Code(
                "circulant evaluate runs/mnist --json".to_owned(),
            ))
            .figure(Figure::of(
                "broken",
                "What cannot be drawn is counted.",
                broken::broken(),
            )),
    );
    Document {
        title: "MNIST against Fashion-MNIST: compact Bayesian models".to_owned(),
        intro: vec!["Six models, 1000 SVI steps each, seeds 0 to 2. The table first, then what is behind it.".to_owned()],
        banners: vec![
            (BannerKind::Warning, "This ran on glyphs, not on MNIST. The numbers cannot be compared with the paper's. Run \"circulant data fetch mnist\" first.".to_owned()),
            (BannerKind::Note, "Settings were chosen on 5,000 training images held out for that, never on the test set.".to_owned()),
        ],
        sections: all,
        provenance: Provenance {
            command: "circulant reproduce mnist --seeds 0,1,2 --out runs/mnist".to_owned(),
            seeds: vec![0, 1, 2],
            versions: vec![("circulant".to_owned(), "0.2.0".to_owned()), ("burn".to_owned(), "0.22.1".to_owned())],
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            machine: "x86-64, 2 cores, Linux".to_owned(),
            date: "2026-11-16 05:00 UTC".to_owned(),
            duration: "4 min 12 s".to_owned(),
            config: "[training]\nsteps = 1000\nlearning_rate = 0.01\nrank = 8\n".to_owned(),
        },
    }
}
