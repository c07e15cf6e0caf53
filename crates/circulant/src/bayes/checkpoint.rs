//! Checkpoints: one safetensors file with everything that a run needs to go on as if it had never stopped.
//!
//! | part | where |
//! | --- | --- |
//! | posterior parameters | tensors under the names of the network's record |
//! | optimiser state | the bytes of Burn's own record, as the U8 tensor `optimizer` |
//! | step, seed, settings, model, data, watch | metadata |
//!
//! Noise and data order follow from seed and step, so no generator state is needed. The file is written beside its place,
//! synced and renamed: at every moment the old checkpoint or the new one is there. A checksum over all tensors
//! tells a damaged file from a whole one before any of it is used.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use burn::optim::OptimizerRecord;
use burn::tensor::Bytes;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::divergence::find_not_finite;
use super::network::Network;
use super::svi::{Svi, Watch};
use super::{BayesError, Bayesian};
use crate::record;

const FORMAT: &str = "circulant-svi-1";
const OPTIMIZER: &str = "optimizer";

fn file_error(path: &Path) -> impl Fn(std::io::Error) -> BayesError + '_ {
    |source| BayesError::File {
        path: path.into(),
        source,
    }
}

fn broken(path: &Path, message: impl ToString) -> BayesError {
    BayesError::BrokenCheckpoint {
        path: path.into(),
        message: message.to_string(),
    }
}

/// Replaces the file at `path` in one step: whoever reads it, and whenever the process dies, there is the old
/// content or the new one.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    // What others may read is for the umask to say, as with any new file.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The rename itself lasts only once the directory is on disk. Not every system can sync one.
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .ok();
    Ok(())
}

/// Over names and bytes, in the order of the names.
fn checksum<'a>(tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut parts: Vec<_> = tensors.collect();
    parts.sort();
    let mut hash = crc32fast::Hasher::new();
    for (name, bytes) in parts {
        hash.update(name.as_bytes());
        hash.update(bytes);
    }
    format!("{:08x}", hash.finalize())
}

/// What must agree between a checkpoint and the run that resumes from it.
fn identity<M: Network>(svi: &Svi<M>, data_fingerprint: u64) -> [(&'static str, String); 7] {
    [
        ("format", FORMAT.to_owned()),
        ("model", svi.network().identity()),
        ("seed", svi.config.seed.to_string()),
        ("batch", svi.config.batch.to_string()),
        ("examples", svi.examples().to_string()),
        ("data", format!("{data_fingerprint:016x}")),
        (
            "projection",
            if svi.has_projection() { "yes" } else { "no" }.to_owned(),
        ),
    ]
}

impl<M: Network> Svi<M> {
    /// Writes a checkpoint; `data_fingerprint` ties it to the data set. An existing file is replaced in one step. Parameters that
    /// are not finite are refused, so that a good checkpoint is never replaced by a useless one.
    pub fn save(&self, path: impl AsRef<Path>, data_fingerprint: u64) -> Result<(), BayesError> {
        let path = path.as_ref();
        if let Some(parameter) = find_not_finite(self.network(), None) {
            return Err(BayesError::Diverged {
                step: self.step,
                what: "a parameter",
                parameter,
            });
        }
        let optimizer = self
            .optimizer
            .into_bytes()
            .map_err(|error| broken(path, error))?;
        let parameters = record::to_bytes(self.network())?;
        let parameters =
            SafeTensors::deserialize(&parameters).map_err(|error| broken(path, error))?;
        let mut tensors: Vec<(String, TensorView<'_>)> = parameters.tensors();
        let view = TensorView::new(Dtype::U8, vec![optimizer.len()], &optimizer)
            .map_err(|error| broken(path, error))?;
        tensors.push((OPTIMIZER.to_owned(), view));
        let sum = checksum(
            tensors
                .iter()
                .map(|(name, view)| (name.as_str(), view.data())),
        );
        let mut metadata: HashMap<String, String> = identity(self, data_fingerprint)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let Watch {
            average,
            best,
            best_step,
        } = self.watch;
        // Bits, because a decimal number need not read back as itself, nor infinity at all.
        for (key, value) in [
            ("step", self.step),
            ("watch.average", average.to_bits()),
            ("watch.best", best.to_bits()),
            ("watch.best_step", best_step),
        ] {
            metadata.insert(key.to_owned(), value.to_string());
        }
        metadata.insert("settings".to_owned(), self.config.to_string());
        metadata.insert("checksum".to_owned(), sum);
        let bytes =
            safetensors::serialize(tensors, Some(metadata)).map_err(|error| broken(path, error))?;
        write_atomically(path, &bytes).map_err(file_error(path))
    }

    /// Goes on from a checkpoint of the same model, data and seed: training then gives the same numbers, to the last bit, as
    /// if it had not stopped. On any error `self` is as it was.
    pub fn resume(
        &mut self,
        path: impl AsRef<Path>,
        data_fingerprint: u64,
    ) -> Result<(), BayesError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(file_error(path))?;
        let (_, header) =
            SafeTensors::read_metadata(&bytes).map_err(|error| broken(path, error))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| broken(path, error))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let entry = |key: &str| {
            let value = metadata.get(key);
            value.ok_or_else(|| broken(path, format!("it has no entry {key:?}")))
        };
        let number = |key: &str| -> Result<u64, BayesError> {
            entry(key)?
                .parse()
                .map_err(|error| broken(path, format!("{key}: {error}")))
        };
        for (what, expected) in identity(self, data_fingerprint) {
            // Files from before there were projections have no such entry.
            let found = match metadata.get(what) {
                None if what == "projection" => "no",
                _ => entry(what)?,
            };
            if found != expected {
                return Err(BayesError::OtherRun {
                    path: path.into(),
                    what,
                    expected,
                    found: found.to_owned(),
                });
            }
        }
        let views = tensors.tensors();
        let sum = checksum(
            views
                .iter()
                .map(|(name, view)| (name.as_str(), view.data())),
        );
        if sum != *entry("checksum")? {
            return Err(broken(
                path,
                "its checksum is wrong, so the file is damaged",
            ));
        }
        let (optimizer, parameters): (Vec<_>, Vec<_>) =
            views.into_iter().partition(|(name, _)| name == OPTIMIZER);
        let [(_, optimizer)] = &optimizer[..] else {
            return Err(broken(path, "it has no optimiser state"));
        };
        let state = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(optimizer.data().to_vec()))
            .map_err(|error| broken(path, error))?;
        let parameters =
            safetensors::serialize(parameters, None).map_err(|error| broken(path, error))?;
        let mut network: Bayesian<M> = self.network().clone();
        record::load_bytes(&mut network, parameters, path)?;
        let watch = Watch {
            average: f64::from_bits(number("watch.average")?),
            best: f64::from_bits(number("watch.best")?),
            best_step: number("watch.best_step")?,
        };
        (self.step, self.watch) = (number("step")?, watch);
        self.set_network(network.with_stable_ids());
        self.optimizer = self.optimizer.clone().load_record(state);
        Ok(())
    }
}
