//! What is drawn, and what is computed in the place of draws.

use circulant_edge::write::{ModelWriter, WrittenGaussian};
use circulant_edge::{Complex, Draws, EdgeError, Fixed, Format, Input, Model, Runtime, Sampling};

use crate::support::{bayesian, blocks, dense, gaussian, numbers, run, run_as, softmax};

/// Probabilities, their spreads and both entropies.
fn drawn(bytes: &[u8], input: &[f32], draws: Draws, seed: u64) -> Vec<f32> {
    let sampling = Sampling {
        samples: 40_000,
        seed,
        draws,
        radius: false,
    };
    run(bytes, |runtime| {
        let prediction = runtime.predict(Input::Floats(input), &sampling);
        let prediction = prediction.expect("an input of the right size");
        let entropies = [prediction.predictive_entropy, prediction.expected_entropy];
        let spreads: Vec<f32> = (0..4).map(|k| prediction.deviation(k)).collect();
        [
            prediction.probabilities().collect(),
            spreads,
            entropies.to_vec(),
        ]
        .concat()
    })
    .expect("a model")
}

/// Ten standard errors of 40,000 draws, and what int8 changes on top.
const TOLERANCES: [(Format, f32); 3] = [
    (Format::F32, 0.02),
    (Format::F16, 0.02),
    (Format::Int8, 0.05),
];

#[test]
fn drawing_sums_is_drawing_weights() {
    let input = numbers(9, 12, 1.5);
    let weights = drawn(&bayesian(Format::F32).finish(), &input, Draws::Weights, 0);
    for (format, tolerance) in TOLERANCES {
        let sums = drawn(&bayesian(format).finish(), &input, Draws::Sums, 1);
        for (a, b) in weights.iter().zip(sums) {
            assert!((a - b).abs() < tolerance, "{format:?} {a} {b}");
        }
    }
    assert!(weights[4] > 0.05, "there is something to draw: {weights:?}");
}

#[test]
fn drawing_sums_over_channels_is_drawing_weights() {
    for (grid, rank) in [([1, 6], 0), ([1, 5], 2), ([3, 4], 1), ([4, 3], 2)] {
        let input = numbers(9, 11 * grid[0] * grid[1], 1.0);
        let model = |format| blocks(format, 11, grid, rank).finish();
        let weights = drawn(&model(Format::F32), &input, Draws::Weights, 0);
        for (format, tolerance) in TOLERANCES {
            let sums = drawn(&model(format), &input, Draws::Sums, 1);
            for (a, b) in weights.iter().zip(sums) {
                assert!((a - b).abs() < tolerance, "{grid:?} {format:?} {a} {b}");
            }
        }
        let spread = weights[4..8].iter().any(|spread| *spread > 0.05);
        assert!(spread, "there is something to draw: {weights:?}");
    }
}

/// A bias of one deviation per output, or of one value per output, is drawn with the bins; deviations of the read-out that are
/// products are drawn from one sum of squares.
#[test]
fn shared_deviations_are_drawn_as_weights_are() {
    let (channels, grid) = (11, [3, 4]);
    let input = numbers(9, channels * 12, 0.3);
    for (single, format) in [
        (false, Format::Int8),
        (true, Format::Int8),
        (true, Format::F32),
    ] {
        let mut writer = ModelWriter::new([channels, grid[0], grid[1]], 4, format);
        let count = if single { 2 } else { 24 };
        let bias = WrittenGaussian {
            deviation: (0..count)
                .map(|i| if i < count / 2 { 0.9 } else { 0.6 })
                .collect(),
            ..gaussian(2, count, 0, 0.5)
        };
        writer.bccb(
            [channels, 2],
            grid,
            1.0,
            &gaussian(1, 24 * channels, 1, 0.2),
            &bias,
        );
        let product =
            |index: usize| 0.3 / (1.0 + (index / 4) as f32 / 20.0) * 0.5_f32.powi(index as i32 % 4);
        let weights = WrittenGaussian {
            deviation: (0..96).map(product).collect(),
            ..gaussian(3, 96, 0, 1.0)
        };
        writer.read_out(24, &weights, &gaussian(4, 4, 0, 0.5));
        let bytes = writer.finish();
        let weights = drawn(&bytes, &input, Draws::Weights, 0);
        for (a, b) in weights.iter().zip(drawn(&bytes, &input, Draws::Sums, 1)) {
            assert!((a - b).abs() < 0.02, "{single} {format:?} {a} {b}");
        }
        assert!(weights[4] > 0.05, "there is something to draw: {weights:?}");
    }
}

/// Read-outs of any number of classes, one or two among them.
#[test]
fn few_outputs_are_drawn_as_many_are() {
    for (inputs, outputs) in [(3, 2), (6, 2), (7, 3), (5, 4), (9, 5), (4, 6)] {
        let input = numbers(9, inputs, 1.0);
        let mean = |format, draws| {
            let mut writer = ModelWriter::new([1, 1, inputs], outputs, format);
            let weights = gaussian(3, inputs * outputs, 0, 1.0);
            writer.read_out(inputs, &weights, &gaussian(4, outputs, 0, 0.5));
            let sampling = Sampling {
                draws,
                ..Sampling::new(20_000)
            };
            run(&writer.finish(), |runtime| {
                let found = runtime.predict(Input::Floats(&input), &sampling).unwrap();
                let spreads = (0..outputs).map(|k| found.deviation(k));
                found.probabilities().chain(spreads).collect::<Vec<f32>>()
            })
            .unwrap()
        };
        let weights = mean(Format::F32, Draws::Weights);
        for (format, tolerance) in TOLERANCES {
            for (a, b) in weights.iter().zip(mean(format, Draws::Sums)) {
                assert!(
                    (a - b).abs() < tolerance,
                    "{inputs} {outputs} {format:?} {a} {b}"
                );
            }
        }
    }
}

/// Channels of one byte take no transform; floats of the same values take one.
#[test]
fn channels_that_are_constant_are_no_exception() {
    for grid in [[1, 6], [1, 5], [3, 4]] {
        let bytes = blocks(Format::Int8, 11, grid, 1).finish();
        let size = grid[0] * grid[1];
        let value = |index: usize| match index / size {
            0..4 => 0,
            4 => 3,
            _ => (index * 37 % 5) as u8,
        };
        let input: Vec<u8> = (0..11 * size).map(value).collect();
        let floats: Vec<f32> = input.iter().map(|byte| f32::from(*byte)).collect();
        let sampling = Sampling {
            radius: true,
            ..Sampling::new(8)
        };
        run(&bytes, |runtime| {
            let found = runtime.predict(Input::Bytes(&input), &sampling).unwrap();
            let found: Vec<f32> = found.probabilities().collect();
            let other = runtime.predict(Input::Floats(&floats), &sampling).unwrap();
            for (a, b) in found.iter().zip(other.probabilities()) {
                assert!((a - b).abs() < 1e-3, "{grid:?} {a} {b}");
            }
        })
        .unwrap();
    }
}

/// Memory for sums is less, and enough for what draws sums; both ways have the same mean network.
#[test]
fn sums_over_channels_need_less_memory() {
    let bytes = blocks(Format::F32, 11, [3, 4], 2).finish();
    let model = Model::read(&bytes).unwrap();
    let small = model.memory_len_for(Draws::Sums);
    assert!(small < model.memory_len());
    let mut memory = vec![Complex::new(f32::NAN, f32::NAN); small];
    let mut runtime = Runtime::new(model, &mut memory).unwrap();
    let input = numbers(9, 132, 1.0);
    let with = |draws| Sampling {
        draws,
        radius: true,
        ..Sampling::new(2)
    };
    let sums = with(Draws::Sums);
    let prediction = runtime.predict(Input::Floats(&input), &sums).unwrap();
    let logits: Vec<f32> = (0..4).map(|k| prediction.mean_logit(k)).collect();
    let error = runtime.predict(Input::Floats(&input), &with(Draws::Weights));
    let expected = model.memory_len();
    let found = small;
    assert_eq!(error.unwrap_err(), EdgeError::Memory { expected, found });
    run(&bytes, |runtime| {
        for draws in [Draws::Sums, Draws::Weights] {
            let prediction = runtime
                .predict(Input::Floats(&input), &with(draws))
                .unwrap();
            for (k, logit) in logits.iter().enumerate() {
                assert!((prediction.mean_logit(k) - logit).abs() < 1e-5);
            }
        }
    })
    .unwrap();
}

#[test]
fn a_draw_is_mean_factor_and_deviation_times_its_stream() {
    use circulant_core::random::{NoiseKey, normal_at, seed_for};
    // Two inputs of one: the logits are bias plus weights.
    let weights = gaussian(7, 4, 0, 1.0);
    let bias = WrittenGaussian {
        factor: numbers(3, 4, 1.0),
        ..gaussian(11, 2, 0, 1.0)
    };
    let mut writer = ModelWriter::new([1, 1, 2], 2, Format::F32);
    writer.read_out(2, &weights, &bias);
    let sample = |gaussian: &WrittenGaussian, sample: u64| {
        let stream = sample << 16 | u64::from(gaussian.stream);
        let key = NoiseKey {
            seed: seed_for(5, 4),
            stream,
        };
        let (count, rank) = (
            gaussian.mean.len(),
            gaussian.factor.len() / gaussian.mean.len(),
        );
        let xi: Vec<f32> = (0..rank).map(|r| normal_at(key, r)).collect();
        (0..count)
            .map(|i| {
                let shared = (0..rank).map(|r| gaussian.factor[i * rank + r] * xi[r]);
                let own = gaussian.deviation[i] * normal_at(key, rank + i);
                gaussian.mean[i] + shared.sum::<f32>() + own
            })
            .collect::<Vec<f32>>()
    };
    let mut expected = [0.0; 2];
    for number in 0..3 {
        let (w, b) = (sample(&weights, number), sample(&bias, number));
        let p = softmax(&dense(&[1.0, 1.0], &w, &b));
        expected
            .iter_mut()
            .zip(p)
            .for_each(|(sum, p)| *sum += p / 3.0);
    }
    let sampling = Sampling {
        samples: 3,
        seed: 5,
        draws: Draws::Weights,
        radius: false,
    };
    run(&writer.finish(), |runtime| {
        let prediction = runtime.predict(Input::Bytes(&[1, 1]), &sampling).unwrap();
        for (found, expected) in prediction.probabilities().zip(expected) {
            assert!((f64::from(found) - expected).abs() < 1e-6);
        }
    })
    .unwrap();
}

#[test]
fn moments_are_near_many_samples() {
    let near = |bytes: &[u8], input: &[f32]| {
        run(bytes, |runtime| {
            let input = Input::Floats(input);
            let prediction = runtime.predict(input, &Sampling::new(20_000)).unwrap();
            let sampled: Vec<f32> = prediction.probabilities().collect();
            let moments = runtime.predict_moments(input).unwrap();
            for (a, b) in moments.probabilities().zip(&sampled) {
                assert!((a - b).abs() < 0.03, "{a} {b}");
            }
        })
        .unwrap();
    };
    near(&bayesian(Format::F32).finish(), &numbers(9, 12, 1.0));
    near(
        &blocks(Format::F32, 8, [1, 12], 1).finish(),
        &numbers(9, 96, 0.5),
    );
}

/// The same draws in integers; what is left are products cut off at `2^-16` and a tanh within 2e-4.
#[test]
fn fixed_point_draws_what_floats_draw() {
    let bytes = |model: ModelWriter, count: usize| (model.finish(), count);
    let models = [
        bytes(bayesian(Format::Int8), 12),
        bytes(bayesian(Format::F32), 12),
        bytes(blocks(Format::Int8, 11, [1, 12], 1), 132),
        bytes(blocks(Format::Int8, 11, [3, 4], 2), 132),
        bytes(blocks(Format::F16, 9, [1, 3], 1), 27),
    ];
    for (bytes, count) in &models {
        let input: Vec<u8> = (0..*count).map(|i| (i * 37 % 3) as u8).collect();
        let input = Input::Bytes(&input);
        for draws in [Draws::Sums, Draws::Weights] {
            let sampling = Sampling {
                draws,
                radius: true,
                ..Sampling::new(8)
            };
            let expected = run(bytes, |runtime| {
                let prediction = runtime.predict(input, &sampling).unwrap();
                let deviations = (0..4).map(|k| prediction.deviation(k));
                let values = prediction.probabilities().chain(deviations);
                values.collect::<Vec<f32>>()
            })
            .unwrap();
            run_as(bytes, Fixed::from_bits(-77), |runtime| {
                let prediction = runtime.predict(input, &sampling).unwrap();
                assert!(prediction.radius.is_none());
                let deviations = (0..4).map(|k| prediction.deviation(k));
                for (found, expected) in prediction.probabilities().chain(deviations).zip(expected)
                {
                    assert!(
                        (found - expected).abs() < 3e-3,
                        "{draws:?} {found} {expected}"
                    );
                }
            })
            .unwrap();
        }
    }
}
