//! Clean bytes cut into words, numerals, citations and signs, each with the meaning of its word.

use super::clean::code;
use super::lexicon::{self, Word};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters, perhaps with inner apostrophes, `&` or abbreviation dots.
    Word,
    /// Digits with their grouping and decimal marks.
    Number,
    /// A whole citation bracket, or the outer bracket around one.
    Citation,
    /// One byte of anything else.
    Sign(u8),
}

/// What stands between a token and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    /// Nothing: the two touch.
    None,
    /// Blanks.
    Space,
    /// One line break.
    Line,
    /// A blank line, or the start of the text.
    Paragraph,
}

/// One token of the clean bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) gap: Gap,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) word: Word,
}

impl Token {
    /// The clean bytes of the token.
    #[inline]
    pub(crate) fn text<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Whether it is this sign.
    #[inline]
    pub(crate) fn sign(&self, byte: u8) -> bool {
        self.kind == Kind::Sign(byte)
    }

    /// Whether its word stands in any of the classes.
    #[inline]
    pub(crate) fn is(&self, classes: u64) -> bool {
        self.word.classes & classes != 0
    }

    /// Whether the token touches the one before it.
    #[inline]
    pub(crate) fn glued(&self) -> bool {
        self.gap == Gap::None
    }
}

/// Cuts the bytes; one pass, linear.
pub(crate) fn tokens(bytes: &[u8]) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(bytes.len() / 5 + 8);
    let mut gap = Gap::Paragraph;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match byte {
            b' ' | b'\t' | b'\r' | code::NARROW => {
                gap = gap.max(Gap::Space);
                at += 1;
            }
            b'\n' => {
                gap = if gap >= Gap::Line { Gap::Paragraph } else { Gap::Line };
                at += 1;
            }
            _ => {
                let (kind, end) = token_at(bytes, at);
                let word = if kind == Kind::Word { lexicon::word_at(bytes, at, end) } else { Word::default() };
                out.push(Token { kind, gap, start: at as u32, end: end as u32, word });
                gap = Gap::None;
                at = end;
            }
        }
    }
    out
}

fn token_at(bytes: &[u8], at: usize) -> (Kind, usize) {
    match bytes[at] {
        b'0'..=b'9' => (Kind::Number, number_end(bytes, at)),
        b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
            && (at == 0 || !bytes[at - 1].is_ascii_alphanumeric()) =>
        {
            (Kind::Number, number_end(bytes, at + 1))
        }
        b'a'..=b'z' | b'A'..=b'Z' | code::LETTER => (Kind::Word, word_end(bytes, at)),
        b'[' => match citation_end(bytes, at) {
            Some(end) => (Kind::Citation, end),
            None => (Kind::Sign(b'['), at + 1),
        },
        other => (Kind::Sign(other), at + 1),
    }
}

/// The bytes that spell words.
const LETTERS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < u8::MAX {
        table[byte as usize] = byte.is_ascii_alphabetic() || byte == code::LETTER;
        byte += 1;
    }
    table
};

/// Letters; an apostrophe, `&` or dot between letters belongs to the word (U.S., R&D, company's).
fn word_end(bytes: &[u8], mut at: usize) -> usize {
    let letter = |i: usize| bytes.get(i).is_some_and(|b| LETTERS[usize::from(*b)]);
    let start = at;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        at += rest.iter().position(|b| !LETTERS[usize::from(*b)]).unwrap_or(rest.len());
        let short = at - start == 1 || (at >= 2 && bytes[at - 2] == b'.');
        match bytes.get(at) {
            Some(b'&') if letter(at + 1) => at += 1,
            Some(b'.') if short && letter(at + 1) && !letter(at + 2) => at += 1,
            _ => return at,
        }
    }
}

/// Digits with marks between digits; blanks only before groups of exactly three.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let mut at = start;
    let mut group = 0;
    let mut plain = true;
    loop {
        while digit(at) {
            at += 1;
            group += 1;
        }
        match bytes.get(at) {
            Some(b',' | b'.' | b'_' | b'\'') if digit(at + 1) => {
                plain = false;
                at += 1;
            }
            Some(&(b' ' | code::NARROW))
                if (plain && group <= 3
                    || !plain && group == 3 && matches!(bytes.get(at - 4), Some(&(b' ' | code::NARROW))))
                    && bytes[start] != b'0'
                    && digit(at + 1)
                    && digit(at + 2)
                    && digit(at + 3)
                    && !digit(at + 4) =>
            {
                plain = false;
                at += 1;
            }
            _ => return at,
        }
        group = 0;
    }
}

/// `[C1]`, `[C1, C2]`, blanks inside allowed.
fn citation_end(bytes: &[u8], start: usize) -> Option<usize> {
    let skip = |mut i: usize| {
        while bytes.get(i) == Some(&b' ') {
            i += 1;
        }
        i
    };
    let mut at = skip(start + 1);
    loop {
        if bytes.get(at) != Some(&b'C') || !bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        at += 2;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at = skip(at);
        match bytes.get(at) {
            Some(b',') => at = skip(at + 1),
            Some(b']') => return Some(at + 1),
            _ => return None,
        }
    }
}

/// The ids inside a citation bracket.
pub(crate) fn ids(citation: &[u8]) -> impl Iterator<Item = &str> {
    let inner = citation.get(1..citation.len().saturating_sub(1)).unwrap_or_default();
    inner.split(|&b| b == b',').map(|id| std::str::from_utf8(id.trim_ascii()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let clean = super::super::clean::clean(text);
        tokens(&clean.bytes).iter().map(|t| String::from_utf8_lossy(t.text(&clean.bytes)).into_owned()).collect()
    }

    #[test]
    fn numerals_words_and_citations_are_single_tokens() {
        assert_eq!(cut("R&D was $48.2 billion [C1, C2]."), ["R&D", "was", "$", "48.2", "billion", "[C1, C2]", "."]);
        assert_eq!(cut("48 217 000 of U.S. sales"), ["48 217 000", "of", "U.S", ".", "sales"]);
        assert_eq!(cut("In 2024 500 stores"), ["In", "2024", "500", "stores"]);
        assert_eq!(cut("[c1] 6\u{200b}1 10-K"), ["[", "c", "1", "]", "61", "10", "-", "K"]);
    }
}
