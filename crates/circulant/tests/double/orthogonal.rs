//! Orthogonal layers: their maps are those of their matrices, keep norms, and have their gradients.

use burn::tensor::{Tensor, TensorData};
use circulant::functional::{bccb_2d, isometry_coordinates, max_min, pixel_unshuffle};
use circulant::geometry::{Lipschitz, NormControl, OperatorNorm};
use circulant::models::OrthogonalNetworkConfig;
use circulant::nn::{
    OrthogonalBccb2dConfig, OrthogonalBlock1dConfig, OrthogonalCirculant1dConfig,
    OrthogonalConv2dConfig,
};
use circulant::operator::{HalfPlane, Isometries, Operator};
use circulant::train::TrainingLoss;

use crate::common::{assert_gradients, difference, double, host, numbers, random};

const LENGTHS: [usize; 9] = [1, 2, 3, 4, 5, 7, 8, 12, 13];

fn norm<const D: usize>(x: Tensor<D>) -> f64 {
    host(x).iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn a_circulant_layer_keeps_norms() {
    for d in LENGTHS {
        let layer = OrthogonalCirculant1dConfig::new(d)
            .with_seed(Some(3))
            .init(&double());
        assert_eq!(layer.degrees_of_freedom(), (d - 1) / 2);
        let x = random::<2>(4, [5, d], &double());
        let y = layer.forward(x.clone());
        assert!(
            (norm(y.clone()) / norm(x.clone()) - 1.0).abs() < 1e-12,
            "{d}"
        );
        let dense = x.matmul(layer.dense_matrix());
        assert!(difference(&host(y), &host(dense)) < 1e-12, "{d}");
        assert!((layer.operator_norm() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn phases_have_their_gradients() {
    for d in LENGTHS.into_iter().filter(|d| *d > 2) {
        let count = (d - 1) / 2;
        assert_gradients(
            |[x, phases]| {
                let mut layer = OrthogonalCirculant1dConfig::new(d).init(&x.device());
                layer.phases = layer.phases.map(|_| phases.clone());
                layer.forward_tanh(x.reshape([3, d])).flatten(0, 1)
            },
            [numbers(1, 3 * d), numbers(2, count)],
        );
    }
}

#[test]
fn layers_of_channels_keep_norms_where_there_are_as_many_outputs() {
    for channels @ [inputs, outputs] in [[1, 1], [2, 2], [3, 5], [4, 2]] {
        for grid @ [height, width] in [[1, 1], [3, 4], [5, 5], [7, 2]] {
            let config = OrthogonalBccb2dConfig::new(channels, grid).with_seed(Some(5));
            let layer = config.init(&double());
            let x = random::<4>(6, [3, inputs, height, width], &double());
            let y = layer.forward(x.clone());
            let ratio = norm(y.clone()) / norm(x.clone());
            if outputs >= inputs {
                assert!(
                    (ratio - 1.0).abs() < 1e-12,
                    "{channels:?} {grid:?}: {ratio}"
                );
            } else {
                assert!(ratio < 1.0 + 1e-12, "{channels:?} {grid:?}: {ratio}");
            }
            let dense = x.flatten::<2>(1, 3).matmul(layer.dense_matrix());
            assert!(difference(&host(y), &host(dense)) < 1e-12);
            assert!((layer.operator_norm() - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn layers_of_blocks_keep_norms_or_shorten() {
    for [d_in, d_out, block] in [
        [8, 8, 4],
        [6, 12, 3],
        [12, 6, 2],
        [7, 10, 4],
        [5, 5, 5],
        [9, 4, 1],
    ] {
        let config = OrthogonalBlock1dConfig::new(d_in, d_out, block).with_seed(Some(7));
        let layer = config.init(&double());
        let x = random::<2>(8, [4, d_in], &double());
        let y = layer.forward(x.clone());
        let ratio = norm(y.clone()) / norm(x.clone());
        let whole = d_in % block == 0 && d_out % block == 0 && d_out >= d_in;
        assert!(
            ratio < 1.0 + 1e-12 && (!whole || ratio > 1.0 - 1e-12),
            "{d_in} {d_out} {block}"
        );
        assert!(difference(&host(y), &host(x.matmul(layer.dense_matrix()))) < 1e-12);
    }
}

#[test]
fn generators_have_their_gradients_through_the_operator() {
    for [inputs, outputs] in [[1, 1], [2, 2], [2, 3], [3, 1]] {
        for [height, width] in [[1, 5], [2, 3], [4, 2]] {
            let plane = HalfPlane::new(height, width).unwrap();
            let isometries = Isometries::new(&plane, inputs, outputs).unwrap().into();
            let operator = Operator::image(plane, inputs, outputs).unwrap();
            let count = std::sync::Arc::<Isometries>::clone(&isometries).parameters();
            assert_gradients(
                |[x, generators]| {
                    let coordinates = isometry_coordinates(generators, &isometries);
                    let x = x.reshape([2, inputs, height, width]);
                    bccb_2d(x, coordinates, None, &operator).flatten(0, 3)
                },
                [numbers(3, 2 * inputs * height * width), numbers(4, count)],
            );
        }
    }
}

#[test]
fn max_min_sorts_pairs_and_permutes_gradients() {
    assert_gradients(
        |[x]| max_min(x.reshape([3, 4, 5]), 1).flatten(0, 2),
        [numbers(9, 60)],
    );
    // Equal values: the gradient is a permutation of what comes back, not the sum or the mean.
    let x = Tensor::<1>::from_data(TensorData::new(vec![2.0, 2.0], [2]), &double().autodiff());
    let x = x.require_grad();
    let weights =
        Tensor::<1>::from_data(TensorData::new(vec![3.0, 5.0], [2]), &double().autodiff());
    let gradients = (max_min(x.clone(), 0) * weights).sum().backward();
    assert_eq!(host(x.grad(&gradients).unwrap()), [3.0, 5.0]);
}

#[test]
fn odd_channels_are_named() {
    let odd = || max_min(random::<2>(1, [2, 3], &double()), 1);
    let message = *std::panic::catch_unwind(odd)
        .unwrap_err()
        .downcast::<String>()
        .unwrap();
    assert!(
        message.contains("axis 1") && message.contains("got 3"),
        "{message}"
    );
}

#[test]
fn certified_norms_enclose_one_and_a_smaller_limit_is_refused() {
    let mut layers: Vec<Box<dyn Certified>> = vec![
        Box::new(OrthogonalCirculant1dConfig::new(9).init(&double())),
        Box::new(OrthogonalBlock1dConfig::new(8, 8, 4).init(&double())),
        Box::new(OrthogonalBccb2dConfig::new([2, 3], [4, 5]).init(&double())),
    ];
    for layer in &mut layers {
        let norm = layer.norm_bounds().unwrap();
        let (lower, upper) = (norm.lower().get(), norm.upper().get());
        assert!(
            lower > 1.0 - 1e-12 && upper < 1.0 + 1e-12,
            "{lower} {upper}"
        );
        assert!(layer.clip_norm(1.01).is_ok());
        let message = layer.clip_norm(0.5).unwrap_err().to_string();
        assert!(
            message.contains("orthogonal") && message.contains("0.5"),
            "{message}"
        );
    }
}

trait Certified: OperatorNorm + NormControl {}
impl<L: OperatorNorm + NormControl> Certified for L {}

#[test]
fn local_generators_keep_norms_and_have_their_gradients() {
    for channels @ [inputs, outputs] in [[1, 1], [2, 2], [2, 4], [3, 2]] {
        for (grid @ [height, width], kernel) in [([3, 4], 3), ([5, 5], 3), ([7, 6], 5), ([2, 3], 1)]
        {
            let config = OrthogonalConv2dConfig::new(channels, grid)
                .with_kernel(kernel)
                .with_seed(Some(5));
            let layer = config.init(&double());
            let x = random::<4>(6, [3, inputs, height, width], &double());
            let ratio = norm(layer.forward(x.clone())) / norm(x.clone());
            assert!(ratio < 1.0 + 1e-12, "{channels:?} {grid:?}: {ratio}");
            assert!(
                outputs < inputs || ratio > 1.0 - 1e-12,
                "{channels:?} {grid:?}: {ratio}"
            );
            let (n, q, k) = (inputs.max(outputs), inputs.min(outputs), kernel * kernel);
            let count = layer.degrees_of_freedom();
            assert_eq!(
                count,
                k * q * (q - 1) / 2 + q * (k - 1) / 2 + k * q * (n - q)
            );
            if count == 0 {
                continue;
            }
            assert_gradients(
                |[x, taps]| {
                    let mut layer = config.init(&x.device());
                    layer.taps = layer.taps.map(|_| taps.clone());
                    layer
                        .forward(x.reshape([2, inputs, height, width]))
                        .flatten(0, 3)
                },
                [numbers(3, 2 * inputs * height * width), numbers(4, count)],
            );
        }
    }
}

/// The operator is the Cayley transform of the convolution with the kernel, as matrices.
#[test]
fn local_generators_are_those_of_a_skew_convolution() {
    let (channels, [height, width]) = (2, [4, 5]);
    let layer = OrthogonalConv2dConfig::new([channels; 2], [height, width])
        .with_seed(Some(2))
        .init(&double());
    let size = channels * height * width;
    // K = (I - S)(I + S)^-1, so S = (I - K)(I + K)^-1.
    let k = faer::Mat::from_fn(size, size, {
        let dense = host(layer.dense_matrix());
        move |out, input| dense[input * size + out]
    });
    let one = faer::Mat::<f64>::identity(size, size);
    let inverse = faer::linalg::solvers::DenseSolveCore::inverse(&(&one + &k).partial_piv_lu());
    let s = (&one - &k) * inverse;
    for row in 0..size {
        for column in 0..size {
            assert!(
                (s[(row, column)] + s[(column, row)]).abs() < 1e-10,
                "S is skew"
            );
            let place = |index: usize| [index % (height * width) / width, index % width];
            let apart = |axis: usize, side: usize| {
                let gap = place(row)[axis].abs_diff(place(column)[axis]);
                gap.min(side - gap)
            };
            if apart(0, height) > 1 || apart(1, width) > 1 {
                assert!(s[(row, column)].abs() < 1e-10, "S is local");
            }
        }
    }
    assert!(s.norm_l2() > 0.5, "S is not nothing");
}

const LOSSES: [TrainingLoss; 4] = [
    TrainingLoss::CrossEntropy,
    TrainingLoss::Margin {
        offset: 0.7,
        temperature: 0.25,
    },
    TrainingLoss::Hinge { margin: 0.9 },
    TrainingLoss::Annealing {
        offset: 0.5,
        temperature: 0.75,
        power: 3.0,
    },
];

/// One example after the other, as the formulas say.
fn loss_by_definition(loss: TrainingLoss, z: &[f64], y: usize) -> f64 {
    let probability = |offset: f64, temperature: f64| {
        let term = |k: usize| ((z[k] - if k == y { offset } else { 0.0 }) / temperature).exp();
        term(y) / (0..z.len()).map(term).sum::<f64>()
    };
    match loss {
        TrainingLoss::CrossEntropy => -probability(0.0, 1.0).ln(),
        TrainingLoss::Margin {
            offset,
            temperature,
        } => -temperature * probability(offset, temperature).ln(),
        TrainingLoss::Hinge { margin } => {
            let others = (0..z.len()).filter(|k| *k != y).map(|k| z[k]);
            (margin - (z[y] - others.fold(f64::NEG_INFINITY, f64::max))).max(0.0)
        }
        TrainingLoss::Annealing {
            offset,
            temperature,
            power,
        } => {
            let p = probability(offset, temperature);
            -temperature * (1.0 - p).powf(power) * p.ln()
        }
        _ => unreachable!("all are here"),
    }
}

#[test]
fn losses_are_those_of_their_formulas_and_have_their_gradients() {
    let (rows, classes, labels) = (7, 3, [0, 1, 2, 2, 1, 0, 1]);
    let values = numbers(11, rows * classes);
    for loss in LOSSES {
        let expected = (0..rows)
            .map(|row| loss_by_definition(loss, &values[row * classes..][..classes], labels[row]));
        let logits =
            Tensor::<2>::from_data(TensorData::new(values.clone(), [rows, classes]), &double());
        let sum = host(loss.sum(logits, &labels))[0];
        assert!(
            (sum - expected.sum::<f64>()).abs() < 1e-9,
            "{loss:?}: {sum}"
        );
        assert_gradients(
            |[z]| loss.sum(z.reshape([rows, classes]), &labels),
            [values.clone()],
        );
    }
}

/// Halved images, MaxMin and a read-out of columns of norm one: no logit changes by more than the input.
#[test]
fn a_network_is_lipschitz_and_has_its_gradients() {
    let config = OrthogonalNetworkConfig::new(vec![4, 2])
        .with_image([1, 4, 8])
        .with_classes(3)
        .with_depth(1)
        .with_hidden(vec![8, 6])
        .with_block(2)
        .with_seed(3);
    let network = config.init(&double());
    let [x, y] = [1, 2].map(|seed| random::<4>(seed, [6, 1, 4, 8], &double()));
    let difference = host(network.forward(x.clone()) - network.forward(y.clone()));
    let gaps = host(x - y);
    for (logits, inputs) in difference.chunks(3).zip(gaps.chunks(32)) {
        let gap = inputs.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!(
            logits.iter().all(|z| z.abs() <= gap * (1.0 + 1e-12)),
            "{logits:?} {gap}"
        );
    }
    let bound = network.network_bound().unwrap().upper().get();
    assert!(
        bound >= 1.0 && bound <= 3.0_f64.sqrt() * (1.0 + 1e-9),
        "{bound}"
    );
    let taps = network.layers[0].degrees_of_freedom();
    let free = network.hidden[0].degrees_of_freedom();
    assert_gradients(
        |[x, taps, generators]| {
            let mut network = config.init(&x.device());
            let layer = &mut network.layers[0];
            layer.taps = layer.taps.clone().map(|_| taps.clone());
            let layer = &mut network.hidden[0];
            layer.generators = layer.generators.clone().map(|_| generators.clone());
            network.forward(x.reshape([2, 1, 4, 8])).flatten(0, 1)
        },
        [numbers(5, 64), numbers(6, taps), numbers(7, free)],
    );
}

/// Every bias takes the mean away from what MaxMin gets, and nothing else changes.
#[test]
fn a_centred_network_has_means_of_zero() {
    let config = OrthogonalNetworkConfig::new(vec![4])
        .with_image([1, 4, 8])
        .with_hidden(vec![6])
        .with_seed(3);
    let images = random::<4>(1, [6, 1, 4, 8], &double()) + 3.0;
    let before = config.init(&double());
    let network = before.clone().centred(images.clone());
    let largest = |values: Vec<f64>| values.into_iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let mut inner = pixel_unshuffle(images, 2);
    for (layer, old) in network.layers.iter().zip(&before.layers) {
        assert_eq!(host(layer.taps.val()), host(old.taps.val()));
        inner = layer.forward(inner);
        let means = host(inner.clone().mean_dims(&[0, 2, 3]));
        assert!(largest(means) < 1e-12);
        inner = max_min(inner, 1);
    }
    let features = network.hidden[0].forward(inner.flatten::<2>(1, 3));
    assert!(largest(host(features.mean_dim(0))) < 1e-12);
    let moved = host(network.layers[0].bias.as_ref().unwrap().val());
    assert!(largest(moved) > 0.1, "the means were not zero before");
}

#[test]
fn networks_that_cannot_be_are_refused_by_name() {
    let refused =
        |config: OrthogonalNetworkConfig| config.try_init(&double()).unwrap_err().to_string();
    let odd = refused(OrthogonalNetworkConfig::new(vec![16, 7]));
    assert!(odd.contains("MaxMin") && odd.contains('7'), "{odd}");
    let sides = refused(OrthogonalNetworkConfig::new(vec![4, 4, 4]));
    assert!(sides.contains("height") && sides.contains('7'), "{sides}");
    assert!(refused(OrthogonalNetworkConfig::new(vec![])).contains("stages"));
    let hidden = refused(OrthogonalNetworkConfig::new(vec![4]).with_hidden(vec![8, 9]));
    assert!(
        hidden.contains("hidden") && hidden.contains('9'),
        "{hidden}"
    );
    let block = refused(
        OrthogonalNetworkConfig::new(vec![4])
            .with_hidden(vec![8])
            .with_block(0),
    );
    assert!(block.contains("block"), "{block}");
}
