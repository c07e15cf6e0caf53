//! A network that was trained for a radius, used on other data.

use std::path::Path;

use circulant::bayes::{Bayesian, Predictions};
use circulant::geometry::{PredictiveBounds, PredictiveBoundsConfig};
use circulant::models::OrthogonalNetwork;

use super::super::config::DataConfig;
use super::super::evaluation::Sampling;
use super::super::folder::DataFacts;
use super::super::loaded::TrainedRun;
use super::super::source::{self, Held};
use super::bayes;
use super::folder::CertifiedFolder;
use circulant_data::{ImageSet, Split};

/// Which images are held out does not depend on the seed of a run.
pub const SPLIT_SEED: u64 = 0;

/// A trained network with the folder that it came from.
pub struct LoadedCertified {
    /// Settings and facts.
    pub folder: CertifiedFolder,
    /// The distribution over networks, where there is one, else the network that was trained; at the temperature of the held-out images.
    pub network: Bayesian<OrthogonalNetwork>,
    /// Steps of training behind the network.
    pub steps: u64,
    data: DataConfig,
}

impl LoadedCertified {
    /// Opens the folder of a run.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let folder = CertifiedFolder::open(path)?;
        let (network, steps) = folder.network()?;
        let temperatures = folder.temperatures()?;
        let (network, temperature) = match folder.has_posterior() {
            true => (bayes::load(&folder, network)?, temperatures.posterior),
            false => (bayes::alone(network)?, Some(temperatures.network)),
        };
        let factor = temperature.map_or(1.0, f64::recip);
        Ok(Self {
            network: network.with_scaled("output", factor)?,
            steps,
            data: folder.config.data.reading(),
            folder,
        })
    }
}

impl TrainedRun for LoadedCertified {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> &DataFacts {
        &self.folder.facts.data
    }

    fn data_config(&self) -> &DataConfig {
        &self.data
    }

    fn held_out(&self) -> anyhow::Result<Option<ImageSet>> {
        let set = source::images(&self.data.train, Split::Train, &self.data)?;
        Ok(Held::uniform(&set, self.data.validation, SPLIT_SEED)?.validation)
    }

    fn model(&self) -> &'static str {
        "orthogonal"
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn seed(&self) -> u64 {
        self.folder.config.certified.seed
    }

    fn to_toml(&self) -> String {
        self.folder.config.to_toml()
    }

    fn is_bayesian(&self) -> bool {
        self.folder.has_posterior()
    }

    fn predict(
        &self,
        sampling: &Sampling,
        set: &ImageSet,
        title: &str,
    ) -> anyhow::Result<Predictions> {
        sampling.predict(&self.network, set, &self.data.normalisation, title)
    }

    fn bounds(
        &self,
        config: &PredictiveBoundsConfig,
        progress: &mut dyn FnMut(usize, usize),
    ) -> anyhow::Result<PredictiveBounds<4>> {
        Ok(config.bound_with_progress(&self.network, progress)?)
    }
}
