//! A file that is there as a whole or not at all: written beside its place, synced, then renamed.

use std::path::Path;

use super::ReportError;

/// Writes the text to the path. A reader sees the old file or the new one, never a part; after a
/// failure the old file is still there.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), ReportError> {
    if path.file_name().is_none() || path.is_dir() {
        return Err(ReportError::NoFileName {
            path: path.to_owned(),
        });
    }
    let written = circulant::train::write_atomically(path, text.as_bytes());
    written.map_err(|source| ReportError::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

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
