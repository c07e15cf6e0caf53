//! Numbers whose noise depends on the input, and counts.

use circulant_edge::write::{ModelWriter, WrittenGaussian, WrittenTarget};
use circulant_edge::{Draws, EdgeError, Fixed, Format, Input, Sampling, Task};

use crate::support::{gaussian, numbers, run, run_as};

const TARGET: WrittenTarget = WrittenTarget {
    scale: 10.0,
    offset: 50.0,
    noise: 3.0,
};

/// A read-out alone, of three inputs.
fn line(format: Format, outcome: impl Fn(&mut ModelWriter), outputs: usize, size: f32) -> Vec<u8> {
    let mut writer = ModelWriter::new([1, 1, 3], 1, format);
    outcome(&mut writer);
    let (weights, bias) = (
        gaussian(1, 3 * outputs, 0, size),
        gaussian(2, outputs, 0, 0.5 * size),
    );
    writer.read_out(3, &weights, &bias);
    writer.name("it");
    writer.finish()
}

/// Mean and variance of the outputs `z`, which are Gaussian.
fn moments(outputs: usize, size: f32, x: &[f32]) -> Vec<[f64; 2]> {
    let (weights, bias) = (
        gaussian(1, 3 * outputs, 0, size),
        gaussian(2, outputs, 0, 0.5 * size),
    );
    let of = |k: usize| {
        let wide = |x: f32| f64::from(x);
        let mut sum = [wide(bias.mean[k]), wide(bias.deviation[k]).powi(2)];
        for (t, &x) in x.iter().enumerate() {
            let at = t * outputs + k;
            sum[0] += wide(x) * wide(weights.mean[at]);
            sum[1] += (wide(x) * wide(weights.deviation[at])).powi(2);
        }
        sum
    };
    (0..outputs).map(of).collect()
}

/// The mean of `f(z)` for `z` normal, by the rectangle rule.
fn expected([mean, variance]: [f64; 2], f: impl Fn(f64) -> f64) -> f64 {
    let steps = 4000;
    let points = (-steps..=steps).map(|i| 8.0 * f64::from(i) / f64::from(steps));
    let (mut sum, mut total) = (0.0, 0.0);
    for z in points {
        let weight = (-0.5 * z * z).exp();
        sum += weight * f(mean + variance.sqrt() * z);
        total += weight;
    }
    sum / total
}

fn answers(bytes: &[u8], x: &[f32], draws: Option<Draws>, samples: u32) -> [f64; 3] {
    run(bytes, |runtime| {
        let found = match draws {
            Some(draws) => {
                let sampling = Sampling {
                    draws,
                    radius: true,
                    ..Sampling::new(samples)
                };
                runtime
                    .predict(Input::Floats(x), &sampling)
                    .expect("an answer")
            }
            None => runtime
                .predict_moments(Input::Floats(x))
                .expect("an answer"),
        };
        assert!(found.radius.is_none() && found.predictive_entropy == 0.0);
        [found.mean(0), found.deviation(0), found.noise(0)].map(f64::from)
    })
    .expect("an answer")
}

/// Draws within some ten standard errors of 40,000 of them, moments as said.
fn near(name: &str, found: [f64; 3], expected: [f64; 3], tolerances: [f64; 3]) {
    for ((found, expected), tolerance) in found.iter().zip(expected).zip(tolerances) {
        let error = (found / expected - 1.0).abs();
        assert!(error < tolerance, "{name}: {found} {expected}");
    }
}

#[test]
fn noise_per_input_is_that_of_the_definition() {
    let x = [2.0_f32, -1.0, 1.5];
    for size in [0.3, 0.8] {
        let outputs = moments(2, size, &x);
        let variance = |u: f64| (6.0 * (u / 3.0).tanh()).exp();
        let truth = [
            50.0 + 10.0 * outputs[0][0],
            10.0 * outputs[0][1].sqrt(),
            3.0 * expected(outputs[1], variance).sqrt(),
        ];
        for format in [Format::F32, Format::Int8] {
            let targets =
                |writer: &mut ModelWriter| writer.targets_with_noise_per_input(vec![TARGET]);
            let bytes = line(format, targets, 2, size);
            for draws in [Draws::Sums, Draws::Weights] {
                let found = answers(&bytes, &x, Some(draws), 40_000);
                near(
                    &format!("{format:?} {draws:?}"),
                    found,
                    truth,
                    [0.02, 0.05, 0.05],
                );
            }
            // Three points of the quadrature.
            let found = answers(&bytes, &x, None, 1);
            near(
                &format!("{format:?} moments"),
                found,
                truth,
                [0.01, 0.05, 0.05],
            );
        }
    }
}

#[test]
fn counts_are_rates_with_the_noise_of_counts() {
    let x = [2.0_f32, -1.0, 1.5];
    for size in [0.3, 0.8] {
        let log_rate = moments(1, size, &x)[0];
        let rate = expected(log_rate, f64::exp);
        let square = expected(log_rate, |z| (2.0 * z).exp());
        let truth = [rate, (square - rate * rate).sqrt(), rate.sqrt()];
        for format in [Format::F32, Format::Int8] {
            let bytes = line(format, ModelWriter::counts, 1, size);
            for draws in [Draws::Sums, Draws::Weights] {
                let found = answers(&bytes, &x, Some(draws), 40_000);
                near(
                    &format!("{format:?} {draws:?}"),
                    found,
                    truth,
                    [0.03, 0.06, 0.03],
                );
            }
            let found = answers(&bytes, &x, None, 1);
            near(
                &format!("{format:?} moments"),
                found,
                truth,
                [0.02, 0.05, 0.02],
            );
        }
    }
}

/// The spread of large counts keeps its digits, and rates that are no numbers are errors.
#[test]
fn large_counts_are_no_exception() {
    let mut writer = ModelWriter::new([1, 1, 1], 1, Format::F32);
    writer.counts();
    let weights = WrittenGaussian {
        mean: vec![1.0],
        deviation: vec![1e-5],
        ..WrittenGaussian::default()
    };
    writer.read_out(1, &weights, &WrittenGaussian::point(vec![0.0]));
    let bytes = writer.finish();
    let rate = 14.0_f64.exp();
    let found = answers(&bytes, &[14.0], Some(Draws::Weights), 20_000);
    near(
        "drawn",
        found,
        [rate, rate * 14e-5, rate.sqrt()],
        [1e-3, 0.03, 1e-3],
    );
    run(&bytes, |runtime| {
        assert_eq!(runtime.model().task(), Task::Counts);
        for input in [[100.0_f32], [1e30]] {
            let error = runtime.predict(Input::Floats(&input), &Sampling::new(1));
            assert!(matches!(error.unwrap_err(), EdgeError::NotFinite { .. }));
            let error = runtime.predict_moments(Input::Floats(&input));
            assert!(matches!(error.unwrap_err(), EdgeError::NotFinite { .. }));
        }
    })
    .unwrap();
}

/// The same in integers.
#[test]
fn fixed_point_has_the_same_outcomes() {
    let noise = |writer: &mut ModelWriter| writer.targets_with_noise_per_input(vec![TARGET]);
    for (bytes, outputs) in [
        (line(Format::Int8, noise, 2, 0.5), 2),
        (line(Format::Int8, ModelWriter::counts, 1, 0.5), 1),
    ] {
        let x = numbers(3, 3, 2.0);
        let truth = answers(&bytes, &x, Some(Draws::Weights), 16);
        run_as(&bytes, Fixed::from_bits(-77), |runtime| {
            let sampling = Sampling {
                draws: Draws::Weights,
                ..Sampling::new(16)
            };
            let found = runtime.predict(Input::Floats(&x), &sampling).unwrap();
            let found = [found.mean(0), found.deviation(0), found.noise(0)].map(f64::from);
            near(&format!("{outputs}"), found, truth, [1e-2; 3]);
        })
        .unwrap();
    }
}
