//! Training runs: reproducible, guarded against NaN, with networks and choices of one's own.

use std::ops::ControlFlow;

use burn::module::Module;
use burn::optim::{AdamWConfig, SgdConfig};
use burn::tensor::{Device, Tensor};
use circulant::bayes::{
    BayesError, BayesianConfig, PosteriorKind, PredictiveConfig, Prior, Site, Stop, Svi, SviConfig,
};
use circulant::data::{BatchOrder, LabelledData};
use circulant::functional::tanh;
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
use circulant::nn::{SpectralCirculant1d, SpectralCirculant1dConfig};
use circulant::noise::{Noise, Purpose};
use circulant::record;
use circulant::task::Classifier;

pub fn device() -> Device {
    circulant::cpu().autodiff()
}

/// Images with a bright block whose place is the class.
pub fn data(examples: usize) -> LabelledData<4> {
    let labels: Vec<i64> = (0..examples).map(|i| (i * 7 % 10) as i64).collect();
    let pixel = |example: usize, pixel: usize| {
        let noise = (example * 784 + pixel) * 7919 % 1009;
        let block = pixel / 78 == labels[example] as usize;
        noise as f32 / 2000.0 + if block { 0.5 } else { 0.0 }
    };
    let inputs = (0..examples * 784)
        .map(|i| pixel(i / 784, i % 784))
        .collect();
    LabelledData::new(inputs, [examples, 1, 28, 28], &labels, 10, &device()).expect("valid")
}

pub fn run(kind: HiddenKind, config: SviConfig, data: &LabelledData<4>) -> Svi<ImageClassifier> {
    let model = ImageClassifierConfig::new(kind)
        .with_seed(3)
        .init(&device());
    let network = BayesianConfig::new()
        .with_seed(4)
        .init(model)
        .expect("valid");
    Svi::new(network, config, data.examples()).expect("valid")
}

pub fn config() -> SviConfig {
    SviConfig::new().with_batch(32).with_seed(9)
}

/// Trains, and returns the data terms.
pub fn fit(svi: &mut Svi<ImageClassifier>, data: &LabelledData<4>) -> Vec<f64> {
    let mut losses = Vec::new();
    svi.fit(data, None, |report| {
        losses.push(report.data);
        ControlFlow::Continue(())
    })
    .expect("trains");
    losses
}

/// All numbers of a module, by name.
pub fn numbers<M: Module + burn::module::ModuleDisplay>(module: &M) -> Vec<(String, Vec<u8>)> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x.safetensors");
    record::save(module, &path).expect("saves");
    let bytes = std::fs::read(path).expect("reads");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("valid");
    let mut tensors: Vec<_> = tensors
        .tensors()
        .into_iter()
        .map(|(name, view)| (name, view.data().to_vec()))
        .collect();
    tensors.sort();
    tensors
}

#[test]
fn all_kinds_of_models_learn() {
    let data = data(320);
    for kind in HiddenKind::ALL {
        // A step of Adam moves all 784 numbers of a spatial filter by the learning rate, and its spectrum by up to 784 times
        // that: 1e-2, right for coordinates, is too much for it.
        let settings = config().with_steps(80).with_learning_rate(2e-3);
        let mut svi = run(kind, settings, &data);
        let losses = fit(&mut svi, &data);
        let late = losses[75..].iter().sum::<f64>() / 5.0;
        assert!(late < 0.8 * losses[0], "{kind:?}: {} to {late}", losses[0]);
        let network = svi.into_network();
        let predictions = PredictiveConfig::new()
            .with_samples(5)
            .predict(&network, data.inputs())
            .expect("predicts");
        let right = predictions
            .classes_of_inputs()
            .zip(data.labels())
            .filter(|(class, label)| class == *label)
            .count();
        assert!(right > 160, "{kind:?}: {right} of 320 right");
        let sums = predictions.probabilities.chunks_exact(10);
        assert!(
            sums.into_iter()
                .all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5)
        );
        // Before it is cut off at zero: only rounding may be below.
        let information = predictions.predictive_entropy.iter();
        let mut information = information.zip(&predictions.expected_entropy);
        assert!(information.all(|(all, expected)| all - expected > -1e-5));
        let known: f32 = predictions.mutual_information().sum();
        assert!(known > 0.0, "{kind:?}: samples differ");
    }
}

/// What a step reports is the objective of the batch and of the parameters before it.
#[test]
fn reports_are_cross_entropy_and_kl_per_example() {
    let data = data(64);
    let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_seed(3)
        .init(&device());
    let network = BayesianConfig::new().into_point_estimate();
    let network = network.init(model).expect("valid");
    // A point is not drawn, so both terms follow from the network alone.
    let noise = Noise::new(1, Purpose::Training, 0, 0);
    let (drawn, kl) = network.sample_with_kl(noise, 1.0 / 64.0);
    let kl: f32 = kl.into_scalar();
    let rows = BatchOrder::new(9, 64, 32).expect("valid").at(0).to_vec();
    let logits = drawn.forward(data.batch(&rows).into_autodiff().batch());
    let logits: Vec<f32> = logits.into_data().try_into_vec().expect("f32");
    let cross_entropy = |(row, &example): (&[f32], &usize)| -> f64 {
        let sum: f64 = row.iter().map(|&z| f64::from(z).exp()).sum();
        sum.ln() - f64::from(row[data.labels()[example]])
    };
    let rows = logits.chunks_exact(10).zip(&rows);
    let expected = rows.map(cross_entropy).sum::<f64>() / 32.0;
    let mut svi = Svi::new(network, config(), 64).expect("valid");
    svi.fit(&data, None, |report| {
        let close = |got: f64, expected: f64| (got - expected).abs() < 1e-4 * expected.abs();
        assert!(close(report.data, expected), "{} {expected}", report.data);
        assert!(close(report.kl, f64::from(kl)), "{} {kl}", report.kl);
        assert!(close(report.loss, expected + f64::from(kl)));
        ControlFlow::Break(())
    })
    .expect("trains");
}

/// Posterior samples in one go give the same logits as one network at a time.
#[test]
fn members_share_the_input_transform_and_nothing_else() {
    let images = data(5).inputs();
    for kind in HiddenKind::ALL {
        let members: Vec<ImageClassifier> = (0..3)
            .map(|seed| {
                let config = ImageClassifierConfig::new(kind).with_seed(seed);
                config.init(&circulant::cpu())
            })
            .collect();
        let together = ImageClassifier::ensemble(members.clone())(images.clone());
        assert_eq!(together.dims(), [3, 5, 10]);
        for (index, member) in members.iter().enumerate() {
            let alone = member.forward(images.clone());
            let shared = together.clone().narrow(0, index, 1).squeeze_dim::<2>(0);
            let gap: f32 = (alone - shared).abs().max().into_scalar();
            assert!(gap < 1e-4, "{kind:?}: {gap}");
        }
    }
}

#[test]
fn one_seed_gives_the_same_bytes() {
    let data = data(64);
    let run = |seed: u64| {
        let config = config().with_seed(seed).with_steps(6);
        let mut svi = run(HiddenKind::SpectralCirculant, config, &data);
        fit(&mut svi, &data);
        let network = svi.into_network();
        let predictions = PredictiveConfig::new()
            .with_samples(3)
            .with_seed(seed)
            .predict(&network, data.inputs())
            .expect("predicts");
        (numbers(&network), predictions)
    };
    // Not assert_eq, which would print all of them.
    assert!(run(1) == run(1));
    assert!(run(1).0 != run(2).0);
}

/// The batch of a prediction is a matter of memory, not of numbers.
#[test]
fn predictions_do_not_depend_on_the_batch() {
    let data = data(50);
    let network = run(HiddenKind::SpectralBccb, config(), &data).into_network();
    let predict = |batch: usize| {
        PredictiveConfig::new()
            .with_samples(4)
            .with_batch(batch)
            .predict(&network, data.inputs())
            .expect("predicts")
    };
    let (all, some) = (predict(50), predict(7));
    let gap = all.probabilities.iter().zip(&some.probabilities);
    assert!(gap.into_iter().all(|(a, b)| (a - b).abs() < 1e-5));
}

#[test]
fn divergence_names_the_parameter() {
    let data = data(40);
    let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&device());
    let network = BayesianConfig::new().init(model).expect("valid");
    // Steps this large overflow within a few.
    let settings = config().with_learning_rate(1e30);
    let optimizer = SgdConfig::new().init();
    let mut svi = Svi::with_optimizer(network, optimizer, settings, 40).expect("valid");
    let error = svi
        .fit(&data, None, |_| ControlFlow::Continue(()))
        .expect_err("diverges");
    let BayesError::Diverged {
        parameter, step, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(*step > 0);
    assert!(
        ["hidden.", "output."]
            .iter()
            .any(|name| parameter.starts_with(name)),
        "{error}"
    );
}

/// A parameter that is not finite is found before anything is trained or saved.
#[test]
fn a_poisoned_parameter_is_named_and_never_saved() {
    let data = data(40);
    let mut model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&device());
    let bias = model.output.bias.take().expect("has one");
    model.output.bias = Some(bias.map(|bias| bias.mul_scalar(f32::NAN).detach().require_grad()));
    let network = BayesianConfig::new().init(model).expect("valid");
    let mut svi = Svi::new(network, config(), 40).expect("valid");
    let error = svi.fit(&data, None, |_| ControlFlow::Continue(()));
    let error = error.expect_err("not finite").to_string();
    assert!(error.contains("output.bias.posterior.mean"), "{error}");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.safetensors");
    std::fs::write(&path, "precious").expect("writes");
    let error = svi.save(&path, 0).expect_err("not finite").to_string();
    assert!(error.contains("output.bias.posterior.mean"), "{error}");
    assert_eq!(std::fs::read(&path).expect("reads"), b"precious");
}

#[test]
fn stops_when_asked_and_when_nothing_improves() {
    let data = data(40);
    let mut svi = run(HiddenKind::SpectralCirculant, config(), &data);
    let stop = svi.fit(&data, None, |report| {
        if report.step == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(stop.expect("trains"), Stop::Asked);
    assert_eq!(svi.steps_done(), 3);
    // Steps that are too small to change anything.
    let still = config()
        .with_learning_rate(1e-12)
        .with_patience(Some(20))
        .with_steps(5000);
    let mut svi = run(HiddenKind::SpectralCirculant, still, &data);
    let stop = svi.fit(&data, None, |_| ControlFlow::Continue(()));
    assert_eq!(stop.expect("trains"), Stop::Converged);
}

/// A network of one's own, with any optimiser, and with a choice per parameter.
#[test]
fn a_network_of_ones_own() {
    #[derive(Module, Debug)]
    struct Mine {
        mix: SpectralCirculant1d,
        read: burn::nn::Linear,
    }
    impl Classifier<2> for Mine {
        fn logits(&self, x: Tensor<2>) -> Tensor<2> {
            self.read.forward(tanh(self.mix.forward(x)))
        }
    }
    let model = Mine {
        mix: SpectralCirculant1dConfig::new(8)
            .with_seed(Some(0))
            .init(&device()),
        read: burn::nn::LinearConfig::new(8, 3).init(&device()),
    };
    let config = BayesianConfig::new()
        .with_default(Site::deterministic())
        .with_site(
            "mix.coordinates",
            Site::default_spectral(&model.mix.spectrum_layout()),
        )
        .with_site("read.weight", Site::mean_field(2.0));
    let network = config.init(model.clone()).expect("valid");
    let paths: Vec<&str> = network.posteriors().map(|(path, _)| path).collect();
    assert_eq!(paths, ["mix.coordinates", "read.weight"]);
    // 8*(8+2)+8 low-rank, 2*24 mean-field, biases 1 and 3.
    assert_eq!(network.num_params(), 88 + 48 + 4);
    let inputs: Vec<f32> = (0..60 * 8)
        .map(|i| (i * 37 % 11) as f32 / 5.0 - 1.0)
        .collect();
    let labels: Vec<i64> = (0..60).map(|i| i % 3).collect();
    let data = LabelledData::new(inputs, [60, 8], &labels, 3, &device()).expect("valid");
    let clipped = AdamWConfig::new()
        .with_grad_clipping(Some(burn::grad_clipping::GradientClippingConfig::Norm(1.0)))
        .init();
    let settings = SviConfig::new()
        .with_steps(5)
        .with_batch(20)
        .with_samples(2);
    let bias = network.mean().read.bias.expect("has one").val();
    let mut svi = Svi::with_optimizer(network, clipped, settings, 60).expect("valid");
    svi.fit(&data, None, |_| ControlFlow::Continue(()))
        .expect("trains");
    let trained = svi.network().mean().read.bias.expect("has one").val();
    let moved: f32 = (trained - bias).abs().max().into_scalar();
    assert!(moved > 0.0, "deterministic parameters are trained as well");
    // The point estimate of the same definition.
    let point = config.into_point_estimate().init(model).expect("valid");
    assert_eq!(point.num_params(), 8 + 24 + 4);
}

#[test]
fn wrong_choices_are_named() {
    let model = || ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&device());
    let error = |site: Site| {
        BayesianConfig::new()
            .with_site("hidden.coordinates", site)
            .init(model())
            .expect_err("wrong choice")
            .to_string()
    };
    let site = || Site::default_spectral(&model().hidden.spectrum_layout().expect("spectral"));
    assert!(error(site().with_rank(0)).contains("1..=784, got 0"));
    assert!(error(site().with_rank(785)).contains("1..=784, got 785"));
    assert!(error(Site::mean_field(f64::NAN)).contains("NaN"));
    assert!(error(Site::mean_field(1.0).with_prior(Prior::Diagonal(vec![1.0; 3]))).contains("784"));
    let negative = Prior::Diagonal(vec![-1.0; 784]);
    assert!(error(Site::mean_field(1.0).with_prior(negative)).contains("-1"));
    assert!(error(site().with_initial_deviation(0.0)).contains("initial deviation"));
    assert!(error(site().with_relative_deviation(-1.0)).contains("relative initial deviation"));
    let low_rank = PosteriorKind::LowRank {
        rank: 2,
        jitter: -1.0,
    };
    assert!(error(site().with_posterior(low_rank)).contains("jitter"));

    let network = || BayesianConfig::new().init(model()).expect("valid");
    let settings = |config: SviConfig, examples: usize| {
        Svi::new(network(), config, examples)
            .map(|_| ())
            .expect_err("wrong settings")
            .to_string()
    };
    assert!(settings(SviConfig::new(), 0).contains("empty"));
    assert!(settings(SviConfig::new().with_batch(0), 5).contains("batch"));
    assert!(settings(SviConfig::new().with_samples(0), 5).contains("samples"));
    assert!(settings(SviConfig::new().with_learning_rate(f64::NAN), 5).contains("learning rate"));
    let plain = ImageClassifierConfig::new(HiddenKind::Dense).init(&circulant::cpu());
    let plain = BayesianConfig::new().init(plain).expect("valid");
    let error = Svi::new(plain, SviConfig::new(), 5)
        .map(|_| ())
        .expect_err("no autodiff");
    assert!(error.to_string().contains("autodiff"));
    let empty = Tensor::<4>::zeros([0, 1, 28, 28], &circulant::cpu());
    assert!(PredictiveConfig::new().predict(&network(), empty).is_err());
}

/// A relative deviation is the same share of the initial weights in every layer, and of its biases too.
#[test]
fn relative_deviations_follow_the_layers() {
    let model = ImageClassifierConfig::new(HiddenKind::Dense)
        .with_image([1, 3, 5])
        .with_classes(4)
        .init(&circulant::cpu());
    let size = |numbers: &[Tensor<1>]| {
        let all: Vec<f64> = numbers
            .iter()
            .flat_map(|tensor| tensor.to_data().iter::<f64>().collect::<Vec<_>>())
            .collect();
        (all.iter().map(|x| x * x).sum::<f64>() / all.len() as f64).sqrt()
    };
    let output = [
        model.output.weight.val().reshape([60]),
        model.output.bias.as_ref().expect("has one").val(),
    ];
    let network = BayesianConfig::new()
        .with_default(Site::default().with_relative_deviation(0.5))
        .init(model)
        .expect("valid");
    // Many draws of a parameter scatter around its mean by its deviation.
    let biases: Vec<Tensor<1>> = (0..2000)
        .map(|sample| {
            let noise = Noise::new(1, Purpose::Prediction, 0, sample);
            network.sample(noise).output.bias.expect("has one").val()
        })
        .collect();
    let mean = network.mean().output.bias.expect("has one").val();
    let spread: Vec<Tensor<1>> = biases.into_iter().map(|bias| bias - mean.clone()).collect();
    let (found, expected) = (size(&spread), 0.5 * size(&output));
    // 8000 normal numbers: their spread is known to about one part in 100.
    assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
}
