//! Settings of the experiment: the defaults of all runs (see `config.rs`), and our own variants.

use super::super::config::{ModelKind, RunConfig};

/// What all six models share.
pub fn shared() -> RunConfig {
    let mut config = RunConfig::default();
    // One at the end; a run takes seconds.
    config.training.checkpoint_every = u64::MAX >> 1;
    config
}

/// A model with settings of its own.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Of its folder and in `results.json`.
    pub name: String,
    /// In tables.
    pub title: String,
    /// Its settings, apart from the seed.
    pub config: RunConfig,
}

/// One of the six.
pub fn paper_model(kind: ModelKind, shared: &RunConfig) -> Variant {
    let mut config = shared.clone();
    config.model.kind = kind;
    Variant {
        name: kind.name().to_owned(),
        title: kind.title().to_owned(),
        config,
    }
}

/// How far small models go with more time, other priors and more layers.
pub fn beyond(shared: &RunConfig) -> Vec<Variant> {
    let variant = |name: &str, title: &str, kind: ModelKind, change: fn(&mut RunConfig)| {
        let mut config = shared.clone();
        config.model.kind = kind;
        change(&mut config);
        Variant {
            name: name.to_owned(),
            title: title.to_owned(),
            config,
        }
    };
    vec![
        variant(
            "circulant-5x",
            "spectral circulant, 5 times the steps",
            ModelKind::SpectralCirculant,
            |config| config.training.steps *= 5,
        ),
        variant(
            "circulant-learned-slope",
            "spectral circulant, slope learned, 5 times the steps",
            ModelKind::SpectralCirculant,
            |config| {
                config.posterior.learn_slope = true;
                config.training.steps *= 5;
            },
        ),
        variant(
            "circulant-depth-2",
            "two spectral circulant layers, 5 times the steps",
            ModelKind::SpectralCirculant,
            |config| {
                config.model.depth = 2;
                config.training.steps *= 5;
            },
        ),
        variant(
            "bccb-3-channels",
            "spectral BCCB, 3 channels, 5 times the steps",
            ModelKind::SpectralBccb,
            |config| {
                config.model.channels = Some(3);
                config.training.steps *= 5;
            },
        ),
    ]
}
