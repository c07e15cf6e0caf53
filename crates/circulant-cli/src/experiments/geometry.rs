//! The geometry of a trained network at test images, as the reports of two experiments have it.

use burn::module::Module;
use circulant::bayes::Bayesian;
use circulant::geometry::{
    Certificate, CertificateConfig, Certificates, PosteriorGeometry, PosteriorGeometryConfig,
    Quantiles, Target,
};
use circulant::models::ImageClassifier;

use super::evaluation::labels_of;
use super::figures;
use super::source::tensor;
use crate::ranks::ranks;
use crate::report::figure::{Distribution, Radii};
use crate::report::{Cell, Column, Figure, Section, Table};
use circulant_data::{ImageSet, Normalisation};

/// Test inputs that are certified.
const CERTIFIED: usize = 1000;
/// Networks drawn from the posterior.
const DRAWN: usize = 50;

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
        let posterior = PosteriorGeometryConfig::new()
            .with_samples(DRAWN)
            .measure_on(
                &ranks(),
                network,
                tensor(&few, normalisation)?,
                Target::True(&few_labels),
                |_, _| {},
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

    fn row(&self, title: &str) -> Vec<Cell> {
        let radius = |pick| Cell::number(self.quantiles(pick).median, 4);
        let last = |input: &Certificate| input.last_layer.map_or(f64::NAN, |radius| radius.get());
        vec![
            Cell::text(title),
            Cell::number(self.certificates.network.upper().get(), 2),
            Cell::number(self.posterior.bounds.mean(), 2),
            Cell::number(self.posterior.margins.quantile(0.5), 3),
            radius(|input| input.paper.get()),
            Cell::number(self.posterior.paper.quantile(0.5), 4),
            radius(|input| input.sqrt_two.get()),
            radius(last),
        ]
    }

    /// The proven radii of the posterior's mean where the class is right.
    fn radii(&self, title: &str) -> Radii {
        let inputs = &self.certificates.inputs;
        let right = inputs.iter().filter(|input| input.is_certified());
        Radii {
            name: title.to_owned(),
            radii: right.map(|input| input.best().get()).collect(),
            inputs: inputs.len(),
        }
    }
}

/// What a report says of networks, each under its title; `inputs` is what they see.
pub fn section(
    inputs: &str,
    footnotes: Vec<String>,
    networks: &[(&str, &NetworkGeometry)],
) -> Section {
    let columns = [
        Column::text("network"),
        Column::number("of the mean").grouped("Lipschitz bound"),
        Column::number("posterior mean of").grouped("Lipschitz bound"),
        Column::number("median margin"),
        Column::number("paper's").grouped("median certified radius"),
        Column::number("paper's, posterior").grouped("median certified radius"),
        Column::number("with sqrt(2)").grouped("median certified radius"),
        Column::number("last layer").grouped("median certified radius"),
    ];
    let bounds = networks.iter().map(|(title, found)| Distribution {
        name: (*title).to_owned(),
        values: found.posterior.bounds.values().to_vec(),
    });
    let radii = networks.iter().map(|(title, found)| found.radii(title));
    Section::new("Norms, margins, radii")
        .text(format!(
            "Bounds are proven upper bounds in l2 and radii proven lower bounds, for {inputs}; f32 rounding is \
             accounted for. A wrongly classified input has the radius 0."
        ))
        .table(Table {
            caption: format!("Of the first seed, at {CERTIFIED} test inputs or all"),
            columns: columns.to_vec(),
            rows: networks.iter().map(|(title, found)| found.row(title)).collect(),
            footnotes,
        })
        .figure(Figure::new(
            "lipschitz",
            format!("Lipschitz bounds of {DRAWN} networks drawn from each posterior."),
            figures::lipschitz(&bounds.collect::<Vec<_>>()),
        ))
        .figure(Figure::new(
            "certified",
            format!(
                "The share of test inputs that no perturbation of {inputs} up to the radius can turn into a mistake."
            ),
            figures::certified(&radii.collect::<Vec<_>>()),
        ))
}
