//! Circulant blocks that do not divide the sizes: zeros behind the input, values left out of the output.

use circulant_edge::write::{ModelWriter, WrittenGaussian};
use circulant_edge::{Draws, EdgeError, Format, Input, Model, Sampling};

use crate::support::{circulant, dense, gaussian, numbers, run, softmax};

/// `y = crop(K pad(x)) + b` block by block, in f64 by the definition. Coordinates are `[coordinate, C_in, C_out]`.
fn blocks(coordinates: &[f32], block: usize, modes: usize, x: &[f64], bias: &[f32]) -> Vec<f64> {
    let channels = [x.len().div_ceil(block), bias.len().div_ceil(block)];
    let mut padded = x.to_vec();
    padded.resize(channels[0] * block, 0.0);
    let mut y = vec![0.0; channels[1] * block];
    for (input, x) in padded.chunks(block).enumerate() {
        for (output, y) in y.chunks_mut(block).enumerate() {
            let own = coordinates.chunks(channels[0] * channels[1]);
            let own: Vec<f32> = own.map(|row| row[input * channels[1] + output]).collect();
            let part = circulant(&own, modes, x);
            y.iter_mut().zip(part).for_each(|(y, part)| *y += part);
        }
    }
    let biased = y.iter().zip(bias);
    biased.map(|(y, bias)| y + f64::from(*bias)).collect()
}

/// How many coordinates blocks of this length with so many bins have.
fn kept(block: usize, modes: usize) -> usize {
    if modes == block / 2 + 1 {
        block
    } else {
        2 * modes - 1
    }
}

#[test]
fn padded_blocks_are_those_of_the_definition() {
    // Inputs, hidden values, and those of a second layer; block; bins.
    for (sizes, block, modes) in [
        ([10, 7, 5], 4, 3),
        ([10, 7, 5], 4, 2),
        ([5, 3, 3], 8, 5),
        ([7, 9, 4], 3, 2),
        ([9, 5, 11], 5, 3),
        ([4, 1, 2], 3, 1),
    ] {
        let mut writer = ModelWriter::new([1, 1, sizes[0]], 2, Format::F32);
        let input = numbers(6, sizes[0], 1.0);
        let mut x: Vec<f64> = input.iter().map(|&x| f64::from(x)).collect();
        for (seed, pair) in sizes.windows(2).enumerate() {
            let channels = [pair[0].div_ceil(block), pair[1].div_ceil(block)];
            let count = kept(block, modes) * channels[0] * channels[1];
            let weights = numbers(7 + seed as u64, count, 1.0);
            let bias = numbers(17 + seed as u64, pair[1], 0.5);
            let cutoff = if modes == block / 2 + 1 {
                1.0
            } else {
                (modes as f64 - 0.5) / (block / 2) as f64
            };
            let point = |values: &[f32]| WrittenGaussian::point(values.to_vec());
            let sizes = [pair[0], pair[1]];
            writer.padded_bccb(
                channels,
                [1, block],
                sizes,
                cutoff,
                &point(&weights),
                &point(&bias),
            );
            x = blocks(&weights, block, modes, &x, &bias);
            x.iter_mut().for_each(|x| *x = x.tanh());
        }
        let (weights, bias) = (numbers(4, 2 * sizes[2], 1.0), numbers(5, 2, 0.5));
        let expected = softmax(&dense(&x, &weights, &bias));
        let weights = WrittenGaussian::point(weights);
        writer.read_out(sizes[2], &weights, &WrittenGaussian::point(bias));
        run(&writer.finish(), |runtime| {
            let sampling = Sampling::new(1);
            let found = runtime.predict(Input::Floats(&input), &sampling).unwrap();
            for (found, expected) in found.probabilities().zip(&expected) {
                let error = (f64::from(found) - expected).abs();
                assert!(error < 2e-6, "{sizes:?} {block} {modes}: {error}");
            }
        })
        .unwrap();
    }
}

/// Many channels of which the last one is cut off, with a bias whose deviations are shared: sums have the distribution of weights.
#[test]
fn sums_over_padded_channels_are_those_of_weights() {
    let (inputs, hidden, block, channels) = (58, 9, 5, [12, 2]);
    let input = numbers(9, inputs, 1.0);
    let model = |format| {
        let mut writer = ModelWriter::new([1, 1, inputs], 3, format);
        let weights = gaussian(1, channels[0] * channels[1] * block, 1, 0.3);
        let bias = WrittenGaussian {
            deviation: (0..hidden)
                .map(|i| if i < block { 0.7 } else { 0.4 })
                .collect(),
            ..gaussian(2, hidden, 0, 0.5)
        };
        writer.padded_bccb(channels, [1, block], [inputs, hidden], 1.0, &weights, &bias);
        let weights = gaussian(3, 3 * hidden, 0, 1.0);
        writer.read_out(hidden, &weights, &gaussian(4, 3, 0, 0.5));
        writer.finish()
    };
    let drawn = |format, draws, bytes: bool| {
        let sampling = Sampling {
            draws,
            ..Sampling::new(40_000)
        };
        let some: Vec<u8> = (0..inputs).map(|i| (i * 37 % 3) as u8).collect();
        let input = if bytes {
            Input::Bytes(&some)
        } else {
            Input::Floats(&input)
        };
        run(&model(format), |runtime| {
            assert!(runtime.model().sums_len() > 0);
            let found = runtime.predict(input, &sampling).unwrap();
            let spreads = (0..3).map(|k| found.deviation(k));
            found.probabilities().chain(spreads).collect::<Vec<f32>>()
        })
        .unwrap()
    };
    for bytes in [false, true] {
        let weights = drawn(Format::F32, Draws::Weights, bytes);
        assert!(weights[3] > 0.05, "there is something to draw: {weights:?}");
        // Ten standard errors, and what int8 changes on top.
        for (format, tolerance) in [(Format::F32, 0.02), (Format::Int8, 0.05)] {
            for (a, b) in weights.iter().zip(drawn(format, Draws::Sums, bytes)) {
                assert!((a - b).abs() < tolerance, "{format:?} {bytes} {a} {b}");
            }
        }
    }
}

#[test]
fn channels_of_padding_alone_are_refused() {
    let write = |sizes: [usize; 2]| {
        let mut writer = ModelWriter::new([1, 1, sizes[0]], 2, Format::F32);
        let bias = WrittenGaussian::point(vec![0.0; sizes[1]]);
        let weights = WrittenGaussian::point(vec![0.0; 2 * 2 * 4]);
        writer.padded_bccb([2, 2], [1, 4], sizes, 1.0, &weights, &bias);
        let weights = WrittenGaussian::point(vec![0.0; 2 * sizes[1]]);
        writer.read_out(sizes[1], &weights, &WrittenGaussian::point(vec![0.0; 2]));
        Model::read(&writer.finish()).map(|model| model.inputs())
    };
    assert_eq!(write([5, 5]), Ok(5));
    for (sizes, what) in [
        ([4, 8], "the inputs of a layer"),
        ([9, 8], "the inputs of a layer"),
        ([8, 4], "the outputs of a layer"),
        ([8, 9], "the outputs of a layer"),
    ] {
        match write(sizes) {
            Err(EdgeError::Value { what: found, .. }) => assert_eq!(found, what),
            other => panic!("{sizes:?}: {other:?}"),
        }
    }
}
