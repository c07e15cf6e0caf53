//! Imports run one way: a room of the source uses those before it, never one after it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Floors of rooms, from the ground up; rooms on one floor know nothing of each other.
const FLOORS: [&[&str]; 8] = [
    &["vector"],
    &["runtime"],
    &["random"],
    &["elements"],
    &["transform"],
    &["dense"],
    &["operator"],
    &["gaussian", "norms", "optimisers", "transformer"],
];
/// Beside the house: errors, and the number types with the table of all kernels.
const BESIDE: [&str; 4] = ["error", "kernels", "lib", "real"];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The rooms that a source names by `crate::room`, with the line of each.
fn rooms_named(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let key = "crate::";
    source.lines().enumerate().flat_map(move |(line, text)| {
        text.match_indices(key).map(move |(at, _)| {
            let rest = &text[at + key.len()..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            (line + 1, &rest[..end.unwrap_or(rest.len())])
        })
    })
}

#[test]
fn rooms_import_from_those_below_only() {
    let floor: HashMap<&str, usize> = (FLOORS.iter().enumerate())
        .flat_map(|(floor, rooms)| rooms.iter().map(move |room| (*room, floor)))
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 60, "the source is found");
    let mut upward = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&root).expect("below the root");
        let first = inside.components().next().expect("not empty");
        let room = Path::new(&first).file_stem().expect("a name");
        let room = room.to_str().expect("ASCII");
        let Some(own) = floor.get(room) else {
            assert!(BESIDE.contains(&room), "{room} has no floor: give it one");
            continue;
        };
        let source = fs::read_to_string(&file).expect("readable");
        for (line, named) in rooms_named(&source) {
            let Some(other) = floor.get(named) else {
                continue;
            };
            if named != room && other >= own {
                upward.push(format!("{}:{line}: {room} -> {named}", inside.display()));
            }
        }
    }
    assert!(upward.is_empty(), "upward imports: {upward:#?}");
}
