//! The geometry of a trained network at test images, as the reports of two experiments have it.

use burn::module::Module;
use circulant::bayes::Bayesian;
use circulant::geometry::{
    Certificate, CertificateConfig, Certificates, PosteriorGeometry, PosteriorGeometryConfig,
    Quantiles, Target,
};
use circulant::models::ImageClassifier;

use super::evaluation::labels_of;
use super::source::tensor;
use crate::report::figure::{Distribution, Radii};
use circulant_data::{ImageSet, Normalisation};

/// Test inputs that are certified.
pub const CERTIFIED: usize = 1000;
/// Networks drawn from the posterior.
pub const DRAWN: usize = 50;

/// What was measured.
pub struct NetworkGeometry {
    /// Of the posterior's mean.
    pub certificates: Certificates,
    /// Of networks drawn from the posterior.
    pub posterior: PosteriorGeometry,
}

impl NetworkGeometry {
    /// Certifies the posterior's mean at the first [`CERTIFIED`] inputs, and every drawn network at the first `per_sample`
    /// ones.
    pub fn measure(
        network: &Bayesian<ImageClassifier>,
        test: &ImageSet,
        normalisation: &Normalisation,
        per_sample: usize,
    ) -> anyhow::Result<Self> {
        let (test, few) = (test.first(CERTIFIED), test.first(per_sample));
        let (labels, few_labels) = (labels_of(&test)?, labels_of(&few)?);
        let certificates = CertificateConfig::new().certify(
            &network.valid().mean(),
            tensor(&test, normalisation)?,
            Target::True(&labels),
        )?;
        let posterior = PosteriorGeometryConfig::new().with_samples(DRAWN).measure(
            network,
            tensor(&few, normalisation)?,
            Target::True(&few_labels),
        )?;
        Ok(Self {
            certificates,
            posterior,
        })
    }

    /// A value of every certificate.
    pub fn quantiles(&self, pick: fn(&Certificate) -> f64) -> Quantiles {
        Quantiles::of(self.certificates.inputs.iter().map(pick).collect())
    }

    /// The Lipschitz bounds of the drawn networks.
    pub fn bounds(&self, name: &str) -> Distribution {
        Distribution {
            name: name.to_owned(),
            values: self.posterior.bounds.values().to_vec(),
        }
    }

    /// The proven radii of the posterior's mean where the class is right.
    pub fn radii(&self, name: &str) -> Radii {
        let inputs = &self.certificates.inputs;
        let right = inputs.iter().filter(|input| input.is_certified());
        Radii {
            name: name.to_owned(),
            radii: right.map(|input| input.best().get()).collect(),
            inputs: inputs.len(),
        }
    }
}
