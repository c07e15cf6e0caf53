//! Adam on the posteriors that are off the tape.
//!
//! Each parameter goes through gradient, step and next draw on its own thread, without waiting for the others. That takes moments
//! beside those that Burn's optimiser keeps: its state can be neither read nor set, and its walk over the module takes as
//! long as the steps themselves.

use circulant_kernels::AdamSettings;

use super::Bayesian;
use super::draws::{PlainDraws, PlainSites, StepKeys};
use crate::backend::fused::{PlainGaussian, PlainGradients, PlainMoments};
use crate::train::FusedAdam;

/// The moments of every parameter; `None` for those on the tape, which Burn's optimiser moves.
#[derive(Debug, Clone)]
pub(super) struct SiteAdam {
    adam: FusedAdam,
    moments: Vec<Option<PlainMoments>>,
}

/// A parameter after a step.
pub(super) struct Moved {
    /// For the next step.
    draws: PlainDraws,
    moments: PlainMoments,
    /// The gradients of the step.
    pub(super) gradients: PlainGradients,
}

impl SiteAdam {
    /// Before the first step.
    pub(super) fn new<M>(network: &Bayesian<M>, adam: FusedAdam) -> Self {
        let factors = network.factors.iter();
        let moments = factors.map(|factor| factor.plain().as_ref().map(PlainMoments::zero));
        Self {
            adam,
            moments: moments.collect(),
        }
    }

    /// The settings of step 0, 1, ...
    pub(super) fn settings(&self, learning_rate: f64, step: u64) -> AdamSettings {
        let time = usize::try_from(step + 1).unwrap_or(usize::MAX);
        self.adam.settings(learning_rate, time)
    }

    /// Takes one parameter a step further. Nothing here changes until [`Self::take_over`].
    pub(super) fn advance(
        &self,
        site: usize,
        q: &PlainGaussian,
        gradients: PlainGradients,
        settings: AdamSettings,
        next: &StepKeys,
    ) -> Moved {
        let moments = self.moments[site].as_ref();
        let moments = moments.expect("made for every parameter off the tape");
        let (q, moments) = q.adam(&gradients, moments, settings);
        Moved {
            draws: PlainDraws::new(q, next.of(site)),
            moments,
            gradients,
        }
    }

    /// The step counts: its moments are kept, its posteriors come back.
    pub(super) fn take_over(&mut self, moved: Vec<(usize, Moved)>) -> PlainSites {
        let mut sites = PlainSites(self.moments.iter().map(|_| None).collect());
        for (site, moved) in moved {
            sites.0[site] = Some(moved.draws);
            self.moments[site] = Some(moved.moments);
        }
        sites
    }

    /// All moments, parameter after parameter.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for moments in self.moments.iter().flatten() {
            moments.write(&mut bytes);
        }
        bytes
    }

    /// The same optimiser with the moments that [`Self::to_bytes`] gave; `None` if they are too few or too many for the network.
    pub(super) fn with_bytes<M>(&self, network: &Bayesian<M>, mut bytes: &[u8]) -> Option<Self> {
        let mut read = Self::new(network, self.adam);
        for (factor, moments) in network.factors.iter().zip(&mut read.moments) {
            if let Some(q) = factor.plain() {
                *moments = Some(PlainMoments::read(&q, &mut bytes)?);
            }
        }
        bytes.is_empty().then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;

    use super::super::{BayesianConfig, Site, Svi, SviConfig};
    use super::*;
    use crate::data::LabelledData;
    use crate::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
    use crate::record;
    use crate::task::Classifier;

    const IMAGES: usize = 6;

    fn model() -> ImageClassifier {
        ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
            .with_image([1, 3, 5])
            .with_classes(3)
            .init(&crate::cpu().autodiff())
    }

    fn data() -> LabelledData<4> {
        let pixels = (0..IMAGES * 15).map(|i| (0.7 * i as f32).sin()).collect();
        let device = crate::cpu().autodiff();
        LabelledData::new(pixels, [IMAGES, 1, 3, 5], &[0, 2, 1, 1, 0, 2], 3, &device)
            .expect("valid")
    }

    /// Every kind of posterior for the coordinates, beside a mean-field one, a point and a fixed parameter.
    fn networks() -> Vec<Bayesian<ImageClassifier>> {
        let layout = model().hidden.spectrum_layout().expect("spectral");
        let kinds = [
            Site::default_spectral(&layout).with_rank(3),
            Site::learned_slope(&layout, 0.5).expect("valid"),
            Site::mean_field(0.5),
            Site::point(1.0),
        ];
        let network = |hidden| {
            BayesianConfig::new()
                .with_site("hidden.coordinates", hidden)
                .with_site("hidden.bias", Site::point(2.0))
                .with_site("output.bias", Site::deterministic())
                .init(model())
                .expect("valid")
        };
        kinds.map(network).into()
    }

    fn config() -> SviConfig {
        SviConfig::new().with_batch(4).with_samples(2).with_steps(7)
    }

    fn own(network: &Bayesian<ImageClassifier>) -> Svi<ImageClassifier> {
        Svi::new(network.clone(), config(), IMAGES).expect("valid")
    }

    fn burns(network: &Bayesian<ImageClassifier>) -> Svi<ImageClassifier> {
        let adam = FusedAdam::default().init();
        Svi::with_optimizer(network.clone(), adam, config(), IMAGES).expect("valid")
    }

    fn step(svi: &mut Svi<ImageClassifier>, factor: f64) -> Result<f64, String> {
        let all: Vec<usize> = (0..IMAGES).collect();
        let examples = data().select(&all).into_autodiff();
        let report = svi.step(IMAGES, |model| {
            model.cross_entropy(examples.clone()).mul_scalar(-factor)
        });
        report
            .map(|report| report.loss)
            .map_err(|error| error.to_string())
    }

    type Numbers = BTreeMap<String, Vec<u8>>;

    /// All parameters.
    fn numbers(network: &Bayesian<ImageClassifier>) -> Numbers {
        let bytes = record::to_bytes(network).expect("writes");
        let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("valid");
        let tensors = tensors.tensors().into_iter();
        tensors
            .map(|(name, view)| (name, view.data().to_vec()))
            .collect()
    }

    /// By single steps and by `fit`: all losses, and all parameters.
    fn run(mut svi: Svi<ImageClassifier>) -> (Vec<f64>, Numbers) {
        let mut losses = vec![step(&mut svi, 1.0).expect("finite")];
        svi.fit(&data(), None, |report| {
            losses.push(report.loss);
            if report.step == 3 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .expect("trains");
        losses.push(step(&mut svi, 1.0).expect("finite"));
        (losses, numbers(svi.network()))
    }

    /// To the last bit.
    #[test]
    fn moves_parameters_as_burns_walk_over_the_module_does() {
        for network in networks() {
            let (ours, theirs) = (run(own(&network)), run(burns(&network)));
            assert_eq!(ours.0, theirs.0);
            assert!(ours.1 == theirs.1, "other parameters");
            assert!(ours.1 != numbers(&network));
        }
    }

    #[test]
    fn a_projection_sees_every_step() {
        let projected = |svi: Svi<ImageClassifier>| {
            let clamp = |mut model: ImageClassifier| {
                model.output.weight = model
                    .output
                    .weight
                    .map(|weight| weight.clamp(-0.05, 0.05).detach().require_grad());
                Ok(model)
            };
            run(svi.with_projection(clamp).expect("valid"))
        };
        for network in networks() {
            let (ours, theirs) = (projected(own(&network)), projected(burns(&network)));
            assert!(ours == theirs);
            assert!(ours.1 != run(own(&network)).1, "it changes something");
        }
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        for network in networks() {
            let (mut failing, mut steady) = (own(&network), own(&network));
            for svi in [&mut failing, &mut steady] {
                step(svi, 1.0).expect("finite");
            }
            let error = step(&mut failing, f64::NAN).expect_err("not a number");
            assert!(error.contains("step 1"), "{error}");
            assert!(numbers(failing.network()) == numbers(steady.network()));
            assert!(run(failing) == run(steady));
        }
    }

    #[test]
    fn checkpoints_hold_the_moments() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("run.safetensors");
        for network in networks() {
            let mut svi = own(&network);
            step(&mut svi, 1.0).expect("finite");
            svi.save(&path, 0).expect("saves");
            let mut resumed = own(&network);
            resumed.resume(&path, 0).expect("resumes");
            let moments = |svi: &Svi<_>| svi.site_adam.as_ref().expect("own").to_bytes();
            assert!(moments(&resumed) == moments(&svi));
            assert!(run(resumed) == run(svi));
            // Another optimiser has no use for them.
            let error = burns(&network).resume(&path, 0).expect_err("another one");
            assert!(error.to_string().contains("moments"), "{error}");
        }
    }

    /// Files from before moments were kept apart: good for predictions, not for going on.
    #[test]
    fn old_checkpoints_still_predict() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("run.safetensors");
        let network = &networks()[0];
        let mut svi = burns(network);
        step(&mut svi, 1.0).expect("finite");
        svi.save(&path, 0).expect("saves");
        let mut bytes = std::fs::read(&path).expect("reads");
        let (new, old) = (b"circulant-svi-2", b"circulant-svi-1");
        let at = bytes.windows(new.len()).position(|found| found == new);
        let at = at.expect("the format is named");
        bytes[at..at + old.len()].copy_from_slice(old);
        std::fs::write(&path, bytes).expect("writes");
        let (loaded, steps) = network.clone().load_checkpoint(&path).expect("loads");
        assert_eq!(steps, 1);
        assert!(numbers(&loaded) == numbers(svi.network()));
        let error = own(network).resume(&path, 0).expect_err("old");
        assert!(error.to_string().contains("circulant-svi-1"), "{error}");
    }
}
