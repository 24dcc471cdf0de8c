//! The impersonal guard: a memo is a publication for everybody. It states facts and gives nobody advice.
//!
//! A closed list of wordings (`impersonal/phrases.txt`) is looked up in every field of a draft. It knows English phrases, not
//! meaning: what a writer is told, and the disclaimer under each memo, come before it.

use std::sync::LazyLock;

use super::draft::Draft;
use crate::limits;

/// Wordings, one a line; lines that begin with `#` are notes.
const PHRASES: &str = include_str!("impersonal/phrases.txt");

/// Most words that a `*` stands for.
const GAP_WORDS_MAX: usize = 3;

/// A wording of advice in a draft.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Advice {
    /// The field of the draft.
    pub field: String,
    /// The wording of the list that it has.
    pub phrase: &'static str,
}

/// A wording by its words.
struct Phrase {
    text: &'static str,
    words: Vec<&'static str>,
}

/// Wordings by their first word.
static KNOWN: LazyLock<std::collections::HashMap<&'static str, Vec<Phrase>>> = LazyLock::new(|| {
    let mut out: std::collections::HashMap<&'static str, Vec<Phrase>> = std::collections::HashMap::new();
    for text in PHRASES.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<&str> = text.split(' ').collect();
        out.entry(words[0]).or_default().push(Phrase { text, words });
    }
    out
});

/// The wordings of advice in a draft, at most [`limits::VIOLATIONS_LISTED_MAX`]; a draft without one is impersonal.
pub fn find(draft: &Draft) -> Vec<Advice> {
    let mut out = Vec::new();
    for (field, text) in draft.fields() {
        let words = words(text);
        let words: Vec<&str> = words.split_whitespace().collect();
        for at in 0..words.len() {
            let known = KNOWN.get(words[at]).into_iter().flatten();
            for phrase in known.filter(|phrase| fits(&phrase.words, &words[at..])) {
                out.push(Advice { field: field.clone(), phrase: phrase.text });
                if out.len() == limits::VIOLATIONS_LISTED_MAX {
                    return out;
                }
            }
        }
    }
    out
}

/// What a synthesizer is told: one line a wording.
pub fn feedback(found: &[Advice]) -> String {
    let line = |advice: &Advice| {
        format!("advice in {}: \"{}\"; state facts only, to nobody in particular\n", advice.field, advice.phrase)
    };
    found.iter().map(line).collect()
}

/// A text as lower-case words apart by spaces: marks, emphasis and invisible characters are not part of any.
fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => {}
            '*' | '_' | '`' => {}
            c if c.is_alphanumeric() => out.extend(c.to_lowercase()),
            _ => out.push(' '),
        }
    }
    out
}

fn fits(phrase: &[&str], words: &[&str]) -> bool {
    match (phrase.split_first(), words.split_first()) {
        (None, _) => true,
        (Some((&"*", rest)), _) => (1..=GAP_WORDS_MAX.min(words.len())).any(|gap| fits(rest, &words[gap..])),
        (Some((word, rest)), Some((first, after))) => word == first && fits(rest, after),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests;
