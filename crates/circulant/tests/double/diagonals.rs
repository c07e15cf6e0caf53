//! Circulant matrices between diagonals in f64: against the product of explicit matrices, an SVD, and central differences.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use circulant::geometry::{GeometryError, NormControl, NormPenalty, OperatorNorm, SingularValues};
use circulant::nn::{BiasKind, DiagonalCirculant1d, DiagonalCirculant1dConfig};

use crate::common::{difference, double, host, largest_singular_value, numbers, random};

/// A few hundred f64 roundings of numbers around 1.
const EXACT: f64 = 1e-11;

/// `[d_in, d_out, terms]`: even, odd, prime, 1, padded and cropped.
const SIZES: [[usize; 3]; 6] = [
    [8, 8, 1],
    [7, 7, 2],
    [12, 5, 3],
    [5, 12, 1],
    [1, 1, 2],
    [9, 9, 1],
];

/// With random diagonals, since the initial ones are signs and ones.
fn layer([d_in, d_out, terms]: [usize; 3], device: &Device) -> DiagonalCirculant1d {
    let config = DiagonalCirculant1dConfig::new(d_in)
        .with_d_out(Some(d_out))
        .with_terms(terms)
        .with_before(d_in != 9)
        .with_after(d_in != 8)
        .with_seed(Some(3));
    let mut layer = config.init(device);
    let param = |seed: u64, len: usize| {
        let values = Tensor::from_data(TensorData::new(numbers(seed, len), [len]), device);
        Param::from_tensor(values)
    };
    for (index, term) in layer.terms.iter_mut().enumerate() {
        let seed = 10 * index as u64;
        term.before = term.before.take().map(|_| param(seed + 1, d_in));
        term.after = term.after.take().map(|_| param(seed + 2, d_out));
    }
    layer.bias = layer.bias.map(|_| param(99, d_out));
    layer
}

/// `sum_j diag(before) C diag(after)`, `[d_in, d_out]`.
fn product(layer: &DiagonalCirculant1d) -> Vec<f64> {
    let (d_in, d_out) = (layer.d_in(), layer.d_out());
    let mut matrix = vec![0.0; d_in * d_out];
    let diagonal = |d: &Option<Param<Tensor<1>>>, len: usize| {
        d.as_ref().map_or(vec![1.0; len], |d| host(d.val()))
    };
    for term in &layer.terms {
        let circulant = host(term.circulant.dense_matrix());
        let (before, after) = (diagonal(&term.before, d_in), diagonal(&term.after, d_out));
        for s in 0..d_in {
            for t in 0..d_out {
                matrix[s * d_out + t] += before[s] * circulant[s * d_out + t] * after[t];
            }
        }
    }
    matrix
}

#[test]
fn a_layer_is_the_product_of_its_matrices() {
    for sizes in SIZES {
        let layer = layer(sizes, &double());
        let matrix = product(&layer);
        assert!(difference(&host(layer.dense_matrix()), &matrix) < EXACT);
        let [d_in, d_out, terms] = sizes;
        let x = random::<3>(4, [2, 5, d_in], &double());
        let matrix = Tensor::<2>::from_data(TensorData::new(matrix, [d_in, d_out]), &double());
        let bias = layer.bias.as_ref().expect("by default").val();
        let expected = x.clone().matmul(matrix.unsqueeze()) + bias.unsqueeze();
        let gap = difference(&host(layer.forward(x.clone())), &host(expected.clone()));
        assert!(gap < EXACT, "{sizes:?}: {gap}");
        let gap = difference(&host(layer.forward_tanh(x)), &host(expected.tanh()));
        assert!(gap < EXACT, "{sizes:?}: {gap}");
        let diagonals = usize::from(d_in != 9) * d_in + usize::from(d_in != 8) * d_out;
        assert_eq!(
            layer.degrees_of_freedom(),
            terms * (d_in.max(d_out) + diagonals)
        );
    }
}

#[test]
fn norms_are_bounded_and_controlled() {
    for sizes in SIZES {
        let mut layer = layer(sizes, &double());
        let [d_in, d_out, _] = sizes;
        let exact =
            |layer: &DiagonalCirculant1d| largest_singular_value(d_in, d_out, &product(layer));
        let norm = exact(&layer);
        assert!(
            (layer.operator_norm() - norm).abs() < 1e-9 * norm,
            "{sizes:?}"
        );
        assert!((layer.singular_values().expect("finite")[0] - norm).abs() < 1e-9 * norm);
        let bounds = layer.norm_bounds().expect("finite");
        assert!(bounds.upper().get() >= norm && bounds.lower().get() <= norm);
        let plain = layer.norm_bound();
        assert!(
            (bounds.upper().get() - plain).abs() < 1e-9 * plain,
            "{sizes:?}"
        );
        let penalty = host(layer.gram_bound(5).expect("finite"))[0];
        assert!((penalty - plain).abs() < 1e-9 * plain, "{sizes:?}");
        let limit = 0.4 * plain;
        layer.clip_norm(limit).expect("finite");
        let after = layer.norm_bounds().expect("finite").upper().get();
        assert!(after <= limit && after > limit * (1.0 - 1e-5), "{sizes:?}");
        assert!(exact(&layer) <= limit);
        layer.terms[0].after = Some(Param::from_tensor(Tensor::full(
            [d_out],
            f64::NAN,
            &double(),
        )));
        assert!(matches!(
            layer.norm_bounds(),
            Err(GeometryError::NotFinite { .. })
        ));
    }
}

/// Every parameter and the input, of the forward pass and of the penalty.
#[test]
fn gradients_are_those_of_central_differences() {
    const STEP: f64 = 1e-6;
    const CENTRAL: f64 = 1e-6;
    for sizes in SIZES {
        let device = double().autodiff();
        let tracked = layer(sizes, &device);
        let tracked = {
            let mut tracked = tracked;
            let train = |param: Param<Tensor<1>>| param.map(|tensor| tensor.require_grad());
            for term in &mut tracked.terms {
                term.before = term.before.take().map(train);
                term.after = term.after.take().map(train);
            }
            tracked.bias = tracked.bias.take().map(train);
            tracked
        };
        let x = random::<2>(6, [4, sizes[0]], &device).require_grad();
        let value = |layer: &DiagonalCirculant1d, x: Tensor<2>| {
            let weight = random::<2>(7, [4, sizes[1]], &x.device());
            (layer.forward_tanh(x) * weight).sum() + layer.gram_bound(5).expect("finite")
        };
        let gradients = value(&tracked, x.clone()).backward();
        let plain = layer(sizes, &double());
        let x_plain = random::<2>(6, [4, sizes[0]], &double());
        let number = |layer: &DiagonalCirculant1d, x: Tensor<2>| host(value(layer, x))[0];
        let shifted = |values: &[f64], index: usize, by: f64| {
            let mut values = values.to_vec();
            values[index] += by;
            values
        };
        let found = host(x.grad(&gradients).expect("tracked"));
        let start = host(x_plain);
        for (index, found) in found.iter().enumerate() {
            let at = |by: f64| {
                let data = TensorData::new(shifted(&start, index, by), [4, sizes[0]]);
                number(&plain, Tensor::from_data(data, &double()))
            };
            let expected = (at(STEP) - at(-STEP)) / (2.0 * STEP);
            assert!((found - expected).abs() < CENTRAL, "{sizes:?} x {index}");
        }
        type Slot = fn(&mut DiagonalCirculant1d) -> Option<&mut Param<Tensor<1>>>;
        let slots: [(&str, Slot); 4] = [
            ("before", |layer| layer.terms[0].before.as_mut()),
            ("coordinates", |layer| {
                Some(&mut layer.terms[0].circulant.coordinates)
            }),
            ("after", |layer| layer.terms[0].after.as_mut()),
            ("bias", |layer| layer.bias.as_mut()),
        ];
        let mut tracked = tracked;
        for (name, slot) in slots {
            let Some(param) = slot(&mut tracked) else {
                continue;
            };
            let start = host(param.val());
            let found = host(param.val().grad(&gradients).expect("tracked"));
            for (index, found) in found.iter().enumerate() {
                let at = |by: f64| {
                    let mut moved = plain.clone();
                    let values = shifted(&start, index, by);
                    let data = TensorData::new(values, [start.len()]);
                    let place = slot(&mut moved).expect("as in the tracked one");
                    *place = Param::from_tensor(Tensor::from_data(data, &double()));
                    number(&moved, random(6, [4, sizes[0]], &double()))
                };
                let expected = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                let gap = (found - expected).abs();
                assert!(gap < CENTRAL * 10.0, "{sizes:?} {name} {index}: {gap}");
            }
        }
    }
}

#[test]
fn bad_sizes_are_named() {
    let message = |config: DiagonalCirculant1dConfig| {
        config.try_init(&double()).expect_err("refused").to_string()
    };
    assert!(message(DiagonalCirculant1dConfig::new(4).with_terms(0)).contains("products"));
    assert!(message(DiagonalCirculant1dConfig::new(0)).contains("at least 1"));
    assert!(message(DiagonalCirculant1dConfig::new(4).with_modes(Some(4))).contains("1..=3"));
    let text = DiagonalCirculant1dConfig::new(4)
        .with_bias(BiasKind::None)
        .with_terms(2)
        .init(&double())
        .to_string();
    for part in ["terms: 2", "degrees_of_freedom: 24", "bias: none"] {
        assert!(text.contains(part), "{text}");
    }
}
