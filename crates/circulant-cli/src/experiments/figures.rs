//! Figures that several reports have.

use circulant::metrics::entropy_density;

use crate::report::figure::{
    Axis, CertifiedAccuracy, Densities, Density, Distribution, Drawing, ENTROPY_ZOOM, Histograms,
    Radii,
};

/// Densities of predictive entropies, each under a name.
pub fn entropies(title: &str, classes: usize, sets: &[(&str, &[f32])]) -> anyhow::Result<Drawing> {
    let mut densities = Vec::new();
    for (name, entropies) in sets {
        let curve = entropy_density(entropies, classes, 400)?;
        densities.push(Density::from_curve(*name, &curve));
    }
    let densities = Densities {
        title: title.to_owned(),
        label: "predictive entropy (nats)".to_owned(),
        densities,
        zoom: Some(ENTROPY_ZOOM),
    };
    Ok(densities.draw())
}

/// Lipschitz bounds of networks drawn from posteriors.
pub fn lipschitz(distributions: Vec<Distribution>) -> Drawing {
    Histograms {
        title: "Lipschitz bounds under the posterior".to_owned(),
        x: Axis::log("upper bound on the Lipschitz constant"),
        distributions,
    }
    .draw()
}

/// The share of inputs that are right and certified, by the radius.
pub fn certified(models: Vec<Radii>) -> Drawing {
    CertifiedAccuracy {
        title: "Certified accuracy".to_owned(),
        x: Axis::log("radius (l2)"),
        models,
    }
    .draw()
}
