//! Digits that are no figures: dates, periods, references, identifiers, names, labels of duration, small counts.
//!
//! Decision 2 of the gate's specification: a digit is a figure unless one of these rules proves otherwise. Every rule is a
//! function of its own, looks a bounded number of tokens around, and answers with the token after what it recognised.

mod dates;

use super::clean::code;
use super::lexicon::class;
use super::numeral::Reading;
use super::segment::list_number;
use super::token::{Gap, Kind, Token};
use super::view::View;

/// Most that a structural count may be: "twelve regions".
const STRUCTURAL_COUNT_MAX: u128 = 12;

/// The token after a non-figure that begins at `at`, when one does.
pub(crate) fn skip(view: &View<'_>, at: usize) -> Option<usize> {
    let token = view.get(at)?;
    match token.kind {
        Kind::Number => number(view, at),
        Kind::Word => word(view, at),
        Kind::Sign(b'+') => phone(view, at),
        Kind::Sign(b'[') => footnote(view, at),
        Kind::Sign(_) | Kind::Citation => None,
    }
}

fn word(view: &View<'_>, at: usize) -> Option<usize> {
    let next = view.get(at + 1)?;
    let token = view.get(at)?;
    if next.kind == Kind::Number {
        if next.glued() {
            return letters_first(view, at);
        }
        if token.is(class::MONTH) {
            return dates::month_first(view, at);
        }
        if token.is(class::REF) {
            return reference(view, at);
        }
        if token.is(class::INDEX) {
            return named(view, at + 1);
        }
        return None;
    }
    if next.sign(b'-')
        && next.glued()
        && view.glued(at + 2, Kind::Number)
        && !token.is(class::SCALE | class::UNIT | class::TENS)
    {
        let end = view.chain_end(at + 2);
        let short = view.integer(at + 2).is_some_and(|_| view.text(at + 2).len() <= 3);
        let text = view.text(at);
        let code = text.len() <= 4 && text.iter().all(u8::is_ascii_uppercase) && !is_measure(text);
        let name = code
            || token.is(class::INDEX | class::REF)
            || matches!(text, b"top" | b"Top" | b"pre" | b"Pre" | b"post" | b"Post" | b"Catch");
        return (short && name && !view.amount_follows(end) && !view.cited(end)).then_some(end);
    }
    if token.is(class::MONTH)
        && next.sign(b'.')
        && next.glued()
        && view.get(at + 2).is_some_and(|t| t.kind == Kind::Number)
    {
        return dates::month_first(view, at);
    }
    if token.is(class::REF) && (next.sign(b'#') || next.sign(b'.')) && view.glued(at + 2, Kind::Number) {
        return reference(view, at + 1);
    }
    None
}

/// Short names of measures, which a number follows as their value and never as a part of a name: EPS5, RSI-88.
fn is_measure(letters: &[u8]) -> bool {
    let measures: [&[u8]; 10] = [b"eps", b"pe", b"roe", b"roa", b"roi", b"rsi", b"cap", b"nav", b"irr", b"dps"];
    measures.iter().any(|measure| letters.eq_ignore_ascii_case(measure))
}

/// FY2024, Q3, B2B, US12345X1090; not USD3.14, EPS5, or "at45" with its blank lost.
fn letters_first(view: &View<'_>, at: usize) -> Option<usize> {
    let letters = view.text(at);
    if view.get(at)?.word.currency != 0 || view.get(at)?.is(class::MONTH) {
        return view.get(at)?.is(class::MONTH).then(|| dates::month_first(view, at)).flatten();
    }
    let mut end = view.chain_end(at);
    let label = letters.len() <= 3
        || letters.len() <= 6 && letters.iter().all(u8::is_ascii_uppercase)
        || view.get(at)?.is(class::INDEX);
    // a version may hold points; a single one belongs to an amount
    let version = matches!(letters, b"v" | b"V") || view.reading(at + 1) == Reading::Dotted;
    let amount = is_measure(letters)
        || view.is(at, class::FILLER | class::VERB | class::OVER | class::UNDER | class::UP | class::DOWN)
        || view.text(at + 1).contains(&b'.') && !version;
    let grouped = amount || (at..end).any(|i| view.text(i).contains(&b','));
    while view.get(end).is_some_and(|t| t.glued() && (t.sign(b'-') || t.sign(b':') || t.sign(b'.') || t.sign(b'\'')))
        && view.get(end + 1).is_some_and(|t| t.glued() && matches!(t.kind, Kind::Number | Kind::Word))
    {
        end = view.chain_end(end + 1);
    }
    (label && !grouped && !view.amount_follows(end)).then_some(end)
}

/// Note 14, Rule 10b5-1(c), Exhibit 99.1, block 18,204,551.
fn reference(view: &View<'_>, at: usize) -> Option<usize> {
    let number = at + 1;
    let name = view.text(at);
    let long = name.eq_ignore_ascii_case(b"block")
        || name.eq_ignore_ascii_case(b"cik")
        || name.eq_ignore_ascii_case(b"accession");
    if !long && (view.text(number).len() > 7 || view.text(number).contains(&b',') || view.text(number).contains(&b' '))
    {
        return None;
    }
    // "volume 45000", "level 6300": nouns that amounts follow are references only with a small number
    let loose: [&[u8]; 16] = [
        b"volume", b"vol", b"number", b"no", b"nos", b"level", b"height", b"step", b"phase", b"tier", b"week", b"day",
        b"class", b"type", b"case", b"figure",
    ];
    let block = view.before(at).is_some_and(|t| t.text(view.bytes).eq_ignore_ascii_case(b"block"));
    if !block && view.text(number).len() > 2 && loose.iter().any(|word| name.eq_ignore_ascii_case(word)) {
        return None;
    }
    let mut end = view.chain_end(number);
    while view.get(end).is_some_and(Token::glued) {
        let inner = view.get(end + 1).is_some_and(|t| t.glued() && matches!(t.kind, Kind::Number | Kind::Word));
        if view.sign(end, b'(') && inner && view.glued_sign(end + 2, b')') {
            end += 3;
        } else if (view.sign(end, b'-') || view.sign(end, b'.')) && inner {
            end = view.chain_end(end + 1);
        } else {
            break;
        }
    }
    (!view.amount_follows(end) && !view.cited(end)).then_some(end)
}

/// S&P 500, Boeing 737-800.
fn named(view: &View<'_>, number: usize) -> Option<usize> {
    view.integer(number)?;
    let mut end = view.chain_end(number);
    if view.glued_sign(end, b'-') && view.glued(end + 1, Kind::Number) {
        end = view.chain_end(end + 1);
    }
    (view.text(number).len() <= 4 && !view.amount_follows(end) && !view.cited(end)).then_some(end)
}

fn number(view: &View<'_>, at: usize) -> Option<usize> {
    if money_before(view, at) {
        return None;
    }
    let opens = at == view.segment.first || view.before(at).is_some_and(|t| t.sign(b'#') || t.sign(b'>'));
    if let Some(end) = list_number(view.tokens, at).filter(|_| opens) {
        return Some(end);
    }
    digits_first(view, at)
        .or_else(|| dates::joined(view, at))
        .or_else(|| dates::day_first(view, at))
        .or_else(|| dates::year(view, at))
        .or_else(|| enumeration(view, at))
        .or_else(|| address(view, at))
        .or_else(|| structural_number(view, at))
}

/// Whether a currency stands before, with or without a sign between: then it is an amount whatever follows.
fn money_before(view: &View<'_>, at: usize) -> bool {
    let mut at = at;
    while view.tokens[at].glued()
        && view.before(at).is_some_and(|t| matches!(t.kind, Kind::Sign(b'-' | b'(' | code::MINUS)))
    {
        at -= 1;
    }
    view.before(at).is_some_and(|t| {
        matches!(t.kind, Kind::Sign(b'$' | 0x80..=0x89))
            || t.word.currency != 0 && t.kind == Kind::Word && t.end - t.start == 3
    })
}

/// Whether a minus of its own stands before: names have none.
fn signed(view: &View<'_>, at: usize) -> bool {
    let minus = view.before(at).filter(|t| matches!(t.kind, Kind::Sign(b'-' | b'+' | code::MINUS)));
    minus.is_some_and(|t| view.tokens[at].glued() && !t.glued())
}

/// 3rd, 10-K, 50-day, 401(k), 24x7, 1H25, 13F, 600519.SS, 0x83…, 2pm.
fn digits_first(view: &View<'_>, at: usize) -> Option<usize> {
    let next = view.get(at + 1)?;
    if !next.glued() {
        let clock = matches!(view.text(at + 1), b"am" | b"pm" | b"a.m" | b"p.m" | b"AM" | b"PM");
        return (clock && view.text(at).len() <= 5).then_some(at + 2);
    }
    let integer = view.integer(at);
    match next.kind {
        Kind::Word => letters_after(view, at, integer?),
        Kind::Sign(b'-') => hyphened(view, at, integer),
        Kind::Sign(b'(') if view.text(at).len() <= 4 && view.text(at + 2).len() == 1 && view.sign(at + 3, b')') => {
            let word = view.glued(at + 2, Kind::Word);
            (word && integer.is_some()).then_some(at + 4)
        }
        Kind::Sign(b'.') if view.glued(at + 2, Kind::Word) && view.is(at + 2, class::EXCHANGE) => {
            (integer.is_some() && view.text(at + 2).iter().all(u8::is_ascii_uppercase)).then_some(at + 3)
        }
        Kind::Number | Kind::Citation | Kind::Sign(_) => None,
    }
}

fn letters_after(view: &View<'_>, at: usize, integer: u128) -> Option<usize> {
    let letters = view.text(at + 1);
    if view.is(at + 1, class::ORDINAL_SUFFIX) || matches!(letters, b"am" | b"pm" | b"AM" | b"PM") {
        return Some(at + 2);
    }
    if view.text(at) == b"0"
        && letters.first() == Some(&b'x')
        && view.chain_end(at) > at + 1 + usize::from(letters.len() == 1)
    {
        return Some(view.chain_end(at));
    }
    let end = view.chain_end(at);
    if end > at + 2 {
        // a power of ten is no chain of labels
        let power = view.glued_sign(end, b'^') || matches!(letters, b"e" | b"E");
        let length: usize = (at..end).map(|i| view.text(i).len()).sum();
        return (!power && length <= 8 && !view.amount_follows(end) && !view.cited(end)).then_some(end);
    }
    let whole = (integer, letters);
    if matches!(whole, (3, b"M") | (4 | 8 | 401, b"K") | (401, b"k")) {
        // a name, unless the sentence states it as an amount
        let stated = view
            .before(at)
            .is_some_and(|t| t.is(class::VERB | class::FILLER | class::OVER | class::UNDER) && !t.is(class::A))
            || signed(view, at)
            || view.cited(end)
            || view.cited(end + 1)
            || view.is(end, class::SHARE_WORD | class::UNIT_WORD);
        return (!stated && !view.is(end, class::TIMES) && !view.amount_follows(end)).then_some(end);
    }
    // a small letter may stand for cents, pence or a hidden word; only those of time and of dimension are labels
    let letter =
        letters.len() == 1 && (letters[0].is_ascii_uppercase() || matches!(letters[0], b'h' | b'd' | b'w' | b'y'));
    let label = letter && !view.is(at + 1, class::SCALE | class::TIMES) && integer < 1000;
    (label && !view.cited(end) && !view.amount_follows(end) && !matches!(letters, b"l" | b"O" | b"o" | b"I" | b"S"))
        .then_some(end)
}

/// 10-K, 52-week, 7-Eleven, 3-for-1, 2020-1B.
fn hyphened(view: &View<'_>, at: usize, integer: Option<u128>) -> Option<usize> {
    let word = view.get(at + 2)?;
    if !word.glued() || word.kind != Kind::Word {
        return None;
    }
    let text = view.text(at + 2);
    let end = view.chain_end(at + 2);
    if word.is(class::DURATION) || view.year(at).is_some() && end == at + 4 && text.len() == 1 {
        return Some(end);
    }
    let small = integer.is_some_and(|n| n < 100);
    if small && text.iter().all(u8::is_ascii_uppercase) && word.is(class::FORM) && !view.cited(end) {
        return Some(end);
    }
    if small
        && text == b"for"
        && view.sign(end, b'-')
        && view.get(end + 1).is_some_and(|t| t.kind == Kind::Number || t.is(class::UNIT))
    {
        return Some(end + 2);
    }
    // 7-Eleven; any other word might be what is counted
    let name = view.capital(at + 2) && word.is(class::UNIT);
    (small && name && !view.cited(end)).then_some(end)
}

/// "(1)" before the text that it numbers.
fn enumeration(view: &View<'_>, at: usize) -> Option<usize> {
    let small = view.integer(at)? <= 20;
    let enclosed = view.before(at).is_some_and(|t| t.sign(b'(')) && view.glued_sign(at + 1, b')');
    if !small || !enclosed || view.segment.row || view.cited(at + 2) {
        return None;
    }
    let stated = view.before_is(at - 1, class::VERB | class::FILLER)
        || view.before(at - 1).is_some_and(|t| matches!(t.kind, Kind::Sign(b':' | b'$' | b'=')));
    (!stated && view.get(at + 2).is_some_and(|t| t.kind == Kind::Word && !t.is(class::SCALE))).then_some(at + 2)
}

/// A house number before its street, a postal code after one.
fn address(view: &View<'_>, at: usize) -> Option<usize> {
    view.integer(at)?;
    let mut i = at + 1;
    while i <= at + 4 && view.get(i).is_some_and(|t| t.kind == Kind::Word) && view.capital(i) {
        if i > at + 1 && view.is(i, class::STREET) {
            return Some(i);
        }
        i += 1;
    }
    let from = at.saturating_sub(12).max(view.segment.first);
    let street = (from..at).any(|i| view.is(i, class::STREET) && view.capital(i));
    (street && view.text(at).len() == 5 && view.before(at).is_some_and(|t| t.kind == Kind::Word) && !view.cited(at + 1))
        .then_some(at + 1)
}

fn structural_number(view: &View<'_>, at: usize) -> Option<usize> {
    let n = view.integer(at)?;
    // "the next 3 books", "the top 5 holders": a rank, not an amount
    let rank = view
        .before(at)
        .is_some_and(|t| matches!(t.text(view.bytes), b"next" | b"last" | b"past" | b"previous" | b"top"));
    let ranked =
        rank && !view.amount_follows(at + 1) && view.get(at + 1).is_some_and(|t| t.kind == Kind::Word && !t.glued());
    (n <= STRUCTURAL_COUNT_MAX && (ranked || structural(view, at + 1))).then_some(at + 1)
}

/// Whether a noun of structure follows: "segments", "U.S. wholesalers", "and six months".
pub(crate) fn structural(view: &View<'_>, after: usize) -> bool {
    let hyphen = view.glued_sign(after, b'-');
    let noun = after + usize::from(hyphen);
    if hyphen {
        return view.is(noun, class::DURATION | class::NOUN);
    }
    let at_word = |i: usize| {
        view.get(i).is_some_and(|t| {
            t.kind == Kind::Word
                && t.gap != Gap::Paragraph
                && !t.is(class::SCALE | class::PERCENT | class::TIMES | class::BASIS | class::POINTS)
                && t.word.currency == 0
        })
    };
    if !at_word(noun) {
        // "3-5 years"
        let range = view.get(noun).is_some_and(|t| matches!(t.kind, Kind::Sign(b'-' | 0x8c)));
        return range
            && view.integer(noun + 1).is_some_and(|n| n <= STRUCTURAL_COUNT_MAX)
            && view.is(noun + 2, class::TIME);
    }
    if view.is(noun, class::NOUN | class::TIME) {
        return true;
    }
    let joins = matches!(view.text(noun), b"and" | b"or" | b"to");
    if joins && (view.is(noun + 1, class::UNIT) || view.integer(noun + 1).is_some_and(|n| n <= STRUCTURAL_COUNT_MAX)) {
        return view.is(noun + 2, class::TIME | class::NOUN);
    }
    // "three U.S. wholesalers", "three individually immaterial acquisitions"
    let mut adjective = noun;
    while at_word(adjective)
        && adjective < noun + 2
        && !joins
        && !view.is(adjective, class::VERB | class::FILLER | class::DET | class::STOP)
    {
        adjective += 1 + usize::from(view.sign(adjective + 1, b'.'));
        if view.is(adjective, class::NOUN | class::TIME) {
            return true;
        }
    }
    false
}

/// +1 (415) 555-0134.
fn phone(view: &View<'_>, at: usize) -> Option<usize> {
    let mut digits = 0;
    let mut numbers = 0;
    let mut i = at + 1;
    while let Some(token) = view.get(i) {
        match token.kind {
            Kind::Number if view.integer(i).is_some() => {
                digits += view.text(i).len();
                numbers += 1;
            }
            Kind::Sign(b'(' | b')' | b'-') => {}
            _ => break,
        }
        i += 1;
        if i > at + 12 {
            return None;
        }
    }
    (numbers >= 3 && (9..=15).contains(&digits) && view.glued(at + 1, Kind::Number)).then_some(i)
}

/// A footnote mark in square brackets, with or without a caret.
fn footnote(view: &View<'_>, at: usize) -> Option<usize> {
    let caret = usize::from(view.sign(at + 1, b'^'));
    let number = at + 1 + caret;
    let stated = view.before_is(at, class::VERB | class::FILLER) || view.amount_follows(number + 2);
    if caret == 0 && (stated || view.before(at).is_some_and(|t| matches!(t.kind, Kind::Sign(b':' | b'$' | b'=')))) {
        return None;
    }
    (view.integer(number).is_some_and(|n| n < 1000) && view.glued_sign(number + 1, b']')).then_some(number + 2)
}
