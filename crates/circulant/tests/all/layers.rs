//! The layers in f32, as users make them: initial variance, bad sizes, display, models.

use crate::common::{difference, host, random};
use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::LinearConfig;
use burn::tensor::{Device, Gradients, Tensor};
use circulant::data::Examples;
use circulant::models::{
    HiddenKind, ImageClassifierConfig, Projection, ProjectionKind, VisionTransformerConfig,
};
use circulant::nn::{
    Bccb2dConfig, BiasKind, BlockCirculant1dConfig, Circulant1dConfig, CirculantLayer,
    DiagonalCirculant1dConfig, SpectralBccb2dConfig, SpectralCirculant1dConfig,
};
use circulant::operator::Activation;
use circulant::task::Classifier;

/// f32 rounding through a few layers.
const SINGLE: f64 = 2e-5;

/// The mean square of the outputs over many layers, for inputs of mean square 1.
fn gain(output: impl Fn(u64) -> Vec<f64>) -> f64 {
    /// With 200 layers the standard error of the mean square is below 4% in every case here.
    const LAYERS: u64 = 200;
    let squares: Vec<f64> = (0..LAYERS).flat_map(output).map(|y| y * y).collect();
    squares.iter().sum::<f64>() / squares.len() as f64
}

/// Uniform numbers in (-1, 1), scaled to variance 1.
fn unit<const D: usize>(seed: u64, shape: [usize; D]) -> Tensor<D> {
    random(seed, shape, &Device::flex()).mul_scalar(3.0_f64.sqrt())
}

#[test]
fn initial_layers_keep_the_variance() {
    /// More than three standard errors.
    const TOLERANCE: f64 = 0.12;
    let device = Device::flex();
    let mut gains = Vec::new();
    for (d_in, d_out, modes) in [
        (48, 48, None),
        (49, 49, Some(9)),
        (30, 50, None),
        (50, 30, None),
        (51, 20, Some(7)),
    ] {
        gains.push(gain(|seed| {
            let config = SpectralCirculant1dConfig::new(d_in)
                .with_d_out(Some(d_out))
                .with_modes(modes);
            host(
                config
                    .with_seed(Some(seed))
                    .init(&device)
                    .forward(unit(seed + 1000, [4, d_in])),
            )
        }));
        gains.push(gain(|seed| {
            let config = Circulant1dConfig::new(d_in)
                .with_d_out(Some(d_out))
                .with_seed(Some(seed));
            host(config.init(&device).forward(unit(seed + 1000, [4, d_in])))
        }));
    }
    for (channels, radius) in [([1, 1], 1.0), ([3, 2], 1.0), ([2, 2], 0.5)] {
        gains.push(gain(|seed| {
            let config = SpectralBccb2dConfig::new(channels, [6, 7])
                .with_radius(radius)
                .with_seed(Some(seed));
            host(
                config
                    .init(&device)
                    .forward(unit(seed + 1000, [2, channels[0], 6, 7])),
            )
        }));
        gains.push(gain(|seed| {
            let config = Bccb2dConfig::new(channels, [6, 7]).with_seed(Some(seed));
            host(
                config
                    .init(&device)
                    .forward(unit(seed + 1000, [2, channels[0], 6, 7])),
            )
        }));
    }
    for (d_in, d_out, block, modes) in [
        (48, 48, 8, None),
        (30, 50, 10, Some(3)),
        (50, 30, 1, None),
        (29, 31, 7, None),
    ] {
        gains.push(gain(|seed| {
            let config = BlockCirculant1dConfig::new(d_in, d_out, block)
                .with_modes(modes)
                .with_seed(Some(seed));
            host(config.init(&device).forward(unit(seed + 1000, [4, d_in])))
        }));
    }
    for (d_in, d_out, terms) in [(48, 48, 1), (30, 50, 3)] {
        gains.push(gain(|seed| {
            let config = DiagonalCirculant1dConfig::new(d_in)
                .with_d_out(Some(d_out))
                .with_terms(terms)
                .with_seed(Some(seed));
            host(config.init(&device).forward(unit(seed + 1000, [4, d_in])))
        }));
    }
    for gain in &gains {
        assert!((gain - 1.0).abs() < TOLERANCE, "{gains:?}");
    }
}

/// Power iteration on the explicit matrix `[in, out]`, in f64: never above the norm, and close to
/// it after many steps.
fn power_norm(matrix: Tensor<2>) -> f64 {
    let [rows, columns] = matrix.dims();
    let matrix = host(matrix);
    let mut x = vec![1.0; columns];
    x[0] = 2.0;
    let mut norm = 0.0;
    for _ in 0..20_000 {
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.iter_mut().for_each(|x| *x /= length);
        let y: Vec<f64> = matrix
            .chunks(columns)
            .map(|row| row.iter().zip(&x).map(|(a, b)| a * b).sum())
            .collect();
        norm = y.iter().map(|y| y * y).sum::<f64>().sqrt();
        x = (0..columns)
            .map(|j| (0..rows).map(|i| matrix[i * columns + j] * y[i]).sum())
            .collect();
    }
    norm
}

#[test]
fn norms_of_image_layers_are_those_of_their_matrices() {
    /// The matrix is rounded to f32, and the iteration has not quite ended.
    const TOLERANCE: f64 = 1e-4;
    let device = Device::flex();
    for (channels, grid) in [([1, 1], [3, 4]), ([2, 3], [4, 3]), ([3, 1], [2, 2])] {
        let spectral = SpectralBccb2dConfig::new(channels, grid)
            .with_seed(Some(3))
            .init(&device);
        let spatial = Bccb2dConfig::new(channels, grid)
            .with_seed(Some(3))
            .init(&device);
        for (norm, matrix) in [
            (spectral.operator_norm(), spectral.dense_matrix()),
            (spatial.operator_norm(), spatial.dense_matrix()),
        ] {
            let expected = power_norm(matrix);
            assert!(
                (norm - expected).abs() < TOLERANCE * norm,
                "{norm} {expected}"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let layer = |seed| {
        SpectralCirculant1dConfig::new(20)
            .with_seed(seed)
            .init(&Device::flex())
    };
    let numbers = |seed| host(layer(seed).coordinates.val());
    assert_eq!(numbers(Some(5)), numbers(Some(5)));
    assert_ne!(numbers(Some(5)), numbers(Some(6)));
}

#[test]
fn bad_sizes_are_errors_that_name_them() {
    let device = Device::flex();
    let message = |config: SpectralCirculant1dConfig| {
        config.try_init(&device).expect_err("refused").to_string()
    };
    assert_eq!(
        message(SpectralCirculant1dConfig::new(8).with_modes(Some(6))),
        "K must be in 1..=5 for length 8, got 6; K = 5 keeps the whole spectrum"
    );
    assert!(message(SpectralCirculant1dConfig::new(8).with_modes(Some(0))).contains("got 0"));
    assert!(message(SpectralCirculant1dConfig::new(0)).contains("at least 1"));
    assert!(message(SpectralCirculant1dConfig::new(8).with_d_out(Some(0))).contains("at least 1"));
    assert!(Circulant1dConfig::new(0).try_init(&device).is_err());
    let message =
        |config: BlockCirculant1dConfig| config.try_init(&device).expect_err("refused").to_string();
    let block = |length| BlockCirculant1dConfig::new(12, 8, length);
    assert!(message(block(0)).contains("from 1 to 12"));
    assert!(message(block(13)).contains("got 13"));
    assert!(message(block(4).with_modes(Some(4))).contains("1..=3"));
    assert!(message(BlockCirculant1dConfig::new(0, 8, 2)).contains("at least 1"));
    assert!(message(BlockCirculant1dConfig::new(8, 0, 2)).contains("at least 1"));
    let large = 1 << 40;
    assert!(message(BlockCirculant1dConfig::new(large, large, 1)).contains("smaller sizes"));
    assert!(message(BlockCirculant1dConfig::new(usize::MAX, 2, 1 << 62)).contains("smaller"));
    for radius in [-0.5, 1.5, f64::NAN] {
        let config = SpectralBccb2dConfig::new([1, 1], [4, 4]).with_radius(radius);
        assert!(
            config
                .try_init(&device)
                .expect_err("refused")
                .to_string()
                .contains("[0, 1]")
        );
    }
    for (channels, grid) in [
        ([0, 1], [4, 4]),
        ([1, 0], [4, 4]),
        ([1, 1], [0, 4]),
        ([1, 1], [4, 0]),
    ] {
        assert!(
            SpectralBccb2dConfig::new(channels, grid)
                .try_init(&device)
                .is_err()
        );
        assert!(Bccb2dConfig::new(channels, grid).try_init(&device).is_err());
    }
    assert!(
        ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
            .with_image([1, 1, 2048])
            .with_modes(Some(1026))
            .try_init(&device)
            .is_err()
    );
    let config = VisionTransformerConfig::new(30, 4, 10, ProjectionKind::Dense);
    assert!(
        config
            .try_init(&device)
            .expect_err("refused")
            .to_string()
            .contains("30 is not a multiple of 4")
    );
}

#[test]
#[should_panic(expected = "input must be [..., 8], got [2, 7]")]
fn a_wrong_length_panics_with_both_shapes() {
    let device = Device::flex();
    SpectralCirculant1dConfig::new(8)
        .init(&device)
        .forward(Tensor::<2>::zeros([2, 7], &device));
}

#[test]
#[should_panic(expected = "[2, 4, 4] after the batch, got [1, 3, 4, 4]")]
fn wrong_channels_panic_with_both_shapes() {
    let device = Device::flex();
    SpectralBccb2dConfig::new([2, 1], [4, 4])
        .init(&device)
        .forward(Tensor::zeros([1, 3, 4, 4], &device));
}

#[test]
fn display_names_the_degrees_of_freedom() {
    let device = Device::flex();
    let text = SpectralCirculant1dConfig::new(16)
        .with_modes(Some(4))
        .init(&device)
        .to_string();
    assert!(
        text.contains("degrees_of_freedom: 7") && text.contains("bias: scalar"),
        "{text}"
    );
    let text = SpectralBccb2dConfig::new([2, 3], [4, 5])
        .init(&device)
        .to_string();
    assert!(text.contains("degrees_of_freedom: 120"), "{text}");
    let text = BlockCirculant1dConfig::new(10, 6, 4)
        .init(&device)
        .to_string();
    for part in [
        "d_in: 10",
        "d_out: 6",
        "block: 4",
        "modes: 3",
        "degrees_of_freedom: 24",
        "bias: vector",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(
        Circulant1dConfig::new(16)
            .init(&device)
            .to_string()
            .contains("degrees_of_freedom: 16")
    );
    assert!(
        Bccb2dConfig::new([2, 3], [4, 5])
            .init(&device)
            .to_string()
            .contains("degrees_of_freedom: 120")
    );
}

/// The number of parameters without a gradient.
struct Untouched<'a> {
    gradients: &'a Gradients,
    count: usize,
}

impl ModuleVisitor for Untouched<'_> {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        if parameter.val().grad(self.gradients).is_none() {
            self.count += 1;
        }
    }
}

fn assert_all_trained<M: Module>(model: &M, logits: Tensor<2>, expected: [usize; 2]) {
    assert_eq!(logits.dims(), expected);
    let gradients = logits.powi_scalar(2).sum().backward();
    let mut visitor = Untouched {
        gradients: &gradients,
        count: 0,
    };
    model.visit(&mut visitor);
    assert_eq!(visitor.count, 0);
}

#[test]
fn every_parameter_of_every_model_is_trained() {
    let device = Device::flex().autodiff();
    let images = random::<4>(1, [3, 1, 28, 28], &device);
    for kind in HiddenKind::ALL {
        let model = ImageClassifierConfig::new(kind).init(&device);
        assert_all_trained(&model, model.forward(images.clone()), [3, 10]);
    }
    let features = random::<2>(2, [3, 64], &device);
    for (kind, width) in [
        (HiddenKind::SpectralCirculant, None),
        (HiddenKind::BlockCirculant, Some(24)),
        (HiddenKind::Dense, Some(8)),
    ] {
        let model = ImageClassifierConfig::new(kind)
            .with_image([1, 1, 64])
            .with_width(width)
            .init(&device);
        assert_all_trained(&model, model.logits(features.clone()), [3, 10]);
    }
    let images = random::<4>(3, [2, 3, 16, 16], &device);
    for kind in [ProjectionKind::Dense, ProjectionKind::Spectral] {
        let model = VisionTransformerConfig::new(16, 4, 7, kind)
            .with_d(32)
            .with_depth(2)
            .init(&device);
        assert_all_trained(&model, model.forward(images.clone()), [2, 7]);
    }
}

/// Rows are images whose pixels stand in one line.
#[test]
fn rows_and_images_have_the_same_logits() {
    let device = Device::flex();
    let images = random::<4>(1, [5, 2, 3, 4], &device);
    let rows = || images.clone().flatten::<2>(1, 3);
    for kind in HiddenKind::ALL {
        let config = ImageClassifierConfig::new(kind)
            .with_image([2, 3, 4])
            .with_classes(3);
        let members: Vec<_> = (0..2)
            .map(|seed| config.clone().with_seed(seed).init(&device))
            .collect();
        let expected = host(members[1].forward(images.clone()));
        assert_eq!(host(members[1].logits(rows())), expected, "{kind:?}");
        let of_images = Classifier::<4>::ensemble(members.clone())(images.clone());
        let of_rows = Classifier::<2>::ensemble(members.clone())(rows());
        assert_eq!(host(of_rows), host(of_images), "{kind:?}");
        let labels = vec![0, 1, 2, 1, 0];
        let images = Examples {
            inputs: images.clone().into(),
            rows: None,
            labels: labels.clone().into(),
        };
        let rows = Examples {
            inputs: rows().into(),
            rows: None,
            labels: labels.into(),
        };
        let [of_rows, of_images] = [
            members[0].cross_entropy(rows),
            members[0].cross_entropy(images),
        ];
        assert_eq!(host(of_rows), host(of_images), "{kind:?}");
    }
}

#[test]
fn spectral_attention_is_dense_attention_with_circulant_matrices() {
    let device = Device::flex();
    let config = VisionTransformerConfig::new(8, 4, 5, ProjectionKind::Spectral)
        .with_d(16)
        .with_depth(2);
    let spectral = config.init(&device);
    let mut dense = spectral.clone();
    for block in &mut dense.blocks {
        let attention = &mut block.attention;
        for projection in [
            &mut attention.query,
            &mut attention.key,
            &mut attention.value,
            &mut attention.output,
        ] {
            let Projection::Spectral(layer) = &projection else {
                panic!("built as spectral")
            };
            let bias = layer.bias.as_ref().expect("scalar").val().repeat_dim(0, 16);
            *projection = Projection::Dense(burn::nn::Linear {
                weight: Param::from_tensor(layer.dense_matrix()),
                bias: Some(Param::from_tensor(bias)),
            });
        }
    }
    let images = random::<4>(4, [3, 3, 8, 8], &device);
    let gap = difference(
        &host(spectral.forward(images.clone())),
        &host(dense.forward(images)),
    );
    assert!(gap < SINGLE, "{gap}");
}

/// A layer with its read-out, alone and as a member, is the layer and then the read-out.
fn check_readout<const D: usize, L: CirculantLayer<D>>(
    [first, second]: [&L; 2],
    features: usize,
    x: Tensor<D>,
) {
    let device = Device::flex();
    let outputs = [1, 2].map(|_| LinearConfig::new(features, 7).init(&device));
    let both =
        L::readout_of_members(&[first, second], &outputs.each_ref(), Activation::Tanh)(x.clone());
    for (index, layer) in [first, second].into_iter().enumerate() {
        let hidden = layer.features(x.clone(), Activation::Tanh);
        let expected = host(outputs[index].forward(hidden));
        let joined = layer.forward_readout(x.clone(), &outputs[index], Activation::Tanh);
        assert!(difference(&host(joined), &expected) < SINGLE);
        let member = both.clone().narrow(0, index, 1);
        assert!(difference(&host(member), &expected) < SINGLE);
    }
}

#[test]
fn a_readout_in_one_pass_equals_two() {
    let device = Device::flex();
    // Square, padded, cropped; every kind of bias; a length without lanes.
    for (d_in, d_out, bias) in [
        (28, 28, BiasKind::Scalar),
        (28, 28, BiasKind::Vector),
        (28, 28, BiasKind::None),
        (97, 97, BiasKind::Scalar),
        (12, 20, BiasKind::Scalar),
        (20, 12, BiasKind::Vector),
    ] {
        let x = unit(3, [21, d_in]);
        let spectral = [1, 2].map(|seed| {
            let config = SpectralCirculant1dConfig::new(d_in).with_d_out(Some(d_out));
            config.with_bias(bias).with_seed(Some(seed)).init(&device)
        });
        check_readout(spectral.each_ref(), d_out, x.clone());
        let spatial = [1, 2].map(|seed| {
            let config = Circulant1dConfig::new(d_in).with_d_out(Some(d_out));
            config.with_bias(bias).with_seed(Some(seed)).init(&device)
        });
        check_readout(spatial.each_ref(), d_out, x);
    }
    for channels in [[1, 1], [2, 3]] {
        let x = unit(4, [9, channels[0], 6, 5]);
        let features = channels[1] * 30;
        let spectral = [1, 2].map(|seed| {
            let config = SpectralBccb2dConfig::new(channels, [6, 5]);
            config.with_seed(Some(seed)).init(&device)
        });
        check_readout(spectral.each_ref(), features, x.clone());
        let spatial = [1, 2].map(|seed| {
            let config = Bccb2dConfig::new(channels, [6, 5]);
            config.with_seed(Some(seed)).init(&device)
        });
        check_readout(spatial.each_ref(), features, x);
    }
}
