//! What can be promised about a trained network: norms of its layers, its Lipschitz bound, and radii inside which its
//! decisions cannot change; for the posterior's mean and, as distributions, for networks drawn from the posterior.

use anyhow::anyhow;
use burn::module::Module;
use burn::tensor::Tensor;
use circulant::bayes::Bayesian;
use circulant::geometry::{
    CertificateConfig, Certificates, CertifiedAt, PosteriorGeometry, PosteriorGeometryConfig,
    PredictiveBoundsConfig, PredictiveCertificate, PredictiveCertificates, Quantiles, Radii,
    Target, prior_network_bound,
};
use serde::Serialize;

use super::config::PosteriorConfig;
use super::layer_figures::{self, Layered};
use super::loaded::{LoadedRun, TrainedRun};
use super::progress::{Busy, WorkProgress};
use super::source::tensor;
use crate::ranks::ranks;
use circulant_data::{ImageSet, TableSchema};

/// The probability that the prior's bounds do not hold.
pub const DELTA: f64 = 0.05;

/// How a run is certified.
#[derive(Debug, Clone)]
pub struct Certification {
    /// Networks drawn from the posterior; 0 leaves the distributions out.
    pub samples: usize,
    pub seed: u64,
    /// Where the certified accuracy is looked at.
    pub radii: Vec<f64>,
    /// Certifies the predicted class, right or wrong, even where labels are known.
    pub predicted: bool,
}

/// Everything but the single inputs.
#[derive(Debug, Clone, Serialize)]
pub struct CertificationSummary {
    pub run: String,
    pub model: &'static str,
    pub steps: u64,
    pub inputs: usize,
    /// `label` or `predicted`: the class that radii are about.
    pub target: &'static str,
    /// The share of inputs whose predicted class is the label; where labels are known.
    pub accuracy: Option<f64>,
    /// In the order in which they are applied.
    pub layers: Vec<LayerNorms>,
    /// Of the posterior's mean.
    pub lipschitz: f64,
    /// How far f32 logits can be from exact ones; subtracted from margins.
    pub rounding: f64,
    /// The largest norm of an input for which the promise holds.
    pub input_norm: f64,
    /// Radii of the posterior's mean.
    pub radii: Radii<Quantiles>,
    /// Per radius, the share of all inputs that are certified that far (and right, where labels are known).
    pub certified: Vec<CertifiedAt>,
    /// Of a table: how far one column alone may change, in its own unit, without another decision, at the median input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<ColumnRadius>,
    /// Over networks drawn from the posterior.
    pub posterior: Option<PosteriorSummary>,
    /// Of the class that `predict` gives with the same samples and seed: the largest probability averaged over them.
    pub average: Option<AverageSummary>,
    /// `1 - DELTA`, the probability with which the prior's bounds hold together.
    pub prior_probability: f64,
}

/// A radius of one column.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnRadius {
    /// Its name.
    pub column: String,
    /// The median of the largest radius, times the column's deviation in training.
    pub radius: f64,
}

/// The radii of standardised inputs in the units of the columns.
fn units(run: &LoadedRun, radii: &Radii<Quantiles>) -> Vec<ColumnRadius> {
    let largest = radii.last_layer.as_ref().unwrap_or(&radii.sqrt_two).median;
    let columns = run
        .folder
        .facts
        .data
        .table
        .iter()
        .flat_map(TableSchema::units);
    let radius = |(column, deviation): (&str, f64)| ColumnRadius {
        column: column.to_owned(),
        radius: largest * deviation,
    };
    columns.map(radius).collect()
}

#[derive(Debug, Clone, Serialize)]
pub struct LayerNorms {
    /// As in the network.
    pub name: String,
    /// Of the posterior's mean, from below.
    pub lower: f64,
    /// From above.
    pub upper: f64,
    /// Upper bounds over posterior samples.
    pub posterior: Option<Quantiles>,
    /// What the norm does not exceed under the prior, for spectral layers.
    pub prior: Option<f64>,
}

/// Over posterior samples, and over pairs of sample and input.
#[derive(Debug, Clone, Serialize)]
pub struct PosteriorSummary {
    /// Networks drawn.
    pub samples: usize,
    pub seed: u64,
    /// One per sample.
    pub lipschitz: Quantiles,
    /// One per sample.
    pub rounding: Quantiles,
    /// One per pair.
    pub margin: Quantiles,
    /// One per pair.
    pub radii: Radii<Quantiles>,
    /// The share of pairs whose class is certain in spite of rounding.
    pub certified_share: f64,
}

/// Certificates of the probabilities that are averaged over posterior samples.
#[derive(Debug, Clone, Serialize)]
pub struct AverageSummary {
    /// The share of inputs whose predicted class is the label; where labels are known.
    pub accuracy: Option<f64>,
    /// The mean of the samples' Lipschitz bounds.
    pub lipschitz: f64,
    /// How far an averaged f32 probability can be from the exact one.
    pub probability_rounding: f64,
    /// The largest norm of an input for which the promise holds.
    pub input_norm: f64,
    /// The difference of the two largest probabilities, or of the label's and the largest other one.
    pub difference: Quantiles,
    /// `min_k mean_s (p_y - p_k) / (mean_s L_s / sqrt(2))`.
    pub radius: Quantiles,
    /// Sample by sample, at least as large.
    pub per_sample: Quantiles,
    /// The share of all inputs that are certified at every radius of `certified`, by the larger of the two.
    pub certified: Vec<AverageAt>,
}

/// A share at one radius.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AverageAt {
    /// In the 2-norm of the input as the network sees it.
    pub radius: f64,
    /// Of all inputs.
    pub share: f64,
}

/// The average's part of a row.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AverageRow {
    /// The class with the largest averaged probability.
    pub average_class: usize,
    /// The probability of the certified class less the largest other one.
    pub average_difference: f64,
    /// The radius by the mean of the Lipschitz bounds.
    pub average: f64,
    /// The radius sample by sample.
    pub per_sample: f64,
}

/// One input.
#[derive(Debug, Clone, Serialize)]
pub struct InputRow {
    /// From 0.
    pub index: usize,
    /// The file of the picture, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The predicted class.
    pub class: usize,
    /// The true class, where known.
    pub label: Option<usize>,
    /// Of the class that is certified, in the f32 logits.
    pub margin: f64,
    /// What is left of it in spite of rounding.
    pub certified_margin: f64,
    #[serde(flatten)]
    pub radii: Radii<f64>,
    /// Of what is predicted on average.
    #[serde(flatten)]
    pub average: Option<AverageRow>,
}

impl Certification {
    /// Certifies the network of a run at images.
    pub fn certify(
        &self,
        run: &LoadedRun,
        set: &ImageSet,
    ) -> anyhow::Result<(CertificationSummary, Vec<InputRow>)> {
        let labels = if self.predicted {
            None
        } else {
            run.classes_of(set).map_err(|error| {
                anyhow!("{error}, or certify the predicted class with --predicted")
            })?
        };
        let target = labels.as_deref().map_or(Target::Predicted, Target::True);
        let images = tensor(set, &run.folder.config.data.normalisation)?;
        let mean = run.network.valid().mean();
        let busy = Busy::new("certifying the posterior's mean");
        let certificates = CertificateConfig::new().certify(&mean, images.clone(), target)?;
        drop(busy);
        let average = if self.samples == 0 || !run.is_bayesian() {
            None
        } else {
            Some(self.average(run, images.clone(), target)?)
        };
        let posterior = if self.samples == 0 || !run.is_bayesian() {
            None
        } else {
            let config = PosteriorGeometryConfig::new()
                .with_samples(self.samples)
                .with_seed(self.seed);
            let mut progress = WorkProgress::new("posterior samples", self.samples as u64);
            let report =
                |done: usize, all: usize| progress.of(all as u64).at(done as u64, String::new);
            let found = config.measure_on(&ranks(), &run.network, images, target, report)?;
            progress.clear();
            Some(found)
        };
        let rows: Vec<InputRow> = certificates
            .inputs
            .iter()
            .enumerate()
            .map(|(index, certificate)| InputRow {
                index,
                file: set.files().get(index).cloned(),
                class: certificate.predicted,
                label: labels.as_ref().map(|labels| labels[index]),
                margin: certificate.margin,
                certified_margin: certificate.certified_margin.get(),
                radii: certificate.radii(),
                average: average
                    .as_ref()
                    .map(|found| average_row(&found.inputs[index])),
            })
            .collect();
        let mut summary = self.summary(run, &certificates, posterior.as_ref(), &rows)?;
        summary.average = average.map(|found| self.average_summary(&found, labels.as_deref()));
        Ok((summary, rows))
    }

    /// The networks that `predict` averages.
    fn average(
        &self,
        run: &LoadedRun,
        images: Tensor<4>,
        target: Target<'_>,
    ) -> anyhow::Result<PredictiveCertificates> {
        let config = PredictiveBoundsConfig::new()
            .with_samples(self.samples)
            .with_seed(self.seed);
        let mut progress = WorkProgress::new("networks of the average", self.samples as u64);
        let report = |done: usize, _| progress.at(done as u64, String::new);
        let bounds = config.bound_with_progress(&run.network, report)?;
        progress.clear();
        let _busy = Busy::new("certifying the average");
        Ok(bounds.certify_on(&ranks(), images, target)?)
    }

    fn average_summary(
        &self,
        found: &PredictiveCertificates,
        labels: Option<&[usize]>,
    ) -> AverageSummary {
        let share = |count: usize| count as f64 / found.inputs.len() as f64;
        let spread = |of: fn(&PredictiveCertificate) -> f64| {
            Quantiles::of(found.inputs.iter().map(of).collect())
        };
        let right = |labels: &[usize]| {
            let pairs = found.inputs.iter().zip(labels);
            share(
                pairs
                    .filter(|(found, label)| found.predicted == **label)
                    .count(),
            )
        };
        let certified = |&radius: &f64| {
            let reached =
                |c: &&PredictiveCertificate| c.is_certified() && c.per_sample.get() >= radius;
            AverageAt {
                radius,
                share: share(found.inputs.iter().filter(reached).count()),
            }
        };
        AverageSummary {
            accuracy: labels.map(right),
            lipschitz: found.lipschitz.get(),
            probability_rounding: found.probability_rounding.get(),
            input_norm: found.input_norm.get(),
            difference: spread(|c| c.difference),
            radius: spread(|c| c.average.get()),
            per_sample: spread(|c| c.per_sample.get()),
            certified: self.radii.iter().map(certified).collect(),
        }
    }

    fn summary(
        &self,
        run: &LoadedRun,
        certificates: &Certificates,
        posterior: Option<&PosteriorGeometry>,
        rows: &[InputRow],
    ) -> anyhow::Result<CertificationSummary> {
        let right = |row: &&InputRow| row.label == Some(row.class);
        let share = |count: usize| count as f64 / rows.len() as f64;
        let labelled = rows.iter().any(|row| row.label.is_some());
        Ok(CertificationSummary {
            run: run.folder.path().display().to_string(),
            model: run.folder.config.model.kind.name(),
            steps: run.steps,
            inputs: rows.len(),
            target: if labelled { "label" } else { "predicted" },
            accuracy: labelled.then(|| share(rows.iter().filter(right).count())),
            layers: layers(run, certificates, posterior)?,
            lipschitz: certificates.network.upper().get(),
            rounding: certificates.rounding.get(),
            input_norm: certificates.input_norm.get(),
            units: units(run, &certificates.radii()),
            radii: certificates.radii(),
            certified: {
                let radii = self.radii.iter();
                radii.map(|&at| certificates.certified_at(at)).collect()
            },
            posterior: posterior.map(|found| PosteriorSummary {
                samples: self.samples,
                seed: self.seed,
                lipschitz: (&found.bounds).into(),
                rounding: (&found.rounding).into(),
                margin: (&found.margins).into(),
                radii: found.radii(),
                certified_share: found.certified_share,
            }),
            average: None,
            prior_probability: 1.0 - DELTA,
        })
    }
}

fn average_row(certificate: &PredictiveCertificate) -> AverageRow {
    AverageRow {
        average_class: certificate.predicted,
        average_difference: certificate.difference,
        average: certificate.average.get(),
        per_sample: certificate.per_sample.get(),
    }
}

fn layers(
    run: &LoadedRun,
    certificates: &Certificates,
    posterior: Option<&PosteriorGeometry>,
) -> anyhow::Result<Vec<LayerNorms>> {
    let priors = prior_norms(&run.network, &run.folder.config.posterior)?;
    let layers = certificates.network.layers().into_iter();
    let norms = layers.map(|layer| {
        let drawn = posterior.and_then(|found| {
            let mut layers = found.layers.iter();
            layers.find(|(name, _)| name == layer.name())
        });
        let prior = priors.iter().find(|(name, _)| name == layer.name());
        LayerNorms {
            name: layer.name().to_owned(),
            lower: layer.norm().lower().get(),
            upper: layer.norm().upper().get(),
            posterior: drawn.map(|(_, norms)| norms.into()),
            prior: prior.map(|(_, bound)| *bound),
        }
    });
    Ok(norms.collect())
}

/// Names and bounds of the spectral layers, which hold together with a probability of `1 - DELTA`. A learned slope counts
/// as fixed at its posterior's mean.
pub fn prior_norms<M: Layered>(
    network: &Bayesian<M>,
    posterior: &PosteriorConfig,
) -> anyhow::Result<Vec<(String, f64)>> {
    let layers = layer_figures::hidden_layers(network, posterior)?;
    let spectral = layers
        .iter()
        .filter_map(|layer| Some((layer.name.clone(), layer.spectral_prior()?)));
    let (names, priors): (Vec<_>, Vec<_>) = spectral.unzip();
    if priors.is_empty() {
        return Ok(Vec::new());
    }
    let bounds = prior_network_bound(&priors, DELTA)?;
    let bounds = bounds.layers.into_iter().map(|bound| bound.get());
    Ok(names.into_iter().zip(bounds).collect())
}
