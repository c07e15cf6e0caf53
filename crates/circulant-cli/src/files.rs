//! Files that are there as a whole or not at all.

use std::path::Path;

use anyhow::Context;
use circulant::train::write_atomically;

/// Replaces a file in one step; an error names it, and leaves what was there.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
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
        for wrong in [
            folder.path().join("missing/report.html"),
            folder.path().to_owned(),
        ] {
            let message = write(&wrong, "x").unwrap_err().to_string();
            assert!(
                message.contains(&format!("cannot write {}", wrong.display())),
                "{message}"
            );
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
