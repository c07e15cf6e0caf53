//! A distribution over networks of one Lipschitz constant: every draw of the taps is orthogonal again. It begins at the trained network and is
//! inferred with the margin loss in the place of the likelihood; its temperature is that of the held-out images.

use std::time::Instant;

use anyhow::Context;
use burn::module::Module;
use circulant::bayes::{
    BayesError, Bayesian, BayesianConfig, PredictiveConfig, Site, Svi, SviConfig, calibrate,
};
use circulant::models::OrthogonalNetwork;

use super::super::evaluation::labels_of;
use super::super::folder::FACTS;
use super::super::interrupt::Interrupt;
use super::super::progress::{Busy, WorkProgress};
use super::super::source::{few, tensor};
use super::folder::CertifiedFolder;
use super::training::{Batches, CertifiedImages, stopped};
use circulant_data::{ImageSet, Normalisation};

/// The standard deviation that posteriors start with, as a share of the layer's weights.
const INITIAL_DEVIATION: f64 = 0.05;
/// Of the prior of every parameter.
const PRIOR_DEVIATION: f64 = 1.0;
/// The largest learning rate, as a share of that of training.
const RATE: f64 = 0.2;
/// Held-out images that choose the temperature of a distribution.
const CALIBRATION_IMAGES: usize = 1000;
pub const CALIBRATION_SAMPLES: usize = 10;
const CHECKPOINT_EVERY: u64 = 200;

/// Infers the distribution, or reads it if it is there.
pub fn infer(
    folder: &CertifiedFolder,
    network: OrthogonalNetwork,
    images: CertifiedImages<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<Bayesian<OrthogonalNetwork>> {
    let (config, place) = (&folder.config, folder.posterior());
    let mut batches = Batches::new(config, images.training)?;
    let steps = config.certified.bayesian_epochs * batches.per_epoch();
    let training = &config.certified;
    let settings = SviConfig::new()
        .with_steps(steps)
        .with_batch(batches.size())
        .with_learning_rate(RATE * training.learning_rate)
        .with_final_rate(Some(0.0))
        .with_seed(training.seed);
    let mut svi = Svi::new(distribution(network)?, settings, images.training.len())?;
    // The first 64 bits are enough to tell sets apart.
    let fingerprint = folder.facts.data.fingerprint.get(..16).unwrap_or_default();
    let fingerprint = u64::from_str_radix(fingerprint, 16).with_context(|| {
        format!(
            "{}: the fingerprint of the data is no number",
            folder.path().display()
        )
    })?;
    if place.exists() {
        svi.resume(&place, fingerprint).with_context(|| {
            format!(
                "cannot go on with {}; delete it to begin anew",
                place.display()
            )
        })?;
    }
    let loss = config.loss();
    let title = format!("{}, posterior", config.name());
    let mut progress = WorkProgress::new(title, steps);
    let start = Instant::now();
    // Other images than training saw at these steps.
    let offset = config.certified.epochs * batches.per_epoch();
    while svi.steps_done() < steps {
        let step = svi.steps_done();
        let (inputs, labels) = batches.at(offset + step)?;
        let report = svi.step(labels.len(), |model| {
            let sum = loss.sum(model.forward(inputs.clone()), &labels);
            sum.div_scalar(-training.temperature)
        })?;
        progress.at(step + 1, || format!("loss {:.4}", report.loss));
        let asked = interrupt.is_asked();
        let done = svi.steps_done();
        if asked || done.is_multiple_of(CHECKPOINT_EVERY) || done == steps {
            svi.save(&place, fingerprint)?;
        }
        if asked && done < steps {
            progress.clear();
            stopped(folder)?;
        }
    }
    progress.finish(format!(
        "{steps} steps in {:.0} s",
        start.elapsed().as_secs_f64()
    ));
    Ok(svi.into_network())
}

/// A distribution around a trained network.
fn distribution(network: OrthogonalNetwork) -> anyhow::Result<Bayesian<OrthogonalNetwork>> {
    let site = Site::mean_field(PRIOR_DEVIATION).with_relative_deviation(INITIAL_DEVIATION);
    let config = BayesianConfig::new().with_default(site);
    Ok(config.init(network.train())?)
}

/// The distribution of a folder, around its network.
pub fn load(
    folder: &CertifiedFolder,
    network: OrthogonalNetwork,
) -> anyhow::Result<Bayesian<OrthogonalNetwork>> {
    let place = folder.posterior();
    let loaded = distribution(network)?.load_checkpoint(&place);
    let (network, _) = loaded.with_context(|| {
        format!(
            "{} cannot be used; put a whole copy back, or delete it and infer it again with the command in {}",
            place.display(),
            folder.path().join(FACTS).display()
        )
    })?;
    Ok(network)
}

/// The temperature of held-out images. Radii of one network do not depend on it, those of an average do.
pub fn temperature(
    network: &Bayesian<OrthogonalNetwork>,
    held_out: &ImageSet,
    normalisation: &Normalisation,
    samples: usize,
) -> anyhow::Result<f64> {
    let _busy = Busy::new("choosing the temperature");
    let set = few(held_out, CALIBRATION_IMAGES)?;
    let (images, labels) = (tensor(&set, normalisation)?, labels_of(&set)?);
    let predictive = PredictiveConfig::new().with_samples(samples);
    let found = calibrate(network, "output", &labels, |network| {
        predictive.predict::<4, _>(network, images.clone())
    });
    let found: Result<_, BayesError> = found;
    // So few digits that a file gives back the same number.
    Ok(((found?.0 * 1e6).round() / 1e6).max(1e-6))
}

/// A network without a distribution, as one that has only itself to draw.
pub fn alone(network: OrthogonalNetwork) -> anyhow::Result<Bayesian<OrthogonalNetwork>> {
    let config = BayesianConfig::new().with_default(Site::deterministic());
    Ok(config.init(network)?)
}
