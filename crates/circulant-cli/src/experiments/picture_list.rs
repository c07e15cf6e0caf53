//! Several pictures by one argument: a pattern such as `photos/*.jpg`, or `-` for a list of files on stdin, one per line.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::ranks::ranks;

/// The place that stands for stdin.
const STDIN: &str = "-";

/// The files that a place lists, if it is no single path.
pub fn files(place: &str) -> anyhow::Result<Option<Vec<PathBuf>>> {
    if place == STDIN {
        // Only rank 0 has a stdin.
        let text = ranks().from_first(|| {
            let mut text = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut text);
            read.context("cannot read the list of files from stdin")?;
            anyhow::Ok(text)
        })?;
        return of_lines(&text[..]).map(Some);
    }
    let is_pattern = place.contains(['*', '?', '[']);
    if !is_pattern || Path::new(place).exists() {
        return Ok(None);
    }
    let found =
        glob::glob(place).with_context(|| format!("{place} is no pattern of file names"))?;
    let mut files = found.collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.is_file());
    ensure!(
        !files.is_empty(),
        "no file matches {place}; check it for misspellings, and that the shell passes it on as it is"
    );
    Ok(Some(files))
}

fn of_lines(lines: impl BufRead) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for line in lines.lines() {
        let line =
            line.context("cannot read the list of files from stdin; expected one path per line")?;
        let line = line.trim_end_matches('\r');
        if !line.is_empty() {
            files.push(PathBuf::from(line));
        }
    }
    ensure!(
        !files.is_empty(),
        "stdin has no list of files; expected one path per line, as from `ls photos/*.png`"
    );
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_are_files() {
        let found = of_lines(&b"a.png\r\n\nb c.png\n"[..]).unwrap();
        assert_eq!(found, [PathBuf::from("a.png"), PathBuf::from("b c.png")]);
        assert!(
            of_lines(&b"\n"[..])
                .unwrap_err()
                .to_string()
                .contains("one path per line")
        );
        assert!(of_lines(&[0xff, 0xfe, b'\n'][..]).is_err());
    }

    #[test]
    fn patterns_match_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.png", "a.png", "c.txt", "[odd].png"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("d.png")).unwrap();
        let of = |pattern: &str| files(&folder.path().join(pattern).display().to_string());
        let names = of("[ab].png").unwrap().unwrap();
        let names: Vec<_> = names
            .iter()
            .map(|file| file.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["a.png", "b.png"]);
        assert_eq!(of("*.png").unwrap().unwrap().len(), 3);
        // A file that has such a name.
        assert!(of("[odd].png").unwrap().is_none());
        assert!(of("a.png").unwrap().is_none());
        assert!(
            of("*.jpg")
                .unwrap_err()
                .to_string()
                .contains("no file matches")
        );
        assert!(files("a[").unwrap_err().to_string().contains("no pattern"));
    }
}
