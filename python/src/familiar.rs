//! How familiar rows are: the density of their hidden features, as training keeps it for `circulant predict --score`.

use std::io::Write;
use std::path::Path;

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use circulant::baselines::{FeatureDensity, HiddenFeatures};
use circulant::bayes::{Bayesian, Network};
use circulant::models::ImageClassifier;
use tempfile::NamedTempFile;

use crate::arrays::Number;
use crate::classifier::ROWS_AT_A_TIME;
use crate::table::{Columns, Rows, different};

/// Of the features; the others share a variance.
const DIRECTIONS: usize = 64;
/// Rows that a density is fitted to, at most.
const ROWS: usize = 10_000;
/// A covariance takes the square of this.
const MOST_FEATURES: usize = 2048;

/// The rows that a density is fitted to, out of all `[rows, columns]`, which are in no order.
pub fn some(values: &[f32], columns: usize) -> Tensor<2> {
    let rows = (values.len() / columns).min(ROWS);
    let data = TensorData::new(values[..rows * columns].to_vec(), [rows, columns]);
    Tensor::from_data(data, &circulant::cpu())
}

/// The density of the features that the posterior's mean makes of training rows; none of very many features.
pub fn density<M: Network>(
    network: &Bayesian<M>,
    layers: impl Fn(&M) -> &ImageClassifier,
    rows: Tensor<2>,
    labels: &[i64],
    classes: usize,
) -> anyhow::Result<Option<FeatureDensity>> {
    let count = rows.dims()[0];
    let mean = network.valid().mean();
    let features = |rows| HiddenFeatures::of::<2>(layers(&mean), rows, ROWS_AT_A_TIME);
    if features(rows.clone().narrow(0, 0, 1)).columns > MOST_FEATURES {
        return Ok(None);
    }
    let found = features(rows);
    let labels: Vec<usize> = labels[..count]
        .iter()
        .map(|&label| label as usize)
        .collect();
    let density = FeatureDensity::fit(&found.values, found.columns, &labels, classes, DIRECTIONS)?;
    Ok(Some(density))
}

/// The logarithm of the density at rows; none where there is no density of this model.
pub fn log_densities<M: Network, T: Number>(
    density: Option<&FeatureDensity>,
    network: &Bayesian<M>,
    layers: impl Fn(&M) -> &ImageClassifier,
    columns: &Columns,
    rows: Rows<'_, T>,
) -> anyhow::Result<Option<Vec<f64>>> {
    let Some(density) = density else {
        return Ok(None);
    };
    let (different, which) = different(rows);
    let mean = network.valid().mean();
    let mut found = Vec::with_capacity(different.len());
    for part in different.chunks(ROWS_AT_A_TIME) {
        let inputs = columns.tensor(rows, part)?;
        // One at a time: a row shares the rounding of those that it is computed with, which a density magnifies.
        let features = HiddenFeatures::of::<2>(layers(&mean), inputs, 1);
        if features.columns != density.columns() {
            return Ok(None);
        }
        found.extend(density.log_densities(&features.values)?);
    }
    Ok(Some(which.iter().map(|&index| found[index]).collect()))
}

/// A density as bytes; none where there is none.
pub fn to_bytes(density: Option<&FeatureDensity>) -> anyhow::Result<Vec<u8>> {
    let bytes = density.map(|density| density.to_bytes("an estimator"));
    Ok(bytes.transpose()?.unwrap_or_default())
}

/// What [`to_bytes`] made.
pub fn from_bytes(bytes: &[u8]) -> anyhow::Result<Option<FeatureDensity>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(FeatureDensity::from_bytes(bytes)?.0))
}

/// A file of a density; none where there is no file.
pub fn read(path: &Path) -> anyhow::Result<Option<FeatureDensity>> {
    if !path.exists() {
        return Ok(None);
    }
    from_bytes(&std::fs::read(path)?)
}

/// Writes a file, or removes an old one where there is no density.
pub fn write(path: &Path, density: Option<&FeatureDensity>) -> anyhow::Result<()> {
    let bytes = to_bytes(density)?;
    if !bytes.is_empty() {
        let folder = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        file.write_all(&bytes)?;
        file.persist(path)?;
    } else if path.exists() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
