//! The runtime against slow, obvious oracles, and files that are no models.

use std::f64::consts::TAU;

use circulant_edge::write::{
    ModelWriter, WrittenGaussian, WrittenNormalisation, WrittenRadii, WrittenTarget, seal,
};
use circulant_edge::{
    Activation, Complex, Draws, EdgeError, Format, Input, Model, Prediction, Runtime, Sampling,
};
use proptest::prelude::*;

/// Numbers that look random.
fn numbers(seed: u64, count: usize, size: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| size * next()).collect()
}

fn gaussian(seed: u64, count: usize, rank: usize, size: f32) -> WrittenGaussian {
    let deviation = numbers(seed + 1, count, 0.3 * size);
    WrittenGaussian {
        mean: numbers(seed, count, size),
        factor: numbers(seed + 2, count * rank, 0.2 * size),
        deviation: deviation.iter().map(|x| x.abs()).collect(),
        stream: seed as u16,
    }
}

fn run<R>(
    bytes: &[u8],
    use_it: impl FnOnce(&mut Runtime<'_, '_, f32>) -> R,
) -> Result<R, EdgeError> {
    let model = Model::read(bytes)?;
    let mut memory = vec![Complex::new(f32::NAN, f32::NAN); model.memory_len()];
    Ok(use_it(&mut Runtime::new(model, &mut memory)?))
}

/// `T(a)` of a signal as a circulant matrix times `x`, in f64 by the definition.
fn circulant(coordinates: &[f32], modes: usize, x: &[f64]) -> Vec<f64> {
    let d = x.len();
    let bin = |k: usize| -> (f64, f64) {
        let (k, sign) = if k > d / 2 { (d - k, -1.0) } else { (k, 1.0) };
        if k >= modes {
            return (0.0, 0.0);
        }
        let at = |index: usize| f64::from(coordinates[index]);
        if k == 0 {
            (at(0), 0.0)
        } else if 2 * k == d {
            (at(2 * k - 1), 0.0)
        } else {
            (at(2 * k - 1), sign * at(2 * k))
        }
    };
    let filter: Vec<f64> = (0..d)
        .map(|t| {
            let terms = (0..d).map(|k| {
                let (re, im) = bin(k);
                let angle = TAU * (k * t % d) as f64 / d as f64;
                re * angle.cos() - im * angle.sin()
            });
            terms.sum::<f64>() / d as f64
        })
        .collect();
    (0..d)
        .map(|t| (0..d).map(|s| filter[(t + d - s) % d] * x[s]).sum())
        .collect()
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|x| (x - highest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|x| x / total).collect()
}

fn dense(x: &[f64], weights: &[f32], bias: &[f32]) -> Vec<f64> {
    let outputs = bias.len();
    (0..outputs)
        .map(|k| {
            let products = x.iter().enumerate();
            let sum: f64 = products
                .map(|(t, x)| x * f64::from(weights[t * outputs + k]))
                .sum();
            sum + f64::from(bias[k])
        })
        .collect()
}

#[test]
fn circulant_networks_are_those_of_the_definition() {
    for (d, modes, biases) in [
        (1, 1, 1),
        (2, 2, 1),
        (7, 4, 7),
        (8, 5, 1),
        (12, 3, 12),
        (13, 7, 1),
    ] {
        let coordinates = if modes == d / 2 + 1 { d } else { 2 * modes - 1 };
        let first = numbers(1, coordinates, 1.0);
        let second = numbers(2, coordinates, 1.0);
        let bias = numbers(3, biases, 0.5);
        let (weights, out_bias) = (numbers(4, 3 * d, 1.0), numbers(5, 3, 1.0));
        let mut writer = ModelWriter::new([1, 1, d], 3, Format::F32);
        for layer in [&first, &second] {
            let layer = WrittenGaussian::point(layer.clone());
            writer.circulant(d, modes, &layer, &WrittenGaussian::point(bias.clone()));
        }
        let bias_of_outputs = WrittenGaussian::point(out_bias.clone());
        writer.read_out(
            d,
            &WrittenGaussian::point(weights.clone()),
            &bias_of_outputs,
        );
        let input = numbers(6, d, 2.0);
        let mut x: Vec<f64> = input.iter().map(|&x| f64::from(x)).collect();
        for layer in [&first, &second] {
            let y = circulant(layer, modes, &x);
            let biased = y.iter().zip(bias.iter().cycle());
            x = biased.map(|(y, b)| (y + f64::from(*b)).tanh()).collect();
        }
        let expected = softmax(&dense(&x, &weights, &out_bias));
        run(&writer.finish(), |runtime| {
            let prediction = runtime
                .predict(Input::Floats(&input), &Sampling::new(2))
                .unwrap();
            for (found, expected) in prediction.probabilities().zip(&expected) {
                assert!((f64::from(found) - expected).abs() < 2e-6, "{d} {modes}");
            }
            // Draws of a point are all the same.
            let entropy: f64 = expected.iter().map(|p| -p * p.ln()).sum();
            assert!((f64::from(prediction.predictive_entropy) - entropy).abs() < 1e-5);
            assert!(prediction.mutual_information() < 1e-6 && prediction.deviation(0) < 1e-3);
        })
        .unwrap();
    }
}

#[test]
fn bccb_networks_are_those_of_the_core() {
    for (channels, grid) in [
        ([1, 1], [4, 4]),
        ([2, 3], [3, 5]),
        ([3, 2], [5, 4]),
        ([1, 2], [1, 7]),
    ] {
        let plane = circulant_core::HalfPlane::new(grid[0], grid[1]).unwrap();
        let pixels = grid[0] * grid[1];
        let coordinates = numbers(1, channels[0] * channels[1] * pixels, 1.0);
        let bias = numbers(2, channels[1], 0.3);
        let inputs = channels[1] * pixels;
        let (weights, out_bias) = (numbers(3, 2 * inputs, 1.0), numbers(4, 2, 1.0));
        let mut writer = ModelWriter::new([channels[0], grid[0], grid[1]], 2, Format::F32);
        let layer = WrittenGaussian::point(coordinates.clone());
        writer.bccb(
            channels,
            grid,
            1.0,
            &layer,
            &WrittenGaussian::point(bias.clone()),
        );
        let out = WrittenGaussian::point(out_bias.clone());
        writer.read_out(inputs, &WrittenGaussian::point(weights.clone()), &out);
        let input = numbers(5, channels[0] * pixels, 1.0);

        let mut roots =
            vec![Complex::new(0.0, 0.0); circulant_core::BccbOperator::<f64>::roots_len(&plane)];
        let operator = circulant_core::BccbOperator::new(&plane, channels, &mut roots).unwrap();
        let mut scratch = vec![Complex::new(0.0, 0.0); operator.scratch_len()];
        let mut y = vec![0.0; inputs];
        let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let (a, b, x) = (wide(&coordinates), wide(&bias), wide(&input));
        operator
            .forward(&a, Some(&b), &x, &mut y, &mut scratch)
            .unwrap();
        let hidden: Vec<f64> = y.iter().map(|y| y.tanh()).collect();
        let expected = softmax(&dense(&hidden, &weights, &out_bias));
        run(&writer.finish(), |runtime| {
            let prediction = runtime
                .predict(Input::Floats(&input), &Sampling::new(1))
                .unwrap();
            for (found, expected) in prediction.probabilities().zip(&expected) {
                assert!(
                    (f64::from(found) - expected).abs() < 2e-6,
                    "{channels:?} {grid:?}"
                );
            }
        })
        .unwrap();
    }
}

#[test]
fn activations_and_dense_layers_are_those_of_the_definition() {
    for (activation, f) in [
        (
            Activation::Relu,
            (|x: &mut Vec<f64>| x.iter_mut().for_each(|x| *x = x.max(0.0))) as fn(&mut Vec<f64>),
        ),
        (Activation::Identity, |_| {}),
        (Activation::Tanh, |x| {
            x.iter_mut().for_each(|x| *x = x.tanh())
        }),
        (Activation::MaxMin, |x| {
            x.chunks_exact_mut(2)
                .for_each(|pair| pair.sort_by(f64::total_cmp))
        }),
    ] {
        let (first, bias) = (numbers(1, 4 * 7, 1.0), numbers(2, 7, 1.0));
        let (second, out_bias) = (numbers(3, 7 * 6, 1.0), numbers(4, 6, 1.0));
        let input = numbers(5, 4, 1.0);
        for (format, tolerance) in [
            (Format::F32, 2e-6),
            (Format::F16, 3e-3),
            (Format::Int8, 3e-2),
        ] {
            let mut writer = ModelWriter::new([1, 1, 4], 6, format);
            let point = |values: &[f32]| WrittenGaussian::point(values.to_vec());
            writer.dense([4, 7], activation, &point(&first), &point(&bias));
            writer.read_out(7, &point(&second), &point(&out_bias));
            let mut x = dense(
                &input.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(),
                &first,
                &bias,
            );
            f(&mut x);
            let expected = softmax(&dense(&x, &second, &out_bias));
            run(&writer.finish(), |runtime| {
                let prediction = runtime
                    .predict(Input::Floats(&input), &Sampling::new(1))
                    .unwrap();
                for (found, expected) in prediction.probabilities().zip(&expected) {
                    assert!(
                        (f64::from(found) - expected).abs() < tolerance,
                        "{activation:?} {format:?}"
                    );
                }
            })
            .unwrap();
        }
    }
}

/// A Bayesian network of 12 inputs and 4 classes.
fn bayesian(format: Format) -> ModelWriter {
    let mut writer = ModelWriter::new([1, 1, 12], 4, format);
    writer.circulant(12, 5, &gaussian(1, 9, 3, 1.0), &gaussian(2, 1, 0, 0.5));
    writer.read_out(12, &gaussian(3, 48, 0, 1.0), &gaussian(4, 4, 0, 0.5));
    writer
}

#[test]
fn drawing_sums_is_drawing_weights() {
    let input = numbers(9, 12, 1.5);
    let predict = |format, draws, seed| {
        let bytes = bayesian(format).finish();
        let sampling = Sampling {
            samples: 40_000,
            seed,
            draws,
            radius: false,
        };
        run(&bytes, |runtime| {
            let prediction = runtime.predict(Input::Floats(&input), &sampling).unwrap();
            let entropies = [prediction.predictive_entropy, prediction.expected_entropy];
            let spreads: Vec<f32> = (0..4).map(|k| prediction.deviation(k)).collect();
            [
                prediction.probabilities().collect(),
                spreads,
                entropies.to_vec(),
            ]
            .concat()
        })
        .unwrap()
    };
    // Ten standard errors of 40,000 draws, and what int8 changes on top.
    let weights = predict(Format::F32, Draws::Weights, 0);
    for (format, tolerance) in [
        (Format::F32, 0.02),
        (Format::F16, 0.02),
        (Format::Int8, 0.05),
    ] {
        for (a, b) in weights.iter().zip(predict(format, Draws::Sums, 1)) {
            assert!((a - b).abs() < tolerance, "{format:?} {a} {b}");
        }
    }
    assert!(weights[4] > 0.05, "there is something to draw: {weights:?}");
}

#[test]
fn a_draw_is_mean_factor_and_deviation_times_its_stream() {
    use circulant_core::random::{NoiseKey, Normals, PAIRS, seed_for};
    // Two inputs of one: the logits are bias plus weights.
    let weights = gaussian(7, 4, 0, 1.0);
    let bias = WrittenGaussian {
        factor: numbers(3, 4, 1.0),
        ..gaussian(11, 2, 0, 1.0)
    };
    let mut writer = ModelWriter::new([1, 1, 2], 2, Format::F32);
    writer.read_out(2, &weights, &bias);
    let sample = |gaussian: &WrittenGaussian, sample: u64| {
        let mut memory = [Complex::new(0.0_f32, 0.0); PAIRS];
        let stream = sample << 16 | u64::from(gaussian.stream);
        let key = NoiseKey {
            seed: seed_for(5, 4),
            stream,
        };
        let mut normals = Normals::new(key, 100, &mut memory).unwrap();
        let (count, rank) = (
            gaussian.mean.len(),
            gaussian.factor.len() / gaussian.mean.len(),
        );
        let xi: Vec<f32> = (0..rank).map(|_| normals.draw()).collect();
        (0..count)
            .map(|i| {
                let shared = (0..rank).map(|r| gaussian.factor[i * rank + r] * xi[r]);
                gaussian.mean[i] + shared.sum::<f32>() + gaussian.deviation[i] * normals.draw()
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
    let input = numbers(9, 12, 1.0);
    run(&bayesian(Format::F32).finish(), |runtime| {
        let prediction = runtime
            .predict(Input::Floats(&input), &Sampling::new(20_000))
            .unwrap();
        let sampled: Vec<f32> = prediction.probabilities().collect();
        let moments = runtime.predict_moments(Input::Floats(&input)).unwrap();
        for (a, b) in moments.probabilities().zip(&sampled) {
            assert!((a - b).abs() < 0.03, "{a} {b}");
        }
    })
    .unwrap();
}

#[test]
fn inputs_are_normalised_and_values_scaled_back() {
    let mut writer = ModelWriter::new([2, 1, 2], 1, Format::F32);
    writer.normalisation(WrittenNormalisation {
        unit: true,
        mean: vec![0.5, 0.0],
        deviation: vec![0.25, 2.0],
    });
    writer.targets(vec![WrittenTarget {
        scale: 10.0,
        offset: 100.0,
        noise: 3.0,
    }]);
    let weights = WrittenGaussian::point(vec![1.0, 2.0, 3.0, 4.0]);
    writer.read_out(4, &weights, &WrittenGaussian::point(vec![0.5]));
    let expected = 100.0 + 10.0 * (2.0 - 2.0 * 2.0 + 3.0 * 0.5 + 4.0 * 0.1 + 0.5);
    run(&writer.finish(), |runtime| {
        let close = |x: f32| assert!((x - expected).abs() < 1e-3, "{x} {expected}");
        let sampling = Sampling::new(4);
        close(
            runtime
                .predict(Input::Bytes(&[255, 0, 255, 51]), &sampling)
                .unwrap()
                .mean(0),
        );
        let floats = [1.0, 0.0, 1.0, 0.2];
        close(
            runtime
                .predict(Input::Floats(&floats), &sampling)
                .unwrap()
                .mean(0),
        );
        close(
            runtime
                .predict_moments(Input::Floats(&floats))
                .unwrap()
                .mean(0),
        );
    })
    .unwrap();
}

#[test]
fn a_radius_is_the_smallest_margin_by_its_bound() {
    let mut writer = ModelWriter::new([1, 1, 2], 3, Format::F32);
    let weights = WrittenGaussian::point(vec![3.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    writer.read_out(2, &weights, &WrittenGaussian::point(vec![0.0; 3]));
    // |(3,0) - (1,0)| = 2, |(3,0) - (0,1)| = sqrt(10), |(1,0) - (0,1)| = sqrt(2).
    let differences = vec![2.0, 10.0_f32.sqrt(), 2.0_f32.sqrt()];
    writer.radii(WrittenRadii {
        differences,
        rounding: [0.01, 0.02],
    });
    let sampling = Sampling {
        radius: true,
        ..Sampling::new(1)
    };
    run(&writer.finish(), |runtime| {
        let prediction = runtime
            .predict(Input::Floats(&[3.0, 4.0]), &sampling)
            .unwrap();
        let found = prediction.radius.unwrap();
        // Logits 9, 3, 4; a slack of 2 (0.01 * 5 + 0.02).
        assert_eq!(found.class, 0);
        assert!((found.radius - (5.0 - 0.14) / 10.0_f32.sqrt()).abs() < 1e-5);
        let nothing = runtime
            .predict(Input::Floats(&[0.0, 0.0]), &sampling)
            .unwrap();
        assert_eq!(nothing.radius.unwrap().radius, 0.0);
    })
    .unwrap();
}

#[test]
fn wrong_use_is_an_error_that_says_so() {
    let bytes = bayesian(Format::Int8).finish();
    let model = Model::read(&bytes).unwrap();
    let mut small = vec![Complex::new(0.0_f32, 0.0); model.memory_len() - 1];
    let error = Runtime::new(model, &mut small).unwrap_err();
    assert_eq!(
        error,
        EdgeError::Memory {
            expected: small.len() + 1,
            found: small.len()
        }
    );
    let mut broken = [[0.0; 12]; 2];
    broken[0][3] = f32::NAN;
    broken[1][11] = f32::INFINITY;
    run(&bytes, |runtime| {
        let sampling = Sampling::new(2);
        let mut failed =
            |input, sampling: &Sampling| runtime.predict(input, sampling).map(|_| ()).unwrap_err();
        assert!(matches!(
            failed(Input::Bytes(&[0; 11]), &sampling),
            EdgeError::Input {
                expected: 12,
                found: 11
            }
        ));
        for input in &broken {
            assert!(matches!(
                failed(Input::Floats(input), &sampling),
                EdgeError::NotFinite { .. }
            ));
        }
        assert!(matches!(
            failed(Input::Bytes(&[0; 12]), &Sampling::new(0)),
            EdgeError::Samples { .. }
        ));
        assert!(matches!(
            failed(Input::Floats(&[f32::MAX; 12]), &sampling),
            EdgeError::NotFinite { .. }
        ));
    })
    .unwrap();
}

#[test]
fn files_that_are_no_models_are_errors() {
    let bytes = bayesian(Format::F16).finish();
    assert!(Model::read(&bytes).is_ok());
    for end in 0..bytes.len() {
        assert!(Model::read(&bytes[..end]).is_err(), "{end}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(
        Model::read(&longer),
        Err(EdgeError::Length { .. })
    ));
    let mut newer = bytes.clone();
    newer[4] = 2;
    assert_eq!(
        Model::read(&newer).unwrap_err(),
        EdgeError::Version { found: 2 }
    );
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Model::read(&damaged).is_err(), "{bit}");
    }
    assert_eq!(Model::read(b"PK\x03\x04").unwrap_err(), EdgeError::Magic);
}

/// Uses a file as far as it can be used, if it is small.
fn survive(bytes: &[u8]) {
    let Ok(model) = Model::read(bytes) else {
        return;
    };
    for k in 0..3 {
        let _ = model.name(k);
    }
    if model.memory_len() > 1 << 14 || model.inputs() > 1 << 12 {
        return;
    }
    let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
    let input = vec![7; model.inputs()];
    let mut runtime = Runtime::new(model, &mut memory).expect("as much memory as asked for");
    for draws in [Draws::Sums, Draws::Weights] {
        let sampling = Sampling {
            samples: 1,
            seed: 0,
            draws,
            radius: true,
        };
        let _: Result<Prediction<'_, f32>, _> = runtime.predict(Input::Bytes(&input), &sampling);
    }
    let _ = runtime.predict_moments(Input::Bytes(&input));
}

#[test]
fn damaged_files_with_a_right_checksum_are_survived() {
    for format in [Format::F32, Format::F16, Format::Int8] {
        let bytes = bayesian(format).finish();
        for place in 16..bytes.len() {
            for value in [0, 1, 2, 3, 127, 128, 255] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                seal(&mut damaged);
                survive(&damaged);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survive(&bytes);
        if bytes.len() >= 16 {
            bytes[..8].copy_from_slice(b"CIRC\x01\x00\x00\x00");
            seal(&mut bytes);
            survive(&bytes);
        }
    }
}
