//! Gradients through Burn's autodiff against central differences, and the adjoint identity, in
//! f64.

use crate::common::{assert_gradients, difference, double, host, numbers, random, vector};
use burn::module::{Param, ParamId};
use burn::nn::PaddingConfig2d;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::tensor::Tensor;
use circulant::functional::{
    bccb_2d, bccb_2d_filters, circulant_1d, circulant_1d_filters, circulant_readout,
    circulant_readout_filters, conv2d, coordinates_of_filter_1d, coordinates_of_filter_2d,
    cross_entropy, linear, select_rows, tanh,
};
use circulant::nn::{BiasKind, SpectralCirculant1dConfig};
use circulant::operator::Operator;
use circulant::operator::{Activation, HalfPlane, HalfSpectrum};
use proptest::prelude::*;

/// A few hundred f64 roundings of numbers around 1.
const EXACT: f64 = 1e-11;

fn activation() -> impl Strategy<Value = Activation> {
    prop::sample::select(vec![Activation::Identity, Activation::Tanh])
}

fn length() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![1, 2, 3, 4, 5, 7, 8, 12, 13, 15, 23])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_readout_has_its_gradients(
        length in length(), batch in prop::sample::select(vec![1, 3, 9]), classes in 1..5usize,
        vector_bias: bool, activation in activation(), seed in 0..1000u64,
    ) {
        let half = HalfSpectrum::new(length).expect("valid");
        let biases = if vector_bias { length } else { 1 };
        let inputs = [
            numbers(seed, batch * length), numbers(seed + 1, length), numbers(seed + 2, biases),
            numbers(seed + 3, length * classes), numbers(seed + 4, classes),
        ];
        let operator = Operator::signal(half).with_activation(activation);
        assert_gradients(
            |[x, a, b, w, c]| {
                circulant_readout(x.reshape([batch, length]), a, b, w.reshape([length, classes]), c, &operator)
                    .flatten(0, 1)
            },
            inputs,
        );
    }

    #[test]
    fn readouts_of_several_image_filters_have_their_gradients(
        (height, width) in (1..5usize, 1..5usize), batch in prop::sample::select(vec![1, 5]),
        (channels_in, channels_out) in (1..3usize, 1..3usize), seed in 0..1000u64,
    ) {
        const FILTERS: usize = 2;
        const CLASSES: usize = 3;
        let plane = HalfPlane::new(height, width).expect("valid");
        let (input, output) = (channels_in * height * width, channels_out * height * width);
        let inputs = [
            numbers(seed, batch * input), numbers(seed + 1, FILTERS * input * channels_out),
            numbers(seed + 2, FILTERS * channels_out), numbers(seed + 3, FILTERS * output * CLASSES),
            numbers(seed + 4, FILTERS * CLASSES),
        ];
        let operator = Operator::image(plane, channels_in, channels_out).expect("channels").with_activation(Activation::Tanh);
        assert_gradients(
            |[x, a, b, w, c]| {
                circulant_readout_filters(
                    x.reshape([batch, channels_in, height, width]), a.reshape([FILTERS, input * channels_out]),
                    b.reshape([FILTERS, channels_out]), w.reshape([FILTERS, output, CLASSES]), c.reshape([FILTERS, CLASSES]),
                    &operator,
                )
                .flatten(0, 2)
            },
            inputs,
        );
    }

    #[test]
    fn circulant_1d_has_its_gradients(
        (length, modes) in length().prop_flat_map(|d| (Just(d), 1..=d / 2 + 1)),
        batch in prop::sample::select(vec![1, 3, 9]), vector_bias: bool, activation in activation(), seed in 0..1000u64,
    ) {
        let half = HalfSpectrum::with_modes(length, modes).expect("valid");
        let biases = if vector_bias { length } else { 1 };
        let inputs = [numbers(seed, batch * length), numbers(seed + 1, half.coordinates()), numbers(seed + 2, biases)];
        let operator = Operator::signal(half).with_activation(activation);
        assert_gradients(
            |[x, a, b]| circulant_1d(x.reshape([batch, length]), a, Some(b), &operator).flatten(0, 1),
            inputs,
        );
    }

    #[test]
    fn several_filters_have_their_gradients(
        length in length(), filters in 1..4usize, vector_bias: bool, activation in activation(), seed in 0..1000u64,
    ) {
        let half = HalfSpectrum::new(length).expect("valid");
        let biases = if vector_bias { length } else { 1 };
        let operator = Operator::signal(half).with_activation(activation);
        let inputs = [numbers(seed, 2 * length), numbers(seed + 1, filters * length), numbers(seed + 2, filters * biases)];
        assert_gradients(
            |[x, a, b]| {
                let y: Tensor<3> = circulant_1d_filters(
                    x.reshape([2, length]), a.reshape([filters, length]), Some(b.reshape([filters, biases])), &operator,
                );
                y.flatten(0, 2)
            },
            inputs,
        );
    }

    #[test]
    fn bccb_2d_has_its_gradients(
        channels in [1..3usize, 1..3usize], grid in [1..5usize, 1..5usize], radius in prop_oneof![Just(1.0), 0.0..1.0f64],
        activation in activation(), seed in 0..1000u64,
    ) {
        let ([channels_in, channels_out], [height, width]) = (channels, grid);
        let plane = HalfPlane::with_radius(height, width, radius).expect("valid");
        let kept = plane.coordinates();
        let operator = Operator::image(plane, channels_in, channels_out).expect("valid").with_activation(activation);
        let inputs = [
            numbers(seed, 2 * channels_in * height * width),
            numbers(seed + 1, kept * channels_in * channels_out),
            numbers(seed + 2, channels_out),
        ];
        assert_gradients(
            |[x, a, b]| {
                let x = x.reshape([2, channels_in, height, width]);
                bccb_2d(x, a.reshape([kept, channels_in, channels_out]), Some(b), &operator).flatten(0, 3)
            },
            inputs,
        );
    }

    #[test]
    fn several_bccb_filters_have_their_gradients(grid in [1..5usize, 1..5usize], seed in 0..1000u64) {
        let [height, width] = grid;
        let pixels = height * width;
        let operator = Operator::image(HalfPlane::new(height, width).expect("valid"), 2, 1).expect("valid");
        let inputs = [numbers(seed, 2 * pixels), numbers(seed + 1, 3 * 2 * pixels), numbers(seed + 2, 3)];
        assert_gradients(
            |[x, a, b]| {
                let (x, a) = (x.reshape([1, 2, height, width]), a.reshape([3, pixels, 2, 1]));
                bccb_2d_filters(x, a, Some(b.reshape([3, 1])), &operator).flatten(0, 4)
            },
            inputs,
        );
    }

    #[test]
    fn spatial_filters_have_their_gradients(length in length(), grid in [1..5usize, 1..5usize], seed in 0..1000u64) {
        let signal = Operator::signal(HalfSpectrum::new(length).expect("valid"));
        assert_gradients(
            |[x, w]| circulant_1d(x, coordinates_of_filter_1d(w, &signal), None, &signal),
            [numbers(seed, length), numbers(seed + 1, length)],
        );
        let [height, width] = grid;
        let pixels = height * width;
        let image = Operator::image(HalfPlane::new(height, width).expect("valid"), 2, 2).expect("valid");
        assert_gradients(
            |[x, w]| {
                let coordinates = coordinates_of_filter_2d(w.reshape([2, 2, height, width]), &image);
                bccb_2d(x.reshape([1, 2, height, width]), coordinates, None, &image).flatten(0, 3)
            },
            [numbers(seed, 2 * pixels), numbers(seed + 1, 4 * pixels)],
        );
    }

    #[test]
    fn the_backward_pass_is_the_adjoint(
        (length, modes) in (1..80usize).prop_flat_map(|d| (Just(d), 1..=d / 2 + 1)), batch in 1..20usize, seed in 0..1000u64,
    ) {
        // <K x, g> = <x, K^t g>, where K^t g is the gradient of <K x, g>.
        let half = HalfSpectrum::with_modes(length, modes).expect("valid");
        let device = double().autodiff();
        let coordinates = random(seed, [half.coordinates()], &device);
        let operator = Operator::signal(half);
        let x: Tensor<2> = random(seed + 1, [batch, length], &device).require_grad();
        let g: Tensor<2> = random(seed + 2, [batch, length], &device);
        let product = (circulant_1d(x.clone(), coordinates, None, &operator) * g).sum();
        let left = host(product.clone())[0];
        let gradient = host(x.grad(&product.backward()).expect("tracked"));
        let right: f64 = host(x).iter().zip(&gradient).map(|(x, g)| x * g).sum();
        prop_assert!((left - right).abs() < EXACT * (batch * length) as f64);
    }
}

#[test]
fn layer_parameters_receive_gradients() {
    let layer = SpectralCirculant1dConfig::new(6)
        .with_seed(Some(0))
        .with_bias(BiasKind::Vector)
        .init(&double().autodiff());
    let x = random::<2>(1, [4, 6], &double().autodiff());
    let gradients = layer.forward_tanh(x).sum().backward();
    let coordinates = layer.coordinates.val().grad(&gradients).expect("tracked");
    let bias = layer
        .bias
        .as_ref()
        .expect("it has one")
        .val()
        .grad(&gradients)
        .expect("tracked");
    assert_eq!((coordinates.dims(), bias.dims()), ([6], [6]));
    assert!(
        host(bias).iter().all(|value| *value > 0.0),
        "tanh has a positive slope"
    );
}

#[test]
fn untracked_inputs_are_allowed() {
    let operator = Operator::signal(HalfSpectrum::new(5).expect("valid"));
    let device = double().autodiff();
    let (x, a) = (
        random::<2>(1, [3, 5], &device),
        random::<1>(2, [5], &device),
    );
    let plain = circulant_1d(x.clone(), a.clone(), None, &operator);
    let tracked = circulant_1d(x, a.require_grad(), None, &operator);
    assert!(difference(&host(tracked), &host(plain)) < EXACT);
}

#[test]
fn tanh_has_its_value_and_gradient() {
    for count in [1, 7, 40] {
        let x: Vec<f64> = numbers(6, count).iter().map(|x| 4.0 * x).collect();
        let expected: Vec<f64> = x.iter().map(|x| x.tanh()).collect();
        assert!(difference(&host(tanh(vector(&x))), &expected) < EXACT);
        assert_gradients(|[x]| tanh(x), [x]);
    }
}

#[test]
fn cross_entropy_has_its_value_and_gradient() {
    for (rows, classes) in [(1, 2), (5, 3), (9, 10)] {
        let labels: Vec<usize> = (0..rows).map(|row| row * 7 % classes).collect();
        let logits: Vec<f64> = numbers(8, rows * classes).iter().map(|x| 5.0 * x).collect();
        let expected: f64 = logits
            .chunks_exact(classes)
            .zip(&labels)
            .map(|(z, &label)| z.iter().map(|z| z.exp()).sum::<f64>().ln() - z[label])
            .sum();
        let map = |[z]: [Tensor<1>; 1]| cross_entropy(z.reshape([rows, classes]), labels.clone());
        let got = host(map([vector(&logits)]));
        assert!(difference(&got, &[expected]) < EXACT);
        assert_gradients(map, [logits]);
    }
}

#[test]
#[should_panic(expected = "label 3 of row 1 is outside 0..3")]
fn a_label_that_is_no_class_is_named() {
    cross_entropy(Tensor::zeros([2, 3], &double()), [0, 3]);
}

#[test]
fn rows_are_selected_in_order() {
    let x = random::<3>(1, [4, 2, 3], &double());
    let rows = [2, 0, 2];
    let expected = Tensor::cat(
        rows.iter()
            .map(|&row| x.clone().narrow(0, row, 1))
            .collect(),
        0,
    );
    assert_eq!(host(select_rows(x, &rows)), host(expected));
}

/// A `Linear` of given numbers.
fn dense(weight: Tensor<2>, bias: Tensor<1>) -> burn::nn::Linear {
    burn::nn::Linear {
        weight: Param::initialized(ParamId::new(), weight),
        bias: Some(Param::initialized(ParamId::new(), bias)),
    }
}

#[test]
fn linear_has_its_value_and_gradients() {
    for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 2), (7, 4, 11)] {
        for activation in [Activation::Identity, Activation::Tanh] {
            let map = |[x, weight, bias]: [Tensor<1>; 3]| {
                let layer = dense(weight.reshape([inputs, outputs]), bias);
                let y = linear(&layer, x.reshape([rows, inputs]), activation);
                y.reshape([rows * outputs])
            };
            let (x, weight) = (numbers(1, rows * inputs), numbers(2, inputs * outputs));
            let bias = numbers(3, outputs);
            let layer = dense(vector(&weight).reshape([inputs, outputs]), vector(&bias));
            let expected = layer.forward(vector(&x).reshape([rows, inputs]));
            let expected = match activation {
                Activation::Identity => expected,
                Activation::Tanh => expected.tanh(),
            };
            let got = map([&x, &weight, &bias].map(|values| vector(values)));
            assert!(difference(&host(got), &host(expected)) < EXACT);
            assert_gradients(map, [x, weight, bias]);
        }
    }
}

#[test]
fn conv2d_has_its_value_and_gradients() {
    for ([channels_in, channels_out], [height, width], kernel, batch) in [
        ([1, 1], [1, 1], [1, 1], 1),
        ([1, 3], [5, 4], [3, 3], 2),
        ([2, 1], [3, 7], [1, 5], 3),
    ] {
        let config = Conv2dConfig::new([channels_in, channels_out], kernel)
            .with_padding(PaddingConfig2d::Same)
            .init(&double().autodiff());
        for activation in [Activation::Identity, Activation::Tanh] {
            let layer = |weight: Tensor<1>, bias: Tensor<1>| {
                let shape = [channels_out, channels_in, kernel[0], kernel[1]];
                Conv2d {
                    weight: Param::initialized(ParamId::new(), weight.reshape(shape)),
                    bias: Some(Param::initialized(ParamId::new(), bias)),
                    ..config.clone()
                }
            };
            let image = |x: Tensor<1>| x.reshape([batch, channels_in, height, width]);
            let size = batch * channels_out * height * width;
            let map = |[x, weight, bias]: [Tensor<1>; 3]| {
                conv2d(&layer(weight, bias), image(x), activation).reshape([size])
            };
            let x = numbers(1, batch * channels_in * height * width);
            let weight = numbers(2, channels_in * channels_out * kernel[0] * kernel[1]);
            let bias = numbers(3, channels_out);
            let expected = layer(vector(&weight), vector(&bias)).forward(image(vector(&x)));
            let expected = match activation {
                Activation::Identity => expected,
                Activation::Tanh => expected.tanh(),
            };
            let got = map([&x, &weight, &bias].map(|values| vector(values)));
            assert!(difference(&host(got), &host(expected)) < EXACT);
            assert_gradients(map, [x, weight, bias]);
        }
    }
}
