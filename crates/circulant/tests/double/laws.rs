//! Laws of the layers, over random sizes (odd, even, prime and 1), in f64.

use std::f64::consts::TAU;

use crate::common::{difference, double, host, numbers, random};
use burn::module::Param;
use burn::tensor::{Tensor, TensorData};
use circulant::nn::{
    Bccb2d, Bccb2dConfig, BiasKind, Circulant1d, Circulant1dConfig, SpectralBccb2d,
    SpectralBccb2dConfig, SpectralCirculant1d, SpectralCirculant1dConfig,
};
use circulant::operator::Complex;
use proptest::prelude::*;

/// A few hundred f64 roundings of numbers around 1.
const EXACT: f64 = 1e-11;

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        1..=40usize,
        prop::sample::select(vec![49, 64, 97, 101, 127])
    ]
}

fn bias_kind() -> impl Strategy<Value = BiasKind> {
    prop::sample::select(vec![BiasKind::None, BiasKind::Scalar, BiasKind::Vector])
}

/// The initial one is zero.
fn random_bias(bias: Option<Param<Tensor<1>>>, seed: u64) -> Option<Param<Tensor<1>>> {
    bias.map(|bias| bias.map(|value| random(seed + 1, value.dims(), &double())))
}

fn spectral_1d(
    d_in: usize,
    d_out: usize,
    modes: usize,
    bias: BiasKind,
    seed: u64,
) -> SpectralCirculant1d {
    let config = SpectralCirculant1dConfig::new(d_in)
        .with_d_out(Some(d_out))
        .with_modes(Some(modes))
        .with_bias(bias);
    let mut layer = config.with_seed(Some(seed)).init(&double());
    layer.bias = random_bias(layer.bias, seed);
    layer
}

fn spatial_1d(d_in: usize, d_out: usize, bias: BiasKind, seed: u64) -> Circulant1d {
    let config = Circulant1dConfig::new(d_in)
        .with_d_out(Some(d_out))
        .with_bias(bias)
        .with_seed(Some(seed));
    let mut layer = config.init(&double());
    layer.bias = random_bias(layer.bias, seed);
    layer
}

fn spectral_2d(channels: [usize; 2], grid: [usize; 2], radius: f64, seed: u64) -> SpectralBccb2d {
    let mut layer = SpectralBccb2dConfig::new(channels, grid)
        .with_radius(radius)
        .with_seed(Some(seed))
        .init(&double());
    layer.bias = random_bias(layer.bias, seed);
    layer
}

fn spatial_2d(channels: [usize; 2], grid: [usize; 2], seed: u64) -> Bccb2d {
    let mut layer = Bccb2dConfig::new(channels, grid)
        .with_seed(Some(seed))
        .init(&double());
    layer.bias = random_bias(layer.bias, seed);
    layer
}

/// `w = (1/n) sum_k h_k e^{+2 pi i (u y/H + v x/W)}` over the full plane, as slowly as it reads.
fn naive_filter(
    bin: impl Fn(usize, usize) -> Complex<f64>,
    height: usize,
    width: usize,
) -> Vec<f64> {
    let full = |u: usize, v: usize| {
        if v <= width / 2 {
            bin(u, v)
        } else {
            bin((height - u) % height, width - v).conj()
        }
    };
    let mut filter = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let mut sum = Complex::new(0.0, 0.0);
            for u in 0..height {
                for v in 0..width {
                    let angle =
                        TAU * ((u * y) as f64 / height as f64 + (v * x) as f64 / width as f64);
                    sum += full(u, v) * Complex::from_polar(1.0, angle);
                }
            }
            assert!(
                sum.im.abs() < EXACT * (height * width) as f64,
                "a real layer has a real filter"
            );
            filter.push(sum.re / (height * width) as f64);
        }
    }
    filter
}

/// `x M + b` with the bias repeated over the pixels of a channel where there is one per channel.
fn dense_output(x: Tensor<2>, matrix: Tensor<2>, bias: &Option<Param<Tensor<1>>>) -> Tensor<2> {
    let columns = matrix.dims()[1];
    let y = x.matmul(matrix);
    match bias {
        None => y,
        Some(bias) => {
            let each = columns / bias.dims()[0];
            let row: Tensor<2> = bias
                .val()
                .unsqueeze_dim::<2>(1)
                .repeat_dim(1, each)
                .reshape([1, columns]);
            y + row
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn spectral_circulant_is_its_dense_matrix(
        (length, modes) in length().prop_flat_map(|d| (Just(d), 1..=d / 2 + 1)),
        bias in bias_kind(), batch in 1..20usize, seed in 0..1000u64,
    ) {
        let layer = spectral_1d(length, length, modes, bias, seed);
        let bins = layer.half_spectrum();
        let filter = naive_filter(|_, v| bins[v], 1, length);
        prop_assert!(difference(&host(layer.spatial_filter()), &filter) < EXACT);
        let circulant: Vec<f64> = (0..length * length)
            .map(|i| filter[(i % length + length - i / length) % length])
            .collect();
        prop_assert!(difference(&host(layer.dense_matrix()), &circulant) < EXACT);
        let matrix = Tensor::from_data(TensorData::new(circulant, [length, length]), &double());
        let x = random(seed + 2, [batch, length], &double());
        let expected = dense_output(x.clone(), matrix, &layer.bias);
        prop_assert!(difference(&host(layer.forward(x)), &host(expected)) < EXACT);
    }

    #[test]
    fn spatial_circulant_is_its_dense_matrix(
        length in length(), bias in bias_kind(), batch in 1..20usize, seed in 0..1000u64,
    ) {
        let layer = spatial_1d(length, length, bias, seed);
        let bins = layer.half_spectrum();
        let filter = naive_filter(|_, v| bins[v], 1, length);
        prop_assert!(difference(&host(layer.spatial_filter()), &filter) < EXACT);
        let x = random(seed + 2, [batch, length], &double());
        let expected = dense_output(x.clone(), layer.dense_matrix(), &layer.bias);
        prop_assert!(difference(&host(layer.forward(x)), &host(expected)) < EXACT);
    }

    #[test]
    fn rectangular_layers_pad_and_crop(
        d_in in length(), d_out in length(), bias in bias_kind(), seed in 0..1000u64,
    ) {
        let x = random(seed + 2, [3, d_in], &double());
        let spectral = spectral_1d(d_in, d_out, d_in.max(d_out) / 2 + 1, bias, seed);
        let expected = dense_output(x.clone(), spectral.dense_matrix(), &spectral.bias);
        prop_assert!(difference(&host(spectral.forward(x.clone())), &host(expected)) < EXACT);
        let spatial = spatial_1d(d_in, d_out, bias, seed);
        let expected = dense_output(x.clone(), spatial.dense_matrix(), &spatial.bias);
        prop_assert!(difference(&host(spatial.forward(x)), &host(expected)) < EXACT);
    }

    #[test]
    fn bccb_layers_are_their_dense_matrix(
        channels in [1..4usize, 1..4usize], grid in [1..8usize, 1..8usize],
        radius in prop_oneof![Just(1.0), 0.0..1.0f64], batch in 1..6usize, seed in 0..1000u64,
    ) {
        let ([channels_in, channels_out], [height, width]) = (channels, grid);
        let pixels = height * width;
        let x = random(seed + 2, [batch, channels_in, height, width], &double());
        let rows: Tensor<2> = x.clone().reshape([batch, channels_in * pixels]);

        let spectral = spectral_2d(channels, grid, radius, seed);
        let bins = spectral.half_spectrum();
        let columns = width / 2 + 1;
        let mut filters = Vec::new();
        for o in 0..channels_out {
            for c in 0..channels_in {
                let bin = |u: usize, v: usize| bins[((u * columns + v) * channels_in + c) * channels_out + o];
                filters.extend(naive_filter(bin, height, width));
            }
        }
        prop_assert!(difference(&host(spectral.spatial_filter()), &filters) < EXACT);
        let expected = dense_output(rows.clone(), spectral.dense_matrix(), &spectral.bias);
        prop_assert!(difference(&host(spectral.forward(x.clone())), &host(expected)) < EXACT);

        let spatial = spatial_2d(channels, grid, seed);
        let expected = dense_output(rows, spatial.dense_matrix(), &spatial.bias);
        prop_assert!(difference(&host(spatial.forward(x)), &host(expected)) < EXACT);
    }

    #[test]
    fn leading_dimensions_are_rows(length in length(), seed in 0..1000u64) {
        let layer = spectral_1d(length, length, length / 2 + 1, BiasKind::Scalar, seed);
        let x = random(seed + 2, [2, 3, 4, length], &double());
        let rows = layer.forward(x.clone().reshape([24, length]));
        let y = layer.forward(x);
        prop_assert_eq!(y.dims(), [2, 3, 4, length]);
        // Different batch sizes may take different ways through the kernel.
        prop_assert!(difference(&host(y), &host(rows)) < EXACT);
        let one: Tensor<1> = random(seed + 3, [length], &double());
        let row = layer.forward(one.clone().reshape([1, length]));
        prop_assert!(difference(&host(layer.forward(one)), &host(row)) < EXACT);
    }

    #[test]
    fn layers_commute_with_circular_shifts(
        length in length(), shift in 0..200usize, seed in 0..1000u64, modes in 1..200usize,
    ) {
        let layer = spectral_1d(length, length, 1 + modes % (length / 2 + 1), BiasKind::Scalar, seed);
        let x = numbers(seed + 2, length);
        let moved = |x: &[f64]| -> Vec<f64> { (0..length).map(|t| x[(t + length - shift % length) % length]).collect() };
        let forward = |x: Vec<f64>| host(layer.forward(Tensor::<1>::from_data(TensorData::new(x, [length]), &double())));
        prop_assert!(difference(&forward(moved(&x)), &moved(&forward(x))) < EXACT);
    }

    #[test]
    fn images_commute_with_circular_shifts(
        grid in [1..9usize, 1..9usize], by in [0..9usize, 0..9usize], seed in 0..1000u64,
    ) {
        let [height, width] = grid;
        let layer = spectral_2d([2, 2], grid, 1.0, seed);
        let x = random(seed + 2, [1, 2, height, width], &double());
        let moved = |x: Tensor<4>| {
            let values = host(x);
            let at = |i: usize| {
                let (channel, y, x) = (i / (height * width), i / width % height, i % width);
                values[(channel * height + (y + by[0]) % height) * width + (x + by[1]) % width]
            };
            let values: Vec<f64> = (0..values.len()).map(at).collect();
            Tensor::<4>::from_data(TensorData::new(values, [1, 2, height, width]), &double())
        };
        prop_assert!(difference(&host(layer.forward(moved(x.clone()))), &host(moved(layer.forward(x)))) < EXACT);
    }

    #[test]
    fn fused_tanh_is_tanh(length in length(), bias in bias_kind(), batch in 1..20usize, seed in 0..1000u64) {
        /// The kernel's tanh is its own; in f64 it is good to a few roundings.
        const TANH: f64 = 1e-13;
        let x = random::<2>(seed + 2, [batch, length], &double()).mul_scalar(3.0);
        let spectral = spectral_1d(length, length, length / 2 + 1, bias, seed);
        let unfused = host(spectral.forward(x.clone())).iter().map(|y| y.tanh()).collect::<Vec<_>>();
        prop_assert!(difference(&host(spectral.forward_tanh(x.clone())), &unfused) < TANH + EXACT);
        let spatial = spatial_1d(length, length, bias, seed);
        let unfused = host(spatial.forward(x.clone())).iter().map(|y| y.tanh()).collect::<Vec<_>>();
        prop_assert!(difference(&host(spatial.forward_tanh(x)), &unfused) < TANH + EXACT);
    }

    #[test]
    fn self_conjugate_bins_are_real(grid in [1..12usize, 1..12usize], seed in 0..1000u64) {
        let [height, width] = grid;
        // Coordinates are arbitrary here, as an optimiser or a sampler leaves them.
        let mut layer = spectral_2d([2, 1], grid, 1.0, seed);
        layer.coordinates = layer.coordinates.map(|value| random(seed + 5, value.dims(), &double()));
        let bins = layer.half_spectrum();
        let columns = width / 2 + 1;
        for u in 0..height {
            for v in [0, width / 2] {
                let partner = (height - u) % height;
                if v != 0 && 2 * v != width {
                    continue;
                }
                for pair in 0..2 {
                    let (here, there) = (bins[(u * columns + v) * 2 + pair], bins[(partner * columns + v) * 2 + pair]);
                    prop_assert_eq!(here, there.conj());
                }
            }
        }
        let length = height * width;
        let mut layer = spectral_1d(length, length, length / 2 + 1, BiasKind::None, seed);
        layer.coordinates = layer.coordinates.map(|value| random(seed + 5, value.dims(), &double()));
        let bins = layer.half_spectrum();
        prop_assert_eq!(bins[0].im, 0.0);
        if length % 2 == 0 {
            prop_assert_eq!(bins[length / 2].im, 0.0);
        }
    }

    #[test]
    fn coordinates_survive_the_spatial_filter(length in length(), seed in 0..1000u64) {
        let spectral = spectral_1d(length, length, length / 2 + 1, BiasKind::None, seed);
        let mut spatial = spatial_1d(length, length, BiasKind::None, seed);
        spatial.filter = spatial.filter.map(|_| spectral.spatial_filter());
        let parts = |bins: Vec<Complex<f64>>| bins.iter().flat_map(|bin| [bin.re, bin.im]).collect::<Vec<_>>();
        prop_assert!(difference(&parts(spatial.half_spectrum()), &parts(spectral.half_spectrum())) < EXACT);
        prop_assert!((spatial.operator_norm() - spectral.operator_norm()).abs() < EXACT * (1.0 + spectral.operator_norm()));
    }

    #[test]
    fn operator_norm_is_the_largest_gain(length in length(), modes in 1..200usize, seed in 0..1000u64) {
        let layer = spectral_1d(length, length, 1 + modes % (length / 2 + 1), BiasKind::None, seed);
        let bins = layer.half_spectrum();
        let (k, largest) = bins.iter().map(|bin| bin.norm()).enumerate().fold((0, 0.0), |best, next| {
            if next.1 > best.1 { next } else { best }
        });
        prop_assert!((layer.operator_norm() - largest).abs() < EXACT * (1.0 + largest));
        // The cosine of the strongest bin is scaled by exactly that much.
        let wave: Vec<f64> = (0..length).map(|t| (TAU * (k * t) as f64 / length as f64).cos()).collect();
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let y = host(layer.forward(Tensor::<1>::from_data(TensorData::new(wave.clone(), [length]), &double())));
        prop_assert!((norm(&y) - largest * norm(&wave)).abs() < EXACT * (1.0 + norm(&y)));
    }
}

#[test]
fn masks_count_as_specified() {
    for length in 1..=24 {
        let half = length / 2 + 1;
        for modes in 1..=half {
            let layer = spectral_1d(length, length, modes, BiasKind::None, 0);
            let expected = if modes == half && length % 2 == 0 {
                2 * modes - 2
            } else {
                2 * modes - 1
            };
            assert_eq!(
                layer.degrees_of_freedom(),
                expected,
                "d = {length}, K = {modes}"
            );
            assert_eq!(layer.coordinates.val().dims(), [expected]);
        }
    }
    assert_eq!(
        spectral_2d([2, 3], [5, 6], 1.0, 0).degrees_of_freedom(),
        2 * 3 * 30
    );
    assert_eq!(
        spectral_2d([2, 3], [5, 6], 0.0, 0).degrees_of_freedom(),
        2 * 3
    );
}

#[test]
fn an_empty_batch_gives_an_empty_output() {
    let layer = spectral_1d(6, 6, 4, BiasKind::Scalar, 0);
    let y = layer.forward(Tensor::<2>::zeros([0, 6], &double()));
    assert_eq!(y.dims(), [0, 6]);
}
