//! Every kind of figure, with data of a likely shape.

use super::noise::Noise;
use crate::report::figure::*;

pub const MODELS: [&str; 6] = [
    "spectral BCCB",
    "spectral circulant",
    "spatial BCCB",
    "spatial circulant",
    "Conv2d",
    "dense",
];
pub const PAPER: [[f64; 6]; 6] = [
    [0.919, 0.124, 0.016, 0.179, 0.811, 0.616],
    [0.921, 0.120, 0.022, 0.195, 0.829, 0.637],
    [0.899, 0.182, 0.083, 0.373, 0.730, 0.844],
    [0.903, 0.175, 0.081, 0.426, 0.781, 0.813],
    [0.962, 0.076, 0.038, 0.573, 0.621, 0.722],
    [0.974, 0.048, 0.024, 0.623, 0.840, 0.502],
];
pub const WEIGHTS: [u64; 6] = [8_624, 8_624, 8_624, 8_624, 62_792, 622_496];

fn elbo() -> Drawing {
    let curves = MODELS.iter().enumerate().map(|(index, name)| {
        let x: Vec<f64> = (1..=1000).step_by(5).map(f64::from).collect();
        let runs: Vec<Vec<f64>> = (0..3)
            .map(|seed| {
                let mut noise = Noise::new(100 * index as u64 + seed);
                let floor = 0.25 + 0.12 * index as f64;
                let value = |&step: &f64| {
                    floor + 900.0 * (-step / (8.0 + 4.0 * index as f64)).exp() + 40.0 / step
                };
                x.iter()
                    .map(|step| value(step) * (1.0 + 0.06 * noise.normal()))
                    .collect()
            })
            .collect();
        Curve::over_seeds(*name, x, &runs)
    });
    Curves {
        title: "Negative ELBO per input".to_owned(),
        x: Axis::linear("step"),
        y: Axis::log("nats"),
        curves: curves.collect(),
    }
    .draw()
}

fn learning() -> Drawing {
    let x: Vec<f64> = (1..=60).map(f64::from).collect();
    let series = |name: &str, top: f64, fall: f64, best: usize, colour: usize| {
        let mut noise = Noise::new(best as u64);
        let y = x.iter().map(|epoch| {
            top * (1.0 - (-epoch / 6.0).exp()) - fall * (epoch - best as f64).max(0.0)
                + 0.004 * noise.normal()
        });
        Curve::new(name, x.clone(), y.collect()).coloured(colour)
    };
    Curves {
        title: "Vision Transformer, CIFAR-10".to_owned(),
        x: Axis::linear("epoch"),
        y: Axis::linear("accuracy"),
        curves: vec![
            series("dense, training", 0.97, 0.0, 1, 1).looking(CurveLook::Dashed),
            series("dense, validation", 0.70, 0.0006, 16, 1).marked(15, "best: epoch 16"),
            series("spectral, training", 0.85, 0.0, 2, 0).looking(CurveLook::Dashed),
            series("spectral, validation", 0.72, 0.0004, 30, 0).marked(29, "best: epoch 30"),
        ],
    }
    .draw()
}

fn entropy(title: &str, spread: f64) -> Drawing {
    let x: Vec<f64> = (0..400)
        .map(|index| index as f64 / 399.0 * 10_f64.ln())
        .collect();
    let density = |name: &str, rate: f64, middle: f64, share: f64| Density {
        name: name.to_owned(),
        x: x.clone(),
        y: x.iter()
            .map(|h| {
                (1.0 - share) * rate * (-rate * h).exp()
                    + share * (-(h - middle).powi(2) / 0.2).exp() / 0.79
            })
            .collect(),
    };
    Densities {
        title: title.to_owned(),
        label: "predictive entropy (nats)".to_owned(),
        densities: vec![
            density("MNIST (ID)", 14.0 / spread, 0.5, 0.15),
            density("Fashion-MNIST (OOD)", 8.0 / spread, 1.1, 0.8),
        ],
        zoom: Some(ENTROPY_ZOOM),
    }
    .draw()
}

fn reliability(title: &str, over: f64) -> Drawing {
    let bins = (0..10_u32).map(|index| {
        let (lower, upper) = (f64::from(index) / 10.0, f64::from(index + 1) / 10.0);
        let confidence = lower + 0.055;
        let count = if index == 0 {
            0
        } else {
            40 * u64::from(index * index) + if index == 9 { 4000 } else { 0 }
        };
        ReliabilityBar {
            lower,
            upper,
            count,
            confidence: (count > 0).then_some(confidence),
            accuracy: (count > 0).then_some(
                (confidence + over * (1.0 - confidence) * (0.5 - confidence)).clamp(0.0, 1.0),
            ),
        }
    });
    Reliability {
        title: title.to_owned(),
        bins: bins.collect(),
        ece: Some(0.0163),
        mce: Some(0.179),
    }
    .draw()
}

fn spectra() -> Drawing {
    let deviation = |k: usize| 1.0 / (1.0 + (k as f64 / 12.0).powi(2)).sqrt();
    let mut noise = Noise::new(7);
    let mut draw = |scale: f64| -> Vec<f64> {
        (0..393)
            .map(|k| scale * deviation(k) * noise.normal().hypot(noise.normal()) / 1.41 + 1e-3)
            .collect()
    };
    let prior_draws = (0..4).map(|_| draw(1.0)).collect();
    let magnitudes = draw(2.2);
    Spectra {
        title: "Half-spectrum of the circulant layer".to_owned(),
        spectra: vec![Spectrum {
            name: "learned".to_owned(),
            band: magnitudes
                .iter()
                .map(|value| [0.7 * value, 1.35 * value])
                .collect(),
            magnitudes,
        }],
        prior_band: (0..393)
            .map(|k| [0.22 * deviation(k), 1.73 * deviation(k)])
            .collect(),
        prior_label: "prior, 5 to 95 %".to_owned(),
        prior_draws,
        kind: AxisKind::Log,
    }
    .draw()
}

pub fn filter(seed: u64) -> Filter {
    let mut noise = Noise::new(seed);
    let (turn, wave, shift) = (
        noise.uniform() * 3.0,
        0.3 + noise.uniform(),
        noise.uniform() * 6.0,
    );
    let values = (0..784).map(|index| {
        let (x, y) = ((index % 28) as f64 - 14.0, (index / 28) as f64 - 14.0);
        let along = x * turn.cos() + y * turn.sin();
        (wave * along + shift).cos() * (-(x * x + y * y) / 90.0).exp() * 0.1
            + 0.006 * noise.normal()
    });
    Filter {
        name: if seed < 4 {
            format!("learned {}", seed + 1)
        } else {
            format!("prior draw {}", seed - 3)
        },
        width: 28,
        values: values.collect(),
    }
}

fn distributions(title: &str, x: Axis, middles: &[(&str, f64, f64)]) -> Drawing {
    let distributions = middles.iter().map(|&(name, middle, spread)| {
        let mut noise = Noise::new(middle.to_bits());
        Distribution {
            name: name.to_owned(),
            values: (0..2000)
                .map(|_| middle * (spread * noise.normal()).exp())
                .collect(),
        }
    });
    Histograms {
        title: title.to_owned(),
        x,
        distributions: distributions.collect(),
    }
    .draw()
}

fn scatter() -> Drawing {
    let group = |name: &str, shift: f64, spread: Option<f64>| PointGroup {
        name: name.to_owned(),
        points: MODELS
            .iter()
            .zip(PAPER)
            .zip(WEIGHTS)
            .map(|((model, paper), weights)| LabelledPoint {
                label: (*model).to_owned(),
                x: weights as f64,
                y: paper[0] + shift,
                error: spread.map(|spread| [paper[0] + shift - spread, paper[0] + shift + spread]),
            })
            .collect(),
    };
    let mut paper = group("paper", 0.0, None);
    for point in &mut paper.points {
        point.label.clear();
    }
    Scatter {
        title: "Accuracy against size".to_owned(),
        x: Axis::log("weights"),
        y: Axis::linear("test accuracy"),
        groups: vec![group("ours", 0.006, Some(0.003)), paper],
    }
    .draw()
}

fn certified() -> Drawing {
    let model = |name: &str, scale: f64| {
        let mut noise = Noise::new(scale.to_bits());
        Radii {
            name: name.to_owned(),
            radii: (0..1900)
                .map(|_| scale * (0.7 * noise.normal()).exp())
                .collect(),
            inputs: 2000,
        }
    };
    CertifiedAccuracy {
        title: "Certified accuracy".to_owned(),
        x: Axis::log("radius in feature space (l2)"),
        models: vec![
            model("spectral head", 0.02),
            model("dense 32", 0.0011),
            model("dense 128", 0.0006),
        ],
    }
    .draw()
}

fn bars() -> Drawing {
    let values =
        |index: usize, shift: f64| PAPER.iter().map(|row| Some(row[index] + shift)).collect();
    Bars {
        title: "Separating MNIST from Fashion-MNIST".to_owned(),
        axis: Axis::linear("AUROC"),
        categories: MODELS.map(str::to_owned).to_vec(),
        groups: vec![
            BarGroup {
                name: "entropy".to_owned(),
                values: values(4, 0.02),
                errors: PAPER
                    .iter()
                    .map(|row| [row[4] + 0.005, row[4] + 0.035])
                    .collect(),
            },
            BarGroup {
                name: "mutual information".to_owned(),
                values: values(4, -0.04),
                errors: PAPER
                    .iter()
                    .map(|row| [row[4] - 0.055, row[4] - 0.025])
                    .collect(),
            },
        ],
        reference: Some(("paper".to_owned(), values(4, 0.0))),
    }
    .draw()
}

fn dots() -> Drawing {
    Bars {
        title: "Lipschitz bound".to_owned(),
        axis: Axis::log("upper bound on the Lipschitz constant"),
        categories: [
            "spectral, K = 1025",
            "spectral, K = 256",
            "dense 32",
            "dense 128",
        ]
        .map(str::to_owned)
        .to_vec(),
        groups: vec![BarGroup {
            name: "ours".to_owned(),
            values: vec![Some(180.0), Some(120.0), Some(4800.0), Some(9100.0)],
            errors: vec![
                [150.0, 210.0],
                [100.0, 140.0],
                [4100.0, 5600.0],
                [8000.0, 11000.0],
            ],
        }],
        reference: Some((
            "paper".to_owned(),
            vec![Some(200.0), None, Some(5200.0), None],
        )),
    }
    .draw()
}

fn filter_curves() -> Drawing {
    let curve = |name: &str, seed: u64| {
        let mut noise = Noise::new(seed);
        let y = (0..784).map(|t: i32| {
            let t = f64::from(t.min(784 - t));
            (-t / 40.0).exp() * (t / 9.0 + seed as f64).cos() * 0.2 + 0.01 * noise.normal()
        });
        Curve::indexed(name, y.collect())
    };
    Curves {
        title: "Filter of the circulant layer".to_owned(),
        x: Axis::linear("offset"),
        y: Axis::linear("w"),
        curves: vec![
            curve("prior draw", 5).looking(CurveLook::Faint).coloured(6),
            curve("learned", 1).coloured(0),
        ],
    }
    .draw()
}

/// Every kind of figure by name.
pub fn drawings() -> Vec<(&'static str, Drawing)> {
    let filters = Filters {
        title: "Filters of the BCCB layer".to_owned(),
        filters: (0..8).map(filter).collect(),
        columns: 0,
        shared_scale: true,
    };
    let norms = [("spectral", 1.9, 0.12), ("dense", 7.0, 0.2)];
    let radii = [
        ("paper's radius", 0.02, 0.5),
        ("sqrt(2) radius", 0.03, 0.5),
        ("last layer", 0.05, 0.45),
    ];
    vec![
        ("elbo", elbo()),
        ("size", scatter()),
        ("entropy-1", entropy(MODELS[0], 1.0)),
        ("entropy-2", entropy(MODELS[5], 0.6)),
        ("reliability-1", reliability(MODELS[0], 0.3)),
        ("reliability-2", reliability(MODELS[5], -0.9)),
        ("spectrum", spectra()),
        ("filter-curves", filter_curves()),
        ("filters", filters.draw()),
        ("auroc", bars()),
        (
            "norms",
            distributions(
                "Operator norms under the posterior",
                Axis::linear("spectral norm"),
                &norms,
            ),
        ),
        (
            "radii",
            distributions("Radii", Axis::log("certified radius (l2)"), &radii),
        ),
        ("certified", certified()),
        ("lipschitz", dots()),
        ("learning", learning()),
        (
            "empty",
            Curves {
                title: "A run that never began".to_owned(),
                ..Curves::default()
            }
            .draw(),
        ),
    ]
}
