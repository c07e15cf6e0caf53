//! Networks of Lipschitz constant one, trained for a certified radius: training, a distribution over them, and what a set says about both.

pub mod bayes;
mod certification;
pub mod evaluation;
pub mod folder;
pub mod inspection;
pub mod loaded;
mod published;
mod report;
pub mod results;
pub mod settings;
pub mod training;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use circulant::bayes::Bayesian;
use circulant::models::OrthogonalNetwork;

use self::evaluation::{CertifiedEvaluation, Unfamiliar};
use self::folder::{CertifiedFolder, Temperatures};
use self::results::{CertifiedResult, CertifiedResults, CertifiedRunResult};
use self::settings::{CertifiedConfig, rounded};
use self::training::{CertifiedImages, train};
use super::folder::{DataFacts, pretty, write_report};
use super::interrupt::Interrupt;
use super::vit::sets::VitSets;
use crate::files::write;
use crate::ranks::ranks;
use circulant_data::ImageSet;

pub use evaluation::Judging;
pub use report::document;
pub use results::plain;

pub struct CertifiedPlan {
    pub sets: VitSets,
    /// One run each; those of one network and radius are neighbours.
    pub configs: Vec<CertifiedConfig>,
    pub judging: Judging,
    /// Whether held-out images judge, and the test set is left alone.
    pub validate: bool,
    pub unfamiliar: Vec<Unfamiliar>,
    pub out: PathBuf,
}

/// A run after training and evaluation.
struct Outcome {
    folder: CertifiedFolder,
    result: CertifiedRunResult,
}

pub struct CertifiedExperiment {
    pub plan: CertifiedPlan,
    outcomes: Vec<Outcome>,
    pub start: Instant,
}

/// Refuses several ranks: no part of this is shared out among them.
pub fn ensure_one_process() -> anyhow::Result<()> {
    ensure!(
        ranks().is_alone(),
        "networks trained for a radius are trained by one process; leave mpirun out"
    );
    Ok(())
}

/// Trains the network of a folder, and the distribution if the settings ask for one, and chooses their temperatures.
pub fn train_all(
    folder: &CertifiedFolder,
    images: CertifiedImages<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<(OrthogonalNetwork, Option<Bayesian<OrthogonalNetwork>>)> {
    let network = train(folder, images, interrupt)?;
    let bayesian = match folder.config.certified.bayesian_epochs {
        0 => None,
        _ => Some(bayes::infer(folder, network.clone(), images, interrupt)?),
    };
    if !folder.has_temperatures() {
        write_temperatures(
            folder,
            network.clone(),
            bayesian.as_ref(),
            images.validation,
        )?;
    }
    Ok((network, bayesian))
}

/// Chooses the temperatures of both by held-out images, for predictions.
fn write_temperatures(
    folder: &CertifiedFolder,
    network: OrthogonalNetwork,
    bayesian: Option<&Bayesian<OrthogonalNetwork>>,
    held_out: &ImageSet,
) -> anyhow::Result<()> {
    let normalisation = &folder.normalisation();
    let of =
        |network| bayes::temperature(network, held_out, normalisation, bayes::CALIBRATION_SAMPLES);
    let alone = bayes::alone(network)?;
    folder.write_temperatures(&Temperatures {
        network: bayes::temperature(&alone, held_out, normalisation, 1)?,
        posterior: bayesian.map(of).transpose()?,
    })
}

impl CertifiedPlan {
    /// All seeds, once.
    pub fn seeds(&self) -> Vec<u64> {
        let seeds = self.configs.iter().map(|config| config.certified.seed);
        let mut seeds: Vec<u64> = seeds.collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds
    }

    /// Trains and evaluates everything that is not there yet.
    pub fn run(self, interrupt: &Interrupt) -> anyhow::Result<CertifiedExperiment> {
        ensure_one_process()?;
        ensure!(
            !self.configs.is_empty(),
            "expected at least one radius and one seed"
        );
        let start = Instant::now();
        let facts = DataFacts::of(&self.sets.images.training);
        let mut outcomes = Vec::new();
        for config in &self.configs {
            outcomes.push(self.outcome(config, &facts, interrupt)?);
        }
        Ok(CertifiedExperiment {
            plan: self,
            outcomes,
            start,
        })
    }

    fn outcome(
        &self,
        config: &CertifiedConfig,
        facts: &DataFacts,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Outcome> {
        let network = format!(
            "radius-{}-{}",
            rounded(config.certified.radius),
            config.widths()
        );
        let seed = format!("seed-{}", config.certified.seed);
        let path = self.out.join("runs").join(network).join(seed);
        let folder = CertifiedFolder::at(&path, config.clone(), facts.clone())?;
        let images = CertifiedImages {
            training: &self.sets.images.training,
            validation: &self.sets.images.validation,
        };
        let (network, bayesian) = train_all(&folder, images, interrupt)?;
        let evaluation = self.evaluation(&folder, &network, bayesian.as_ref())?;
        let epochs = folder.epochs()?;
        let last = epochs.last().context("no epoch is whole")?;
        let result = CertifiedRunResult {
            seed: config.certified.seed,
            seconds: last.seconds,
            evaluation,
            epochs,
        };
        Ok(Outcome { folder, result })
    }

    /// What the set says, once: the same question again gets the answer that was written down.
    fn evaluation(
        &self,
        folder: &CertifiedFolder,
        network: &OrthogonalNetwork,
        bayesian: Option<&Bayesian<OrthogonalNetwork>>,
    ) -> anyhow::Result<CertifiedEvaluation> {
        let validation = &self.sets.images.validation;
        let (part, set) = match self.validate {
            true => ("held out", validation),
            false => ("test", &self.sets.test),
        };
        let known = read(&folder.evaluation())?;
        if let Some(known) =
            known.filter(|known| known.judging == self.judging && known.part == part)
        {
            return Ok(known);
        }
        let judging = &self.judging;
        let mut found = judging.evaluate(folder, network, part, set)?;
        if let Some(bayesian) = bayesian {
            let others = &self.unfamiliar;
            let own = judging.evaluate_bayesian(folder, bayesian, set, others)?;
            found.bayesian = Some(own);
        }
        write(&folder.evaluation(), pretty(&found)?)?;
        Ok(found)
    }
}

fn read(path: &Path) -> anyhow::Result<Option<CertifiedEvaluation>> {
    if !path.exists() {
        return Ok(None);
    }
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // One of another version is made anew.
    Ok(serde_json::from_str(&text).ok())
}

impl CertifiedExperiment {
    /// What changes the meaning of the numbers.
    fn warnings(&self) -> Vec<String> {
        let held_out = "Judged by held-out training images, not by the test set.".to_owned();
        self.plan.validate.then_some(held_out).into_iter().collect()
    }

    pub fn results(&self) -> CertifiedResults {
        let same = |one: &Outcome, other: &Outcome| {
            let [one, other] = [one, other].map(|outcome| &outcome.folder.config);
            one.model == other.model && one.certified.radius == other.certified.radius
        };
        let models = self.outcomes.chunk_by(same).map(|own| {
            let folder = &own[0].folder;
            let runs = own.iter().map(|outcome| outcome.result.clone());
            CertifiedResult::new(&folder.config, folder.facts.parameters, runs.collect())
        });
        let (images, test) = (&self.plan.sets.images, &self.plan.sets.test);
        CertifiedResults {
            data: self.plan.sets.place.clone(),
            images: [images.training.len(), images.validation.len(), test.len()],
            models: models.collect(),
            settings: self.plan.configs[0].clone(),
        }
    }

    /// Writes `report.html`, its figures as files, and `results.json`, which is there only when everything else is.
    pub fn write(&self) -> anyhow::Result<CertifiedResults> {
        let results = self.results();
        write_report(&self.plan.out, &document(self, &results), &results)?;
        Ok(results)
    }
}
