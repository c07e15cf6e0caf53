//! `circulant certify` of a network that was trained for a radius.

use std::path::Path;

use anyhow::ensure;
use circulant_data::ImageSet;

use super::Certify;
use crate::experiments::certification::{CertificationSummary, InputRow};
use crate::experiments::certified::folder::CertifiedFolder;
use crate::experiments::config::DataConfig;
use crate::experiments::source;

impl Certify {
    /// Its certificates, with the images that they are about.
    pub(super) fn trained(
        &self,
        place: &Path,
    ) -> anyhow::Result<(CertificationSummary, Vec<InputRow>, ImageSet)> {
        let folder = CertifiedFolder::open(place)?;
        let expected = folder.facts.data.image();
        let mut options = DataConfig {
            size: folder.config.data.size,
            image: Some(expected),
            fits: Some(expected),
            labels_optional: true,
            ..DataConfig::default()
        };
        self.reading.apply(&mut options);
        let set = source::images(&self.data, self.split, &options)?;
        let [_, found @ ..] = set.shape();
        ensure!(
            found == expected,
            "{}: expected images of {expected:?} (channels, height, width), which {} was trained on, found {found:?}; use other \
             data or another run",
            set.source(),
            place.display()
        );
        let (summary, rows) = self.certification().certify_trained(&folder, &set)?;
        Ok((summary, rows, set))
    }
}
