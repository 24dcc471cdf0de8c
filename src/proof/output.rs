//! Captured output: made equal on every machine before it is hashed, section 3, and cut to an excerpt.
//!
//! The fold of durations and times is for addressing, not for secrecy, and it also hits prose (`5 seconds`): whoever must tell
//! two texts apart hashes them apart.

/// UTF-16 units that an excerpt has at most.
pub const EXCERPT_UNITS: usize = 2000;

/// Said before output that held our own placeholders already.
const LITERAL: &str = "[raw output contained literal placeholders]";

/// The start of an output that fits a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The text that is kept.
    pub text: String,
    /// UTF-16 units that are not.
    pub omitted_units: u64,
}

/// The first `budget` UTF-16 units. A surrogate pair is never cut in two, so one unit less may be kept.
pub fn head(text: &str, budget: usize) -> Excerpt {
    if text.len() <= budget {
        // a character has no more UTF-16 units than bytes
        return Excerpt { text: text.to_owned(), omitted_units: 0 };
    }
    let mut units = 0;
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > budget {
            end = at;
            break;
        }
    }
    let omitted_units = text[end..].encode_utf16().count() as u64;
    Excerpt { text: text[..end].to_owned(), omitted_units }
}

/// Normalises output: line ends, workspace and home paths, durations, times, white space at the end of lines and of the text.
pub fn normalize(raw: &str, root: Option<&str>, home: Option<&str>) -> String {
    let mut text = raw.replace("\r\n", "\n");
    let is_literal = holds_placeholder(&text);
    for (path, name) in [(root, "$WORKSPACE"), (home, "$HOME")] {
        for spelling in path.map(spellings).unwrap_or_default() {
            let is_forward = path.is_some_and(|path| drive(path).is_some() && path.as_bytes().get(2) == Some(&b'/'));
            text = substitute(&text, &spelling, name, is_forward);
        }
    }
    let mut lines: Vec<String> = text.split('\n').map(fold_line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    if is_literal {
        lines.insert(0, LITERAL.to_owned());
    }
    lines.join("\n")
}

fn fold_line(line: &str) -> String {
    fold(&fold(line.trim_end_matches([' ', '\t']), duration, "<duration>"), timestamp, "<timestamp>")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether the text holds, before any folding, what folding writes.
fn holds_placeholder(text: &str) -> bool {
    let named = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let next = text.as_bytes().get(at + name.len());
            !next.is_some_and(|byte| is_word(*byte) || matches!(byte, b'$' | b'-'))
        })
    };
    named("$WORKSPACE")
        || named("$HOME")
        || ["<duration>", "<timestamp>", LITERAL].iter().any(|literal| text.contains(literal))
}

/// The letter of a drive path.
fn drive(path: &str) -> Option<char> {
    match path.as_bytes() {
        [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic() => Some(char::from(*letter)),
        _ => None,
    }
}

/// Every way in which a path may be written.
fn spellings(path: &str) -> Vec<String> {
    let mut found = vec![path.to_owned(), path.replace('\\', "/")];
    if let Some(letter) = drive(path) {
        for letter in [letter.to_ascii_lowercase(), letter.to_ascii_uppercase()] {
            let cased = format!("{letter}{}", &path[1..]);
            found.extend([cased.clone(), cased.replace('\\', "/"), cased.replace('/', "\\")]);
        }
    }
    let mut seen = Vec::new();
    for spelling in found {
        if !spelling.is_empty() && !seen.contains(&spelling) {
            seen.push(spelling);
        }
    }
    seen
}

/// Replaces a path where it ends at a boundary. `turn` makes slashes of the backslashes in the rest of the path.
fn substitute(text: &str, path: &str, name: &str, turn: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let after = &rest[at + path.len()..];
        out.push_str(&rest[..at]);
        if !after.chars().next().is_none_or(ends_path) {
            // JavaScript's search goes on one character further
            let step = rest[at..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[at..at + step]);
            rest = &rest[at + step..];
            continue;
        }
        out.push_str(name);
        rest = after;
        if turn {
            let end = segments(after);
            out.push_str(&after[..end].replace('\\', "/"));
            rest = &after[end..];
        }
    }
    out.push_str(rest);
    out
}

fn ends_path(c: char) -> bool {
    matches!(c, '/' | '\\' | '\'' | '"' | '`' | '(' | ')' | ':' | ',' | ';') || is_space(c)
}

/// White space of JavaScript's regular expressions.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Bytes of the path segments at the start: a separator with at least one other character each.
fn segments(text: &str) -> usize {
    let mut end = 0;
    while text[end..].starts_with(['/', '\\']) {
        let body = text[end + 1..].find(|c: char| matches!(c, '/' | '\\' | '\'' | '"' | '`') || is_space(c));
        let body = body.unwrap_or(text.len() - end - 1);
        if body == 0 {
            break;
        }
        end += 1 + body;
    }
    end
}

/// Replaces, from left to right, what `matches` finds at a word boundary: it returns the bytes of the match.
fn fold(line: &str, matches: fn(&str) -> Option<usize>, name: &str) -> String {
    let bytes = line.as_bytes();
    let mut out = String::with_capacity(line.len());
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        let at_boundary = bytes[at].is_ascii_digit() && (at == 0 || !is_word(bytes[at - 1]));
        match at_boundary.then(|| matches(&line[at..])).flatten() {
            Some(len) => {
                out.push_str(&line[kept..at]);
                out.push_str(name);
                at += len;
                kept = at;
            }
            None => at += 1,
        }
    }
    out.push_str(&line[kept..]);
    out
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Whether no word goes on here.
fn ends_word(bytes: &[u8], at: usize) -> bool {
    !bytes.get(at).is_some_and(|byte| is_word(*byte))
}

/// `12ms`, `1.5 seconds`: digits, at most one white space character, a unit.
fn duration(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let whole = digits(bytes);
    let fraction = if bytes.get(whole) == Some(&b'.') { digits(&bytes[whole + 1..]) } else { 0 };
    let number = if fraction > 0 { whole + 1 + fraction } else { whole };
    let space = text[number..].chars().next().filter(|c| is_space(*c)).map_or(0, char::len_utf8);
    let start = number + space;
    ["ms", "s", "secs", "sec", "seconds", "minutes", "min"].iter().find_map(|unit| {
        let found = bytes.get(start..start + unit.len())?;
        (found.eq_ignore_ascii_case(unit.as_bytes()) && ends_word(bytes, start + unit.len()))
            .then_some(start + unit.len())
    })
}

/// `2026-09-01T08:00:00.123Z`: date, `T` or one space, time, optional fraction, optional zone.
fn timestamp(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b' '),
        other => byte == other,
    };
    if bytes.len() < shape.len() || !bytes.iter().zip(shape).all(fits) {
        return None;
    }
    let fraction = if bytes.get(19) == Some(&b'.') { digits(&bytes[20..]) } else { 0 };
    let fractional = (fraction > 0).then_some(20 + fraction);
    // as a regular expression would: the longest form that ends at a word boundary
    fractional.into_iter().chain([19]).find_map(|end| {
        zone(&bytes[end..]).into_iter().map(|len| end + len).chain([end]).find(|end| ends_at_boundary(bytes, *end))
    })
}

/// Bytes of a zone: `Z`, `+hh:mm`, `-hhmm`.
fn zone(bytes: &[u8]) -> Option<usize> {
    let two = |at: usize| bytes.get(at..at + 2).is_some_and(|pair| pair.iter().all(u8::is_ascii_digit));
    match bytes.first()? {
        b'Z' => Some(1),
        b'+' | b'-' if two(1) && bytes.get(3) == Some(&b':') && two(4) => Some(6),
        b'+' | b'-' if two(1) && two(3) => Some(5),
        _ => None,
    }
}

/// A word boundary after a match, which always ends in a word character.
fn ends_at_boundary(bytes: &[u8], at: usize) -> bool {
    ends_word(bytes, at)
}
