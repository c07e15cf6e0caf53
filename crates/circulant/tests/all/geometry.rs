//! Certificates in f32: nothing inside a radius changes a decision, and wrong arguments are errors.

use crate::common::{host, numbers, random};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorData};
use circulant::geometry::{
    Certificate, CertificateConfig, Certificates, GeometryError, Lipschitz, NetworkBound, Target,
};
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
use circulant::task::Classifier;

/// Of the attacked networks.
const CLASSES: usize = 4;

pub(crate) fn norm(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// `x + perturbation` in f32, kept within `radius` of `x` in exact arithmetic.
pub(crate) fn perturbed(x: &[f64], direction: &[f64], radius: f64) -> Vec<f64> {
    let length = norm(direction);
    let mut scale = if length > 0.0 { radius / length } else { 0.0 };
    loop {
        let moved: Vec<f64> = x
            .iter()
            .zip(direction)
            .map(|(x, d)| f64::from((x + scale * d) as f32))
            .collect();
        let distance: Vec<f64> = moved.iter().zip(x).map(|(a, b)| a - b).collect();
        // The f64 norm itself is off by a few units.
        if norm(&distance) <= radius * (1.0 - 1e-14) {
            return moved;
        }
        if scale < 1e-12 * radius {
            return x.to_vec();
        }
        scale *= if norm(&distance) < 1.001 * radius {
            0.999
        } else {
            0.5
        };
    }
}

/// Counts inputs inside the radii whose class differs from the certified one, over `trials` inputs per certificate.
struct Attack<'a, M> {
    model: &'a M,
    device: Device,
    features: usize,
    trials: usize,
    tried: usize,
}

impl<M: Classifier<2>> Attack<'_, M> {
    fn predict(&self, rows: Vec<f64>) -> Vec<usize> {
        let count = rows.len() / self.features;
        let x = Tensor::from_data(TensorData::new(rows, [count, self.features]), &self.device);
        let logits = host(self.model.logits(x));
        let classes = logits.len() / count;
        let best =
            |row: &[f64]| (1..classes).fold(0, |best, k| if row[k] > row[best] { k } else { best });
        logits.chunks_exact(classes).map(best).collect()
    }

    /// The gradient of the margin at every row, for the loss `sum(f_k - f_y)`.
    fn ascent(&self, rows: &[f64], class: usize, other: usize) -> Vec<f64> {
        let device = self.device.clone().autodiff();
        let count = rows.len() / self.features;
        let data = TensorData::new(rows.to_vec(), [count, self.features]);
        let x = Tensor::<2>::from_data(data, &device).require_grad();
        let logits = self.model.clone().train_on(&device).logits(x.clone());
        let loss = (logits.clone().narrow(1, other, 1) - logits.narrow(1, class, 1)).sum();
        host(x.grad(&loss.backward()).expect("tracked"))
    }

    /// No input inside the best radius has another class.
    fn run(&mut self, x: &[f64], certificate: &Certificate, seed: u64) {
        if certificate.is_certified() {
            let radius = certificate.best().get();
            let flips = self.flips(x, certificate.class, radius, seed);
            assert_eq!(flips, 0, "radius {radius}, {certificate:?}");
        }
    }

    /// Random directions, then projected gradient steps from some of them.
    fn flips(&mut self, x: &[f64], class: usize, radius: f64, seed: u64) -> usize {
        let directions = numbers(seed, self.trials * self.features);
        let mut rows: Vec<f64> = directions
            .chunks_exact(self.features)
            .flat_map(|direction| perturbed(x, direction, radius))
            .collect();
        let mut flips = self.count_flips(rows.clone(), class);
        rows.truncate(4 * self.features);
        for other in (0..CLASSES).filter(|&other| other != class) {
            let mut at = rows.clone();
            for _ in 0..5 {
                let gradient = self.ascent(&at, class, other);
                at = at
                    .chunks_exact(self.features)
                    .zip(gradient.chunks_exact(self.features))
                    .flat_map(|(row, gradient)| {
                        let step = radius / norm(gradient).max(1e-30);
                        let direction: Vec<f64> = (row.iter().zip(gradient).zip(x))
                            .map(|((row, g), x)| row + step * g - x)
                            .collect();
                        perturbed(x, &direction, radius)
                    })
                    .collect();
                flips += self.count_flips(at.clone(), class);
            }
        }
        flips
    }

    fn count_flips(&mut self, rows: Vec<f64>, class: usize) -> usize {
        self.tried += rows.len() / self.features;
        let predicted = self.predict(rows);
        predicted.iter().filter(|&&found| found != class).count()
    }
}

/// A model on the autodiff device.
trait TrainOn {
    fn train_on(self, device: &Device) -> Self;
}

impl<M: Module> TrainOn for M {
    fn train_on(self, device: &Device) -> Self {
        self.to_device(device)
    }
}

fn certify<M: Classifier<2> + Lipschitz>(model: &M, rows: &[f64], features: usize) -> Certificates {
    let count = rows.len() / features;
    let data = TensorData::new(rows.to_vec(), [count, features]);
    let x = Tensor::from_data(data, &circulant::cpu());
    CertificateConfig::new()
        .certify(model, x, Target::Predicted)
        .expect("certifies")
}

/// f32 numbers as f64.
pub(crate) fn single(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|x| f64::from(x as f32)).collect()
}

/// Inputs whose margin is of the order of the rounding error: between two inputs of different classes, by bisection.
fn inputs_on_the_edge<M: Classifier<2> + Lipschitz>(model: &M, features: usize) -> Vec<f64> {
    let seeds = single(numbers(99, 40 * features));
    let classes: Vec<usize> = certify(model, &seeds, features)
        .inputs
        .iter()
        .map(|c| c.class)
        .collect();
    let mut edge = Vec::new();
    for i in 1..40 {
        let (a, b) = (&seeds[..features], &seeds[i * features..][..features]);
        if classes[0] == classes[i] {
            continue;
        }
        let (mut low, mut high) = (0.0, 1.0);
        let between = |t: f64| single(a.iter().zip(b).map(|(a, b)| a + t * (b - a)).collect());
        for step in 0..40 {
            let middle = (low + high) / 2.0;
            let found = certify(model, &between(middle), features).inputs[0].class;
            if found == classes[0] {
                low = middle
            } else {
                high = middle
            }
            // The last steps differ by less than rounding; those before by some of it.
            if step > 10 {
                edge.extend(between(low));
                edge.extend(between(high));
            }
        }
    }
    edge
}

#[test]
fn no_attack_inside_a_radius_succeeds() {
    let device = circulant::cpu();
    let features = 12;
    let spectral = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, features])
        .with_classes(CLASSES)
        .with_seed(5);
    let dense = ImageClassifierConfig {
        hidden: HiddenKind::Dense,
        ..spectral.clone()
    }
    .with_width(Some(7));
    let mut tried = 0;
    for (model, trials) in [(spectral.init(&device), 1000), (dense.init(&device), 700)] {
        let mut attack = Attack {
            model: &model,
            device: device.clone(),
            features,
            trials,
            tried: 0,
        };
        let rows = single(numbers(17, 60 * features));
        let certificates = certify(&model, &rows, features);
        let certified = certificates
            .inputs
            .iter()
            .filter(|c| c.best().get() > 1e-3)
            .count();
        assert!(certified > 30, "only {certified} certificates");
        for (index, certificate) in certificates.inputs.iter().enumerate() {
            let x = &rows[index * features..][..features];
            attack.run(x, certificate, index as u64 + 1);
        }
        // The attack is no straw man: not far outside, it flips some.
        let inside = attack.tried;
        let mut flips = 0;
        for (index, certificate) in certificates.inputs.iter().enumerate().take(20) {
            let x = &rows[index * features..][..features];
            flips += attack.flips(x, certificate.class, 4.0 * certificate.best().get(), 7);
        }
        assert!(flips > 0, "the attack never succeeds");
        attack.tried = inside;
        let edge = inputs_on_the_edge(&model, features);
        let certificates = certify(&model, &edge, features);
        let slack = 8.0_f64.sqrt() * certificates.rounding.get();
        let near = certificates
            .inputs
            .iter()
            .filter(|c| c.margin < 4.0 * slack)
            .count();
        assert!(near > 50, "{near} inputs at the edge of rounding");
        assert!(certificates.inputs.iter().any(|c| !c.is_certified()));
        assert!(
            certificates
                .inputs
                .iter()
                .any(|c| c.is_certified() && c.margin < 4.0 * slack)
        );
        attack.trials = 40;
        for (index, certificate) in certificates.inputs.iter().enumerate() {
            let x = &edge[index * features..][..features];
            attack.run(x, certificate, index as u64 + 1000);
            if certificate.is_certified() {
                // Alone, and beside the largest neighbours that the promise allows.
                let norm = certificates.input_norm.get() * (1.0 - 1e-6);
                let large = norm / (features as f64).sqrt();
                for neighbours in [0, 1, 2, 7, 30] {
                    let mut batch = x.to_vec();
                    batch.extend(single(vec![large; neighbours * features]));
                    assert_eq!(attack.predict(batch)[0], certificate.class);
                }
            }
        }
        tried += attack.tried;
    }
    println!("{tried} inputs inside certified radii");
    assert!(tried >= 100_000, "{tried}");
}

#[test]
fn the_pairwise_radius_of_a_linear_network_is_tight() {
    #[derive(Module, Debug)]
    struct Plain {
        output: Linear,
    }
    impl Classifier<2> for Plain {
        fn logits(&self, x: Tensor<2>) -> Tensor<2> {
            self.output.forward(x)
        }
    }
    impl Lipschitz for Plain {
        fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
            NetworkBound::layer("output", &self.output)
        }
    }
    let device = circulant::cpu();
    let model = Plain {
        output: LinearConfig::new(6, 3).init(&device),
    };
    let weight = host(model.output.weight.val());
    let rows = single(numbers(4, 50 * 6));
    let certificates = certify(&model, &rows, 6);
    for (x, certificate) in rows.chunks_exact(6).zip(&certificates.inputs) {
        let radius = certificate.last_layer.expect("dense").get();
        assert!(certificate.paper.get() <= certificate.sqrt_two.get());
        assert!(certificate.sqrt_two.get() <= radius * (1.0 + 1e-9));
        let flips = |reach: f64| {
            (0..3).filter(|&k| k != certificate.class).any(|k| {
                let direction: Vec<f64> = weight
                    .chunks_exact(3)
                    .map(|row| row[k] - row[certificate.class])
                    .collect();
                let moved = perturbed(x, &direction, reach);
                certify(&model, &moved, 6).inputs[0].predicted != certificate.class
            })
        };
        assert!(!flips(radius));
        assert!(flips(radius * 1.001 + 1e-4), "{certificate:?}");
    }
}

#[test]
fn true_and_predicted_classes() {
    let device = circulant::cpu();
    let model: ImageClassifier = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, 8])
        .with_classes(3)
        .init(&device);
    let x = || random::<2>(3, [5, 8], &device);
    let config = CertificateConfig::new();
    let predicted = config.certify(&model, x(), Target::Predicted).unwrap();
    let classes: Vec<usize> = predicted.inputs.iter().map(|c| c.predicted).collect();
    let right = config.certify(&model, x(), Target::True(&classes)).unwrap();
    assert_eq!(predicted.inputs, right.inputs);
    let others: Vec<usize> = classes.iter().map(|class| (class + 1) % 3).collect();
    let wrong = config.certify(&model, x(), Target::True(&others)).unwrap();
    for certificate in &wrong.inputs {
        assert!(certificate.margin <= 0.0 && !certificate.is_certified());
        assert_eq!(certificate.best().get(), 0.0);
        assert_eq!(certificate.paper.get(), 0.0);
    }
}

#[test]
fn certified_shares_are_counts() {
    let device = circulant::cpu();
    let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, 8])
        .with_classes(3)
        .init(&device);
    let x = random::<2>(3, [40, 8], &device);
    let certificates = CertificateConfig::new()
        .certify(&model, x, Target::Predicted)
        .expect("finite");
    let median = certificates.radii().sqrt_two.median;
    let mut before = 1.0;
    for radius in [0.0, 0.5 * median, median, 2.0 * median, 1e3] {
        let found = certificates.certified_at(radius);
        let inputs = certificates.inputs.iter();
        let reached = inputs.filter(|c| c.is_certified() && c.sqrt_two.get() >= radius);
        assert_eq!(found.share.sqrt_two, reached.count() as f64 / 40.0);
        assert!(found.share.paper <= found.share.sqrt_two && found.share.sqrt_two <= before);
        before = found.share.sqrt_two;
    }
    assert_eq!(before, 0.0);
    let at_median = certificates.certified_at(median).share.sqrt_two;
    assert!((at_median - 0.5).abs() <= 0.05, "{at_median}");
}

#[test]
fn wrong_arguments_are_errors_that_say_what_to_do() {
    let device = circulant::cpu();
    let model: ImageClassifier = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, 4])
        .with_classes(3)
        .init(&device);
    let x = || Tensor::<2>::ones([2, 4], &device);
    let config = CertificateConfig::new();
    let message = |result: Result<Certificates, GeometryError>| result.unwrap_err().to_string();
    let error = message(config.certify(&model, x(), Target::True(&[0, 3])));
    assert!(
        error.contains("label 3 of input 1") && error.contains("0..3"),
        "{error}"
    );
    let error = message(config.certify(&model, x(), Target::True(&[0])));
    assert!(
        error.contains("one per input, 2") && error.contains("got 1"),
        "{error}"
    );
    let wide = Tensor::<2>::ones([2, 5], &device);
    let error = message(config.certify(&model, wide, Target::Predicted));
    assert!(error.contains("hidden takes 4 numbers, got 5"), "{error}");
    let nan = Tensor::<2>::from_data([[0.0, 1.0, 2.0, 3.0], [0.0, f32::NAN, 0.0, 0.0]], &device);
    let error = message(config.certify(&model, nan, Target::Predicted));
    assert!(
        error.contains("number 1 of input 1") && error.contains("clean"),
        "{error}"
    );
    let error = message(config.certify(
        &model,
        Tensor::<2>::empty([0, 4], &device),
        Target::Predicted,
    ));
    assert!(error.contains("at least one input"), "{error}");
    for bad in [0.0, -1.0, f64::NAN] {
        let config = CertificateConfig::new().with_input_norm(Some(bad));
        let error = message(config.certify(&model, x(), Target::Predicted));
        assert!(error.contains("positive and finite"), "{error}");
    }
    let small = CertificateConfig::new().with_input_norm(Some(1.0));
    let error = message(small.certify(&model, x(), Target::Predicted));
    assert!(error.contains("larger input norm"), "{error}");
    let mut broken = model.clone();
    broken.output.weight = Param::from_tensor(Tensor::full([4, 3], f32::NAN, &device));
    let error = message(config.certify(&broken, x(), Target::Predicted));
    assert!(error.starts_with("output: a parameter is NaN"), "{error}");
}

#[test]
fn attention_has_no_certificate() {
    use circulant::models::{ProjectionKind, VisionTransformerConfig};
    let config = VisionTransformerConfig::new(8, 4, 10, ProjectionKind::Spectral).with_depth(1);
    let error = config.init(&circulant::cpu()).network_bound().unwrap_err();
    assert!(
        matches!(&error, GeometryError::NoBound { layer, .. } if layer == "blocks.0.attention")
    );
    assert!(
        error.to_string().contains("norms of its projections"),
        "{error}"
    );
}

#[test]
fn inputs_that_could_overflow_are_not_certified() {
    let device = circulant::cpu();
    let model: ImageClassifier = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, 4])
        .with_classes(3)
        .init(&device);
    let x = Tensor::<2>::ones([1, 4], &device);
    let config = CertificateConfig::new().with_input_norm(Some(1e38));
    let certificates = config.certify(&model, x, Target::Predicted).unwrap();
    assert!(!certificates.rounding.is_finite());
    assert!(!certificates.inputs[0].is_certified());
    assert_eq!(certificates.inputs[0].best().get(), 0.0);
}
