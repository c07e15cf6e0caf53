//! Settings of the experiment: the defaults of all runs (see `config.rs`), and our own variants.

use super::super::config::{ModelKind, RunConfig};
use super::super::variant::Variant;

/// What all six models share.
pub fn shared() -> RunConfig {
    let mut config = RunConfig::default();
    // One at the end; a run takes seconds.
    config.training.checkpoint_every = u64::MAX >> 1;
    config
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

/// How far small models go with more time, other priors, more layers and more channels.
pub fn beyond(shared: &RunConfig) -> Vec<Variant> {
    let variant = |name: &str, title: &str, kind: ModelKind, change: fn(&mut RunConfig)| {
        let mut config = shared.clone();
        config.model.kind = kind;
        config.training.steps *= LONGER;
        change(&mut config);
        Variant {
            name: name.to_owned(),
            title: title.to_owned(),
            config,
        }
    };
    use ModelKind::{SpectralBccb, SpectralCirculant};
    vec![
        variant(
            "circulant-longer",
            "spectral circulant",
            SpectralCirculant,
            |_| {},
        ),
        variant(
            "circulant-slope-3",
            "spectral circulant, prior slope 3",
            SpectralCirculant,
            |config| config.posterior.slope = 3.0,
        ),
        variant(
            "circulant-learned-slope",
            "spectral circulant, slope learned",
            SpectralCirculant,
            |config| config.posterior.learn_slope = true,
        ),
        variant(
            "circulant-depth-2",
            "two spectral circulant layers",
            SpectralCirculant,
            |config| config.model.depth = 2,
        ),
        variant(
            "circulant-depth-3",
            "three spectral circulant layers",
            SpectralCirculant,
            |config| config.model.depth = 3,
        ),
        variant(
            "bccb-2-channels",
            "spectral BCCB, 2 channels",
            SpectralBccb,
            |config| config.model.channels = Some(2),
        ),
        variant(
            "bccb-3-channels",
            "spectral BCCB, 3 channels",
            SpectralBccb,
            |config| config.model.channels = Some(3),
        ),
    ]
}

/// Steps of our variants, in units of the paper's.
pub const LONGER: u64 = 3;
