//! The nine heads, and what they share.

use super::super::config::{ModelKind, RunConfig};
use super::super::variant::Variant;

/// Widths of the dense heads.
pub const WIDTHS: [usize; 2] = [32, 128];
/// `K` of the spectral heads besides the whole half spectrum.
pub const MODES: [usize; 5] = [768, 512, 256, 128, 64];

/// What all heads share. Steps, optimiser and its first learning rate are the paper's. That it falls, the sizes of initial weights and deviations
/// and the slope were chosen on 5,000 training images held out for that: spectral 0.25 of 0.25 to 4, dense 2 of 0.5 to 4, spatial 4 of 1 to 4.
pub fn shared() -> RunConfig {
    let mut config = RunConfig::default();
    config.posterior.initial_deviation = 1.0;
    // Features have no order, so no frequency is more probable than another.
    config.posterior.slope = 0.0;
    config.training.final_rate = Some(0.0);
    // One at the end; a run takes seconds.
    config.training.checkpoint_every = u64::MAX >> 1;
    config
}

/// The heads for so many features, as the paper lists them: dense, spatial, spectral with falling `K`.
pub fn heads(shared: &RunConfig, features: usize) -> Vec<Variant> {
    let head = |name: String, title: String, kind, change: &dyn Fn(&mut RunConfig)| {
        let mut config = shared.clone();
        config.model.kind = kind;
        change(&mut config);
        complete(&mut config, features);
        Variant {
            name,
            title,
            config,
        }
    };
    let dense = WIDTHS.map(|width| {
        head(
            format!("dense-{width}"),
            format!("dense {width}"),
            ModelKind::Dense,
            &|config| config.model.width = Some(width),
        )
    });
    let full = features / 2 + 1;
    let spatial = head(
        "circulant".to_owned(),
        "spatial circulant".to_owned(),
        ModelKind::Circulant,
        &|_| {},
    );
    let whole = head(
        "spectral".to_owned(),
        format!("spectral, K = {full}"),
        ModelKind::SpectralCirculant,
        &|_| {},
    );
    let fewer = MODES
        .into_iter()
        .filter(|&modes| modes < full)
        .map(|modes| {
            head(
                format!("spectral-{modes}"),
                format!("spectral, K = {modes}"),
                ModelKind::SpectralCirculant,
                &|config| config.model.modes = Some(modes),
            )
        });
    dense
        .into_iter()
        .chain([spatial, whole])
        .chain(fewer)
        .collect()
}

/// What follows from the kind and the size of a head: the initial scale, and a rank that its coordinates have room for.
pub fn complete(config: &mut RunConfig, features: usize) {
    config.model.initial_scale = match config.model.kind {
        ModelKind::SpectralCirculant | ModelKind::BlockCirculant | ModelKind::SpectralBccb => 0.25,
        ModelKind::Circulant | ModelKind::Bccb => 4.0,
        ModelKind::Dense | ModelKind::Conv2d => 2.0,
    };
    let coordinates = match config.model.modes {
        Some(modes) => (2 * modes).saturating_sub(1).min(features),
        None => features,
    };
    config.posterior.rank = config.posterior.rank.min(coordinates).max(1);
}

/// `K` of a spectral head.
pub fn modes(config: &RunConfig, features: usize) -> Option<usize> {
    let spectral = config.model.kind == ModelKind::SpectralCirculant;
    spectral.then(|| config.model.modes.unwrap_or(features / 2 + 1))
}
