//! The layers in modules of a user's own: priors by default, and initial values.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use circulant::bayes::{
    AnyPosterior, BayesianConfig, PosteriorKind, RANK, Site, Slope, SpectralPrior,
};
use circulant::nn::{
    Bccb2dConfig, BlockCirculant1d, BlockCirculant1dConfig, Circulant1dConfig, SpectralBccb2d,
    SpectralBccb2dConfig, SpectralCirculant1d, SpectralCirculant1dConfig,
};
use circulant::noise::{Noise, Purpose};

use crate::common::{host, random};

#[derive(Module, Debug)]
struct Branch {
    narrow: SpectralCirculant1d,
    images: SpectralBccb2d,
}

#[derive(Module, Debug)]
enum Part {
    Branch(Branch),
}

#[derive(Module, Debug)]
struct Own {
    wide: SpectralCirculant1d,
    blocks: BlockCirculant1d,
    parts: Vec<Part>,
    read: Linear,
}

fn own() -> Own {
    let device = circulant::cpu();
    Own {
        wide: SpectralCirculant1dConfig::new(24).init(&device),
        blocks: BlockCirculant1dConfig::new(10, 7, 4).init(&device),
        parts: vec![Part::Branch(Branch {
            narrow: SpectralCirculant1dConfig::new(10)
                .with_modes(Some(4))
                .init(&device),
            images: SpectralBccb2dConfig::new([2, 3], [4, 6])
                .with_radius(0.8)
                .init(&device),
        })],
        read: LinearConfig::new(24, 3).init(&device),
    }
}

/// `KL(q || N(0, v))` of one parameter under a configuration, every other parameter left out.
fn kl(config: BayesianConfig, model: Own, path: &str) -> f32 {
    let network = config.init(model).expect("fits");
    let noise = Noise::new(1, Purpose::Training, 0, 0);
    let (_, kl) = network.sample_with_kl(noise, 1.0);
    assert_eq!(network.posteriors().count(), 1, "{path}");
    kl.into_scalar()
}

#[test]
fn a_spectral_layer_has_the_spectral_prior_wherever_it_is() {
    let model = own();
    let Part::Branch(branch) = &model.parts[0];
    let network = BayesianConfig::new().init(model.clone()).expect("fits");
    let spectral = [
        ("wide.coordinates", model.wide.spectrum_layout()),
        ("blocks.coordinates", model.blocks.spectrum_layout()),
        (
            "parts.0.narrow.coordinates",
            branch.narrow.spectrum_layout(),
        ),
        (
            "parts.0.images.coordinates",
            branch.images.spectrum_layout(),
        ),
    ];
    for (path, factor) in network.posteriors() {
        let layout = spectral.iter().find(|(name, _)| *name == path);
        match (&factor.posterior, layout) {
            (AnyPosterior::LowRank(q), Some((_, layout))) => {
                let prior = SpectralPrior::new(layout, &Slope::default()).expect("fits");
                let rank = RANK.min(prior.variances().len());
                assert_eq!(q.factor.dims(), [prior.variances().len(), rank], "{path}");
            }
            (AnyPosterior::MeanField(_), None) => {}
            (other, _) => panic!("{path} has {other:?}"),
        }
    }
    // The prior by default is the one that could be named.
    for (path, layout) in &spectral {
        let paths = network.posteriors().map(|(path, _)| path.to_owned());
        let others: Vec<String> = paths.filter(|other| other != path).collect();
        let only = |config: BayesianConfig| {
            let config = others.iter().fold(config, |config, other| {
                config.with_site(other.as_str(), Site::deterministic())
            });
            kl(config, model.clone(), path)
        };
        let named = BayesianConfig::new().with_site(*path, Site::default_spectral(layout));
        let normal = Site::default().with_rank(RANK.min(4));
        let normal = BayesianConfig::new().with_site(*path, normal);
        assert_eq!(only(BayesianConfig::new()), only(named), "{path}");
        assert_ne!(only(BayesianConfig::new()), only(normal), "{path}");
    }
}

#[test]
fn a_given_default_holds_for_spectral_layers_too() {
    let network = BayesianConfig::new().with_default(Site::default());
    let network = network.init(own()).expect("fits");
    assert_eq!(network.posteriors().count(), 10);
    for (path, factor) in network.posteriors() {
        let mean_field = matches!(factor.posterior, AnyPosterior::MeanField(_));
        assert!(mean_field, "{path}");
    }
    let points = BayesianConfig::new().into_point_estimate();
    let points = points.init(own()).expect("fits");
    for (path, factor) in points.posteriors() {
        let point = matches!(factor.posterior, AnyPosterior::Point(_));
        assert!(point, "{path}");
    }
    let after = BayesianConfig::new().into_point_estimate().with_site(
        "read.bias",
        Site::default().with_posterior(PosteriorKind::MeanField),
    );
    let after = after.init(own()).expect("fits");
    let (_, bias) = after
        .posteriors()
        .find(|(path, _)| *path == "read.bias")
        .expect("there");
    assert!(matches!(bias.posterior, AnyPosterior::MeanField(_)));
}

#[test]
fn records_and_counts_know_nothing_of_the_marks() {
    let model = own();
    let blocks = 3 * 2 * 4 + 7;
    let count = 24 + 1 + blocks + model.parts[0].num_params() + 24 * 3 + 3;
    assert_eq!(model.num_params(), count);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("own.safetensors");
    circulant::record::save(&model, &path).expect("saved");
    let mut other = own();
    circulant::record::load(&mut other, &path).expect("the same names");
    assert_eq!(
        host(other.wide.coordinates.val()),
        host(model.wide.coordinates.val())
    );
}

#[test]
fn layers_without_a_seed_differ() {
    let device = circulant::cpu();
    macro_rules! check {
        ($config:expr, $field:ident) => {{
            let config = $config;
            let values = || host(config.init(&device).$field.val());
            assert_ne!(values(), values(), "one after the other");
            let config = config.clone().with_seed(Some(7));
            let values = || host(config.init(&device).$field.val());
            assert_eq!(values(), values(), "a seed decides");
        }};
    }
    check!(SpectralCirculant1dConfig::new(9), coordinates);
    check!(Circulant1dConfig::new(9), filter);
    check!(SpectralBccb2dConfig::new([1, 2], [3, 4]), coordinates);
    check!(Bccb2dConfig::new([1, 2], [3, 4]), filter);
    let x = random::<2>(1, [2, 9], &device);
    let config = SpectralCirculant1dConfig::new(9);
    let [query, key] = [config.init(&device), config.init(&device)];
    assert_ne!(host(query.forward(x.clone())), host(key.forward(x)));
}
