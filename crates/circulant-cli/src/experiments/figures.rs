//! Figures that several reports have.

use circulant::metrics::{ReliabilityDiagram, entropy_density};

use crate::report::figure::{
    Axis, Curve, Distribution, Drawing, Radii, Reliability, certified_accuracy, densities,
    histograms,
};

/// The window near zero, confident predictions, that the paper shows enlarged.
const ENTROPY_ZOOM: [f64; 2] = [0.0, 0.12];

/// Densities of predictive entropies, each under a name.
pub fn entropies(title: &str, classes: usize, sets: &[(&str, &[f32])]) -> anyhow::Result<Drawing> {
    let mut curves = Vec::new();
    for (name, entropies) in sets {
        let curve = entropy_density(entropies, classes, 400)?;
        curves.push(Curve::new(*name, curve.points, curve.densities));
    }
    Ok(densities(
        title,
        "predictive entropy (nats)",
        &curves,
        ENTROPY_ZOOM,
    ))
}

/// Lipschitz bounds of networks drawn from posteriors.
pub fn lipschitz(distributions: &[Distribution]) -> Drawing {
    let x = Axis::log("upper bound on the Lipschitz constant");
    histograms("Lipschitz bounds under the posterior", &x, distributions)
}

/// The share of inputs that are right and certified, by the radius.
pub fn certified(models: &[Radii]) -> Drawing {
    certified_accuracy("Certified accuracy", Axis::log("radius (l2)"), models)
}

/// A reliability diagram as the text of an SVG file.
pub fn reliability(title: &str, diagram: &ReliabilityDiagram) -> String {
    Reliability::from_diagram(title, diagram)
        .draw()
        .standalone()
}
