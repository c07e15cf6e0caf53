//! Files that are there as a whole or not at all.

use std::path::Path;

use anyhow::{Context, ensure};
use circulant::train::write_atomically;

use crate::ranks::may_write;

/// Replaces a file in one step; an error names it, and leaves what was there.
/// Ranks other than 0 write to their private folders only.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    if !may_write(path) {
        return Ok(());
    }
    ensure!(
        !path.is_dir(),
        "{} names a folder, expected a file",
        path.display()
    );
    write_atomically(path, bytes.as_ref()).with_context(|| {
        format!(
            "cannot write {}; is there such a folder with space left, and may you write there?",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let missing = folder.path().join("missing/report.html");
        for (wrong, part) in [
            (missing.as_path(), "cannot write"),
            (folder.path(), "names a folder"),
        ] {
            let message = write(wrong, "x").unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
            assert!(message.contains(&*wrong.to_string_lossy()), "{message}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
