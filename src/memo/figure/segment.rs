//! Tokens cut into the spans in which a citation counts: sentences, list items, table rows, headings.

use super::clean::code;
use super::lexicon::class;
use super::token::{Gap, Kind, Token};

/// One sentence, list item or table row: tokens `first..last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// Whether it is a row of a table.
    pub(crate) row: bool,
}

/// Cuts the tokens; one pass.
pub(crate) fn segments(bytes: &[u8], tokens: &[Token]) -> Vec<Segment> {
    let mut out = Vec::new();
    let mut first = 0;
    let mut at = 0;
    while at < tokens.len() {
        if at > first && begins(bytes, tokens, at) {
            push(&mut out, tokens, first, at);
            first = at;
        }
        at += 1;
    }
    push(&mut out, tokens, first, tokens.len());
    out
}

fn push(out: &mut Vec<Segment>, tokens: &[Token], first: usize, last: usize) {
    if first < last {
        out.push(Segment { first, last, row: tokens[first].sign(b'|') });
    }
}

/// Whether a new segment begins at `at`.
fn begins(bytes: &[u8], tokens: &[Token], at: usize) -> bool {
    let token = &tokens[at];
    match token.gap {
        Gap::None => false,
        Gap::Paragraph => true,
        Gap::Line if starts_block(tokens, at) => true,
        // a citation after the full stop belongs to the sentence before it
        Gap::Space | Gap::Line => token.kind != Kind::Citation && ends_sentence(bytes, tokens, at),
    }
}

/// Whether the line that begins here is an item, a row or a heading of its own.
fn starts_block(tokens: &[Token], at: usize) -> bool {
    let next_apart = tokens.get(at + 1).is_some_and(|next| !next.glued());
    match tokens[at].kind {
        Kind::Sign(b'|' | b'#' | b'>' | code::BULLET) => true,
        Kind::Sign(b'-' | b'+' | code::EN_DASH) => next_apart,
        Kind::Sign(b'[') => tokens.get(at + 1).is_some_and(|next| next.sign(b'^')),
        Kind::Number => list_number(tokens, at).is_some(),
        _ => at.checked_sub(1).is_some_and(|before| tokens[before].sign(b'|')),
    }
}

/// `1.` or `1)` at the start of a line: the token after the numbering.
pub(crate) fn list_number(tokens: &[Token], at: usize) -> Option<usize> {
    let token = tokens.get(at)?;
    let mark = tokens.get(at + 1)?;
    let next = tokens.get(at + 2)?;
    let short = token.end - token.start <= 3;
    (token.gap >= Gap::Line && short && mark.glued() && (mark.sign(b'.') || mark.sign(b')')) && next.gap == Gap::Space)
        .then_some(at + 2)
}

/// Whether the tokens before `at` end a sentence.
fn ends_sentence(bytes: &[u8], tokens: &[Token], at: usize) -> bool {
    let mut before = at - 1;
    // closing marks and citations may stand between the stop and the blank
    while before > 0
        && (tokens[before].kind == Kind::Citation && !tokens[before].glued_to_word(tokens, before)
            || matches!(tokens[before].kind, Kind::Sign(b'"' | b'\'' | b')' | b']')))
        && tokens[before - 1].end + 1 >= tokens[before].start
        && at - before <= 8
    {
        before -= 1;
    }
    match tokens[before].kind {
        Kind::Sign(b'!' | b'?') => true,
        Kind::Sign(b'.') if tokens[before].glued() || before == 0 => {
            let Some(word) = before.checked_sub(1).and_then(|i| tokens.get(i)) else { return true };
            let text = word.text(bytes);
            let single = text.len() == 1 && text[0].is_ascii_alphabetic() || text.contains(&b'.');
            let abbreviation = word.kind == Kind::Word && (single || word.is(class::ABBREV));
            let next_lower = tokens[at].text(bytes).first().is_some_and(u8::is_ascii_lowercase);
            let goes_on = next_lower && word.kind == Kind::Word && text.len() <= 4;
            !abbreviation && !goes_on
        }
        _ => false,
    }
}

impl Token {
    /// Whether the token stands right after a word, a number or a sign that is no full stop.
    fn glued_to_word(&self, tokens: &[Token], at: usize) -> bool {
        let Some(before) = at.checked_sub(1).and_then(|i| tokens.get(i)) else { return true };
        !matches!(before.kind, Kind::Sign(b'.' | b'!' | b'?' | b'"' | b')' | b']') | Kind::Citation)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{clean::clean, token::tokens};
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let clean = clean(text);
        let tokens = tokens(&clean.bytes);
        let text_of = |s: &Segment| {
            let bytes = &clean.bytes[tokens[s.first].start as usize..tokens[s.last - 1].end as usize];
            String::from_utf8_lossy(bytes).into_owned()
        };
        segments(&clean.bytes, &tokens).iter().map(text_of).collect()
    }

    #[test]
    fn a_citation_after_the_stop_belongs_to_the_sentence_before() {
        assert_eq!(cut("It was $5. [C1] Next one."), ["It was $5. [C1]", "Next one."]);
        assert_eq!(cut("In the U.S. revenue of Calder Inc. rose."), ["In the U.S. revenue of Calder Inc. rose."]);
        assert_eq!(cut("* one\n* two\n\nthree\nfour"), ["\u{fffd} one", "\u{fffd} two", "three\nfour"]);
        assert_eq!(cut("| a | 1 |\n|---|\n| b | 2 |").len(), 3);
    }
}
