//! Nearest circulant matrices against the explicit projection, and models before and after surgery. In f64.

use crate::common::{difference, double, host, numbers, random};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use circulant::models::{Projection, ProjectionKind, VisionTransformer, VisionTransformerConfig};
use circulant::nn::{BiasKind, SpectralBccb2dConfig, SpectralCirculant1dConfig};
use circulant::record;
use circulant::surgery::{
    SurgeryError, linear_report, nearest_bccb, nearest_circulant, to_dense, to_dense_projections,
    to_spectral_projections,
};

/// A few roundings of f64.
const EXACT: f64 = 1e-12;

/// Even, odd, prime, a power of two, and 1.
const SIZES: [usize; 7] = [1, 2, 7, 8, 9, 12, 31];

fn linear(seed: u64, [inputs, outputs]: [usize; 2], device: &Device) -> Linear {
    let mut layer = LinearConfig::new(inputs, outputs).init(device);
    layer.weight = Param::from_tensor(random(seed, [inputs, outputs], device));
    layer.bias = Some(Param::from_tensor(random(seed + 1, [outputs], device)));
    layer
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    norm(&difference)
}

/// The projection with an explicit basis: the matrices with ones on a wrapped diagonal, normalised.
fn projected(values: &[f64], n: usize) -> Vec<f64> {
    let mut sum = vec![0.0; n * n];
    for k in 0..n {
        let mut basis = vec![0.0; n * n];
        for s in 0..n {
            basis[s * n + (s + k) % n] = (n as f64).sqrt().recip();
        }
        let part: f64 = basis.iter().zip(values).map(|(a, b)| a * b).sum();
        sum.iter_mut()
            .zip(&basis)
            .for_each(|(sum, b)| *sum += part * b);
    }
    sum
}

#[test]
fn the_nearest_circulant_is_the_projection() {
    for n in SIZES {
        let dense = linear(n as u64, [n, n], &double());
        let values = host(dense.weight.val());
        let nearest = nearest_circulant(&dense, BiasKind::Vector).unwrap();
        let expected = projected(&values, n);
        let got = host(nearest.layer.dense_matrix());
        assert!(difference(&got, &expected) < EXACT, "{n}");
        let error = distance(&values, &expected) / norm(&values);
        assert!((nearest.relative_error - error).abs() < EXACT, "{n}");
        assert_eq!(nearest.bias_error, 0.0);
        // Every other circulant matrix is further away.
        for seed in 0..20 {
            let coordinates = host(nearest.layer.coordinates.val());
            let moves = numbers(100 + seed, coordinates.len());
            let moved = coordinates
                .iter()
                .zip(&moves)
                .map(|(a, b)| a + 1e-3 * b)
                .collect::<Vec<_>>();
            let mut other = nearest.layer.clone();
            let tensor = Tensor::<1>::from_data(moved.as_slice(), &double());
            other.coordinates = Param::from_tensor(tensor);
            let there = distance(&values, &host(other.dense_matrix()));
            assert!(there > distance(&values, &got), "{n}");
        }
    }
}

#[test]
fn circulant_layers_come_back_exactly() {
    for n in SIZES {
        for bias in [BiasKind::None, BiasKind::Scalar, BiasKind::Vector] {
            let config = SpectralCirculant1dConfig::new(n)
                .with_bias(bias)
                .with_seed(Some(n as u64));
            let mut layer = config.init(&double());
            layer.bias = layer.bias.map(|bias| bias.map(|bias| bias + 0.25));
            let dense = to_dense(&layer);
            let x = random::<3>(5, [2, 3, n], &double());
            let (a, b) = (host(layer.forward(x.clone())), host(dense.forward(x)));
            assert!(difference(&a, &b) < EXACT, "{n}");
            let again = nearest_circulant(&dense, bias).unwrap();
            assert!(
                again.relative_error < EXACT && again.bias_error < EXACT,
                "{n}"
            );
            let (a, b) = (
                host(layer.coordinates.val()),
                host(again.layer.coordinates.val()),
            );
            assert!(difference(&a, &b) < EXACT, "{n}");
            let length =
                |layer: &circulant::nn::SpectralCirculant1d| layer.bias.as_ref().map(|b| b.dims());
            assert_eq!(length(&again.layer), length(&layer));
        }
    }
}

#[test]
fn rectangular_matrices_are_cropped() {
    for shape in [[7, 4], [4, 7], [1, 5], [8, 3]] {
        let dense = linear(3, shape, &double());
        let nearest = nearest_circulant(&dense, BiasKind::Scalar).unwrap();
        let values = host(dense.weight.val());
        let got = host(nearest.layer.dense_matrix());
        let error = distance(&values, &got) / norm(&values);
        assert!((nearest.relative_error - error).abs() < EXACT);
        // The difference is orthogonal to the layer: the projection.
        let inner: f64 = values.iter().zip(&got).map(|(w, c)| (w - c) * c).sum();
        assert!(inner.abs() < EXACT, "{shape:?}");
        let again = nearest_circulant(&to_dense(&nearest.layer), BiasKind::Scalar).unwrap();
        assert!(again.relative_error < EXACT, "{shape:?}");
    }
}

#[test]
fn blocks_are_projected_one_by_one() {
    for (channels, grid) in [([2, 3], [1, 4]), ([1, 1], [3, 5]), ([3, 2], [2, 2])] {
        let pixels = grid[0] * grid[1];
        let shape = channels.map(|c: usize| c * pixels);
        let dense = linear(9, shape, &double());
        let nearest = nearest_bccb(&dense, channels, grid).unwrap();
        let values = host(dense.weight.val());
        let got = host(nearest.layer.dense_matrix());
        let error = distance(&values, &got) / norm(&values);
        assert!((nearest.relative_error - error).abs() < EXACT);
        let inner: f64 = values.iter().zip(&got).map(|(w, c)| (w - c) * c).sum();
        assert!(inner.abs() < EXACT);
        // A layer of this kind is its own projection.
        let layer = SpectralBccb2dConfig::new(channels, grid)
            .with_seed(Some(0))
            .init(&double());
        let mut exact = LinearConfig::new(shape[0], shape[1])
            .with_bias(false)
            .init(&double());
        exact.weight = Param::from_tensor(layer.dense_matrix());
        let again = nearest_bccb(&exact, channels, grid).unwrap();
        assert!(again.relative_error < EXACT && again.layer.bias.is_none());
        let (a, b) = (
            host(layer.coordinates.val()),
            host(again.layer.coordinates.val()),
        );
        assert!(difference(&a, &b) < EXACT);
    }
    let dense = linear(9, [4, 4], &double());
    let error = nearest_bccb(&dense, [1, 1], [2, 3]).unwrap_err();
    assert_eq!(
        error,
        SurgeryError::Shape {
            expected: [6, 6],
            got: [4, 4]
        }
    );
}

fn transformer(kind: ProjectionKind, device: &Device) -> VisionTransformer {
    VisionTransformerConfig::new(8, 4, 3, kind)
        .with_d(12)
        .with_depth(2)
        .with_heads(3)
        .with_seed(4)
        .init(device)
}

fn images() -> Tensor<4> {
    random(8, [2, 3, 8, 8], &double())
}

#[test]
fn a_report_names_every_linear_layer() {
    let report = linear_report(&transformer(ProjectionKind::Dense, &double())).unwrap();
    let square = report.iter().filter(|layer| layer.is_square());
    let square: Vec<&str> = square.map(|layer| layer.path.as_str()).collect();
    let names = ["query", "key", "value", "output"];
    let expected: Vec<String> = (0..2)
        .flat_map(|block| names.map(|name| format!("blocks.{block}.attention.{name}")))
        .collect();
    assert_eq!(square, expected);
    assert_eq!(report.len(), 8 + 2 * 2 + 2);
    assert_eq!(report[0].path, "patch_embedding");
    assert!(
        report
            .iter()
            .all(|layer| layer.relative_error > 0.1 && layer.relative_error < 1.0)
    );
    let single = linear_report(&linear(1, [3, 3], &double())).unwrap();
    assert_eq!(single[0].path, "");
}

/// The dense model whose projections are replaced by their explicit circulant matrices computes the same.
#[test]
fn a_converted_transformer_computes_the_same() {
    let dense = transformer(ProjectionKind::Dense, &double());
    let (spectral, report) = to_spectral_projections(dense.clone(), BiasKind::Vector).unwrap();
    let expected: Vec<_> = linear_report(&dense)
        .unwrap()
        .into_iter()
        .filter(|l| l.is_square())
        .collect();
    assert_eq!(report.len(), expected.len());
    for (a, b) in report.iter().zip(&expected) {
        assert_eq!((&a.path, a.shape), (&b.path, b.shape));
        assert!((a.relative_error - b.relative_error).abs() < EXACT);
    }
    let mut replaced = dense.clone();
    for block in &mut replaced.blocks {
        let attention = &mut block.attention;
        for projection in [
            &mut attention.query,
            &mut attention.key,
            &mut attention.value,
            &mut attention.output,
        ] {
            let Projection::Dense(layer) = projection else {
                panic!("a dense model")
            };
            let matrix = projected(&host(layer.weight.val()), 12);
            let matrix = Tensor::<1>::from_data(matrix.as_slice(), &double()).reshape([12, 12]);
            layer.weight = Param::from_tensor(matrix);
        }
    }
    let logits = host(replaced.forward(images()));
    assert!(difference(&host(spectral.forward(images())), &logits) < EXACT);
    // And the way back; converting what is converted changes nothing.
    let back = to_dense_projections(spectral.clone());
    assert!(difference(&host(back.forward(images())), &logits) < EXACT);
    let (again, report) = to_spectral_projections(spectral, BiasKind::None).unwrap();
    assert!(report.is_empty());
    assert!(difference(&host(again.forward(images())), &logits) < EXACT);
    // Far from the original: the surgery is felt.
    assert!(difference(&host(dense.forward(images())), &logits) > 1e-3);
}

/// With scalar biases the record is that of a spectral model.
#[test]
fn a_converted_transformer_has_the_records_of_a_spectral_one() {
    let dense = transformer(ProjectionKind::Dense, &double());
    let (converted, _) = to_spectral_projections(dense, BiasKind::Scalar).unwrap();
    let mut spectral = transformer(ProjectionKind::Spectral, &double());
    assert_eq!(converted.num_params(), spectral.num_params());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    record::save(&converted, &path).unwrap();
    record::load(&mut spectral, &path).unwrap();
    assert_eq!(
        host(spectral.forward(images())),
        host(converted.forward(images()))
    );
}

#[test]
fn trainability_is_kept_and_broken_weights_are_errors() {
    let device = double().autodiff();
    let dense = transformer(ProjectionKind::Dense, &device);
    for (model, trainable) in [(dense.clone(), true), (dense.freeze(), false)] {
        let (spectral, _) = to_spectral_projections(model, BiasKind::Vector).unwrap();
        let Projection::Spectral(layer) = &spectral.blocks[1].attention.output else {
            panic!("converted")
        };
        assert_eq!(layer.coordinates.is_require_grad(), trainable);
    }
    let mut broken = transformer(ProjectionKind::Dense, &double());
    let Projection::Dense(layer) = &mut broken.blocks[1].attention.key else {
        panic!("a dense model")
    };
    layer.weight = layer.weight.clone().map(|weight| weight * f64::NAN);
    let expected = SurgeryError::NotFinite {
        layer: "blocks.1.attention.key".into(),
    };
    assert_eq!(linear_report(&broken).unwrap_err(), expected);
    assert_eq!(
        to_spectral_projections(broken, BiasKind::Scalar).unwrap_err(),
        expected
    );
}
