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

use std::collections::{BTreeMap, HashMap};
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

/// How the name of a file begins that [`write_atomically`] has not finished. Only a process that was killed leaves one.
pub const UNFINISHED: &str = ".unfinished-";

/// Replaces the file at `path` in one step: whoever reads it, and whenever the process dies, there is the old
/// content or the new one. What is no file, such as a pipe or `/dev/stdout`, is written to.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // A rename would put a file in the place of a device.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return std::fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(bytes);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
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

/// A safetensors file with metadata, in the order of their keys: the crate writes them in the order of a hash table, which
/// is another one in every process, so that equal runs would give different bytes.
fn with_metadata(
    file: &[u8],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, serde_json::Error> {
    const LENGTH: usize = size_of::<u64>();
    let length: [u8; LENGTH] = file[..LENGTH].try_into().expect("a file begins with one");
    let (header, tensors) = file[LENGTH..].split_at(u64::from_le_bytes(length) as usize);
    let mut header: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header)?;
    header.insert("__metadata__".to_owned(), serde_json::to_value(metadata)?);
    let mut header = serde_json::to_vec(&header)?;
    // Tensors begin at a multiple of eight bytes.
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    let length = (header.len() as u64).to_le_bytes();
    Ok([&length, header.as_slice(), tensors].concat())
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
        // Burn keeps the state in a hash table, whose order is another one in every process; a record that was read has
        // the order of names.
        let optimizer = self
            .optimizer
            .into_bytes()
            .and_then(OptimizerRecord::from_bytes)
            .and_then(OptimizerRecord::into_bytes)
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
        let mut metadata: BTreeMap<String, String> = identity(self, data_fingerprint)
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
        let bytes = safetensors::serialize(tensors, None).map_err(|error| broken(path, error))?;
        let bytes = with_metadata(&bytes, &metadata).map_err(|error| broken(path, error))?;
        write_atomically(path, &bytes).map_err(file_error(path))
    }

    /// Goes on from a checkpoint of the same model, data and seed: training then gives the same numbers, to the last bit, as
    /// if it had not stopped. On any error `self` is as it was.
    pub fn resume(
        &mut self,
        path: impl AsRef<Path>,
        data_fingerprint: u64,
    ) -> Result<(), BayesError> {
        let checkpoint = Checkpoint::read(path.as_ref())?;
        for (what, expected) in identity(self, data_fingerprint) {
            // Files from before there were projections have no such entry.
            if what == "projection" && !checkpoint.metadata.contains_key(what) && expected == "no" {
                continue;
            }
            checkpoint.check(what, expected)?;
        }
        let (parameters, optimizer) = checkpoint.parts()?;
        let state = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(optimizer))
            .map_err(|error| checkpoint.broken(error))?;
        let mut network: Bayesian<M> = self.network().clone();
        record::load_bytes(&mut network, parameters, checkpoint.path)?;
        let number = |key| checkpoint.number(key);
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

impl<M: Network> Bayesian<M> {
    /// The same model with the parameters of a checkpoint that [`Svi::save`] wrote, and the number of steps that it was
    /// trained for: what predictions need. Neither data nor settings of the run have to be known.
    pub fn load_checkpoint(mut self, path: impl AsRef<Path>) -> Result<(Self, u64), BayesError> {
        let checkpoint = Checkpoint::read(path.as_ref())?;
        checkpoint.check("format", FORMAT.to_owned())?;
        checkpoint.check("model", self.identity())?;
        let (parameters, _) = checkpoint.parts()?;
        record::load_bytes(&mut self, parameters, checkpoint.path)?;
        Ok((self, checkpoint.number("step")?))
    }
}

/// A file that has been read, not yet believed.
struct Checkpoint<'a> {
    path: &'a Path,
    bytes: Vec<u8>,
    metadata: HashMap<String, String>,
}

impl<'a> Checkpoint<'a> {
    fn read(path: &'a Path) -> Result<Self, BayesError> {
        let bytes = std::fs::read(path).map_err(file_error(path))?;
        let (_, header) =
            SafeTensors::read_metadata(&bytes).map_err(|error| broken(path, error))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        Ok(Self {
            path,
            bytes,
            metadata,
        })
    }

    fn broken(&self, message: impl ToString) -> BayesError {
        broken(self.path, message)
    }

    fn entry(&self, key: &str) -> Result<&str, BayesError> {
        let value = self.metadata.get(key).map(String::as_str);
        value.ok_or_else(|| self.broken(format!("it has no entry {key:?}")))
    }

    fn number(&self, key: &str) -> Result<u64, BayesError> {
        let number = self.entry(key)?.parse();
        number.map_err(|error| self.broken(format!("{key}: {error}")))
    }

    /// Whether the entry `what` is as expected.
    fn check(&self, what: &'static str, expected: String) -> Result<(), BayesError> {
        let found = self.entry(what)?;
        if found == expected {
            return Ok(());
        }
        Err(BayesError::OtherRun {
            path: self.path.into(),
            what,
            expected,
            found: found.to_owned(),
        })
    }

    /// The parameters as a safetensors file of their own, and the optimiser's state, if nothing is damaged.
    fn parts(&self) -> Result<(Vec<u8>, Vec<u8>), BayesError> {
        let tensors = SafeTensors::deserialize(&self.bytes).map_err(|error| self.broken(error))?;
        let views = tensors.tensors();
        let parts = views
            .iter()
            .map(|(name, view)| (name.as_str(), view.data()));
        if checksum(parts) != self.entry("checksum")? {
            return Err(self.broken("its checksum is wrong, so the file is damaged"));
        }
        let (optimizer, parameters): (Vec<_>, Vec<_>) =
            views.into_iter().partition(|(name, _)| name == OPTIMIZER);
        let [(_, optimizer)] = &optimizer[..] else {
            return Err(self.broken("it has no optimiser state"));
        };
        let parameters =
            safetensors::serialize(parameters, None).map_err(|error| self.broken(error))?;
        Ok((parameters, optimizer.data().to_vec()))
    }
}
