//! Dense layers as circulant blocks: projections against their definition, tables, whole modules.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use circulant::models::{Projection, ProjectionKind, VisionTransformerConfig};
use circulant::nn::{
    BiasKind, BlockCirculant1dConfig, DiagonalCirculant1dConfig, SpectralCirculant1d,
    SpectralCirculant1dConfig,
};
use circulant::surgery::{
    SurgeryError, block_table, linear_report, nearest_blocks, nearest_circulant, to_dense,
    to_dense_projections, transfer,
};

use crate::common::{difference, double, host, random};

/// A few hundred f64 roundings of numbers around 1.
const EXACT: f64 = 1e-11;

fn linear(seed: u64, [d_in, d_out]: [usize; 2], device: &Device) -> Linear {
    let mut layer = LinearConfig::new(d_in, d_out).init(device);
    layer.weight = layer.weight.map(|_| random(seed, [d_in, d_out], device));
    layer.bias = layer
        .bias
        .map(|bias| bias.map(|_| random(seed + 1, [d_out], device)));
    layer
}

#[test]
fn blocks_are_orthogonal_projections() {
    for (shape, blocks) in [
        ([12, 8], vec![1, 2, 4, 12]),
        ([7, 13], vec![1, 2, 5, 7, 13]),
        ([9, 9], vec![3, 4, 9]),
        ([1, 1], vec![1]),
        ([5, 1], vec![2, 5]),
    ] {
        let dense = linear(3, shape, &double());
        let values = host(dense.weight.val());
        let size = values.iter().map(|w| w * w).sum::<f64>().sqrt();
        for block in blocks {
            let nearest = nearest_blocks(&dense, block, BiasKind::Vector).unwrap();
            let got = host(nearest.layer.dense_matrix());
            let gaps = values.iter().zip(&got).map(|(w, c)| (w - c).powi(2));
            let error = gaps.sum::<f64>().sqrt() / size;
            assert!(
                (nearest.relative_error - error).abs() < EXACT,
                "{shape:?} {block}"
            );
            // The difference is orthogonal to the layer, and to every other one of this structure: the projection.
            for seed in [7, 8] {
                let config = BlockCirculant1dConfig::new(shape[0], shape[1], block);
                let other = config.with_seed(Some(seed)).init(&double());
                let other = host(other.dense_matrix());
                let pairs = values.iter().zip(&got).zip(&other);
                let inner: f64 = pairs.map(|((w, c), o)| (w - c) * o).sum();
                assert!(inner.abs() < EXACT * 100.0, "{shape:?} {block}: {inner}");
            }
            // The way back computes the same, and is its own projection.
            let back = to_dense(&nearest.layer);
            let x = random::<3>(5, [2, 3, shape[0]], &double());
            let (a, b) = (
                host(nearest.layer.forward(x.clone())),
                host(back.forward(x)),
            );
            assert!(difference(&a, &b) < EXACT, "{shape:?} {block}");
            let again = nearest_blocks(&back, block, BiasKind::Vector).unwrap();
            assert!(again.relative_error < EXACT && again.bias_error < EXACT);
            if block == 1 {
                assert!(nearest.relative_error < EXACT, "{shape:?}");
            }
        }
        let whole = shape[0].max(shape[1]);
        let (one, circulant) = (
            nearest_blocks(&dense, whole, BiasKind::Scalar).unwrap(),
            nearest_circulant(&dense, BiasKind::Scalar).unwrap(),
        );
        assert!((one.relative_error - circulant.relative_error).abs() < EXACT);
        let (a, b) = (
            host(one.layer.dense_matrix()),
            host(circulant.layer.dense_matrix()),
        );
        assert!(difference(&a, &b) < EXACT, "{shape:?}");
        assert!(nearest_blocks(&dense, 0, BiasKind::Scalar).is_err());
        assert!(nearest_blocks(&dense, whole + 1, BiasKind::Scalar).is_err());
    }
}

#[test]
fn every_structured_layer_is_a_dense_one() {
    let device = double();
    let mut diagonal = DiagonalCirculant1dConfig::new(7)
        .with_d_out(Some(5))
        .with_terms(2)
        .with_seed(Some(4))
        .init(&device);
    diagonal.bias = diagonal
        .bias
        .map(|bias| bias.map(|_| random(6, [5], &device)));
    let x = random::<2>(5, [3, 7], &device);
    let dense = to_dense(&diagonal);
    let (a, b) = (host(diagonal.forward(x.clone())), host(dense.forward(x)));
    assert!(difference(&a, &b) < EXACT);
}

fn transformer() -> VisionTransformerConfig {
    VisionTransformerConfig::new(8, 4, 3, ProjectionKind::Dense)
        .with_d(6)
        .with_depth(2)
        .with_heads(2)
}

#[test]
fn a_table_has_every_layer_and_length() {
    let model = transformer().init(&double());
    let table = block_table(&model, &[1, 2, 3, 6, 1000]).unwrap();
    let layers = linear_report(&model).unwrap();
    // 1000 is longer than any layer.
    assert_eq!(table.rows.len(), 4 * layers.len());
    for row in &table.rows {
        let layer = layers.iter().find(|layer| layer.path == row.path).unwrap();
        assert_eq!(row.shape, layer.shape);
        if row.block == row.shape[0].max(row.shape[1]) {
            assert!((row.relative_error - layer.relative_error).abs() < EXACT);
        }
        let [d_in, d_out] = row.shape.map(|size| size.div_ceil(row.block));
        assert_eq!(row.weights, d_in * d_out * row.block);
    }
    let text = table.to_string();
    assert_eq!(text.lines().count(), 1 + table.rows.len());
    assert!(text.contains("blocks.1.expand"), "{text}");
    let curve = table.curve();
    let lengths: Vec<usize> = curve.iter().map(|point| point.block).collect();
    assert_eq!(lengths, [1, 2, 3, 6]);
    assert!(
        curve
            .windows(2)
            .all(|pair| pair[0].weights > pair[1].weights)
    );
    assert!(curve[0].relative_error < EXACT && curve[0].weights == curve[0].dense_weights);
    // By the rule, the smallest error first.
    let attention = |path: &str| path.contains("attention");
    let chosen = table.smallest_errors(3, 5, attention);
    assert_eq!(chosen.len(), 5);
    assert!(
        chosen
            .iter()
            .all(|row| row.block == 3 && attention(&row.path))
    );
    let left = table.rows.iter().filter(|row| {
        row.block == 3 && attention(&row.path) && !chosen.iter().any(|c| c.path == row.path)
    });
    for row in left {
        assert!(row.relative_error >= chosen[4].relative_error);
    }
    let errors: Vec<f64> = chosen.iter().map(|row| row.relative_error).collect();
    assert!(errors.windows(2).all(|pair| pair[0] <= pair[1]));
}

/// A module of a user's own, the same fields dense or structured.
#[derive(Module, Debug)]
struct Own {
    layers: Vec<Projection>,
    circulant: SpectralCirculant1d,
    read: Linear,
}

#[derive(Module, Debug)]
struct Trained {
    layers: Vec<Linear>,
    circulant: Linear,
    read: Linear,
}

#[test]
fn a_module_is_transferred_layer_by_layer() {
    let device = double();
    let source = Trained {
        layers: vec![linear(1, [6, 10], &device), linear(3, [10, 6], &device)],
        circulant: linear(5, [6, 6], &device),
        read: linear(7, [6, 2], &device),
    };
    let blocks = |block: usize, [d_in, d_out]: [usize; 2]| {
        Projection::new(ProjectionKind::Blocks(block), [d_in, d_out], 0, &device).unwrap()
    };
    let own = |first: Projection| Own {
        layers: vec![first, blocks(4, [10, 6])],
        circulant: SpectralCirculant1dConfig::new(6).init(&device),
        read: LinearConfig::new(6, 2).init(&device),
    };
    let (target, layers) = transfer(&source, own(blocks(2, [6, 10]))).unwrap();
    let paths: Vec<_> = layers.iter().map(|layer| layer.path.as_str()).collect();
    assert_eq!(paths, ["circulant", "layers.0", "layers.1"]);
    let expected = [
        nearest_blocks(&source.layers[0], 2, BiasKind::Vector).unwrap(),
        nearest_blocks(&source.layers[1], 4, BiasKind::Vector).unwrap(),
    ];
    for (index, expected) in expected.iter().enumerate() {
        let Projection::Blocks(layer) = &target.layers[index] else {
            panic!("asked for blocks");
        };
        let (a, b) = (
            host(layer.coordinates.val()),
            host(expected.layer.coordinates.val()),
        );
        assert!(difference(&a, &b) < EXACT);
        let bias = |bias: &burn::module::Param<Tensor<1>>| host(bias.val());
        assert_eq!(
            layer.bias.as_ref().map(bias),
            source.layers[index].bias.as_ref().map(bias)
        );
        let report = &layers[index + 1];
        assert!((report.relative_error - expected.relative_error).abs() < EXACT);
    }
    let circulant = nearest_circulant(&source.circulant, BiasKind::Scalar).unwrap();
    let (a, b) = (
        host(target.circulant.dense_matrix()),
        host(circulant.layer.dense_matrix()),
    );
    assert!(difference(&a, &b) < EXACT);
    let bias = |layer: &SpectralCirculant1d| host(layer.bias.as_ref().unwrap().val());
    assert!(difference(&bias(&target.circulant), &bias(&circulant.layer)) < EXACT);
    assert_eq!(
        host(target.read.weight.val()),
        host(source.read.weight.val())
    );
    // A dense layer is copied, and another size is named.
    let dense = Projection::new(ProjectionKind::Dense, [6, 10], 9, &device).unwrap();
    let (target, layers) = transfer(&source, own(dense)).unwrap();
    let Projection::Dense(copied) = &target.layers[0] else {
        panic!("asked for a dense layer");
    };
    assert_eq!(
        host(copied.weight.val()),
        host(source.layers[0].weight.val())
    );
    assert_eq!(layers.len(), 2);
    let error = transfer(&source, own(blocks(2, [6, 8]))).unwrap_err();
    assert!(
        matches!(&error, SurgeryError::NoSource { path, .. } if path.starts_with("layers.0")),
        "{error}"
    );
}

/// There and back: what is computed stays the same.
#[test]
fn structured_transformers_have_dense_twins() {
    let device = double();
    let mut config = transformer().with_mlp([ProjectionKind::Blocks(4), ProjectionKind::Diagonal]);
    config.projection = ProjectionKind::Blocks(3);
    let model = config.init(&device);
    let images = random::<4>(1, [2, 3, 8, 8], &device);
    let expected = host(model.forward(images.clone()));
    let dense = to_dense_projections(model);
    assert!(difference(&host(dense.forward(images)), &expected) < EXACT);
    assert_eq!(linear_report(&dense).unwrap().len(), 2 + 2 * 6);
}
