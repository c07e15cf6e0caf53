//! The operations of a transformer against their composition of plain tensor operations, and their gradients against central
//! differences, in f64, for sizes 1, odd and prime.

use crate::common::{assert_gradients, difference, double, host, numbers, random};
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use circulant::functional::Dropout;
use circulant::functional::{attention, dropout, gelu, layer_norm};
use circulant::models::{ProjectionKind, VisionTransformerConfig};
use circulant::nn::BiasKind;
use circulant::noise::NoiseKey;
use circulant::surgery::to_spectral_projections;

/// With this step truncation (step^2) and rounding (1e-16/step) are both near 1e-10.
const STEP: f64 = 1e-5;
/// What central differences can tell.
const CENTRAL: f64 = 1e-6;
/// A few hundred f64 roundings of numbers around 1.
const EXACT: f64 = 1e-12;
/// Burn's erf in f64 is that of f32-like accuracy in places; the kernel is tested on its own.
const ERF: f64 = 1e-6;
const EPSILON: f64 = 1e-5;
/// `[batch, tokens, heads, d_head]`.
const SHAPES: [[usize; 4]; 4] = [[1, 1, 1, 1], [2, 3, 1, 5], [3, 7, 2, 3], [2, 13, 3, 4]];

fn mask(stream: u64) -> Dropout {
    Dropout::new(0.3, NoiseKey { seed: 7, stream }).expect("a rate")
}

fn assert_close<const D: usize>(got: Tensor<D>, expected: Tensor<D>, tolerance: f64) {
    assert_eq!(got.dims(), expected.dims());
    let gap = difference(&host(got), &host(expected));
    assert!(gap < tolerance, "{gap}");
}

#[test]
fn gelu_and_dropout() {
    let device = double();
    for len in [1, 5, 13, 1009] {
        let x = random::<1>(len as u64, [len], &device).mul_scalar(4.0);
        assert_close(
            gelu(x.clone()),
            burn::tensor::activation::gelu(x.clone()),
            ERF,
        );
        let y = host(dropout(x.clone(), mask(1)));
        let scale = mask(1).scale();
        for (y, x) in y.iter().zip(host(x.clone())) {
            assert!(*y == 0.0 || (y - x * scale).abs() < EXACT);
        }
        assert_close(dropout(x.clone(), mask(1)), dropout(x, mask(1)), 1e-300);
    }
    for len in [1, 5, 13] {
        let inputs = || [numbers(3, len)];
        assert_gradients(|[x]| gelu(x.mul_scalar(3.0)), inputs());
        assert_gradients(|[x]| dropout(x, mask(2)), inputs());
    }
}

fn composed_norm(x: Tensor<2>, gamma: Tensor<1>, beta: Tensor<1>) -> Tensor<2> {
    let centred = x.clone() - x.mean_dim(1);
    let variance = centred.clone().powi_scalar(2).mean_dim(1);
    centred / (variance + EPSILON).sqrt() * gamma.unsqueeze() + beta.unsqueeze()
}

#[test]
fn norms() {
    let device = double();
    for (rows, n) in [(1, 1), (3, 5), (7, 13), (200, 31)] {
        let x = random::<2>(1, [rows, n], &device);
        let [gamma, beta] = [3, 4].map(|seed| random::<1>(seed, [n], &device));
        let expected = composed_norm(x.clone(), gamma.clone(), beta.clone());
        assert_close(layer_norm(x, gamma, beta, EPSILON), expected, EXACT);
    }
    for (rows, n) in [(1, 1), (3, 5), (4, 13)] {
        let inputs = [numbers(1, rows * n), numbers(2, n), numbers(3, n)];
        assert_gradients(
            |[x, gamma, beta]| layer_norm(x.reshape([rows, n]), gamma, beta, EPSILON).flatten(0, 1),
            inputs,
        );
    }
}

#[test]
fn attention_is_softmax_attention() {
    let device = double();
    for [batch, tokens, heads, d] in SHAPES {
        let shape = [batch, tokens, heads * d];
        let inputs = [1, 2, 3].map(|seed| random::<3>(seed, shape, &device).mul_scalar(2.0));
        let [q, k, v] = inputs
            .clone()
            .map(|x| x.reshape([batch, tokens, heads, d]).swap_dims(1, 2));
        let weights = softmax(q.matmul(k.transpose()).div_scalar((d as f64).sqrt()), 3);
        let expected = weights.matmul(v).swap_dims(1, 2).reshape(shape);
        let [q, k, v] = inputs;
        assert_close(attention(q, k, v, heads, None), expected, EXACT);
    }
    for [batch, tokens, heads, d] in SHAPES {
        for dropout in [None, Some(mask(5))] {
            let shape = [batch, tokens, heads * d];
            let len = shape.iter().product();
            assert_gradients(
                |inputs| {
                    let [q, k, v] = inputs.map(|x| x.reshape(shape));
                    attention(q, k, v, heads, dropout).flatten(0, 2)
                },
                [1, 2, 3].map(|seed| numbers(seed, len)),
            );
        }
    }
}

/// The key of a step.
fn step(stream: u64) -> NoiseKey {
    NoiseKey { seed: 1, stream }
}

#[test]
fn dropout_only_in_training_and_by_its_key() {
    let device = double();
    for kind in [ProjectionKind::Dense, ProjectionKind::Spectral] {
        let config = VisionTransformerConfig::new(4, 2, 3, kind)
            .with_d(6)
            .with_heads(2)
            .with_depth(2);
        let model = config.init(&device.clone().autodiff());
        let images = random::<4>(1, [2, 3, 4, 4], &device).mul_scalar(2.0);
        let images = Tensor::from_inner(images);
        let plain = host(model.forward(images.clone()));
        assert_eq!(plain, host(model.forward(images.clone())));
        let dropped = host(model.forward_training(images.clone(), step(0)));
        assert_eq!(
            dropped,
            host(model.forward_training(images.clone(), step(0)))
        );
        assert_ne!(
            dropped,
            host(model.forward_training(images.clone(), step(1)))
        );
        assert_ne!(dropped, plain);
        let still = config.with_dropout(0.0).init(&device.clone().autodiff());
        let got = host(still.forward_training(images, step(0)));
        assert_eq!(got, plain);
    }
    let wrong = VisionTransformerConfig::new(4, 2, 3, ProjectionKind::Dense).with_dropout(1.0);
    let error = wrong.try_init(&device).expect_err("refused").to_string();
    assert!(error.contains("[0, 1)"), "{error}");
}

/// Every parameter of a whole model with dropout, by the change of the loss in one direction.
#[test]
fn a_whole_model_has_its_gradients() {
    use ProjectionKind::{Blocks, Dense, Diagonal, Spectral};
    use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
    use burn::tensor::Gradients;

    struct Slopes<'a>(&'a Gradients, Vec<f64>, u64);
    impl ModuleVisitor for Slopes<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = host(param.val().grad(self.0).expect("trained"));
            self.2 += 1;
            let direction = numbers(self.2, gradient.len());
            let pairs = gradient.iter().zip(direction);
            self.1.push(pairs.map(|(g, d)| g * d).sum());
        }
    }
    struct Move(f64, u64, u64);
    impl ModuleMapper for Move {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.1 += 1;
            if self.1 != self.2 {
                return param;
            }
            let (size, seed) = (self.0, self.1);
            param.map(|tensor| {
                let by = random::<D>(seed, tensor.dims(), &double()).mul_scalar(size);
                Tensor::from_inner(tensor.inner() + by).require_grad()
            })
        }
    }
    let device = double().autodiff();
    let model = |kind| {
        let config = VisionTransformerConfig::new(4, 2, 3, kind);
        config.with_d(6).with_heads(3).with_depth(2).init(&device)
    };
    let converted = |bias| to_spectral_projections(model(Dense), bias).unwrap().0;
    let roles = |projection, values, mlp| {
        let config = VisionTransformerConfig::new(4, 2, 3, projection)
            .with_values(values)
            .with_mlp(mlp);
        config.with_d(6).with_heads(3).with_depth(2).init(&device)
    };
    for (kind, model) in [
        ("blocks", roles(Blocks(3), None, [Blocks(2), Blocks(4)])),
        ("diagonals", roles(Diagonal, None, [Dense, Diagonal])),
        (
            "scores only",
            roles(Spectral, Some(Dense), [Spectral, Dense]),
        ),
        (
            "blocks that do not divide",
            roles(Blocks(4), Some(Blocks(6)), [Dense, Blocks(5)]),
        ),
        ("dense", model(Dense)),
        ("spectral", model(Spectral)),
        ("a bias per projection", converted(BiasKind::Scalar)),
        ("a bias per feature", converted(BiasKind::Vector)),
    ] {
        let images = Tensor::from_inner(random::<4>(1, [3, 3, 4, 4], &double()));
        let loss = |model: &circulant::models::VisionTransformer| {
            let logits = model.forward_training(images.clone(), step(3));
            circulant::functional::cross_entropy(logits, [0, 2, 1])
        };
        let gradients = loss(&model).backward();
        let mut slopes = Slopes(&gradients, Vec::new(), 0);
        model.visit(&mut slopes);
        for (index, slope) in slopes.1.iter().enumerate() {
            let value = |size: f64| {
                let moved = model.clone().map(&mut Move(size, 0, index as u64 + 1));
                host(loss(&moved))[0]
            };
            let expected = (value(STEP) - value(-STEP)) / (2.0 * STEP);
            assert!(
                (slope - expected).abs() < CENTRAL * expected.abs().max(1.0),
                "{kind}, parameter {index}: {slope} and {expected}"
            );
        }
    }
}
