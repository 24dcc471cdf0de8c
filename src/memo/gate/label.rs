//! Whether the text names another measure than the cited fact (decision 9: label).
//!
//! Silence contradicts nothing: a rule speaks only when the text names what it knows and the fact is known to be another. The
//! name may stand before the figure, behind it ("$5 of net income"), at the head of its row or over its column.

use std::sync::LazyLock;

use super::Reason;
use super::entity;
use super::index::{Index, Known};
use super::period::Mention;
use super::table::Cell;
use crate::memo::figure::lexicon::{self, class};
use crate::memo::figure::token::Kind;
use crate::memo::figure::{Figure, Found, Measure, Scan};

/// Tokens before a figure in which the measure that it states may be named.
const NAME_REACH: usize = 16;

/// Tokens between the name of a measure and its figure, all of them fillers or times.
const FILLERS_MAX: usize = 12;

/// Tokens between a figure and its citation in which the measure may be named.
const BEHIND_MAX: usize = 6;

/// Words of names of measures that many measures share.
const COMMON: &[&str] =
    &["total", "net", "of", "and", "the", "per", "from", "for", "in", "by", "on", "to", "rate", "ratio"];

/// Phrases by their last letter, the longest first.
static METRICS: LazyLock<Vec<Vec<(usize, &'static str)>>> = LazyLock::new(|| {
    let lines = include_str!("metrics.txt").lines().filter(|line| !line.starts_with('#'));
    let mut out: Vec<(usize, &str)> = lines
        .filter_map(|line| line.split_once(": "))
        .enumerate()
        .flat_map(|(key, (_, phrases))| phrases.split(" | ").map(move |phrase| (key, phrase)))
        .collect();
    // the longest phrase that fits is the name
    out.sort_by_key(|(_, phrase)| std::cmp::Reverse(phrase.len()));
    let mut by_letter = vec![Vec::new(); LETTERS];
    for (key, phrase) in out {
        by_letter[last_letter(phrase.as_bytes())].push((key, phrase));
    }
    by_letter
});

/// Places that [`last_letter`] tells apart.
pub(super) const LETTERS: usize = 128;

/// The last byte of a phrase, small: where phrases that end alike are kept.
pub(super) fn last_letter(phrase: &[u8]) -> usize {
    usize::from(phrase.last().map_or(0, |b| b.to_ascii_lowercase() & 0x7f))
}

/// What is asked of one figure.
pub(super) struct Question<'a> {
    pub(super) scan: &'a Scan<'a>,
    pub(super) found: &'a Found,
    pub(super) index: &'a Index<'a>,
    pub(super) times: &'a [Mention],
    /// The head of the figure's row and that of its column.
    pub(super) cells: [Option<Cell>; 2],
}

/// What a name says of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// It is the fact's own.
    Own,
    /// Another measure.
    Other,
    /// Nothing that is known.
    Nothing,
}

impl Question<'_> {
    /// The first contradiction between the names around a figure and the fact.
    pub(super) fn check(&self, figure: &Figure, known: &Known<'_>) -> Option<Reason> {
        if let Some(before) = self.words_before(figure) {
            match self.says(before, known) {
                Says::Other => return Some(Reason::LabelMismatch),
                Says::Own => return self.owned_by_another(before, known).then_some(Reason::EntityMismatch),
                Says::Nothing => {}
            }
        }
        if let Some(behind) = self.words_behind(figure)
            && self.says(behind, known) == Says::Other
        {
            return Some(Reason::LabelMismatch);
        }
        let mut other = false;
        for cell in self.cells.into_iter().flatten() {
            let text = cell.text(self.scan);
            if text.eq_ignore_ascii_case(known.fact.label.as_bytes()) {
                return None;
            }
            match self.says(head_of(text), known) {
                Says::Own => return None,
                Says::Other => other = true,
                Says::Nothing => {}
            }
        }
        other.then_some(Reason::LabelMismatch)
    }

    /// Whether a text ends in the name of the fact's measure, of another of the lexicon, or of another fact of the snapshot.
    fn says(&self, text: &[u8], known: &Known<'_>) -> Says {
        if ends_in(text, known.head) {
            return if self.longer_name(text, known) { Says::Other } else { Says::Own };
        }
        // the names of two facts of one snapshot are never names of one measure
        let other = self.index.heads(text).iter().find(|head| names(text, head));
        if other.is_some_and(|head| !head.eq_ignore_ascii_case(known.head)) {
            return Says::Other;
        }
        let letter = &METRICS[last_letter(text)];
        let Some(&(named, _)) = letter.iter().find(|(_, phrase)| names(text, phrase)) else { return Says::Nothing };
        match known.metric {
            Some(own) if own == named => Says::Own,
            Some(_) => Says::Other,
            None if shares_word(named, &known.fact.label) => Says::Nothing,
            None => Says::Other,
        }
    }

    /// Whether the fact's own name is only the end of another one: "deferred revenue" over a fact of revenue.
    fn longer_name(&self, text: &[u8], known: &Known<'_>) -> bool {
        let longer = |phrase: &str| phrase.len() > known.head.len() && ends_in(text, phrase);
        let fact = self.index.heads(text).iter().any(|head| longer(head));
        fact || METRICS[last_letter(text)].iter().any(|(key, phrase)| longer(phrase) && known.metric != Some(*key))
    }

    /// "Nimbus's net income" over a fact of another company.
    fn owned_by_another(&self, text: &[u8], known: &Known<'_>) -> bool {
        let Some(entity) = known.fact.entity.as_deref() else { return false };
        let Some(mark) = text.iter().rposition(|b| *b == b'\'') else { return false };
        let rest = &text[mark + 1..];
        let Some(phrase) = rest.strip_prefix(b"s ") else { return false };
        let own = phrase.eq_ignore_ascii_case(known.head.as_bytes())
            || known.metric.is_some() && known.metric == metric_of(phrase);
        let start = text[..mark].iter().rposition(|b| !b.is_ascii_alphabetic()).map_or(0, |i| i + 1);
        let name = &text[start..mark];
        own && !entity::plain(name) && !entity::holds(entity, name) && !entity::holds(&known.fact.label, name)
    }

    /// The text up to the figure, without the verbs and fillers between the name of a measure and its figure.
    fn words_before(&self, figure: &Figure) -> Option<&[u8]> {
        let (scan, found) = (self.scan, self.found);
        let last = figure.tokens.0;
        let first = last.saturating_sub(NAME_REACH).max(found.segment.first);
        let mut end = last;
        let mut dated = false;
        while end > first && last - end < FILLERS_MAX {
            if let Some(time) = self.times.iter().find(|t| t.last == end && t.first > first) {
                end = time.first;
                dated = true;
                continue;
            }
            let token = &scan.tokens[end - 1];
            // "came to", "rose to"; a rise alone would be of the size of the figure
            let towards = end > first + 1
                && token.text(&scan.clean.bytes) == b"to"
                && scan.tokens[end - 2].is(class::VERB | class::UP | class::DOWN);
            if towards {
                end -= 2;
                continue;
            }
            let filler = match token.kind {
                Kind::Word => {
                    token.is(class::VERB | class::FILLER | class::APPROX | class::OVER | class::UNDER)
                        && token.text(&scan.clean.bytes) != b"sales"
                        || dated
                            && matches!(
                                token.text(&scan.clean.bytes),
                                b"in" | b"for" | b"during" | b"of" | b"the" | b"at"
                            )
                }
                Kind::Sign(b':' | b'(' | b'|' | b'=' | b')') => true,
                Kind::Number | Kind::Citation | Kind::Sign(_) => false,
            };
            if !filler {
                break;
            }
            end -= 1;
        }
        if end == first || last == end && scan.tokens[end - 1].kind != Kind::Word {
            return None;
        }
        let until = scan.tokens[end - 1].end as usize;
        let from = scan.tokens[first].start as usize;
        scan.clean.bytes.get(from..until)
    }

    /// "of net income" between a figure and its citation.
    fn words_behind(&self, figure: &Figure) -> Option<&[u8]> {
        let (scan, at) = (self.scan, figure.tokens.1);
        let text = |i: usize| scan.tokens.get(i).map_or(&b""[..], |t| t.text(&scan.clean.bytes));
        let preposition =
            matches!(text(at), b"of" | b"in") && matches!(figure.measure, Measure::Money(_) | Measure::Bare);
        let last = (at + 1..(at + 1 + BEHIND_MAX).min(self.found.segment.last))
            .find(|&i| scan.tokens[i].kind != Kind::Word)?;
        if !preposition || last == at + 1 || scan.tokens[last].kind != Kind::Citation {
            return None;
        }
        scan.clean.bytes.get(scan.tokens[at + 1].start as usize..scan.tokens[last - 1].end as usize)
    }
}

/// A cell's text up to brackets: "Net income (in millions)".
fn head_of(text: &[u8]) -> &[u8] {
    text.split(|b| *b == b'(').next().unwrap_or_default().trim_ascii()
}

/// Whether a label holds a telling word of any name of a measure: then it may be that measure under another name.
fn shares_word(metric: usize, label: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let split = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        split.map(|word| word.to_ascii_lowercase()).map(|word| word.trim_end_matches('s').to_owned()).collect()
    };
    let own = words(label);
    METRICS
        .iter()
        .flatten()
        .filter(|(key, _)| *key == metric)
        .any(|(_, phrase)| words(phrase).iter().any(|word| !COMMON.contains(&word.as_str()) && own.contains(word)))
}

/// What a label names, up to brackets or a comma.
pub(super) fn head(label: &str) -> &str {
    label.split(['(', ',', '[']).next().unwrap_or_default().trim()
}

/// The measure of the lexicon that the head of a label names.
pub(super) fn metric(head: &str) -> Option<usize> {
    metric_of(head.as_bytes())
}

fn metric_of(phrase: &[u8]) -> Option<usize> {
    let letter = &METRICS[last_letter(phrase)];
    letter.iter().find(|(_, known)| phrase.eq_ignore_ascii_case(known.as_bytes())).map(|&(key, _)| key)
}

/// Whether a text ends in a phrase, as words of their own.
fn ends_in(text: &[u8], phrase: &str) -> bool {
    let Some(before) = text.len().checked_sub(phrase.len()) else { return false };
    text[before..].eq_ignore_ascii_case(phrase.as_bytes())
        && before.checked_sub(1).is_none_or(|i| !text[i].is_ascii_alphanumeric() && text[i] != b'-')
}

/// Whether a text ends in a phrase that nothing before it narrows.
fn names(text: &[u8], phrase: &str) -> bool {
    ends_in(text, phrase) && phrase_stands_alone(&text[..text.len() - phrase.len()])
}

/// "pension assets" are no assets, "cost of revenue" is no revenue: what stands before a name must not narrow it.
fn phrase_stands_alone(before: &[u8]) -> bool {
    let word = before.trim_ascii_end().rsplit(|b| *b == b' ' || *b == b'\n').next().unwrap_or_default();
    let neutral: &[&[u8]] = &[
        b"",
        b"the",
        b"its",
        b"our",
        b"total",
        b"diluted",
        b"basic",
        b"company",
        b"company's",
        b"a",
        b"|",
        b"while",
        b"The",
        b"Its",
        b"Our",
    ];
    // a verb narrows no noun
    let joint = lexicon::word(word).classes & (class::VERB | class::FILLER) != 0
        || matches!(word, b"that" | b"had" | b"has" | b"but" | b"-");
    let possessive = word.ends_with(b"'s");
    let mark = word.last().is_some_and(|b| matches!(b, b',' | b'.' | b']' | b'|' | b'(' | b':'));
    let year = word.len() == 4 && word.iter().all(u8::is_ascii_digit);
    neutral.contains(&word) || joint || possessive || mark || year
}
