//! The shape of files and functions, names, notes, and what may stand in the root folder.

use super::tree::{File, body_or_end, closing, find_word, in_name, line_of};

/// The longest file. Most have 80 to 300 lines.
const FILE_LINES_MAX: usize = 500;

/// The longest function, from `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 60;

/// Names that say nothing about what a module owns.
const BANNED_NAMES: [&str; 4] = ["utils", "helpers", "common", "manager"];

/// The root folder: reading order starts here, so it stays short. Tool files have a dot.
const TOP_LEVEL: [&str; 17] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "src",
    "migrations",
    "tests",
    "fuzz",
    "config",
    ".cargo",
    ".ci",
    ".gitignore",
    ".gitattributes",
    ".rustfmt.toml",
    ".clippy.toml",
    ".config",
];

/// A Rust file over the limit.
pub(crate) fn long_file(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    let over = file.path.ends_with(".rs") && lines > FILE_LINES_MAX;
    if over { vec![format!("{}: {lines} lines, at most {FILE_LINES_MAX}", file.path)] } else { Vec::new() }
}

/// Functions over the limit, in the code that ships.
pub(crate) fn long_functions(file: &File) -> Vec<String> {
    if !file.is_source() {
        return Vec::new();
    }
    let text: Vec<char> = file.code().chars().collect();
    let mut found = Vec::new();
    for at in find_word(&text, "fn") {
        let name: String = text[at + 2..].iter().skip(1).take_while(|c| in_name(**c)).collect();
        let Some(open) = body_or_end(&text, at).filter(|open| !name.is_empty() && text[*open] == '{') else { continue };
        let Some(close) = closing(&text, open) else { continue };
        let (first, last) = (line_of(&text, at), line_of(&text, close));
        let lines = last - first + 1;
        if lines > FUNCTION_LINES_MAX {
            found.push(format!("{}:{first}: fn {name} has {lines} lines, at most {FUNCTION_LINES_MAX}", file.path));
        }
    }
    found
}

/// `mod.rs`, and modules named after nothing.
pub(crate) fn bad_names(file: &File) -> Vec<String> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    if file.path.ends_with("/mod.rs") {
        found.push(format!("{}: write `foo.rs` beside `foo/`", file.path));
    }
    let parts = file.path.trim_end_matches(".rs").split('/');
    let inline: Vec<char> = file.code().chars().collect();
    let named = |name: &&str| !find_word(&inline, &format!("mod {name}")).is_empty();
    let banned = parts.filter(|part| BANNED_NAMES.contains(part)).chain(BANNED_NAMES.into_iter().filter(named));
    found.extend(banned.map(|name| format!("{}: `{name}` does not say what it owns", file.path)));
    found
}

/// A source file that does not open with `//!`.
pub(crate) fn missing_note(file: &File) -> Vec<String> {
    let silent = file.is_source() && !file.is_test() && !file.text.starts_with("//! ");
    if silent { vec![format!("{}: open with a `//!` note", file.path)] } else { Vec::new() }
}

/// Public constants of `limits.rs` without a comment above them.
pub(crate) fn limits_without_reason(file: &File) -> Vec<String> {
    if file.path != "src/limits.rs" {
        return Vec::new();
    }
    let mut above = "";
    let mut found = Vec::new();
    for line in file.text.lines().map(str::trim) {
        if line.starts_with("pub const ") && !above.starts_with("///") {
            found.push(format!("{}: no reason above `{line}`", file.path));
        }
        if !line.starts_with("#[") {
            above = line;
        }
    }
    found
}

/// A migration that does not open with a comment.
pub(crate) fn migration_without_comment(file: &File) -> Vec<String> {
    let silent = file.path.starts_with("migrations/") && file.path.ends_with(".sql") && !file.text.starts_with("--");
    if silent { vec![format!("{}: say why first", file.path)] } else { Vec::new() }
}

/// Entries of the root folder that are not on the list.
pub(crate) fn strangers(top_level: &[String]) -> Vec<String> {
    top_level
        .iter()
        .filter(|name| !TOP_LEVEL.contains(&name.as_str()))
        .map(|name| format!("{name}: not in the root"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(long_file(&File::new("tests/it/a.rs", &"\n".repeat(501))).len(), 1);
        assert!(long_file(&File::new("tests/it/a.rs", &"\n".repeat(500))).is_empty());
        assert!(long_file(&File::new("tests/data.json", &"\n".repeat(501))).is_empty());
    }

    #[test]
    fn a_long_function_is_found_and_a_long_test_is_not() {
        let body = "    let x = [0; 3]; // {\n".repeat(59);
        let long = format!("struct A;\npub async fn f(a: [u8; 3]) -> u8\nwhere\n    A: Sized,\n{{\n{body}}}\n");
        let found = long_functions(&File::new("src/a.rs", &long));
        assert_eq!(found, ["src/a.rs:2: fn f has 64 lines, at most 60"]);
        let test = format!("#[cfg(test)]\nmod tests {{\n    fn f() {{\n{body}{body}    }}\n}}\n");
        assert!(long_functions(&File::new("src/a.rs", &test)).is_empty());
        let short = format!("fn f() {{\n{}}}\ntrait T {{ fn g(&self); }}\n", "    x();\n".repeat(58));
        assert!(long_functions(&File::new("src/a.rs", &short)).is_empty());
    }

    #[test]
    fn empty_names_are_found() {
        assert_eq!(bad_names(&File::new("src/store/mod.rs", "")).len(), 1);
        assert_eq!(bad_names(&File::new("src/store/utils.rs", "")).len(), 1);
        assert_eq!(bad_names(&File::new("tests/common/a.rs", "")).len(), 1);
        assert_eq!(bad_names(&File::new("src/store.rs", "mod helpers {}")).len(), 1);
        assert!(bad_names(&File::new("src/store.rs", "mod helpers_of_none; // mod utils")).is_empty());
    }

    #[test]
    fn a_silent_file_is_found() {
        assert_eq!(missing_note(&File::new("src/a.rs", "use std::fmt;\n")).len(), 1);
        assert!(missing_note(&File::new("src/a.rs", "//! Owns a.\n")).is_empty());
        assert_eq!(migration_without_comment(&File::new("migrations/0001_a.sql", "create table a();")).len(), 1);
        assert!(migration_without_comment(&File::new("migrations/0001_a.sql", "-- why\ncreate table a();")).is_empty());
    }

    #[test]
    fn a_limit_without_a_reason_is_found() {
        let text = "/// Why.\n#[rustfmt::skip]\npub const A: u8 = 1;\n\npub const B: u8 = 2;\n";
        assert_eq!(limits_without_reason(&File::new("src/limits.rs", text)).len(), 1);
    }

    #[test]
    fn a_stranger_in_the_root_is_found() {
        assert_eq!(strangers(&["src".to_owned(), "notes.md".to_owned(), ".env".to_owned()]).len(), 2);
    }
}
