//! Private folders of ranks other than 0, with what they need of rank 0's folders.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::{ranks, speaks};

/// The root of them all, and how many there are.
static PRIVATE: Mutex<Option<(TempDir, usize)>> = Mutex::new(None);

/// What runs are resumed from and used by; reports and figures are not needed.
const KINDS: [&str; 4] = ["toml", "json", "jsonl", "safetensors"];
/// Folders that are read where they are: copies of features would fill the disk.
const LEFT_OUT: [&str; 2] = ["features", "figures"];

/// A file with its path below the folder.
type Packed = (String, Vec<u8>);

/// Removes the private folders.
pub(super) fn remove() {
    // A folder that cannot be removed is the system's to clean.
    drop(lock().take());
}

fn lock() -> std::sync::MutexGuard<'static, Option<(TempDir, usize)>> {
    PRIVATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this rank may write there: all but rank 0 write to their private folders only.
pub fn may_write(path: &Path) -> bool {
    let is_private = || {
        let private = lock();
        let root = private.as_ref().map(|(root, _)| root.path());
        root.is_some_and(|root| path.starts_with(root))
    };
    speaks() || is_private()
}

/// A new place.
fn place() -> anyhow::Result<PathBuf> {
    let mut private = lock();
    if private.is_none() {
        let root = tempfile::Builder::new().prefix("circulant-rank-").tempdir();
        *private = Some((root.context("no private folder for this rank")?, 0));
    }
    let (root, count) = private.as_mut().expect("just made");
    *count += 1;
    let place = root.path().join(count.to_string());
    fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
    Ok(place)
}

/// Where this rank has the folder, or file, of a run: rank 0 at the path itself, the others a copy. The path need not exist.
pub fn folder(path: &Path) -> anyhow::Result<PathBuf> {
    let ranks = ranks();
    if ranks.is_alone() {
        return Ok(path.to_owned());
    }
    let packed = ranks.from_first(|| pack(path).map(|files| to_bytes(&files)))?;
    if ranks.is_first() {
        return Ok(path.to_owned());
    }
    let place = place()?;
    for (name, bytes) in from_bytes(&packed)? {
        put(&place.join(name), &bytes)?;
    }
    Ok(place.join(own_name(path)))
}

/// Copies a file that rank 0 has written meanwhile to where the others have theirs; each names its own path.
pub fn bring(path: &Path) -> anyhow::Result<()> {
    let ranks = ranks();
    if ranks.is_alone() {
        return Ok(());
    }
    let read = || fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let bytes = ranks.from_first(read)?;
    match ranks.is_first() {
        true => Ok(()),
        false => put(path, &bytes),
    }
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn own_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or("run".as_ref());
    name.to_string_lossy().into_owned()
}

/// The files of a folder, or a file with those beside it that belong to it.
fn pack(path: &Path) -> anyhow::Result<Vec<Packed>> {
    let mut files = Vec::new();
    let name = own_name(path);
    if path.is_dir() {
        collect(path, &name, &mut files)?;
        return Ok(files);
    }
    if !path.is_file() {
        return Ok(files);
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    for entry in fs::read_dir(parent.unwrap_or(Path::new(".")))? {
        let found = entry?.path();
        let belongs = found.file_stem() == path.file_stem()
            || found.ends_with("config.toml")
            || found.ends_with("run.json");
        if belongs && found.is_file() {
            files.push((own_name(&found), fs::read(&found)?));
        }
    }
    Ok(files)
}

fn collect(folder: &Path, name: &str, files: &mut Vec<Packed>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder)
        .with_context(|| format!("cannot look into the folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let own = own_name(&path);
        let below = format!("{name}/{own}");
        if path.is_dir() && !LEFT_OUT.contains(&own.as_str()) {
            collect(&path, &below, files)?;
        }
        let kind = path.extension().and_then(|kind| kind.to_str());
        if path.is_file() && kind.is_some_and(|kind| KINDS.contains(&kind)) {
            let bytes = fs::read(&path);
            files.push((
                below,
                bytes.with_context(|| format!("cannot read {}", path.display()))?,
            ));
        }
    }
    Ok(())
}

/// Length and bytes of every name and every file, one after another.
fn to_bytes(files: &[Packed]) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, bytes) in files {
        for part in [name.as_bytes(), bytes] {
            all.extend((part.len() as u64).to_le_bytes());
            all.extend(part);
        }
    }
    all
}

fn from_bytes(mut all: &[u8]) -> anyhow::Result<Vec<Packed>> {
    let mut part = || -> Option<&[u8]> {
        let (length, rest) = all.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let part;
        (part, all) = rest.split_at_checked(length)?;
        Some(part)
    };
    let mut files = Vec::new();
    while let Some(name) = part() {
        let bytes = part().context("the files of rank 0 came damaged")?.to_vec();
        let name = String::from_utf8_lossy(name).into_owned();
        let is_below = |part: Component<'_>| matches!(part, Component::Normal(_));
        ensure!(
            Path::new(&name).components().all(is_below),
            "the files of rank 0 came with the path {name:?}, expected one below its folder"
        );
        files.push((name, bytes));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_packed_without_reports_and_features() {
        let root = tempfile::tempdir().unwrap();
        let run = root.path().join("run");
        for name in [
            "config.toml",
            "seed-0/steps.jsonl",
            "report.html",
            "features/train.safetensors",
        ] {
            put(&run.join(name), name.as_bytes()).unwrap();
        }
        let mut packed = pack(&run).unwrap();
        packed.sort();
        let expected = ["config.toml", "seed-0/steps.jsonl"];
        let expected = expected.map(|name| (format!("run/{name}"), name.as_bytes().to_vec()));
        assert_eq!(packed, expected);
        assert_eq!(from_bytes(&to_bytes(&packed)).unwrap(), expected);
        assert!(pack(&root.path().join("missing")).unwrap().is_empty());
        // A file, with what belongs to it.
        let beside = pack(&run.join("report.html")).unwrap();
        let mut names: Vec<&str> = beside.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["config.toml", "report.html"]);
    }

    #[test]
    fn files_outside_of_the_folder_are_refused() {
        for name in ["../passwd", "/etc/passwd", "a/../../b"] {
            let packed = to_bytes(&[(name.to_owned(), Vec::new())]);
            assert!(from_bytes(&packed).is_err(), "{name}");
        }
        let cut = to_bytes(&[("a".to_owned(), vec![1, 2, 3])]);
        assert!(from_bytes(&cut[..cut.len() - 1]).is_err());
    }
}
