//! Whether the text names another measure, period or entity than the cited fact (decision 9).
//!
//! Silence contradicts nothing: a rule speaks only when the text names what it knows and the fact is known to be another.

use std::sync::LazyLock;

use super::Reason;
use super::index::{Index, Known};
use crate::memo::fact::Fact;
use crate::memo::figure::lexicon::class;
use crate::memo::figure::token::Kind;
use crate::memo::figure::{Figure, Found, Scan};

/// Tokens before a figure in which the measure that it states may be named.
const NAME_REACH: usize = 12;

/// Tokens between the name of a measure and its figure, all of them fillers.
const FILLERS_MAX: usize = 8;

/// A year further away than this names something else than the fact's period: a maturity, a plan's start.
const NEAR_YEARS: i32 = 3;

/// The same for a fact whose fiscal year is known for sure.
const NEAR_FISCAL_YEARS: i32 = 10;

/// Countries that a yield or a rate may belong to, with their names in prose.
const COUNTRIES: &[(&str, &str)] = &[
    ("United States", "us"),
    ("Germany", "germany"),
    ("France", "france"),
    ("Italy", "italy"),
    ("Spain", "spain"),
    ("Japan", "japan"),
    ("China", "china"),
    ("India", "india"),
    ("Canada", "canada"),
    ("Brazil", "brazil"),
    ("Mexico", "mexico"),
    ("Australia", "australia"),
    ("Switzerland", "switzerland"),
    ("Sweden", "sweden"),
    ("Norway", "norway"),
    ("United Kingdom", "britain"),
    ("South Korea", "korea"),
];

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

/// What a segment names for all of its figures.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    /// The only year that is mentioned, and whether more than one is.
    year: Option<u16>,
    years_differ: bool,
    /// Whether that year stands in the position of a date.
    dated: bool,
    /// Whether it is called a fiscal year.
    fiscal: bool,
    /// Quarters, from one.
    quarters: Vec<u8>,
    /// Whether a year as a whole is named.
    whole_year: bool,
    /// A company with its legal form.
    company: Option<String>,
    /// A country in the possessive.
    country: Option<&'static str>,
}

/// Reads what the segment names; one pass.
pub(super) fn read(scan: &Scan<'_>, found: &Found) -> Named {
    let mut out = Named::default();
    for at in found.segment.first..found.segment.last {
        let token = &scan.tokens[at];
        let text = token.text(&scan.clean.bytes);
        let before = at.checked_sub(1).filter(|&i| i >= found.segment.first).map(|i| &scan.tokens[i]);
        match token.kind {
            Kind::Number => {
                if let Some(year) = year(text).filter(|_| !in_figure(found, at)) {
                    out.years_differ |= out.year.is_some_and(|known| known != year);
                    out.year = Some(year);
                    out.dated |= dated(scan, found, at);
                    out.fiscal |= before
                        .is_some_and(|t| matches!(t.text(&scan.clean.bytes), b"fiscal" | b"Fiscal" | b"FY" | b"fy"));
                }
                let quarter = before.is_some_and(|t| matches!(t.text(&scan.clean.bytes), b"Q" | b"q")) && token.glued();
                if quarter && text.len() == 1 {
                    out.quarters.push(text[0] - b'0');
                }
            }
            // no other small letter begins a word that is looked for
            Kind::Word if !text[0].is_ascii_uppercase() && !matches!(text[0], b'q' | b'y' | b'a') => {}
            Kind::Word if matches!(text, b"quarter" | b"Quarter") => {
                let rank = [&b"first"[..], b"second", b"third", b"fourth"];
                let named = before.map(|t| t.text(&scan.clean.bytes).to_ascii_lowercase());
                if let Some(rank) = rank.iter().position(|r| named.as_deref() == Some(r)) {
                    out.quarters.push(rank as u8 + 1);
                }
            }
            Kind::Word if matches!(text, b"year" | b"annual" | b"FY") => out.whole_year = true,
            Kind::Word if text[0].is_ascii_uppercase() => name(scan, found, at, &mut out),
            Kind::Word => {}
            Kind::Citation | Kind::Sign(_) => {}
        }
    }
    out
}

/// Notes a company or a country.
fn name(scan: &Scan<'_>, found: &Found, at: usize, out: &mut Named) {
    let text = scan.tokens[at].text(&scan.clean.bytes);
    let forms: &[&[u8]] = &[b"Corp", b"Inc", b"Ltd", b"plc", b"Plc", b"LLC", b"AG", b"NV", b"Corporation"];
    let capital = |i: usize| scan.tokens[i].text(&scan.clean.bytes).first().is_some_and(u8::is_ascii_uppercase);
    if at > found.segment.first && forms.contains(&text) && scan.tokens[at - 1].kind == Kind::Word && capital(at - 1) {
        let first = scan.tokens[at - 1].text(&scan.clean.bytes);
        out.company = Some(String::from_utf8_lossy(first).into_owned());
    }
    let owner =
        scan.tokens.get(at + 1).is_some_and(|t| t.sign(b'\'')) && scan.tokens.get(at + 2).is_some_and(|t| t.glued());
    if owner && capital(at) {
        let lower = text.to_ascii_lowercase();
        out.country =
            COUNTRIES.iter().find(|(_, short)| short.as_bytes() == lower).map(|&(full, _)| full).or(out.country);
    }
}

fn year(text: &[u8]) -> Option<u16> {
    if text.len() != 4 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let year = text.iter().fold(0, |n, b| n * 10 + u16::from(b - b'0'));
    (1900..2100).contains(&year).then_some(year)
}

/// Whether a token belongs to a figure of the segment.
fn in_figure(found: &Found, at: usize) -> bool {
    let after = found.figures.partition_point(|f| f.tokens.1 <= at);
    found.figures.get(after).is_some_and(|f| f.tokens.0 <= at)
}

/// Whether a year dates the statement, rather than being part of a name: "in 2021", not "the 2021 Notes".
fn dated(scan: &Scan<'_>, found: &Found, at: usize) -> bool {
    let capital = scan.tokens.get(at + 1).is_some_and(|t| {
        t.kind == Kind::Word
            && t.gap == super::super::figure::token::Gap::Space
            && t.text(&scan.clean.bytes).first().is_some_and(u8::is_ascii_uppercase)
    });
    let before = at.checked_sub(1).filter(|&i| i >= found.segment.first).map(|i| &scan.tokens[i]);
    let strong = before.is_some_and(|t| {
        t.sign(b',')
            || t.is(class::MONTH)
            || matches!(
                t.text(&scan.clean.bytes),
                b"in" | b"In" | b"fiscal" | b"Fiscal" | b"FY" | b"for" | b"during" | b"calendar" | b"year"
            )
    });
    strong && !capital
}

/// The first contradiction between what is named and the fact.
pub(super) fn check(
    scan: &Scan<'_>,
    found: &Found,
    figure: &Figure,
    known: &Known<'_>,
    index: &Index<'_>,
    named: &Named,
) -> Option<Reason> {
    if contradicts_label(scan, found, figure, known, index) {
        return Some(Reason::LabelMismatch);
    }
    if contradicts_period(found, known.fact, named) {
        return Some(Reason::PeriodMismatch);
    }
    contradicts_entity(known.fact, named).then_some(Reason::EntityMismatch)
}

/// Whether the words before the figure name another measure of the lexicon, or the label of another fact of the snapshot.
fn contradicts_label(scan: &Scan<'_>, found: &Found, figure: &Figure, known: &Known<'_>, index: &Index<'_>) -> bool {
    let Some(before) = words_before(scan, found, figure) else { return false };
    if ends_in(before, known.head) {
        return false;
    }
    // the names of two facts of one snapshot are never names of one measure
    let other = index.heads(before).iter().find(|head| names(before, head)).filter(|head| !alike(head, known.head));
    if other.is_some() {
        return true;
    }
    let Some(own) = known.metric else { return false };
    let letter = &METRICS[last_letter(before)];
    letter.iter().find(|(_, phrase)| names(before, phrase)).is_some_and(|&(named, _)| named != own)
}

/// What a label names, up to brackets or a comma.
pub(super) fn head(label: &str) -> &str {
    label.split(['(', ',', '[']).next().unwrap_or_default().trim()
}

/// The measure of the lexicon that the head of a label names.
pub(super) fn metric(head: &str) -> Option<usize> {
    METRICS[last_letter(head.as_bytes())]
        .iter()
        .find(|(_, phrase)| head.eq_ignore_ascii_case(phrase))
        .map(|&(key, _)| key)
}

fn alike(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// The text up to the figure, without the verbs and fillers between the name of a measure and its figure.
fn words_before<'a>(scan: &'a Scan<'_>, found: &Found, figure: &Figure) -> Option<&'a [u8]> {
    let last = figure.tokens.0;
    let first = last.saturating_sub(NAME_REACH).max(found.segment.first);
    let mut end = last;
    while end > first && last - end < FILLERS_MAX {
        let token = &scan.tokens[end - 1];
        let filler = match token.kind {
            Kind::Word => {
                token.is(class::VERB | class::FILLER | class::APPROX | class::OVER | class::UNDER)
                    && token.text(&scan.clean.bytes) != b"sales"
            }
            Kind::Sign(b':' | b'(' | b'|' | b'=') => true,
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
    let possessive = word.ends_with(b"'s");
    let mark = word.last().is_some_and(|b| matches!(b, b',' | b'.' | b']' | b'|' | b'(' | b':'));
    let year = word.len() == 4 && word.iter().all(u8::is_ascii_digit);
    neutral.contains(&word) || possessive || mark || year
}

fn contradicts_period(found: &Found, fact: &Fact, named: &Named) -> bool {
    if let Some(period) = fact.fiscal_period.as_deref() {
        let own = period.strip_prefix('Q').and_then(|q| q.parse::<u8>().ok());
        let other = match own {
            Some(own) => !named.quarters.is_empty() && !named.quarters.contains(&own),
            None => period == "FY" && !named.quarters.is_empty() && !named.whole_year,
        };
        if other && found.figures.len() == 1 {
            return true;
        }
    }
    // of several years their mere presence does not tell which belongs to which figure
    let Some(year) = named.year.filter(|_| named.dated && !named.years_differ) else { return false };
    let year = i32::from(year);
    let near = if fact.fiscal_year.is_some() { NEAR_FISCAL_YEARS } else { NEAR_YEARS };
    named
        .span(fact)
        .is_some_and(|(first, last)| year < first && year + near >= first || year > last && year <= last + near)
}

/// The years that a fact's period may be called by.
fn span(fact: &Fact) -> Option<(i32, i32)> {
    let end = fact.period_end.map(time::Date::year);
    let start = fact.period_start.map(time::Date::year).or(end);
    match (fact.fiscal_year, start, end) {
        (Some(own), None, _) | (Some(own), _, None) => Some((own, own + 1)),
        (Some(own), Some(start), Some(end)) => Some((own.min(start), own.max(end))),
        // the fiscal year of a period that ends early in a year is the one before
        (None, Some(start), Some(end)) => {
            Some((start - i32::from(fact.period_end.is_some_and(|d| u8::from(d.month()) <= 2)), end))
        }
        (None, _, _) => None,
    }
}

impl Named {
    /// The years that the text may call a fact's period by: a fiscal year is called by its own number.
    fn span(&self, fact: &Fact) -> Option<(i32, i32)> {
        match fact.fiscal_year {
            Some(own) if self.fiscal => Some((own, own)),
            Some(_) | None => span(fact),
        }
    }

    /// Takes the year back when it is the period of one of the facts that the segment cites: then it says nothing of the others.
    pub(super) fn settle<'a>(&mut self, cited: impl Iterator<Item = &'a Fact>) {
        let Some(year) = self.year.map(i32::from) else { return };
        if cited.filter_map(|fact| self.span(fact)).any(|(first, last)| (first..=last).contains(&year)) {
            self.year = None;
        }
    }
}

fn contradicts_entity(fact: &Fact, named: &Named) -> bool {
    let Some(entity) = fact.entity.as_deref() else { return false };
    let holds = |name: &str| entity.to_lowercase().contains(&name.to_lowercase());
    let country = COUNTRIES.iter().any(|(full, _)| *full == entity);
    named.company.as_deref().is_some_and(|company| !country && !holds(company))
        || country && named.country.is_some_and(|named| named != entity)
}
