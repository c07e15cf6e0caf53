//! `circulant certify` of a network that was trained for a radius.

use burn::module::Module;
use circulant::geometry::{CertificateConfig, Target};

use super::super::certification::{Certification, CertificationSummary, InputRow, LayerNorms};
use super::super::evaluation::labels_of;
use super::super::progress::Busy;
use super::super::source::tensor;
use super::folder::CertifiedFolder;
use super::training::NORM_BANDS;
use circulant_data::ImageSet;

impl Certification {
    /// Certifies the network of such a run at images.
    pub fn certify_trained(
        &self,
        folder: &CertifiedFolder,
        set: &ImageSet,
    ) -> anyhow::Result<(CertificationSummary, Vec<InputRow>)> {
        let (network, steps) = folder.network()?;
        let has_labels = set.labels().values.is_some() && !self.predicted;
        let labels = has_labels.then(|| labels_of(set)).transpose()?;
        let target = labels.as_deref().map_or(Target::Predicted, Target::True);
        let images = tensor(set, &folder.normalisation())?;
        let busy = Busy::new("certifying");
        let found = CertificateConfig::new().with_bands(NORM_BANDS).certify(
            &network.valid(),
            images,
            target,
        )?;
        drop(busy);
        let rows = found
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
                average: None,
            });
        let rows: Vec<InputRow> = rows.collect();
        let right = rows.iter().filter(|row| row.label == Some(row.class));
        let layers = found.network.layers().into_iter().map(|layer| LayerNorms {
            name: layer.name().to_owned(),
            lower: layer.norm().lower().get(),
            upper: layer.norm().upper().get(),
            posterior: None,
            prior: None,
        });
        let radii = self.radii.iter();
        let summary = CertificationSummary {
            run: folder.path().display().to_string(),
            model: "orthogonal",
            steps,
            inputs: rows.len(),
            target: if has_labels { "label" } else { "predicted" },
            accuracy: has_labels.then(|| right.count() as f64 / rows.len() as f64),
            layers: layers.collect(),
            lipschitz: found.network.upper().get(),
            rounding: found.rounding.get(),
            input_norm: found.input_norm.get(),
            radii: found.radii(),
            certified: radii.map(|&at| found.certified_at(at)).collect(),
            units: Vec::new(),
            posterior: None,
            average: None,
            prior_probability: 1.0 - super::super::certification::DELTA,
        };
        Ok((summary, rows))
    }
}
