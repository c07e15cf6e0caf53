//! Data that nobody wants: empty, a single value, constants, nothing finite, extremes.

use super::reliability::ReliabilityBar;
use super::scale::AxisKind;
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

fn indexed(values: &[f64]) -> Curve {
    let x = (0..values.len()).map(|index| index as f64).collect();
    Curve::new("a", x, values.to_vec())
}

fn curves(y: Axis, curve: Curve) -> Drawing {
    Curves {
        title: "t".to_owned(),
        x: Axis::linear("x"),
        y,
        curves: vec![curve],
    }
    .draw()
}

fn heat_map(width: usize, values: &[f64]) -> Filter {
    Filter {
        name: "f".to_owned(),
        width,
        values: values.to_vec(),
    }
}

/// Every kind of figure of the values.
fn figures(values: &[f64], axis: &Axis) -> Vec<Drawing> {
    let own = || values.to_vec();
    let pairs = values.iter().map(|&value| [value, -value]).collect();
    let curve = Curve {
        band: pairs,
        ..Curve::new("a", own(), own()).marked(0, "here")
    };
    let both = |curve| {
        Curves {
            title: "t".to_owned(),
            x: axis.clone(),
            y: axis.clone(),
            curves: vec![curve],
        }
        .draw()
    };
    let looks = [CurveLook::Line, CurveLook::Dashed, CurveLook::Faint];
    let looks = looks.map(|look| both(curve.clone().looking(look)));
    let bin = |&value: &f64| ReliabilityBar {
        lower: 0.0,
        upper: value,
        count: 3,
        confidence: Some(value),
        accuracy: Some(value),
    };
    let reliability = Reliability {
        title: "t".to_owned(),
        bins: values.iter().map(bin).collect(),
        ece: values.first().copied().unwrap_or(f64::NAN),
        mce: f64::NAN,
    };
    let filters = Filters {
        title: "t".to_owned(),
        filters: [0, 1, 2].map(|width| heat_map(width, values)).to_vec(),
        columns: 99,
        shared_scale: axis.kind == AxisKind::Log,
    };
    let distribution = Distribution {
        name: "v".to_owned(),
        values: own(),
    };
    let point = |&value: &f64| LabelledPoint {
        label: "p".to_owned(),
        x: value,
        y: value,
        error: Some([-value, value]),
    };
    let group = PointGroup {
        name: "g".to_owned(),
        points: values.iter().map(point).collect(),
    };
    let radii = Radii {
        name: "m".to_owned(),
        radii: own(),
        inputs: 0,
    };
    let others = [
        both(Curve::over_seeds("s", own(), &[own(), vec![1.0]])),
        both(indexed(values).marked(99, "outside")),
        densities("t", "h", std::slice::from_ref(&curve), [0.0, 0.12]),
        reliability.draw(),
        filters.draw(),
        histograms("t", axis, &[distribution]),
        scatter("t", axis, axis, &[group]),
        certified_accuracy("t", axis.clone(), &[radii]),
    ];
    looks.into_iter().chain(others).collect()
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
    let draw = |y: Axis, values: &[f64]| curves(y, indexed(values));
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
    let values = (0..1_000_000).map(|index: i32| f64::from(index % 977));
    let drawing = curves(Axis::linear("y"), indexed(&values.collect::<Vec<_>>()));
    assert!(drawing.svg().len() < 60_000, "{}", drawing.svg().len());
}

#[test]
fn heat_maps_share_paths() {
    let values = (0..784).map(|index| f64::from(index * 37 % 101));
    let filters = Filters {
        title: "t".to_owned(),
        filters: vec![heat_map(28, &values.collect::<Vec<_>>())],
        columns: 4,
        shared_scale: false,
    };
    let svg = filters.draw().svg().len();
    assert!(svg < 30_000, "{svg} bytes for one filter");
}

#[test]
fn certified_accuracy_falls_from_the_share_that_is_right() {
    let radii = Radii {
        name: "m".to_owned(),
        radii: vec![1.0, 2.0, f64::NAN],
        inputs: 4,
    };
    let drawing = certified_accuracy("t", Axis::linear("radius"), &[radii]);
    assert_eq!(
        drawing.notes(),
        ["1 radius left out: negative or not finite."]
    );
}

#[test]
fn smoothing_keeps_the_length_and_skips_what_is_not_finite() {
    let curve = indexed(&[1.0, 3.0, f64::NAN, 5.0]).smoothed(3);
    assert_eq!(curve.y, [2.0, 2.0, 4.0, 5.0]);
    assert_eq!(indexed(&[1.0]).smoothed(0).y, [1.0]);
    assert!(indexed(&[]).smoothed(5).y.is_empty());
}

#[test]
fn over_seeds_is_the_mean_with_the_range() {
    let runs = [vec![1.0, 2.0], vec![3.0, f64::NAN]];
    let curve = Curve::over_seeds("a", vec![0.0, 1.0], &runs);
    assert_eq!(curve.y, [2.0, 2.0]);
    assert_eq!(curve.band, [[1.0, 3.0], [2.0, 2.0]]);
}
