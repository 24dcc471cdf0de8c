//! The rules of this house that a program can check. Each rule is a pure function from text to findings, and each has a
//! test of its own on a bad piece of text, so that a rule that has gone deaf is noticed.
//!
//! Layers: `tidy/layers.rs`. Shape of files: `tidy/shape.rs`. Calls: `tidy/calls.rs`. Words: `tidy/words.rs`.

#[path = "tidy/calls.rs"]
mod calls;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/words.rs"]
mod words;

use tree::{File, Tree};

/// Runs one rule over all files and fails with everything that it found.
fn assert_none(rule: &str, findings: impl IntoIterator<Item = String>) {
    let found: Vec<String> = findings.into_iter().collect();
    assert!(found.is_empty(), "{rule}: {} finding(s)\n  {}\n", found.len(), found.join("\n  "));
}

fn each(tree: &Tree, rule: impl Fn(&File) -> Vec<String>) -> Vec<String> {
    tree.files.iter().flat_map(rule).collect()
}

#[test]
fn the_tree_is_read() {
    let tree = Tree::read();
    assert!(tree.files.iter().any(|file| file.path == "src/lib.rs"));
    assert!(tree.files.iter().any(|file| file.path == "tests/tidy.rs"));
    assert!(!tree.files.iter().any(|file| file.path.starts_with("target/")));
}

#[test]
fn arrows_point_down() {
    assert_none("layers", each(&Tree::read(), layers::upward_edges));
}

#[test]
fn every_module_has_a_place() {
    assert_none("unplaced modules", each(&Tree::read(), layers::unplaced));
}

#[test]
fn files_are_short() {
    assert_none("file length", each(&Tree::read(), shape::long_file));
}

#[test]
fn functions_are_short() {
    assert_none("function length", each(&Tree::read(), shape::long_functions));
}

#[test]
fn names_say_something() {
    assert_none("names", each(&Tree::read(), shape::bad_names));
}

#[test]
fn every_source_file_opens_with_its_note() {
    assert_none("module notes", each(&Tree::read(), shape::missing_note));
}

#[test]
fn every_limit_gives_its_reason() {
    assert_none("limits", each(&Tree::read(), shape::limits_without_reason));
}

#[test]
fn every_migration_opens_with_a_comment() {
    assert_none("migrations", each(&Tree::read(), shape::migration_without_comment));
}

#[test]
fn the_top_level_is_fixed() {
    assert_none("top level", shape::strangers(&Tree::read().top_level));
}

#[test]
fn banned_calls_are_absent() {
    assert_none("calls", each(&Tree::read(), calls::banned));
}

#[test]
fn no_text_names_a_machine_or_a_registry() {
    assert_none("words", each(&Tree::read(), words::banned));
}
