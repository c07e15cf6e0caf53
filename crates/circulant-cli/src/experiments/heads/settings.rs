//! The nine heads, and what they share.

use super::super::config::{ModelKind, RunConfig};
use super::super::mnist::settings::Variant;

/// Widths of the dense heads.
pub const WIDTHS: [usize; 2] = [32, 128];
/// `K` of the spectral heads besides the whole half spectrum.
pub const MODES: [usize; 5] = [768, 512, 256, 128, 64];

/// What all heads share.
pub fn shared() -> RunConfig {
    let mut config = RunConfig::default();
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
        fit_rank(&mut config, features);
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

/// A head of few coordinates has no room for a posterior of high rank.
pub fn fit_rank(config: &mut RunConfig, features: usize) {
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
