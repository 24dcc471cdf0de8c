//! Dates, years and times, and integers joined like them: calendar dates, spans of years, accession numbers.

use super::super::lexicon::class;
use super::super::token::Kind;
use super::super::view::View;

/// Tokens around a year in which another date tells that it is one.
const DATE_REACH: usize = 8;

/// May 2024; March 3, 2025.
pub(super) fn month_first(view: &View<'_>, at: usize) -> Option<usize> {
    let lower = view.text(at).first().is_some_and(u8::is_ascii_lowercase);
    if lower && matches!(view.text(at), b"may" | b"march" | b"mar") {
        return None;
    }
    let mut end = at + 1 + usize::from(view.glued_sign(at + 1, b'.'));
    if view.year(end).is_some() {
        return (!view.amount_follows(end + 1)).then_some(end + 1);
    }
    // "April 1, 2022" may be one run of digits and marks
    let first = view.text(end);
    let day = first.split(|b| *b == b',').next().unwrap_or_default();
    if day.is_empty() || day.len() > 2 || !day.iter().all(u8::is_ascii_digit) || view.amount_follows(end + 1) {
        return None;
    }
    end += 1;
    if view.glued(end, Kind::Word) && view.is(end, class::ORDINAL_SUFFIX) {
        end += 1;
    }
    if view.sign(end, b',') && view.year(end + 1).is_some() {
        end += 2;
    } else if view.year(end).is_some() {
        end += 1;
    }
    Some(end)
}

/// Dates, spans of years, accession and phone numbers: integers joined by dashes, slashes or colons.
pub(super) fn joined(view: &View<'_>, at: usize) -> Option<usize> {
    let mut parts = 1;
    let mut end = at + 1;
    let mut colons = 0;
    view.integer(at)?;
    while view.get(end).is_some_and(|t| t.glued() && matches!(t.kind, Kind::Sign(b'-' | b'/' | b':' | 0x8c)))
        && view.glued(end + 1, Kind::Number)
        && view.integer(end + 1).is_some()
        && parts < 6
    {
        colons += usize::from(view.sign(end, b':'));
        parts += 1;
        end += 2;
    }
    let chain = view.chain_end(end - 1);
    let safe = !view.amount_follows(chain) && !view.cited(chain);
    let years = view.year(at).is_some() && (view.year(at + 2).is_some() || view.text(at + 2).len() <= 2);
    match parts {
        1 => None,
        2 if colons == 1 => {
            let clock = view.text(at).len() <= 2 && view.text(at + 2).len() == 2;
            let said = view.before(at).is_some_and(|t| clock_word(t.text(view.bytes)))
                || view.glued(end, Kind::Word)
                || matches!(view.text(end), b"am" | b"pm" | b"a.m" | b"p.m" | b"ET" | b"UTC");
            (clock && said && safe).then_some(chain)
        }
        2 if years && safe => Some(chain),
        2 if view.text(at) == b"24" && view.text(at + 2) == b"7" => Some(end),
        2 => None,
        _ if safe && shaped(view, at, parts) => {
            // a timestamp goes on: 2025-02-14T21:04:59Z
            let mut at = chain;
            while view.get(at).is_some_and(|t| t.glued() && t.sign(b':')) && view.glued(at + 1, Kind::Number) {
                at = view.chain_end(at + 1);
            }
            Some(at)
        }
        _ => None,
    }
}

/// A word that a time of day follows.
fn clock_word(text: &[u8]) -> bool {
    matches!(
        text,
        b"at" | b"At" | b"by" | b"By" | b"until" | b"till" | b"after" | b"before" | b"from" | b"since" | b"between"
    )
}

/// Whether integers joined by marks have the shape of a date, a time, a phone number or an accession number; "40/30/30" is a
/// split.
fn shaped(view: &View<'_>, at: usize, parts: usize) -> bool {
    let length = |i: usize| view.text(at + 2 * i).len();
    let value = |i: usize| view.integer(at + 2 * i).unwrap_or(0);
    let month_and_day = |a: u128, b: u128| (1..=12).contains(&a) && (1..=31).contains(&b);
    let all: usize = (0..parts).map(length).sum();
    if parts == 4 && view.sign(at + 1, b'/') && view.sign(at + 5, b'/') {
        return month_and_day(value(0), value(1)) && month_and_day(value(2), value(3));
    }
    if parts > 3 {
        return (9..=15).contains(&all);
    }
    let pair = month_and_day(value(0), value(1)) || month_and_day(value(1), value(0));
    let clock = view.sign(at + 1, b':') && view.sign(at + 3, b':') && all <= 6;
    match (length(0), length(1), length(2)) {
        (10, 2, 6) | (3, 3, 4) | (1, 3, 7) => true,
        (4, 1..=2, 1..=2) => month_and_day(value(1), value(2)),
        (1..=2, 1..=2, 4) => pair && view.year(at + 4).is_some(),
        (1..=2, 1..=2, 2) => clock || pair && view.before_is(at, class::YEAR_PREV),
        _ => false,
    }
}

/// 3 May 2024, 14th of March.
pub(super) fn day_first(view: &View<'_>, at: usize) -> Option<usize> {
    let day = view.integer(at)?;
    let month = view.get(at + 1)?;
    if !(1..=31).contains(&day)
        || !month.is(class::MONTH)
        || !view.capital(at + 1) && matches!(view.text(at + 1), b"may" | b"march" | b"mar" | b"dec" | b"sept")
    {
        return None;
    }
    Some(if view.year(at + 2).is_some() { at + 3 } else { at + 2 })
}

/// A year in the position of a date, and a day written as eight digits.
pub(super) fn year(view: &View<'_>, at: usize) -> Option<usize> {
    let end = at + 1;
    if view.text(at).len() == 8 && compact_date(view.integer(at)?) {
        return compact(view, at).then_some(end);
    }
    if view.year(at).is_none() {
        return founding(view, at).then_some(end);
    }
    let next = view.get(end);
    let part =
        |i: usize, most: u128| view.text(i).len() == 2 && view.integer(i).is_some_and(|n| (1..=most).contains(&n));
    if part(end, 12) && part(end + 1, 31) && !view.cited(end + 2) && !view.amount_follows(end + 2) {
        return Some(end + 2);
    }
    if view.glued_sign(end, b'/') && view.is(end + 1, class::MONTH) {
        return Some(end + 2 + 2 * usize::from(view.glued_sign(end + 2, b'/') && part(end + 3, 31)));
    }
    if view.amount_follows(end) || next.is_some_and(|t| t.word.currency != 0 || t.is(class::TIMES)) {
        return None;
    }
    let strong = view.before_is(at, class::YEAR_STRONG | class::MONTH) || comma_of_date(view, at);
    // a mark between the year and a citation does not make it less cited
    let mark = next.is_some_and(|t| matches!(t.kind, Kind::Sign(b')' | b'|' | b'.' | b',' | b':' | b'"' | b';')));
    if view.cited(end) || mark && (view.cited(end + 1) || view.sign(end + 1, b'|') && view.cited(end + 2)) {
        return strong.then_some(end);
    }
    if lone_cell(view, at) {
        return None;
    }
    let before = view.before(at);
    let opened = before.is_none_or(|t| {
        matches!(
            t.kind,
            Kind::Sign(b',' | b'(' | b'/' | b'-' | b'|' | b'"' | b';' | 0x8c | b'#' | 0x90 | 0x93 | b'\'')
                | Kind::Number
        ) || t.is(class::YEAR_PREV) && !vague(view, at)
            || t.text(view.bytes) == b"with" && at >= view.segment.first + 2 && compared(view.text(at - 2))
    });
    let closed = next.is_none_or(|t| {
        matches!(
            t.kind,
            Kind::Sign(
                b'.' | b',' | b';' | b':' | b')' | b'-' | b'/' | b'\'' | b'|' | b'?' | b'!' | b'"' | 0x8c | 0x8d
            ) | Kind::Number
        ) || t.is(class::YEAR_NEXT | class::MONTH)
    });
    let named = next.is_some_and(|t| t.kind == Kind::Word) && view.capital(end);
    let singular =
        next.is_some_and(|t| t.kind == Kind::Word && !t.is(class::PEOPLE)) && view.text(end).last() != Some(&b's');
    let quarter = matches!(view.text(end), b"q" | b"Q" | b"h" | b"H");
    (strong
        || opened && closed
        || named && opened
        || quarter
        || singular && view.before_is(at, class::YEAR_SOFT)
        || view.is(end, class::YEAR_NEXT) && !view.before_is(at, class::VERB) && !vague(view, at))
    .then_some(end)
}

fn compared(text: &[u8]) -> bool {
    [&b"compared"[..], b"comparison", b"contrast", b"contrasted", b"along", b"together"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

/// A year before 1900 counts only where a beginning is told: "since 1869", "founded in 1869".
fn founding(view: &View<'_>, at: usize) -> bool {
    let old = view.text(at).len() == 4 && view.integer(at).is_some_and(|n| (1600..1900).contains(&n));
    let before =
        |back: usize| at.checked_sub(back).filter(|&i| i >= view.segment.first).map_or(&b""[..], |i| view.text(i));
    let began: [&[u8]; 5] = [b"founded", b"established", b"incorporated", b"chartered", b"begun"];
    let told = before(1).eq_ignore_ascii_case(b"since")
        || before(1) == b"in" && began.iter().any(|word| before(2).eq_ignore_ascii_case(word));
    old && told && !view.amount_follows(at + 1) && !view.cited(at + 1)
}

/// Whether the number is all that a cell of a table's body holds, in a row that is not about dates: "| Stores | 2024 |". The
/// header and the first column may name years.
fn lone_cell(view: &View<'_>, at: usize) -> bool {
    let first = view.segment.first;
    let body = view.segment.row && first.checked_sub(1).is_some_and(|i| view.tokens[i].sign(b'|'));
    if !body || at <= first + 1 || !view.sign(at - 1, b'|') || !view.sign(at + 1, b'|') {
        return false;
    }
    let dated = (first + 1..at)
        .take_while(|&i| !view.sign(i, b'|'))
        .any(|i| view.is(i, class::TIME | class::MONTH | class::YEAR_STRONG) || year_word(view.text(i)));
    !dated
}

/// A word that a year answers.
fn year_word(text: &[u8]) -> bool {
    let words: [&[u8]; 8] =
        [b"founded", b"maturity", b"matures", b"period", b"date", b"inception", b"vintage", b"established"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Whether the word before a year leads to amounts as well as to years ("sales of 1900", "rose to 2024") and nothing near says
/// that a date is meant.
fn vague(view: &View<'_>, at: usize) -> bool {
    let leading = view.before(at).is_some_and(|t| {
        matches!(
            t.text(view.bytes),
            b"of" | b"to" | b"and" | b"or" | b"than" | b"over" | b"at" | b"by" | b"against" | b"versus" | b"vs"
        )
    });
    let from = at.saturating_sub(DATE_REACH).max(view.segment.first);
    leading
        && !(from..at + DATE_REACH).any(|i| {
            i != at
                && (view.year(i).is_some()
                    || view.is(i, class::MONTH | class::TIME)
                    || i < at && view.is(i, class::YEAR_STRONG))
        })
}

/// The comma of "March 3, 2025" or "Sunnyvale, 2024" stands after a day or a name; that of "Revenue, 1950" does not date it.
fn comma_of_date(view: &View<'_>, at: usize) -> bool {
    let Some(before) = at.checked_sub(2).filter(|&i| i >= view.segment.first) else { return false };
    view.sign(at - 1, b',') && view.get(before).is_some_and(|t| t.kind == Kind::Number || t.is(class::MONTH))
}

/// Whether eight digits that can be a day stand where only a day does: "as of 20250214 the", "on 20250214.". An amount of eight
/// digits can look like one, so a word that leads to amounts, or a noun behind it, makes it a figure.
fn compact(view: &View<'_>, at: usize) -> bool {
    let end = at + 1;
    let as_of = view.before(at).is_some_and(|t| t.text(view.bytes) == b"of")
        && at.checked_sub(2).is_some_and(|i| i >= view.segment.first && view.text(i).eq_ignore_ascii_case(b"as"));
    let led = as_of || view.before_is(at, class::YEAR_PREV) && !vague(view, at);
    let closed = view.get(end).is_none_or(|t| match t.kind {
        Kind::Sign(sign) => matches!(sign, b'.' | b',' | b';' | b':' | b')' | b'|' | b'?' | b'!' | b'"'),
        Kind::Word => matches!(t.text(view.bytes), b"the" | b"and" | b"to" | b"through"),
        Kind::Number | Kind::Citation => false,
    });
    let mark = view.get(end).is_some_and(|t| t.kind != Kind::Word) && view.cited(end + 1);
    led && closed && !mark
}

fn compact_date(n: u128) -> bool {
    let (year, month, day) = (n / 10_000, n / 100 % 100, n % 100);
    (1900..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)
}
