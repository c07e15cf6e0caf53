//! Layers of circulant blocks in f64: against a matrix made block by block from the definition, an SVD of it, and central
//! differences. Sizes are even, odd, prime and 1, and the block need not divide them.

use std::f64::consts::TAU;

use crate::common::{difference, double, host, largest_singular_value, numbers, random};
use burn::module::Param;
use burn::nn::LinearConfig;
use burn::tensor::{Tensor, TensorData};
use circulant::geometry::{NormControl, OperatorNorm, SingularValues};
use circulant::nn::{BiasKind, BlockCirculant1d, BlockCirculant1dConfig, CirculantLayer};
use circulant::operator::Activation;
use proptest::prelude::*;

/// A few hundred f64 roundings of numbers around 1.
const EXACT: f64 = 1e-11;

fn bias_kind() -> impl Strategy<Value = BiasKind> {
    prop::sample::select(vec![BiasKind::None, BiasKind::Scalar, BiasKind::Vector])
}

/// `(d_in, d_out, block, modes)`.
fn sizes() -> impl Strategy<Value = (usize, usize, usize, usize)> {
    (1..40usize, 1..40usize)
        .prop_flat_map(|(d_in, d_out)| (Just(d_in), Just(d_out), 1..=d_in.max(d_out)))
        .prop_flat_map(|(d_in, d_out, b)| (Just(d_in), Just(d_out), Just(b), 1..=b / 2 + 1))
}

fn layer(
    (d_in, d_out, block, modes): (usize, usize, usize, usize),
    bias: BiasKind,
    seed: u64,
    device: &burn::tensor::Device,
) -> BlockCirculant1d {
    let mut layer = BlockCirculant1dConfig::new(d_in, d_out, block)
        .with_modes(Some(modes))
        .with_bias(bias)
        .with_seed(Some(seed))
        .init(device);
    layer.bias = layer.bias.map(|bias| {
        bias.map(|value| {
            let random = random(seed + 1, value.dims(), device);
            if device.is_autodiff() {
                random.require_grad()
            } else {
                random
            }
        })
    });
    layer
}

/// The matrix `[d_in, d_out]` from the coordinates `[coordinate, C_in, C_out]`, as slowly as it reads: entry `(s, t)` of a block
/// is `(1/b) sum_k h_k e^{2 pi i k (t - s)/b}` over the full spectrum.
fn definition(layer: &BlockCirculant1d) -> Vec<f64> {
    let (b, kept, values) = (layer.block(), layer.modes(), host(layer.coordinates.val()));
    let [channels_in, channels_out] = layer.blocks();
    let at = |coordinate: usize, c: usize, o: usize| {
        values[(coordinate * channels_in + c) * channels_out + o]
    };
    let entry = |row: usize, column: usize| {
        let (c, s, o, t) = (row / b, row % b, column / b, column % b);
        let offset = t as f64 - s as f64;
        let mut sum = at(0, c, o);
        for k in 1..kept {
            let angle = TAU * k as f64 * offset / b as f64;
            sum += if 2 * k == b {
                at(2 * k - 1, c, o) * angle.cos()
            } else {
                2.0 * (at(2 * k - 1, c, o) * angle.cos() - at(2 * k, c, o) * angle.sin())
            };
        }
        sum / b as f64
    };
    let columns = layer.d_out();
    (0..layer.d_in())
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .map(|(row, column)| entry(row, column))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_layer_is_its_matrix(
        sizes in sizes(), bias in bias_kind(), batch in 1..20usize, tanh: bool, seed in 0..1000u64,
    ) {
        let device = double();
        let layer = layer(sizes, bias, seed, &device);
        let (d_in, d_out, block, _) = sizes;
        prop_assert_eq!(layer.blocks(), [d_in.div_ceil(block), d_out.div_ceil(block)]);
        let matrix = definition(&layer);
        prop_assert!(difference(&host(layer.dense_matrix()), &matrix) < EXACT);
        let matrix = Tensor::from_data(TensorData::new(matrix, [d_in, d_out]), &device);
        let x = random::<2>(seed + 2, [batch, d_in], &device);
        let mut expected = x.clone().matmul(matrix);
        if let Some(bias) = &layer.bias {
            expected = expected + bias.val().unsqueeze();
        }
        let (y, expected) = if tanh {
            (layer.forward_tanh(x.clone()), expected.tanh())
        } else {
            (layer.forward(x.clone()), expected)
        };
        prop_assert!(difference(&host(y.clone()), &host(expected)) < EXACT);
        // Further leading dimensions are rows, and members are layers.
        let deep = layer.forward(x.clone().reshape([1, batch, d_in]));
        prop_assert!(difference(&host(deep), &host(layer.forward(x.clone()))) < EXACT);
        let activation = if tanh { Activation::Tanh } else { Activation::Identity };
        let both = BlockCirculant1d::ensemble(&[&layer, &layer], activation)(x.clone());
        prop_assert!(difference(&host(both.narrow(0, 1, 1)), &host(y)) < EXACT);
        // The fused read-out, where the sizes allow it.
        let output = LinearConfig::new(d_out, 3).init(&device);
        let hidden = output.forward(layer.forward_tanh(x.clone()));
        let read = layer.forward_readout(x, &output, Activation::Tanh);
        prop_assert!(difference(&host(read), &host(hidden)) < EXACT);
    }

    #[test]
    fn norms_are_those_of_the_matrix(sizes in sizes(), seed in 0..1000u64) {
        let (d_in, d_out, block, _) = sizes;
        let mut layer = layer(sizes, BiasKind::None, seed, &double());
        let exact = |layer: &BlockCirculant1d| largest_singular_value(d_in, d_out, &definition(layer));
        let (bounds, norm) = (layer.norm_bounds().expect("finite"), exact(&layer));
        prop_assert!(bounds.lower().get() <= norm * (1.0 + 1e-10), "{bounds:?} {norm}");
        prop_assert!(bounds.upper().get() >= norm * (1.0 - 1e-10), "{bounds:?} {norm}");
        let values = layer.singular_values().expect("finite");
        prop_assert_eq!(values.len(), d_in.min(d_out));
        prop_assert!((values[0] - norm).abs() < 1e-9 * norm);
        let divides = d_in % block == 0 && d_out % block == 0;
        if divides {
            prop_assert!(bounds.upper().get() <= norm * (1.0 + 1e-9), "{bounds:?} {norm}");
            prop_assert!((layer.operator_norm() - norm).abs() < 1e-9 * norm);
        }
        let limit = 0.5 * bounds.upper().get();
        layer.clip_norm(limit).expect("finite");
        let clipped = exact(&layer);
        prop_assert!(clipped <= limit * (1.0 + 1e-12), "{clipped} {limit}");
        prop_assert!(!divides || clipped >= limit * (1.0 - 1e-5), "{clipped} {limit}");
    }
}

/// Every gradient of a layer, its input's too, against central differences; with and without zeros behind the input.
#[test]
fn a_layer_has_its_gradients() {
    const STEP: f64 = 1e-5;
    const CENTRAL: f64 = 1e-6;
    for (sizes, bias, batch) in [
        ((12, 8, 4, 3), BiasKind::Vector, 9),
        ((12, 8, 4, 2), BiasKind::Scalar, 5),
        ((13, 7, 4, 3), BiasKind::Vector, 6),
        ((7, 13, 5, 3), BiasKind::Scalar, 9),
        ((6, 9, 3, 2), BiasKind::Vector, 1),
        ((5, 3, 1, 1), BiasKind::Scalar, 4),
        ((1, 1, 1, 1), BiasKind::Vector, 3),
        ((7, 7, 7, 4), BiasKind::Vector, 8),
    ] {
        let device = double().autodiff();
        let tracked = layer(sizes, bias, 3, &device);
        let x = random::<2>(4, [batch, sizes.0], &device).require_grad();
        let weight = random::<2>(5, [batch, sizes.1], &device);
        let gradients = (tracked.forward_tanh(x.clone()) * weight).sum().backward();
        let bias_of = |layer: &BlockCirculant1d| layer.bias.as_ref().expect("has one").val();
        let found = [
            host(x.grad(&gradients).expect("tracked")),
            host(tracked.coordinates.val().grad(&gradients).expect("tracked")),
            host(bias_of(&tracked).grad(&gradients).expect("tracked")),
        ];
        let start = [
            host(x),
            host(tracked.coordinates.val()),
            host(bias_of(&tracked)),
        ];
        // The value from the definition, so that the forward pass is not its own judge.
        let weight = numbers(5, batch * sizes.1);
        let plain = layer(sizes, bias, 3, &double());
        let value = |[x, coordinates, bias]: &[Vec<f64>; 3]| -> f64 {
            let mut plain = plain.clone();
            let shape = plain.coordinates.dims();
            let data = TensorData::new(coordinates.clone(), shape);
            plain.coordinates = Param::from_tensor(Tensor::from_data(data, &double()));
            let matrix = definition(&plain);
            let mut sum = 0.0;
            for row in 0..batch {
                for t in 0..sizes.1 {
                    let y = (0..sizes.0).map(|s| x[row * sizes.0 + s] * matrix[s * sizes.1 + t]);
                    let y = y.sum::<f64>() + bias[t % bias.len()];
                    sum += weight[row * sizes.1 + t] * y.tanh();
                }
            }
            sum
        };
        for (which, gradient) in found.iter().enumerate() {
            let expected: Vec<f64> = (0..start[which].len())
                .map(|index| {
                    let moved = |by: f64| {
                        let mut inputs = start.clone();
                        inputs[which][index] += by;
                        value(&inputs)
                    };
                    (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
                })
                .collect();
            let gap = difference(gradient, &expected);
            assert!(gap < CENTRAL, "{sizes:?} {bias:?}, input {which}: {gap}");
        }
    }
}

/// One block is the circulant layer, and blocks of one are a dense matrix.
#[test]
fn the_ends_are_circulant_and_dense() {
    use circulant::nn::SpectralCirculant1dConfig;
    for d in [1, 2, 7, 12] {
        let circulant = SpectralCirculant1dConfig::new(d)
            .with_seed(Some(1))
            .init(&double());
        let mut block = layer((d, d, d, d / 2 + 1), BiasKind::None, 1, &double());
        let values = circulant.coordinates.val().reshape([d, 1, 1]);
        block.coordinates = Param::from_tensor(values);
        let gap = difference(&host(block.dense_matrix()), &host(circulant.dense_matrix()));
        assert!(gap < EXACT, "{d}: {gap}");
    }
    let dense = layer((5, 3, 1, 1), BiasKind::None, 2, &double());
    assert_eq!(host(dense.dense_matrix()), host(dense.coordinates.val()));
    assert_eq!(dense.degrees_of_freedom(), 15);
}
