//! Data that nobody wants: empty, a single value, constants, nothing finite, extremes.

use super::*;
use crate::report::xml::assert_well_formed;

const HARD: [&[f64]; 10] = [
    &[],
    &[1.0],
    &[0.0],
    &[2.0, 2.0, 2.0],
    &[f64::NAN, f64::NAN],
    &[f64::INFINITY, f64::NEG_INFINITY, 1.0],
    &[0.0, -1.0, 3.0, 10.0],
    &[f64::MAX, f64::MIN],
    &[f64::MIN_POSITIVE, 5e-324, 0.0],
    &[1e300, 1e-300, 1.0],
];

fn axes() -> [Axis; 4] {
    [
        Axis::linear("x"),
        Axis::log("x"),
        Axis::linear("x").within(1.0, 1.0),
        Axis::log("x").within(-1.0, f64::NAN),
    ]
}

/// Every kind of figure of the values.
fn figures(values: &[f64], axis: &Axis) -> Vec<Drawing> {
    let title = "t".to_owned();
    let values = || values.to_vec();
    let pairs = || {
        values()
            .into_iter()
            .map(|value| [value, -value])
            .collect::<Vec<_>>()
    };
    let mut curve = Curve::new("a", values(), values()).marked(0, "here");
    curve.band = pairs();
    let curves = |curve: Curve| Curves {
        title: title.clone(),
        x: axis.clone(),
        y: axis.clone(),
        curves: vec![curve],
    };
    let bin = |value: f64| ReliabilityBar {
        lower: 0.0,
        upper: value,
        count: 3,
        confidence: Some(value),
        accuracy: Some(value),
    };
    let filter = |width| Filter {
        name: "f".to_owned(),
        width,
        values: values(),
    };
    vec![
        curves(curve).draw(),
        curves(Curve::over_seeds("s", values(), &[values(), vec![1.0]])).draw(),
        curves(Curve::indexed("i", values()).marked(99, "outside")).draw(),
        Densities {
            title: title.clone(),
            densities: vec![Density {
                name: "d".to_owned(),
                x: values(),
                y: values(),
            }],
            zoom: Some(ENTROPY_ZOOM),
            ..Densities::default()
        }
        .draw(),
        Reliability {
            title: title.clone(),
            bins: values().into_iter().map(bin).collect(),
            ece: values().first().copied(),
            mce: None,
        }
        .draw(),
        Spectra {
            title: title.clone(),
            spectra: vec![Spectrum {
                name: "h".to_owned(),
                magnitudes: values(),
                band: pairs(),
            }],
            prior_band: pairs(),
            prior_draws: vec![values()],
            kind: axis.kind,
            ..Spectra::default()
        }
        .draw(),
        Filters {
            title: title.clone(),
            filters: vec![filter(0), filter(1), filter(2)],
            columns: 99,
            shared_scale: axis.kind == AxisKind::Log,
        }
        .draw(),
        Histograms {
            title: title.clone(),
            x: axis.clone(),
            distributions: vec![Distribution {
                name: "v".to_owned(),
                values: values(),
            }],
        }
        .draw(),
        Scatter {
            title: title.clone(),
            x: axis.clone(),
            y: axis.clone(),
            groups: vec![PointGroup {
                name: "g".to_owned(),
                points: values()
                    .into_iter()
                    .map(|value| LabelledPoint {
                        label: "p".to_owned(),
                        x: value,
                        y: value,
                        error: Some([-value, value]),
                    })
                    .collect(),
            }],
        }
        .draw(),
        CertifiedAccuracy {
            title,
            x: axis.clone(),
            models: vec![Radii {
                name: "m".to_owned(),
                radii: values(),
                inputs: 0,
            }],
        }
        .draw(),
    ]
}

#[test]
fn hard_data_never_panic_and_stay_well_formed() {
    for axis in axes() {
        for values in HARD {
            for drawing in figures(values, &axis) {
                assert_well_formed(drawing.svg());
            }
        }
    }
}

#[test]
fn without_data_every_figure_says_so() {
    for values in [&[][..], &[f64::NAN, f64::NAN]] {
        for (index, drawing) in figures(values, &Axis::linear("x")).iter().enumerate() {
            assert!(
                drawing.svg().contains(">no data<"),
                "figure {index}: {}",
                drawing.svg()
            );
        }
    }
}

#[test]
fn what_is_left_out_is_counted() {
    let draw = |y: Axis, values: &[f64]| {
        Curves {
            y,
            curves: vec![Curve::indexed("a", values.to_vec())],
            ..Curves::default()
        }
        .draw()
    };
    let values = [1.0, 0.0, -2.0, 10.0, f64::NAN, 5.0];
    let drawing = draw(Axis::log("y"), &values);
    assert_eq!(
        drawing.notes(),
        ["3 values left out: not finite, or not positive on a log axis."]
    );
    assert!(drawing.svg().contains("3 values left out"));
    assert_eq!(
        draw(Axis::linear("y"), &values).notes(),
        ["1 value left out: not finite."]
    );
    assert!(draw(Axis::linear("y"), &[1.0, 2.0]).notes().is_empty());
}

#[test]
fn figures_are_accessible_and_always_the_same() {
    let all = || figures(&[0.25, 0.5, 0.75, 0.5, 1.0], &Axis::linear("x"));
    let first = all();
    assert_eq!(first, all());
    for (index, drawing) in first.iter().enumerate() {
        let svg = drawing.svg();
        assert!(
            svg.contains("role=\"img\"") && svg.contains("<title>") && svg.contains("<desc>"),
            "figure {index}"
        );
        assert!(!svg.contains(">no data<"), "figure {index}: {svg}");
        assert_well_formed(svg);
        assert_well_formed(&drawing.standalone());
    }
}

#[test]
fn a_million_points_stay_small() {
    let values = (0..1_000_000)
        .map(|index: i32| f64::from(index % 977))
        .collect();
    let drawing = Curves {
        curves: vec![Curve::indexed("a", values)],
        ..Curves::default()
    }
    .draw();
    assert!(drawing.svg().len() < 60_000, "{}", drawing.svg().len());
}

#[test]
fn heat_maps_share_paths() {
    let filters = Filters {
        filters: vec![Filter {
            name: "f".to_owned(),
            width: 28,
            values: (0..784).map(|index| f64::from(index * 37 % 101)).collect(),
        }],
        ..Filters::default()
    };
    let svg = filters.draw().svg().len();
    assert!(svg < 30_000, "{svg} bytes for one filter");
}

#[test]
fn certified_accuracy_falls_from_the_share_that_is_right() {
    let drawing = CertifiedAccuracy {
        x: Axis::linear("radius"),
        models: vec![Radii {
            name: "m".to_owned(),
            radii: vec![1.0, 2.0, f64::NAN],
            inputs: 4,
        }],
        ..CertifiedAccuracy::default()
    }
    .draw();
    assert_eq!(
        drawing.notes(),
        ["1 radius left out: negative or not finite."]
    );
}

#[test]
fn smoothing_keeps_the_length_and_skips_what_is_not_finite() {
    let curve = Curve::indexed("a", vec![1.0, 3.0, f64::NAN, 5.0]).smoothed(3);
    assert_eq!(curve.y, [2.0, 2.0, 4.0, 5.0]);
    assert_eq!(Curve::indexed("a", vec![1.0]).smoothed(0).y, [1.0]);
    assert!(Curve::indexed("a", Vec::new()).smoothed(5).y.is_empty());
}

#[test]
fn over_seeds_is_the_mean_with_the_range() {
    let runs = [vec![1.0, 2.0], vec![3.0, f64::NAN]];
    let curve = Curve::over_seeds("a", vec![0.0, 1.0], &runs);
    assert_eq!(curve.y, [2.0, 2.0]);
    assert_eq!(curve.band, [[1.0, 3.0], [2.0, 2.0]]);
}
