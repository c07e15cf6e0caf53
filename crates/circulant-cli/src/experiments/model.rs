//! From settings to a Bayesian network.

use anyhow::{Context, ensure};
use circulant::bayes::{Bayesian, BayesianConfig, Site, Slope};
use circulant::models::{
    HiddenKind, ImageClassifier, ImageClassifierConfig, Likelihood, TargetNetwork,
    TargetNetworkConfig, weight_sites,
};

use super::config::{Inference, RunConfig};

/// Makes the network of a run for images `[channels, height, width]`, on the device that trains.
pub fn network(
    config: &RunConfig,
    image: [usize; 3],
    classes: usize,
) -> anyhow::Result<Bayesian<ImageClassifier>> {
    let device = circulant::cpu().autodiff();
    let model = classifier(config, image, classes)
        .try_init(&device)
        .context("such a model cannot be made")?;
    Ok(sites(config, &model, "")?.init(model)?)
}

/// The same for a table whose target is a number or a count.
pub fn target_network(
    config: &RunConfig,
    columns: usize,
    likelihood: Likelihood,
) -> anyhow::Result<Bayesian<TargetNetwork>> {
    let device = circulant::cpu().autodiff();
    let likelihood = noise_of(config, likelihood);
    let layers = classifier(config, [1, 1, columns], likelihood.outputs());
    let model = TargetNetworkConfig::new(layers, likelihood)
        .try_init(&device)
        .context("such a model cannot be made")?;
    let sites = sites(config, &model.layers, "layers.")?;
    let sites = match likelihood {
        Likelihood::Poisson => sites,
        // A scale, which standardised targets have between 0.01 and 1.
        _ => sites.with_site(
            "noise",
            Site::mean_field(NOISE_PRIOR).with_initial_deviation(0.05),
        ),
    };
    let sites = match config.posterior.inference {
        Inference::Bayesian => sites,
        Inference::Point => sites.into_point_estimate(),
    };
    Ok(sites.init(model)?)
}

/// A trained classifier with the temperature of its settings.
pub(super) fn calibrated(
    config: &RunConfig,
    network: Bayesian<ImageClassifier>,
) -> anyhow::Result<Bayesian<ImageClassifier>> {
    Ok(match config.posterior.temperature {
        None => network,
        Some(temperature) => network.with_scaled("output", temperature.recip())?,
    })
}

/// A trained regression with the noise of its settings.
pub(super) fn calibrated_targets(
    config: &RunConfig,
    network: Bayesian<TargetNetwork>,
) -> anyhow::Result<Bayesian<TargetNetwork>> {
    let network = match config.posterior.noise_factor {
        None => network,
        Some(factor) => network.with_shifted("noise", factor.ln())?,
    };
    Ok(match config.posterior.noise_spread {
        None => network,
        Some(spread) => network.with_widened("noise", spread)?,
    })
}

/// Numbers have the noise that the settings say.
pub fn noise_of(config: &RunConfig, likelihood: Likelihood) -> Likelihood {
    match likelihood {
        Likelihood::Gaussian if config.posterior.noise_per_input => Likelihood::GaussianPerInput,
        likelihood => likelihood,
    }
}

/// The prior deviation of the logarithm of the noise.
const NOISE_PRIOR: f64 = 3.0;

/// Refuses sizes that a file of so many bytes cannot have, before they fill the memory.
pub fn ensure_fits(
    config: &RunConfig,
    image: [usize; 3],
    classes: usize,
    bytes: u64,
) -> anyhow::Result<()> {
    let rank = (config.posterior.inference == Inference::Bayesian).then_some(config.posterior.rank);
    let least = classifier(config, image, classes).least_values(rank);
    let least =
        least.context("the settings describe a model of more values than can be counted")?;
    ensure!(
        least as u64 <= bytes / size_of::<f32>() as u64,
        "not a complete checkpoint: the settings describe a model of {least} values or more, the file has {bytes} bytes"
    );
    Ok(())
}

/// The settings of the layers.
pub(super) fn classifier(
    config: &RunConfig,
    image: [usize; 3],
    classes: usize,
) -> ImageClassifierConfig {
    ImageClassifierConfig::new(config.model.kind.hidden())
        .with_image(image)
        .with_classes(classes)
        .with_channels(config.model.channels)
        .with_width(config.model.width)
        .with_modes(config.model.modes)
        .with_block(config.model.block)
        .with_depth(config.model.depth)
        .with_lift(config.model.lift)
        .with_initial_scale(config.model.initial_scale)
        .with_seed(config.training.seed)
}

/// Posterior and prior of every parameter of a classifier, which is in the field `before` of the network.
fn sites(
    config: &RunConfig,
    model: &ImageClassifier,
    before: &str,
) -> anyhow::Result<BayesianConfig> {
    let posterior = &config.posterior;
    let deviation = posterior.initial_deviation;
    let hidden = posterior.hidden_deviation.unwrap_or(deviation);
    let mut sites = BayesianConfig::new()
        .with_default(Site::default().with_relative_deviation(deviation))
        .with_seed(config.training.seed);
    for (name, layer) in model.hidden_layers() {
        let weights = match layer.kind() {
            HiddenKind::SpatialCirculant | HiddenKind::SpatialBccb => "filter",
            HiddenKind::Convolution | HiddenKind::Dense => "weight",
            // Below, with their prior.
            _ => continue,
        };
        let site = Site::default().with_relative_deviation(hidden);
        sites = sites.with_site(format!("{before}{name}.{weights}"), site);
    }
    if let Some(size) = posterior.weight_deviation {
        for (name, site) in weight_sites(model, size) {
            let initial = match name.starts_with("output.") {
                true => deviation,
                false => hidden,
            };
            let site = site.with_relative_deviation(initial);
            sites = sites.with_site(format!("{before}{name}"), site);
        }
    }
    for (name, layer) in model.hidden_layers() {
        let Some(layout) = layer.spectrum_layout() else {
            continue;
        };
        let site = if posterior.learn_slope {
            Site::learned_slope(&layout, posterior.prior_deviation)?
        } else {
            let slope = Slope {
                deviation: posterior.prior_deviation,
                alpha: posterior.slope,
            };
            Site::spectral(&layout, &slope)?
        };
        let site = site
            .with_rank(posterior.rank)
            .with_relative_deviation(hidden);
        sites = sites.with_site(format!("{before}{name}.coordinates"), site);
    }
    Ok(match posterior.inference {
        Inference::Bayesian => sites,
        Inference::Point => sites.into_point_estimate(),
    })
}
