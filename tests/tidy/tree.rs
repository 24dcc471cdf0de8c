//! Reads the source tree, and takes out of Rust text what is not code: comments, literals, test modules.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that git ignores, wherever they stand.
const IGNORED: [&str; 6] = [".git", "target", "node_modules", "corpus", "artifacts", "__pycache__"];

/// One text file.
pub(crate) struct File {
    /// Path from the root of the package, with forward slashes.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
}

/// The package's text files.
pub(crate) struct Tree {
    /// All files that are UTF-8, in the order of their paths.
    pub(crate) files: Vec<File>,
    /// Names of what stands in the root folder.
    pub(crate) top_level: Vec<String>,
}

impl Tree {
    /// Reads everything below the manifest's folder.
    pub(crate) fn read() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        walk(&root, &root, &mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut top_level: Vec<String> = names(&root).into_iter().filter(|name| !ignored(name)).collect();
        top_level.sort();
        Self { files, top_level }
    }
}

impl File {
    /// A file made up by a test.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// True for Rust below `src/`.
    pub(crate) fn is_source(&self) -> bool {
        self.path.starts_with("src/") && self.path.ends_with(".rs")
    }

    /// True for a file below `src/` that holds tests and nothing else, as `src/x402/terms/tests.rs`.
    pub(crate) fn is_test(&self) -> bool {
        self.is_source() && (self.path.ends_with("/tests.rs") || self.path.contains("/tests/"))
    }

    /// The top-level module that a source file belongs to: `store` for `src/store/orders.rs`.
    pub(crate) fn module(&self) -> Option<&str> {
        let rest = self.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        rest.split('/').next()
    }

    /// The code that ships: no comments, no literals, no test items; lines keep their numbers.
    pub(crate) fn code(&self) -> String {
        if self.is_test() {
            return self.text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        }
        without_tests(&without_prose(&self.text))
    }
}

/// Number of the line that holds the character at `at`, from 1.
pub(crate) fn line_of(text: &[char], at: usize) -> usize {
    1 + text[..at].iter().filter(|c| **c == '\n').count()
}

/// True for a character that may stand in a Rust name.
pub(crate) fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where the needle stands in the text as a word of its own: not glued to a name on a side where it is one itself.
pub(crate) fn find_word(text: &[char], needle: &str) -> Vec<usize> {
    let needle: Vec<char> = needle.chars().collect();
    let (Some(&first), Some(&last)) = (needle.first(), needle.last()) else { return Vec::new() };
    (0..text.len().saturating_sub(needle.len() - 1))
        .filter(|&at| text[at..].starts_with(&needle))
        .filter(|&at| !(in_name(first) && at > 0 && in_name(text[at - 1])))
        .filter(|&at| !(in_name(last) && text.get(at + needle.len()).is_some_and(|c| in_name(*c))))
        .collect()
}

/// Index of the bracket that closes the one at `open`.
pub(crate) fn closing(text: &[char], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.iter().enumerate().skip(open) {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// From `from`, the `{` that opens the item's body, or the `;` that ends an item without one.
pub(crate) fn body_or_end(text: &[char], from: usize) -> Option<usize> {
    let mut at = from;
    while at < text.len() {
        match text[at] {
            '{' | ';' => return Some(at),
            '(' | '[' => at = closing(text, at)?,
            _ => {}
        }
        at += 1;
    }
    None
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<File>) {
    for name in names(folder) {
        let path = folder.join(&name);
        if path.is_dir() {
            if !ignored(&name) {
                walk(root, &path, files);
            }
        } else if name != ".git"
            && let Ok(text) = fs::read_to_string(&path)
        {
            let path = path.strip_prefix(root).expect("below the root");
            files.push(File { path: path.to_string_lossy().replace('\\', "/"), text });
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn ignored(name: &str) -> bool {
    IGNORED.contains(&name)
}

fn without_prose(text: &str) -> String {
    let text: Vec<char> = text.chars().collect();
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let end = prose_end(&text, at);
        if end == at {
            out.push(text[at]);
            at += 1;
        } else {
            out.extend(text[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out.into_iter().collect()
}

/// The end of the comment or literal that starts at `at`; `at` itself when none does.
fn prose_end(text: &[char], at: usize) -> usize {
    let next = text.get(at + 1).copied();
    match text[at] {
        '/' if next == Some('/') => text[at..].iter().position(|c| *c == '\n').map_or(text.len(), |n| at + n),
        '/' if next == Some('*') => block_comment_end(text, at),
        '"' => string_end(text, at),
        'r' if (at == 0 || !in_name(text[at - 1]) || text[at - 1] == 'b') && matches!(next, Some('"' | '#')) => {
            raw_string_end(text, at)
        }
        '\'' if next == Some('\\') => text[at + 3..].iter().position(|c| *c == '\'').map_or(text.len(), |n| at + n + 4),
        '\'' if text.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
}

fn block_comment_end(text: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0usize, at);
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 1),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    at
}

fn string_end(text: &[char], open: usize) -> usize {
    let mut at = open + 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

fn raw_string_end(text: &[char], at: usize) -> usize {
    let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
    if text.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    (at + 2 + hashes..text.len()).find(|&i| text[i..].starts_with(&close)).map_or(text.len(), |i| i + close.len())
}

fn without_tests(code: &str) -> String {
    let mut text: Vec<char> = code.chars().collect();
    for at in find_word(&text, "#[cfg(test)]") {
        let Some(stop) = body_or_end(&text, at + "#[cfg(test)]".len()) else { continue };
        let end = if text[stop] == '{' { closing(&text, stop).unwrap_or(stop) } else { stop };
        text[at..=end].iter_mut().filter(|c| **c != '\n').for_each(|c| *c = ' ');
    }
    text.into_iter().collect()
}

#[test]
fn prose_and_tests_are_taken_out_and_lines_stay() {
    let text = "let a = \"x.unwrap()\"; // y.unwrap()\n/* gone\n/* gone */ gone */ let q = '\"'; let r = r#\"a\"b\"#; fn f<'a>(s: &'a str) {}\n\
                #[cfg(test)]\nmod tests {\n    fn t() { hidden() }\n}\nfn shown() {}\n";
    let code = File::new("src/a.rs", text).code();
    assert_eq!(code.lines().count(), text.lines().count());
    assert!(!code.contains("unwrap") && !code.contains("hidden") && !code.contains("gone"));
    assert!(code.contains("fn f<'a>(s: &'a str) {}"), "{code}");
    assert!(code.contains("fn shown() {}"), "{code}");
}

#[test]
fn words_are_whole() {
    let text: Vec<char> = "f64 xf64 f64x .f64.".chars().collect();
    assert_eq!(find_word(&text, "f64"), [0, 15]);
}
