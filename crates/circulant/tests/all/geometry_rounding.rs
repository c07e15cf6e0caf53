//! The f32 forward pass against the same network in f64: rounding errors stay within their bound.

use crate::common::{host, numbers, random};
use burn::module::{Module, ModuleMapper, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use circulant::functional;
use circulant::geometry::{
    CertificateConfig, Certificates, GeometryError, Lipschitz, LipschitzActivation, NetworkBound,
    Target, UpperBound,
};
use circulant::models::{HiddenKind, ImageClassifierConfig};
use circulant::nn::{
    Bccb2d, Bccb2dConfig, Circulant1d, Circulant1dConfig, DiagonalCirculant1d,
    DiagonalCirculant1dConfig, SpectralBccb2d, SpectralBccb2dConfig,
};
use circulant::task::Classifier;

/// Every floating-point parameter in this type.
struct To(FloatDType);

impl ModuleMapper for To {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor.cast(self.0))
    }
}

/// All maps of the description in one network of 12 features and 4 classes.
#[derive(Module, Debug)]
struct Mixed {
    first: Circulant1d,
    second: Linear,
    third: Linear,
    output: Linear,
}

impl Mixed {
    fn new(device: &Device) -> Self {
        let linear = |inputs, outputs, seed| {
            let mut layer = LinearConfig::new(inputs, outputs).init(device);
            layer.weight = Param::from_tensor(random(seed, [inputs, outputs], device) * 0.5);
            layer.bias = Some(Param::from_tensor(random(seed + 1, [outputs], device)));
            layer
        };
        Self {
            first: Circulant1dConfig::new(12).with_seed(Some(1)).init(device),
            second: linear(12, 6, 2),
            third: linear(12, 6, 4),
            output: linear(12, 4, 6),
        }
    }
}

impl Classifier<2> for Mixed {
    fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        use burn::tensor::activation::{gelu, sigmoid, silu};
        let x = x.clone() + functional::tanh(self.first.forward(x));
        let branches = vec![
            gelu(self.second.forward(x.clone())),
            silu(self.third.forward(x)),
        ];
        let joined = sigmoid(Tensor::cat(branches, 1));
        self.output.forward(joined)
    }
}

impl Lipschitz for Mixed {
    fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
        let branch = |name, layer, activation| {
            Ok::<_, GeometryError>(NetworkBound::sequence([
                NetworkBound::layer(name, layer)?,
                NetworkBound::activation(activation),
            ]))
        };
        Ok(NetworkBound::sequence([
            NetworkBound::residual(NetworkBound::sequence([
                NetworkBound::layer("first", &self.first)?,
                NetworkBound::activation(LipschitzActivation::Tanh),
            ])),
            NetworkBound::concatenation([
                branch("second", &self.second, LipschitzActivation::Gelu)?,
                branch("third", &self.third, LipschitzActivation::Silu)?,
            ]),
            NetworkBound::activation(LipschitzActivation::Sigmoid),
            NetworkBound::layer("output", &self.output)?,
        ]))
    }
}

/// Two image layers with several channels.
#[derive(Module, Debug)]
struct Images {
    spectral: SpectralBccb2d,
    spatial: Bccb2d,
    output: Linear,
}

impl Images {
    fn new([height, width]: [usize; 2], device: &Device) -> Self {
        let features = 2 * height * width;
        Self {
            spectral: SpectralBccb2dConfig::new([2, 5], [height, width])
                .with_seed(Some(0))
                .init(device),
            spatial: Bccb2dConfig::new([5, 2], [height, width])
                .with_seed(Some(0))
                .init(device),
            output: LinearConfig::new(features, 3).with_bias(false).init(device),
        }
    }
}

impl Classifier<4> for Images {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        let x = self.spatial.forward_tanh(self.spectral.forward(x));
        self.output.forward(x.flatten(1, 3))
    }
}

impl Lipschitz for Images {
    fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
        Ok(NetworkBound::sequence([
            NetworkBound::layer("spectral", &self.spectral)?,
            NetworkBound::layer("spatial", &self.spatial)?,
            NetworkBound::activation(LipschitzActivation::Tanh),
            NetworkBound::layer("output", &self.output)?,
        ]))
    }
}

/// Two products of circulant and diagonal matrices.
#[derive(Module, Debug)]
struct Diagonals {
    hidden: DiagonalCirculant1d,
    output: Linear,
}

impl Diagonals {
    fn new(features: usize, device: &Device) -> Self {
        let config = DiagonalCirculant1dConfig::new(features).with_terms(2);
        let mut hidden = config.with_seed(Some(features as u64)).init(device);
        for term in &mut hidden.terms {
            let diagonal = random::<1>(8, [features], device) * 3.0;
            term.after = Some(Param::from_tensor(diagonal));
        }
        hidden.bias = Some(Param::from_tensor(random(9, [features], device)));
        Self {
            hidden,
            output: LinearConfig::new(features, 3).with_bias(false).init(device),
        }
    }
}

impl Classifier<2> for Diagonals {
    fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(self.hidden.forward_tanh(x))
    }
}

impl Lipschitz for Diagonals {
    fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
        Ok(NetworkBound::sequence([
            NetworkBound::layer("hidden", &self.hidden)?,
            NetworkBound::activation(LipschitzActivation::Tanh),
            NetworkBound::layer("output", &self.output)?,
        ]))
    }
}

fn norm(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The largest rounding error of any row, over its bound.
fn rounding_share<const D: usize, M: Classifier<D> + Lipschitz>(model: &M, x: Tensor<D>) -> f64 {
    let rows = x.dims()[0];
    let values = host(x.clone());
    let largest = values
        .chunks_exact(values.len() / rows)
        .map(norm)
        .fold(0.0, f64::max);
    let bound = model.network_bound().expect("bounded");
    let allowed = bound.rounding_error(UpperBound::new(largest * (1.0 + 1e-12)));
    let allowed = allowed.expect("known").get();
    let double = model.clone().map(&mut To(FloatDType::F64));
    let exact = host(double.logits(x.clone().cast(FloatDType::F64)));
    let computed = host(model.logits(x));
    let classes = exact.len() / rows;
    let differences: Vec<f64> = exact.iter().zip(&computed).map(|(a, b)| a - b).collect();
    let worst = differences
        .chunks_exact(classes)
        .map(norm)
        .fold(0.0, f64::max);
    assert!(worst <= allowed, "{worst} > {allowed}");
    worst / allowed
}

/// Batches of one row, of few, of many, with rows of very different sizes.
fn batches<const D: usize>(seed: u64, shape: [usize; D], device: &Device) -> Vec<Tensor<D>> {
    let mut batches = Vec::new();
    for (rows, scale) in [(1, 1.0), (3, 100.0), (40, 1e-3), (33, 1.0)] {
        let mut shape = shape;
        shape[0] = rows;
        batches.push(random(seed + rows as u64, shape, device) * scale);
        let row: usize = shape[1..].iter().product();
        let mut values = numbers(seed, rows * row);
        for (index, value) in values.iter_mut().enumerate() {
            *value *= 10.0_f64.powi((index / row % 5) as i32 - 2);
        }
        batches.push(Tensor::from_data(TensorData::new(values, shape), device));
        batches.push(Tensor::ones(shape, device));
    }
    batches
}

#[test]
fn rounding_errors_stay_within_their_bound() {
    let device = circulant::cpu();
    let mut shares = Vec::new();
    for kind in HiddenKind::ALL {
        let model = ImageClassifierConfig::new(kind).with_seed(3).init(&device);
        let mut share = 0.0_f64;
        for x in batches(1, [0, 1, 28, 28], &device) {
            share = share.max(rounding_share(&model, x));
        }
        shares.push((format!("{kind:?}"), share));
    }
    // Even, odd, prime, prime with Rader's and with Bluestein's algorithm, powers of two, one.
    for features in [1, 2, 9, 13, 37, 47, 64, 97, 250, 1024] {
        let config = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
            .with_image([1, 1, features])
            .with_classes(5);
        let model = config.init(&device);
        let mut share = 0.0_f64;
        for x in batches(2, [0, features], &device) {
            share = share.max(rounding_share(&model, x));
        }
        shares.push((format!("head {features}"), share));
    }
    for (features, block) in [(9, 3), (37, 7), (64, 16), (97, 97), (250, 23), (300, 1)] {
        let config = ImageClassifierConfig::new(HiddenKind::BlockCirculant)
            .with_image([1, 1, features])
            .with_width(Some(features / 2))
            .with_block(Some(block))
            .with_classes(5);
        let model = config.init(&device);
        let mut share = 0.0_f64;
        for x in batches(2, [0, features], &device) {
            share = share.max(rounding_share(&model, x));
        }
        shares.push((format!("{features} features in blocks of {block}"), share));
    }
    for features in [1, 8, 37, 250] {
        let model = Diagonals::new(features, &device);
        let mut share = 0.0_f64;
        for x in batches(5, [0, features], &device) {
            share = share.max(rounding_share(&model, x));
        }
        shares.push((format!("diagonals {features}"), share));
    }
    for grid in [[4, 6], [7, 5], [1, 17], [19, 3]] {
        let model = Images::new(grid, &device);
        let mut share = 0.0_f64;
        for x in batches(3, [0, 2, grid[0], grid[1]], &device) {
            share = share.max(rounding_share(&model, x));
        }
        shares.push((format!("images {grid:?}"), share));
    }
    let mixed = Mixed::new(&device);
    for x in batches(4, [0, 12], &device) {
        shares.push(("mixed".to_owned(), rounding_share(&mixed, x)));
    }
    for (name, share) in shares {
        println!("{name}: the largest error is {share:.1e} of its bound");
    }
}

/// The figures of the MNIST models: `cargo test -p circulant --test all geometry_rounding::mnist -- --nocapture`.
#[test]
fn the_slack_of_the_mnist_models_is_small() {
    let device = circulant::cpu();
    for kind in [
        HiddenKind::SpectralCirculant,
        HiddenKind::SpectralBccb,
        HiddenKind::SpatialCirculant,
        HiddenKind::Dense,
    ] {
        let model = ImageClassifierConfig::new(kind).init(&device);
        // As bright as an MNIST image: norm 9 or so.
        let x = random::<4>(8, [16, 1, 28, 28], &device).abs() * 0.56;
        let certificates = CertificateConfig::new()
            .certify(&model, x, Target::Predicted)
            .unwrap();
        let margins: f64 = certificates.inputs.iter().map(|c| c.margin).sum::<f64>() / 16.0;
        let slack = 8.0_f64.sqrt() * certificates.rounding.get();
        println!(
            "{kind:?}: L <= {:.3}, norm <= {:.2}, slack {slack:.1e}, mean margin {margins:.3}",
            certificates.network.upper().get(),
            certificates.input_norm.get(),
        );
        assert!(slack < 0.05, "{kind:?}: {slack}");
    }
}

/// A circulant layer and a read-out, for rows of features.
fn head(features: usize, classes: usize) -> ImageClassifierConfig {
    ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, features])
        .with_classes(classes)
}

#[test]
fn only_f32_is_certified() {
    let device = circulant::cpu();
    let head = head(16, 3);
    let inputs = || random::<2>(1, [2, 16], &device);
    let certify = |model: &_, inputs| {
        let certificates = CertificateConfig::new().certify(model, inputs, Target::Predicted);
        certificates.map(|_| ()).unwrap_err().to_string()
    };
    for (to, name) in [
        (FloatDType::F64, "F64"),
        (FloatDType::F16, "F16"),
        (FloatDType::BF16, "BF16"),
    ] {
        let model = head.init(&device).map(&mut To(to));
        for inputs in [inputs(), inputs().cast(to)] {
            let error = certify(&model, inputs);
            assert!(error.contains(name) && error.contains("cast"), "{error}");
        }
        let error = certify(&head.init(&device), inputs().cast(to));
        assert!(
            error.contains("the inputs") && error.contains(name),
            "{error}"
        );
        // The description alone knows it too.
        let bound = model.network_bound().unwrap();
        assert!(bound.upper().is_finite());
        let error = bound.rounding_error(UpperBound::ONE).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
#[should_panic(expected = "got F16; cast")]
fn other_number_types_are_named() {
    let device = circulant::cpu();
    let head = head(16, 3);
    let model = head.init(&device).map(&mut To(FloatDType::F16));
    let x = random::<2>(1, [2, 16], &device);
    model.logits(x.cast(FloatDType::F16));
}

#[test]
fn a_certificate_says_whether_it_is_proven() {
    let device = circulant::cpu();
    let head = head(12, 4);
    let certify = |bound: Result<NetworkBound, GeometryError>| bound.unwrap().is_proven();
    assert!(certify(head.init(&device).network_bound()));
    // Gelu, silu and sigmoid are functions of the platform.
    assert!(!certify(Mixed::new(&device).network_bound()));
    let x = random::<2>(3, [2, 12], &device);
    let of = |certificates: Result<Certificates, GeometryError>| certificates.unwrap().is_proven();
    let config = CertificateConfig::new();
    assert!(of(config.certify(
        &head.init(&device),
        x.clone(),
        Target::Predicted
    )));
    assert!(!of(config.certify(
        &Mixed::new(&device),
        x,
        Target::Predicted
    )));
}

/// Many lengths with a large prime factor, on both sides of the number of rows from which on lanes are used.
#[test]
fn prime_lengths_stay_within_their_bound() {
    let device = circulant::cpu();
    for features in [
        17, 19, 23, 29, 31, 37, 41, 53, 61, 89, 127, 131, 211, 262, 509, 1021,
    ] {
        let model = head(features, 3).init(&device);
        for rows in [1, 3, 16, 40] {
            let x = random(features as u64, [rows, features], &device);
            let share = rounding_share(&model, x.clone());
            assert!(share > 0.0, "{features}: nothing was rounded");
            // One row is a thousand times as large as its partner in the lanes.
            let sizes = (0..rows).map(|row| if row % 2 == 0 { 1e3 } else { 1.0 });
            let sizes = TensorData::new(sizes.collect::<Vec<f64>>(), [rows, 1]);
            rounding_share(&model, x * Tensor::from_data(sizes, &device));
        }
    }
}
