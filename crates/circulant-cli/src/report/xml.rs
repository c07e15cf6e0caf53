//! A small check that a page is well formed, strict enough to catch what a forgiving browser hides.

use std::collections::HashSet;

/// Panics at the first thing that an XML parser would refuse: tags that do not match, attributes without
/// quotes or given twice, a bare `<` or `&`, a repeated `id`, a forbidden character.
pub fn assert_well_formed(page: &str) {
    assert!(
        page.chars()
            .all(|character| matches!(character, '\n' | '\t') || !character.is_control()),
        "control character"
    );
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap_or(page);
    let mut open: Vec<String> = Vec::new();
    let mut ids = HashSet::new();
    while let Some(start) = rest.find('<') {
        assert_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag without an end");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closing tag");
            continue;
        }
        let (tag, empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "tag name {name:?}"
        );
        if let Some(id) = assert_attributes(attributes) {
            assert!(ids.insert(id.clone()), "id {id} twice");
        }
        if !empty {
            open.push(name.to_owned());
        }
    }
    assert_text(rest);
    assert!(open.is_empty(), "never closed: {open:?}");
}

fn assert_text(text: &str) {
    for (index, _) in text.match_indices('&') {
        let entity = text[index + 1..].split(';').next().unwrap_or("");
        assert!(
            ["amp", "lt", "gt", "quot", "#39"].contains(&entity),
            "entity {entity:?}"
        );
    }
}

/// Gives the `id`, if there is one.
fn assert_attributes(mut attributes: &str) -> Option<String> {
    let mut names = HashSet::new();
    let mut id = None;
    while !attributes.trim_start().is_empty() {
        let (name, after) = attributes
            .trim_start()
            .split_once("=\"")
            .expect("a quoted attribute");
        let (value, after) = after.split_once('"').expect("a closing quote");
        assert!(names.insert(name.to_owned()), "attribute {name} twice");
        assert!(!name.starts_with("on"), "a script in {name}");
        assert_text(value);
        assert!(
            !value.contains("NaN") && !value.contains("inf"),
            "{name}={value}"
        );
        if name == "id" {
            id = Some(value.to_owned());
        }
        attributes = after;
    }
    id
}

#[test]
fn the_check_itself_finds_faults() {
    assert_well_formed("<!DOCTYPE html>\n<a id=\"x\"><b/>&amp;</a>\n");
    for broken in [
        "<a>",
        "<a></b>",
        "<a href=x></a>",
        "<a>&nbsp;</a>",
        "<a id=\"x\"><b id=\"x\"/></a>",
        "<a x=\"1\" x=\"2\"/>",
        "<a d=\"MNaN 0\"/>",
        "1 < 2",
    ] {
        assert!(
            std::panic::catch_unwind(|| assert_well_formed(broken)).is_err(),
            "{broken}"
        );
    }
}
