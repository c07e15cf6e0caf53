//! A file that is there as a whole or not at all: written beside its place, synced, then renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::ReportError;

/// Writes the text to the path. A reader sees the old file or the new one, never a part; after a
/// failure the old file is still there.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), ReportError> {
    let temporary = beside(path)?;
    let result = fill(&temporary, text).and_then(|()| {
        fs::rename(&temporary, path).map_err(|source| ReportError::Write {
            action: "replace",
            path: path.to_owned(),
            source,
        })
    });
    match result {
        Ok(()) => {
            sync_folder(path);
            Ok(())
        }
        Err(error) => {
            // The first error is the one to tell; a left-over file is only untidy.
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

fn beside(path: &Path) -> Result<PathBuf, ReportError> {
    let name =
        path.file_name()
            .filter(|_| !path.is_dir())
            .ok_or_else(|| ReportError::NoFileName {
                path: path.to_owned(),
            })?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    // Two processes that write the same report must not share the temporary file.
    hidden.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(hidden))
}

fn fill(path: &Path, text: &str) -> Result<(), ReportError> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|source| ReportError::Write {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

/// Makes the rename itself last. Not every system lets a folder be opened or synced, and the file is
/// complete either way, so a refusal is no error.
fn sync_folder(path: &Path) {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("circulant-report-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = folder("replace");
        let path = folder.join("report.html");
        write_atomically(&path, "one").unwrap();
        write_atomically(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn failures_name_the_path() {
        let folder = folder("failure");
        let missing = folder.join("missing").join("report.html");
        let message = write_atomically(&missing, "x").unwrap_err().to_string();
        assert!(
            message.contains("cannot write") && message.contains("missing"),
            "{message}"
        );
        let message = write_atomically(&folder, "x").unwrap_err().to_string();
        assert!(message.contains("names a folder"), "{message}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
