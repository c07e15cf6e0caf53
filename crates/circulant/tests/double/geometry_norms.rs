//! Norms, bounds and norm control in f64, against an SVD of the explicit matrix.

use crate::common::{double, host, largest_singular_value, numbers, random};
use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor, TensorData};
use circulant::geometry::{
    GeometryError, LipschitzActivation, NetworkBound, NormBounds, NormControl, NormPenalty,
    OperatorNorm, SameConvolution, clip_convolution,
};
use circulant::nn::{
    Bccb2dConfig, BiasKind, BlockCirculant1dConfig, Circulant1dConfig, SpectralBccb2dConfig,
    SpectralCirculant1dConfig,
};

/// An SVD of the explicit matrix in f64.
const TOLERANCE: f64 = 1e-10;

fn svd(matrix: Tensor<2>) -> f64 {
    let [rows, columns] = matrix.dims();
    largest_singular_value(rows, columns, &host(matrix))
}

#[track_caller]
fn check(bounds: NormBounds, matrix: Tensor<2>) {
    let expected = svd(matrix);
    let (lower, upper) = (bounds.lower().get(), bounds.upper().get());
    let room = TOLERANCE * expected;
    assert!(lower <= expected + room, "{lower} {expected}");
    assert!(upper >= expected - room, "{upper} {expected}");
    // The f64 transform of filters of prime lengths goes through far more roundings.
    assert!(upper - lower <= 10.0 * room, "{lower} {upper}");
    assert!((bounds.estimate().get() - expected).abs() <= room);
}

fn linear(inputs: usize, outputs: usize, seed: u64) -> Linear {
    let mut layer = LinearConfig::new(inputs, outputs).init(&double());
    layer.weight = Param::from_tensor(random(seed, [inputs, outputs], &double()));
    layer
}

fn convolution(channels: [usize; 2], kernel: [usize; 2], seed: u64) -> Conv2d {
    let config = Conv2dConfig::new(channels, kernel).with_padding(PaddingConfig2d::Same);
    let mut layer = config.init(&double());
    let shape = [channels[1], channels[0], kernel[0], kernel[1]];
    layer.weight = Param::from_tensor(random(seed, shape, &double()));
    layer
}

/// The matrix of a convolution, from its action on unit images.
fn convolution_matrix(
    layer: &Conv2d,
    channels_in: usize,
    [height, width]: [usize; 2],
) -> Tensor<2> {
    let inputs = channels_in * height * width;
    let mut unit = vec![0.0; inputs * inputs];
    (0..inputs).for_each(|i| unit[i * inputs + i] = 1.0);
    let unit = TensorData::new(unit, [inputs, channels_in, height, width]);
    let unit = Tensor::<4>::from_data(unit, &double());
    let zero = layer.forward(unit.zeros_like());
    (layer.forward(unit) - zero).flatten(1, 3)
}

#[test]
fn circulant_norms_equal_the_explicit_matrix() {
    for d in [1, 2, 3, 5, 8, 13, 17, 30, 37] {
        let spectral = SpectralCirculant1dConfig::new(d)
            .with_seed(Some(d as u64))
            .init(&double());
        check(spectral.norm_bounds().unwrap(), spectral.dense_matrix());
        let spatial = Circulant1dConfig::new(d)
            .with_seed(Some(d as u64))
            .init(&double());
        check(spatial.norm_bounds().unwrap(), spatial.dense_matrix());
    }
    let masked = SpectralCirculant1dConfig::new(20)
        .with_seed(Some(0))
        .with_modes(Some(4))
        .init(&double());
    check(masked.norm_bounds().unwrap(), masked.dense_matrix());
}

#[test]
fn a_cropped_layer_is_bounded_from_above() {
    for (d_in, d_out) in [(7, 12), (12, 7), (1, 5)] {
        let layer = SpectralCirculant1dConfig::new(d_in)
            .with_seed(Some(0))
            .with_d_out(Some(d_out))
            .init(&double());
        let bounds = layer.norm_bounds().unwrap();
        let exact = svd(layer.dense_matrix());
        assert!(bounds.lower().get() <= exact && exact <= bounds.upper().get());
    }
}

#[test]
fn image_norms_equal_the_explicit_matrix() {
    for (grid, channels) in [
        ([1, 1], [1, 1]),
        ([3, 4], [1, 1]),
        ([4, 5], [2, 3]),
        ([5, 3], [3, 1]),
        ([2, 2], [2, 2]),
        ([7, 1], [1, 4]),
        ([1, 17], [2, 1]),
    ] {
        let spectral = SpectralBccb2dConfig::new(channels, grid)
            .with_seed(Some(3))
            .init(&double());
        check(spectral.norm_bounds().unwrap(), spectral.dense_matrix());
        let spatial = Bccb2dConfig::new(channels, grid)
            .with_seed(Some(4))
            .init(&double());
        check(spatial.norm_bounds().unwrap(), spatial.dense_matrix());
    }
    let masked = SpectralBccb2dConfig::new([2, 2], [5, 4])
        .with_seed(Some(0))
        .with_radius(0.6)
        .init(&double());
    check(masked.norm_bounds().unwrap(), masked.dense_matrix());
}

#[test]
fn dense_norms_equal_the_matrix() {
    for (inputs, outputs) in [(1, 1), (3, 5), (8, 8), (1, 7), (20, 2)] {
        let layer = linear(inputs, outputs, 5);
        check(layer.norm_bounds().unwrap(), layer.weight.val());
    }
}

#[test]
fn convolutions_are_never_underestimated() {
    for (channels, kernel, grid) in [
        ([1, 1], [3, 3], [4, 5]),
        ([2, 3], [3, 1], [3, 4]),
        ([3, 2], [5, 3], [4, 3]),
        ([1, 2], [1, 1], [3, 3]),
        ([1, 1], [7, 7], [3, 2]),
    ] {
        for seed in 0..5 {
            let layer = convolution(channels, kernel, seed);
            let bounds = SameConvolution::new(&layer, grid).norm_bounds().unwrap();
            let exact = svd(convolution_matrix(&layer, channels[0], grid));
            let upper = bounds.upper().get();
            assert!(upper >= exact * (1.0 - 1e-12), "{upper} {exact}");
            assert!(bounds.lower().get() <= exact);
            // Zeros outside of the image cost little, unless the kernel is larger than the image.
            assert!(
                upper <= 2.5 * exact || kernel[0] > grid[0],
                "{upper} {exact}"
            );
        }
    }
}

#[test]
fn convolutions_without_a_bound_are_named() {
    let config = Conv2dConfig::new([1, 2], [3, 3]).with_stride([2, 2]);
    let layer = config.with_padding(PaddingConfig2d::Valid).init(&double());
    let error = SameConvolution::new(&layer, [4, 4])
        .layer_bound("first")
        .unwrap_err();
    assert!(matches!(&error, GeometryError::NoBound { layer, .. } if layer == "first"));
    assert!(error.to_string().contains("stride 1"), "{error}");
}

#[test]
fn parameters_that_are_not_finite_are_named() {
    let not_finite = |error: GeometryError| {
        assert!(matches!(&error, GeometryError::NotFinite { layer } if layer == "the layer"));
        assert!(error.to_string().contains("NaN or infinite"), "{error}");
    };
    let nan = |shape: [usize; 1]| Param::from_tensor(Tensor::full(shape, f64::NAN, &double()));
    let mut layer = SpectralCirculant1dConfig::new(4)
        .with_seed(Some(0))
        .init(&double());
    layer.coordinates = nan([4]);
    not_finite(layer.norm_bounds().unwrap_err());
    not_finite(layer.clip_norm(1.0).unwrap_err());
    let mut layer = Circulant1dConfig::new(4).with_seed(Some(0)).init(&double());
    layer.filter = nan([4]);
    not_finite(layer.norm_bounds().unwrap_err());
    let mut layer = SpectralCirculant1dConfig::new(4)
        .with_seed(Some(0))
        .init(&double());
    layer.bias = Some(Param::from_tensor(Tensor::full(
        [1],
        f64::INFINITY,
        &double(),
    )));
    not_finite(layer.norm_bounds().unwrap_err());
    let mut layer = linear(2, 3, 1);
    layer.weight = Param::from_tensor(Tensor::full([2, 3], f64::NAN, &double()));
    not_finite(layer.norm_bounds().unwrap_err());
}

#[test]
fn clipped_layers_are_within_the_limit_and_near_it() {
    macro_rules! check_clip {
        ($layer:expr, $matrix:expr) => {{
            let mut layer = $layer;
            let before = layer.norm_bounds().unwrap().upper().get();
            for limit in [0.9 * before, 0.3 * before, 1e-3] {
                layer.clip_norm(limit).unwrap();
                let after = layer.norm_bounds().unwrap();
                assert!(after.upper().get() <= limit, "{after:?} {limit}");
                let exact = svd($matrix(&layer));
                assert!(
                    exact <= limit * (1.0 + 1e-12) && exact > limit * (1.0 - 1e-5),
                    "{exact} {limit}"
                );
            }
            // Within the limit nothing changes, to the last bit.
            let kept = host($matrix(&layer));
            layer.clip_norm(1.0).unwrap();
            assert_eq!(host($matrix(&layer)), kept);
        }};
    }
    let device = double();
    for d in [1, 6, 13, 19] {
        check_clip!(
            SpectralCirculant1dConfig::new(d)
                .with_seed(Some(0))
                .init(&device),
            |l: &circulant::nn::SpectralCirculant1d| l.dense_matrix()
        );
        check_clip!(
            Circulant1dConfig::new(d).with_seed(Some(0)).init(&device),
            |l: &circulant::nn::Circulant1d| l.dense_matrix()
        );
    }
    for (channels, grid) in [([1, 1], [3, 4]), ([2, 3], [4, 2]), ([3, 2], [2, 3])] {
        check_clip!(
            SpectralBccb2dConfig::new(channels, grid)
                .with_seed(Some(0))
                .init(&device),
            |l: &circulant::nn::SpectralBccb2d| l.dense_matrix()
        );
        check_clip!(
            Bccb2dConfig::new(channels, grid)
                .with_seed(Some(0))
                .init(&device),
            |l: &circulant::nn::Bccb2d| l.dense_matrix()
        );
    }
    check_clip!(linear(5, 4, 2), |l: &Linear| l.weight.val());
    let mut layer = convolution([2, 2], [3, 3], 1);
    clip_convolution(&mut layer, [4, 4], 0.5).unwrap();
    assert!(
        SameConvolution::new(&layer, [4, 4])
            .norm_bounds()
            .unwrap()
            .upper()
            .get()
            <= 0.5
    );
}

#[test]
fn a_clip_leaves_small_bins_alone_and_keeps_phases() {
    let mut layer = SpectralCirculant1dConfig::new(9)
        .with_seed(Some(0))
        .with_bias(BiasKind::None)
        .init(&double());
    let before = layer.half_spectrum();
    let limit = 0.8;
    layer.clip_norm(limit).unwrap();
    for (old, new) in before.iter().zip(layer.half_spectrum()) {
        if old.norm() < limit * 0.999 {
            assert_eq!(*old, new);
        } else {
            let aim = old * (limit / old.norm());
            assert!((aim - new).norm() < 1e-6, "{old} {new}");
        }
    }
}

#[test]
fn a_limit_must_be_positive() {
    for limit in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut layer = SpectralCirculant1dConfig::new(4)
            .with_seed(Some(0))
            .init(&double());
        let error = layer.clip_norm(limit).unwrap_err();
        assert!(error.to_string().contains("positive and finite"), "{error}");
        assert!(linear(2, 2, 1).clip_norm(limit).is_err());
    }
}

/// The largest `norm(f(x) - f(y))/norm(x - y)` over `pairs` pairs, some near and some far.
fn steepest(pairs: usize, inputs: usize, f: impl Fn(Tensor<2>) -> Tensor<2>) -> f64 {
    let batch = 50_000;
    let mut worst = 0.0_f64;
    for round in 0..pairs / batch {
        let x = random::<2>(2 * round as u64 + 1, [batch, inputs], &double()) * 2.0;
        let distance = 10.0_f64.powi(-((round % 4) as i32));
        let step = random::<2>(2 * round as u64 + 2, [batch, inputs], &double()) * distance;
        let difference = f(x.clone() + step.clone()) - f(x.clone());
        let length = |t: Tensor<2>| host(t.square().sum_dim(1));
        // The step that f64 has really made.
        let step = (x.clone() + step) - x;
        for (above, below) in length(difference).into_iter().zip(length(step)) {
            worst = worst.max((above / below).sqrt());
        }
    }
    worst
}

#[test]
fn no_pair_of_a_million_exceeds_the_bound() {
    let device = double();
    let (d, pairs) = (8, 350_000);
    let circulant = SpectralCirculant1dConfig::new(d)
        .with_seed(Some(9))
        .init(&device);
    let (dense, read_out) = (linear(d, 6, 3), linear(d, 3, 4));
    let (one, other) = (linear(d, 2, 5), linear(d, 4, 6));
    let layer = |layer: &Linear| NetworkBound::layer("dense", layer).unwrap();
    let circular = || NetworkBound::layer("circulant", &circulant).unwrap();
    let activation = NetworkBound::activation;
    let deep = NetworkBound::sequence([
        NetworkBound::residual(NetworkBound::sequence([
            circular(),
            activation(LipschitzActivation::Gelu),
        ])),
        layer(&read_out),
    ]);
    let branches = NetworkBound::sequence([
        NetworkBound::concatenation([layer(&one), layer(&other)]),
        activation(LipschitzActivation::Silu),
    ]);
    let sums = NetworkBound::sum([
        NetworkBound::sequence([layer(&dense), activation(LipschitzActivation::Relu)]),
        NetworkBound::sequence([layer(&dense), activation(LipschitzActivation::Sigmoid)]),
    ]);
    let check = |bound: NetworkBound, measured: f64, least: f64| {
        let upper = bound.upper().get();
        println!("measured {measured:.4}, bound {upper:.4}");
        // The measured quotient has a few roundings of its own.
        assert!(measured <= upper * (1.0 + 1e-9), "{measured} {upper}");
        assert!(measured >= least * upper, "{measured} is far from {upper}");
    };
    use burn::tensor::activation::{gelu, relu, sigmoid, silu};
    let steep = steepest(pairs, d, |x| {
        read_out.forward(x.clone() + gelu(circulant.forward(x)))
    });
    check(deep, steep, 0.2);
    let steep = steepest(pairs, d, |x| {
        silu(Tensor::cat(
            vec![one.forward(x.clone()), other.forward(x)],
            1,
        ))
    });
    check(branches, steep, 0.3);
    let steep = steepest(pairs, d, |x| {
        let y = dense.forward(x);
        relu(y.clone()) + sigmoid(y)
    });
    check(sums, steep, 0.3);
}

/// The bound is never below the norm, near it, and its gradient is that of finite differences.
#[track_caller]
fn check_penalty<L: NormPenalty + OperatorNorm + Module, const D: usize>(
    make: impl Fn(&Device) -> L,
    parameter: impl Fn(&mut L) -> &mut Param<Tensor<D>>,
    closeness: f64,
) {
    let layer = &make(&double());
    let bound = |layer: &L| host(layer.gram_bound(5).expect("finite"))[0];
    let (value, norm) = (bound(layer), layer.norm_bounds().expect("finite"));
    assert!(
        value >= norm.lower().get() * (1.0 - 1e-9),
        "{value} {norm:?}"
    );
    assert!(value <= norm.upper().get() * closeness, "{value} {norm:?}");
    let mut tracked = make(&double().autodiff());
    let penalty = tracked.gram_bound(5).expect("finite");
    let gradients = penalty.backward();
    let gradient = parameter(&mut tracked)
        .val()
        .grad(&gradients)
        .expect("tracked");
    let gradient = host(gradient);
    let mut moved = layer.clone();
    let start = host(parameter(&mut moved).val());
    let shape = parameter(&mut moved).dims();
    let step = 1e-6;
    for index in 0..start.len() {
        let mut at = |step: f64| {
            let mut values = start.clone();
            values[index] += step;
            let tensor = Tensor::from_data(TensorData::new(values, shape), &double());
            *parameter(&mut moved) = Param::from_tensor(tensor);
            bound(&moved)
        };
        let expected = (at(step) - at(-step)) / (2.0 * step);
        assert!(
            (gradient[index] - expected).abs() < 1e-5,
            "{index}: {} {expected}",
            gradient[index]
        );
    }
}

#[test]
fn the_penalty_is_a_bound_with_its_gradient() {
    for d in [1, 5, 8] {
        let spectral = |device: &Device| {
            SpectralCirculant1dConfig::new(d)
                .with_seed(Some(0))
                .init(device)
        };
        check_penalty(spectral, |layer| &mut layer.coordinates, 1.0 + 1e-9);
        let spatial = |device: &Device| Circulant1dConfig::new(d).with_seed(Some(0)).init(device);
        check_penalty(spatial, |layer| &mut layer.filter, 1.0 + 1e-9);
    }
    for (channels, grid) in [([1, 1], [3, 4]), ([2, 3], [2, 3]), ([3, 2], [1, 3])] {
        let spectral = |device: &Device| {
            SpectralBccb2dConfig::new(channels, grid)
                .with_seed(Some(0))
                .init(device)
        };
        check_penalty(spectral, |layer| &mut layer.coordinates, 1.02);
        let spatial = |device: &Device| {
            Bccb2dConfig::new(channels, grid)
                .with_seed(Some(0))
                .init(device)
        };
        check_penalty(spatial, |layer| &mut layer.filter, 1.02);
    }
    for (d_in, d_out, block) in [(6, 4, 2), (7, 5, 3), (3, 8, 1)] {
        let blocks = |device: &Device| {
            BlockCirculant1dConfig::new(d_in, d_out, block)
                .with_seed(Some(0))
                .init(device)
        };
        // Above the norm of the whole blocks, which is above that of a cropped matrix.
        let room = if d_in % block + d_out % block == 0 {
            1.02
        } else {
            3.0
        };
        check_penalty(blocks, |layer| &mut layer.coordinates, room);
    }
    let dense = |device: &Device| {
        let mut layer = LinearConfig::new(4, 3).init(device);
        layer.weight = Param::from_tensor(random(8, [4, 3], device));
        layer
    };
    check_penalty(dense, |layer| &mut layer.weight, 1.02);
    let mut broken = SpectralCirculant1dConfig::new(4)
        .with_seed(Some(0))
        .init(&double());
    broken.coordinates = Param::from_tensor(Tensor::full([4], f64::NAN, &double()));
    assert!(matches!(
        broken.gram_bound(4),
        Err(GeometryError::NotFinite { .. })
    ));
}

#[test]
fn the_oracle_is_right() {
    // [[3, 0], [4, 5]] has the singular values 3 sqrt(5) and sqrt(5).
    let value = largest_singular_value(2, 2, &[3.0, 0.0, 4.0, 5.0]);
    assert!((value - 45.0_f64.sqrt()).abs() < 1e-12);
    let one = largest_singular_value(1, 3, &[2.0, 3.0, 6.0]);
    assert!((one - 7.0).abs() < 1e-12);
    assert_eq!(numbers(1, 3).len(), 3);
}
