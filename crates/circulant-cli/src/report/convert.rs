//! From the library's metrics to figures, the only place where the report knows them.

use circulant::metrics::{DensityCurve, ReliabilityDiagram};

use super::figure::{Density, Reliability, ReliabilityBar};

impl Density {
    /// A density under a name.
    pub fn from_curve(name: impl Into<String>, curve: &DensityCurve) -> Self {
        Self {
            name: name.into(),
            x: curve.points.clone(),
            y: curve.densities.clone(),
        }
    }
}

impl Reliability {
    /// A diagram under a title, with both calibration errors.
    pub fn from_diagram(title: impl Into<String>, diagram: &ReliabilityDiagram) -> Self {
        let bins = diagram.bins.iter().map(|bin| ReliabilityBar {
            lower: bin.lower,
            upper: bin.upper,
            count: bin.count,
            confidence: bin.mean_confidence,
            accuracy: bin.accuracy,
        });
        Self {
            title: title.into(),
            bins: bins.collect(),
            ece: Some(diagram.expected_calibration_error()),
            mce: Some(diagram.maximum_calibration_error()),
        }
    }
}
