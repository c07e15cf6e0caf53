//! The folder where fetched data sets are kept, and files in it that are whole or not there at all.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use sha2::{Digest, Sha256};
use tempfile::{Builder, NamedTempFile};

use super::error::DataError;
use super::fingerprint::Fingerprint;
use super::known::{Known, KnownFile};
use super::stream::damage;

/// The name that the program gives its folder.
const FOLDER: &str = "circulant";

/// A cache folder. It is made when something is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

/// How a file of the cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Whole,
    Missing,
    Damaged,
}

impl Cache {
    /// A given folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// `CIRCULANT_CACHE`, else `circulant` below `XDG_CACHE_HOME` or `~/.cache`.
    pub fn from_environment() -> Result<Self, DataError> {
        Self::from_variables(|name| env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, DataError> {
        let variable = |name| {
            variable(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        // The XDG specification says to ignore relative paths.
        let absolute = |path: &PathBuf| path.is_absolute();
        variable("CIRCULANT_CACHE")
            .or_else(|| Some(variable("XDG_CACHE_HOME").filter(absolute)?.join(FOLDER)))
            .or_else(|| Some(variable("HOME")?.join(".cache").join(FOLDER)))
            .map(Self::at)
            .ok_or(DataError::NoCacheFolder)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a data set.
    pub fn folder(&self, known: &Known) -> PathBuf {
        self.root.join(known.name)
    }

    /// Where pictures are kept that were decoded, under a key.
    pub(crate) fn decoded(&self, key: &str) -> PathBuf {
        self.root.join("decoded").join(format!("{key}.safetensors"))
    }

    /// Whether all files have their sizes. Does not read them.
    pub fn seems_whole(&self, known: &Known) -> bool {
        let folder = self.folder(known);
        let right = |file: &KnownFile| {
            fs::metadata(folder.join(file.name)).is_ok_and(|metadata| metadata.len() == file.bytes)
        };
        known.files.iter().all(right)
    }

    /// Reads a file and compares it with its sum.
    pub(crate) fn state(&self, known: &Known, file: &KnownFile) -> Result<State, DataError> {
        let path = self.folder(known).join(file.name);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(State::Missing);
            }
            Err(error) => return Err(DataError::io("read", &path)(error)),
        };
        if metadata.len() != file.bytes {
            return Ok(State::Damaged);
        }
        let mut content = File::open(&path).map_err(DataError::io("open", &path))?;
        let mut sum = Summing::new(io::sink());
        copy(&mut content, &mut sum, u64::MAX, &path)?;
        Ok(if sum.finish() == file.sha256 {
            State::Whole
        } else {
            State::Damaged
        })
    }

    /// Stores the content of a file: written beside its place, compared with its sum, made durable and
    /// only then given its name, so that a crash or a full disk leaves the old state.
    pub(crate) fn store(
        &self,
        known: &Known,
        file: &KnownFile,
        content: &mut dyn Read,
        place: &str,
    ) -> Result<(), DataError> {
        let folder = self.folder(known);
        fs::create_dir_all(&folder).map_err(DataError::io("make the folder", &folder))?;
        let target = folder.join(file.name);
        let failed = || DataError::io("write", &target);
        let mut temporary = temporary(&folder).map_err(failed())?;
        let mut sum = Summing::new(temporary.as_file_mut());
        // One byte more than needed shows that a file is too long without unpacking all of it.
        let limit = file.bytes + 1;
        let mut source = content.take(limit);
        let mut buffer = vec![0; 1 << 17];
        loop {
            let bytes = source
                .read(&mut buffer)
                .map_err(|error| damage(error, place))?;
            if bytes == 0 {
                break;
            }
            sum.write_all(&buffer[..bytes]).map_err(failed())?;
        }
        let found = sum.finish();
        if found != file.sha256 {
            return Err(DataError::Checksum {
                place: place.to_owned(),
                expected: file.sha256.to_owned(),
                found,
            });
        }
        persist(temporary, &target).map_err(failed())
    }
}

/// Gives a whole file its name.
fn persist(file: NamedTempFile, target: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(target)?;
    // The new name itself must survive a crash too; not every system can sync a folder.
    if let Ok(folder) = File::open(folder_of(target)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A new file with a name of its own, for the umask to say who may read it: a cache is often shared.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".new-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Writes tensors and metadata as safetensors, beside the place and then in it.
pub(crate) fn store_tensors(
    path: &Path,
    tensors: Vec<(&str, TensorView<'_>)>,
    metadata: HashMap<String, String>,
) -> io::Result<()> {
    let file = temporary(folder_of(path))?;
    let permissions = file.as_file().metadata()?.permissions();
    safetensors::serialize_to_file(tensors, Some(metadata), file.path())
        .map_err(|error| io::Error::other(error.to_string()))?;
    // It puts another file there, which only its owner may read.
    let written = File::open(file.path())?;
    written.set_permissions(permissions)?;
    written.sync_all()?;
    persist(file, path)
}

fn copy(
    from: &mut dyn Read,
    to: &mut dyn Write,
    limit: u64,
    place: &Path,
) -> Result<u64, DataError> {
    io::copy(&mut from.take(limit), to).map_err(DataError::io("read", place))
}

/// Writes on and sums what passes.
struct Summing<W> {
    hash: Sha256,
    to: W,
}

impl<W: Write> Summing<W> {
    fn new(to: W) -> Self {
        Self {
            hash: Sha256::new(),
            to,
        }
    }

    fn finish(self) -> String {
        Fingerprint::from_hash(self.hash).to_string()
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_folder() {
        let cache = |variables: &[(&str, &str)]| {
            let variables: Vec<(String, OsString)> = variables
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect();
            Cache::from_variables(|name| {
                let found = variables.iter().find(|(key, _)| key == name);
                found.map(|(_, value)| value.clone())
            })
        };
        let root = |variables| cache(variables).unwrap().root().to_owned();
        let all = [
            ("CIRCULANT_CACHE", "/a"),
            ("XDG_CACHE_HOME", "/b"),
            ("HOME", "/c"),
        ];
        assert_eq!(root(&all), Path::new("/a"));
        assert_eq!(root(&all[1..]), Path::new("/b/circulant"));
        assert_eq!(root(&all[2..]), Path::new("/c/.cache/circulant"));
        let odd = [
            ("CIRCULANT_CACHE", ""),
            ("XDG_CACHE_HOME", "b"),
            ("HOME", "/c"),
        ];
        assert_eq!(root(&odd), Path::new("/c/.cache/circulant"));
        assert!(matches!(cache(&[]), Err(DataError::NoCacheFolder)));
    }
}
