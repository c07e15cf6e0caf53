//! Forward passes of points against the definition.

use circulant_edge::write::{ModelWriter, WrittenGaussian};
use circulant_edge::{Activation, Complex, Format, Input, Sampling};

use crate::support::{circulant, dense, numbers, run, softmax};

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

/// The activations behind circulant layers and behind blocks.
#[test]
fn circulant_layers_have_other_activations_too() {
    let d = 6;
    let (coordinates, bias) = (numbers(1, d, 1.0), numbers(2, d, 0.5));
    let (weights, out_bias) = (numbers(4, 3 * d, 1.0), numbers(5, 3, 1.0));
    let input = numbers(6, d, 2.0);
    let x: Vec<f64> = input.iter().map(|&x| f64::from(x)).collect();
    let y = circulant(&coordinates, d / 2 + 1, &x);
    let biased: Vec<f64> = y
        .iter()
        .zip(&bias)
        .map(|(y, b)| y + f64::from(*b))
        .collect();
    for (activation, f) in [
        (
            Activation::Relu,
            (|x: &mut Vec<f64>| x.iter_mut().for_each(|x| *x = x.max(0.0))) as fn(&mut Vec<f64>),
        ),
        (Activation::MaxMin, |x| {
            x.chunks_exact_mut(2)
                .for_each(|pair| pair.sort_by(f64::total_cmp))
        }),
    ] {
        let mut hidden = biased.clone();
        f(&mut hidden);
        let expected = softmax(&dense(&hidden, &weights, &out_bias));
        let point = |values: &[f32]| WrittenGaussian::point(values.to_vec());
        for blocks in [false, true] {
            for (format, tolerance) in [(Format::F32, 2e-6), (Format::Int8, 5e-2)] {
                let mut writer = ModelWriter::new([1, 1, d], 3, format);
                writer.activation(activation);
                if blocks {
                    writer.bccb([1, 1], [1, d], 1.0, &point(&coordinates), &point(&bias));
                } else {
                    writer.circulant(d, d / 2 + 1, &point(&coordinates), &point(&bias));
                }
                writer.read_out(d, &point(&weights), &point(&out_bias));
                run(&writer.finish(), |runtime| {
                    let sampling = Sampling::new(1);
                    let found = runtime.predict(Input::Floats(&input), &sampling).unwrap();
                    for (found, expected) in found.probabilities().zip(&expected) {
                        let error = (f64::from(found) - expected).abs();
                        assert!(
                            error < tolerance,
                            "{activation:?} {blocks} {format:?} {error}"
                        );
                    }
                })
                .unwrap();
            }
        }
    }
}
