//! What may follow the digits of a figure: powers, scale words, units, currency names, "per share"; and ratios and fractions.

use super::clean::code;
use super::currency::mark_of_sign;
use super::lexicon::{self, class};
use super::numeral::Numeral;
use super::read::Raw;
use super::token::{Gap, Kind, Token};
use super::view::View;
use super::{Counted, Mark, Measure};
use crate::memo::fact::Currency;

/// Scale words in a row that are still read as one number.
const SCALES_MAX: usize = 4;

/// Reads on from `at` and returns the token after the figure. `open` says that a bracket is open since the currency sign.
pub(super) fn read(view: &View<'_>, at: usize, raw: &mut Raw, mut open: bool) -> usize {
    let mut at = scales(view, at, raw);
    if open && view.sign(at, b')') {
        raw.sign = super::Sign::Minus;
        at = scales(view, at + 1, raw);
        open = false;
    }
    at = unit(view, at, raw);
    if open && view.sign(at, b')') {
        raw.sign = super::Sign::Minus;
        at += 1;
    }
    at = glued_letters(view, at, raw);
    at = per_share(view, at, raw);
    noun(view, at, raw);
    at
}

/// The scale and unit that stand after a bracket around a bare number: "(4.6)%", "(184.3) million".
pub(super) fn outside(view: &View<'_>, at: usize, raw: &mut Raw) -> usize {
    let at = if raw.scaled { at } else { scales(view, at, raw) };
    if raw.measure == Measure::Bare { unit(view, at, raw) } else { at }
}

/// Scale words and letters: billion, bn, B, "thousand million", with a hyphen or a blank before them.
fn scales(view: &View<'_>, mut at: usize, raw: &mut Raw) -> usize {
    for _ in 0..SCALES_MAX {
        let hyphen =
            view.get(at).is_some_and(|t| t.sign(b'-') && t.glued()) && view.get(at + 1).is_some_and(Token::glued);
        let word = at + usize::from(hyphen);
        let Some(token) = view.get(word) else { break };
        if !token.is(class::SCALE | class::DOZEN) || !scale_here(view, word, token, raw) {
            break;
        }
        let exponent = i32::from(token.word.value);
        raw.numeral = raw.numeral.map(|n| {
            if token.is(class::DOZEN) {
                Numeral { mantissa: n.mantissa.saturating_mul(12), ..n }
            } else {
                n.scaled(exponent)
            }
        });
        raw.scale += exponent;
        raw.scaled = true;
        at = word + 1;
    }
    at
}

fn scale_here(view: &View<'_>, at: usize, token: &Token, raw: &Raw) -> bool {
    if token.gap > Gap::Line {
        return false;
    }
    let text = view.text(at);
    let ends = view.get(at + 1).is_none_or(|t| !t.glued() || t.kind != Kind::Number);
    match text.len() {
        1 if token.glued() => ends,
        // a letter apart is a scale only in capitals, after digits
        1 => {
            text[0].is_ascii_uppercase()
                && ends
                && raw.numeral.is_some()
                && !view.get(at + 1).is_some_and(|t| t.glued() && t.sign(b'.'))
        }
        2 => text != b"mm" || token.glued() || raw.measure != Measure::Bare,
        _ => true,
    }
}

/// Percent, points, times, currencies.
fn unit(view: &View<'_>, at: usize, raw: &mut Raw) -> usize {
    let hyphen = usize::from(
        view.get(at).is_some_and(|t| t.sign(b'-') && t.glued()) && view.get(at + 1).is_some_and(Token::glued),
    );
    let word = at + hyphen;
    let Some(token) = view.get(word) else { return at };
    if token.gap > Gap::Line {
        return at;
    }
    if let Kind::Sign(sign) = token.kind {
        return match sign {
            b'%' => {
                raw.measure = Measure::Percent;
                word + 1
            }
            code::TIMES if token.glued() => {
                raw.measure = Measure::Multiple;
                word + 1
            }
            b'+' if token.glued() => {
                raw.hedge = super::Hedge::Over;
                word + 1
            }
            code::SUPERSCRIPT..=code::SUPERSCRIPT_MINUS | code::UNREADABLE if token.glued() => {
                raw.numeral = None;
                word + 1
            }
            _ => match mark_of_sign(sign) {
                Some(mark) if raw.measure == Measure::Bare && hyphen == 0 && !amount_after(view, word + 1) => {
                    money(mark, word + 1, raw)
                }
                _ => at,
            },
        };
    }
    word_unit(view, at, word, raw)
}

fn word_unit(view: &View<'_>, at: usize, word: usize, raw: &mut Raw) -> usize {
    let Some(token) = view.get(word) else { return at };
    let text = view.text(word);
    let next_point =
        |i: usize| view.is(i, class::POINT | class::POINTS) && view.get(i).is_some_and(|t| t.gap <= Gap::Line);
    let dash = |i: usize| i + usize::from(view.sign(i, b'-'));
    if token.is(class::PERCENT) && view.is(dash(word + 1), class::POINT)
        || text == b"percentage" && next_point(word + 1)
    {
        raw.measure = Measure::Points;
        return dash(word + 1) + 1;
    }
    if token.is(class::PERCENT) || text == b"percentage" {
        raw.measure = Measure::Percent;
        return word + 1;
    }
    if token.is(class::PER) && matches!(view.text(word + 1), b"cent" | b"cents") {
        let points = view.is(word + 2, class::POINT);
        raw.measure = if points { Measure::Points } else { Measure::Percent };
        return word + 2 + usize::from(points);
    }
    if token.is(class::BPS) || token.is(class::BASIS) && view.is(dash(word + 1), class::POINT) {
        raw.measure = Measure::BasisPoints;
        return if token.is(class::BPS) { word + 1 } else { dash(word + 1) + 1 };
    }
    let part = word > raw.first && view.before_is(word, class::FRACTION) | view.before_is(word - 1, class::FRACTION);
    if part && token.is(class::POINT) {
        raw.measure = Measure::Points;
        return word + 1;
    }
    if token.is(class::POINTS) && (token.glued() || text.len() > 2 || text == b"pp") {
        raw.measure = Measure::Points;
        return word + 1;
    }
    if token.is(class::TIMES) && (text.len() > 1 || token.glued()) && raw.measure == Measure::Bare {
        raw.measure = Measure::Multiple;
        return word + 1;
    }
    let open = raw.measure == Measure::Bare || matches!(raw.measure, Measure::Money(_));
    let Some((mark, end)) = currency_name(view, word).filter(|_| open) else { return at };
    // a second currency that contradicts the first makes the figure unknown
    let agrees = raw.measure == Measure::Bare || raw.measure == Measure::Money(mark);
    if let Some(letter) = in_millions(text).and(text.first()) {
        let exponent = if *letter == b'M' { 6 } else { 3 };
        raw.numeral = raw.numeral.map(|n| n.scaled(exponent));
        raw.scale += exponent;
        raw.scaled = true;
    }
    money(if agrees { mark } else { Mark::Unknown }, end, raw)
}

/// "dollars", "US dollars", "EUR", "cents".
fn currency_name(view: &View<'_>, at: usize) -> Option<(Mark, usize)> {
    let token = view.get(at)?;
    let text = view.text(at);
    if token.is(class::CENTS | class::PENCE) {
        return Some((Mark::Cents, at + 1));
    }
    let adjective = match text {
        b"US" | b"U.S" | b"us" | b"American" => Some("USD"),
        b"Canadian" | b"canadian" => Some("CAD"),
        b"Australian" | b"australian" => Some("AUD"),
        b"Hong" => Some("HKD"),
        b"Singapore" => Some("SGD"),
        b"Swiss" | b"swiss" | b"Turkish" | b"turkish" | b"British" | b"Kuwaiti" | b"kuwaiti" | b"Malaysian"
        | b"malaysian" => Some(""),
        _ => None,
    };
    if let Some(code) = adjective {
        let noun = at + 1 + usize::from(view.sign(at + 1, b'.')) + usize::from(text == b"Hong");
        let next = view.get(noun).filter(|t| t.kind == Kind::Word)?;
        let named = lexicon::currency(next.word)?;
        return Some((Mark::Of(code.parse().unwrap_or(named)), noun + 1));
    }
    let Some(currency) = lexicon::currency(token.word) else {
        return in_millions(text).map(|currency| (Mark::Of(currency), at + 1));
    };
    let is_code = text.eq_ignore_ascii_case(currency.code().as_bytes());
    // codes count in capitals; "all", "try" and their like are words
    (!is_code || text.iter().all(u8::is_ascii_uppercase) || matches!(text, b"usd" | b"eur" | b"gbp" | b"btc"))
        .then_some((Mark::Of(currency), at + 1))
}

/// "MAUD 60": the currency and the power of ten before a number.
pub(super) fn scaled_code(view: &View<'_>, at: usize) -> Option<(Mark, i32)> {
    let text = view.text(at);
    let currency = in_millions(text)?;
    let number = view.get(at + 1).is_some_and(|t| t.kind == Kind::Number && t.gap <= Gap::Line);
    number.then(|| (Mark::Of(currency), if text.first() == Some(&b'M') { 6 } else { 3 }))
}

/// MUSD, KEUR: a code with the letter of its scale.
fn in_millions(text: &[u8]) -> Option<Currency> {
    let (letter, code) = text.split_first()?;
    let known = text.len() == 4 && text.iter().all(u8::is_ascii_uppercase) && matches!(letter, b'M' | b'K');
    let currency = lexicon::currency(lexicon::word(code))?;
    (known && currency.code().as_bytes() == code).then_some(currency)
}

fn money(mark: Mark, end: usize, raw: &mut Raw) -> usize {
    raw.measure = Measure::Money(mark);
    if mark == Mark::Cents {
        raw.numeral = raw.numeral.map(|n| n.scaled(-2));
    }
    end
}

fn amount_after(view: &View<'_>, at: usize) -> bool {
    view.get(at).is_some_and(|t| t.kind == Kind::Number && t.gap <= Gap::Space)
}

/// Letters that touch the number and are no unit known: a physical unit leaves a bare number, others hide a digit.
fn glued_letters(view: &View<'_>, at: usize, raw: &mut Raw) -> usize {
    const PHYSICAL: &[&[u8]] = &[
        b"kg", b"g", b"mg", b"lb", b"lbs", b"oz", b"km", b"cm", b"mi", b"ft", b"in", b"sq", b"l", b"ml", b"kw", b"mw",
        b"gw", b"tw", b"kwh", b"mwh", b"gwh", b"twh", b"gb", b"tb", b"pb", b"mb", b"kb", b"hz", b"khz", b"mhz", b"ghz",
        b"nm", b"h", b"s", b"ms", b"min", b"y", b"yr", b"yrs", b"d", b"w", b"boe", b"bbl", b"mcf", b"bcf", b"e",
    ];
    let Some(token) = view.get(at) else { return at };
    if !token.glued() || at != raw.first && view.get(at - 1).is_none_or(|t| t.kind != Kind::Number) {
        return at;
    }
    match token.kind {
        Kind::Word => {
            let text = view.text(at).to_ascii_lowercase();
            let physical = PHYSICAL.contains(&text.as_slice()) && view.get(at + 1).is_none_or(|t| !t.is(class::SCALE));
            let mut end = at + 1;
            while view.get(end).is_some_and(|t| t.glued() && matches!(t.kind, Kind::Word | Kind::Number)) {
                end += 1;
            }
            if !physical || end > at + 1 {
                raw.numeral = None;
            } else {
                raw.counted = Counted::Units;
            }
            end
        }
        _ => at,
    }
}

/// "per share", "a share", "per diluted share", "/share".
fn per_share(view: &View<'_>, at: usize, raw: &mut Raw) -> usize {
    if !matches!(raw.measure, Measure::Bare | Measure::Money(_)) {
        return at;
    }
    let slash = view.sign(at, b'/');
    if !(slash || view.is(at, class::PER | class::A)) {
        return at;
    }
    let mut noun = at + 1;
    while view.is(noun, class::SHARE_ADJECTIVE) && noun < at + 4 {
        noun += 1;
    }
    if view.is(noun, class::SHARE) {
        raw.per_share = true;
        return noun + 1;
    }
    at
}

/// What the nouns after the figure count, and whether it says to be a ratio.
fn noun(view: &View<'_>, at: usize, raw: &mut Raw) {
    let mut i = at;
    if view.cited(i) {
        i += 1;
    }
    let ratio = matches!(view.text(i), b"as") && view.is(i + 2, class::RATIO);
    raw.ratio = ratio;
    if raw.measure != Measure::Bare || raw.counted != Counted::Unsaid {
        return;
    }
    let first = view.get(i).map_or(0, |t| t.start);
    for token in (i..i + 2).map_while(|i| view.get(i)) {
        if token.kind != Kind::Word || token.gap > Gap::Line || token.is(class::FILLER) {
            return;
        }
        if token.is(class::SHARE_WORD) {
            raw.counted = Counted::Shares;
            return;
        }
        if token.is(class::POINT) && token.start == first {
            raw.counted = Counted::Points;
            return;
        }
        if token.is(class::UNIT_WORD) {
            raw.counted = Counted::Units;
            return;
        }
    }
}

/// e11, E+10, x 10^11, ×10¹¹, ^-4 after ten: the exponent and the token after it.
pub(super) fn scientific(view: &View<'_>, at: usize) -> Option<(i32, usize)> {
    let token = view.get(at)?;
    if token.glued() && matches!(view.text(at), b"e" | b"E") {
        let (sign, i) = exponent_sign(view, at + 1);
        let number = view.get(i).filter(|t| t.glued() && t.kind == Kind::Number)?;
        return Some((sign * small(number.text(view.bytes))?, i + 1));
    }
    if matches!(token.kind, Kind::Sign(code::TIMES | b'*')) || matches!(view.text(at), b"x" | b"X") {
        let ten = view.get(at + 1)?;
        if ten.text(view.bytes) != b"10" {
            return None;
        }
        if view.sign(at + 2, b'^') {
            let (sign, i) = exponent_sign(view, at + 3);
            let number = view.get(i).filter(|t| t.kind == Kind::Number)?;
            return Some((sign * small(number.text(view.bytes))?, i + 1));
        }
        return superscript(view, at + 2);
    }
    None
}

fn exponent_sign(view: &View<'_>, at: usize) -> (i32, usize) {
    match view.get(at).map(|t| t.kind) {
        Some(Kind::Sign(b'-' | code::MINUS)) => (-1, at + 1),
        Some(Kind::Sign(b'+')) => (1, at + 1),
        _ => (1, at),
    }
}

fn superscript(view: &View<'_>, mut at: usize) -> Option<(i32, usize)> {
    let negative = view.sign(at, code::SUPERSCRIPT_MINUS);
    at += usize::from(negative);
    let first = at;
    let mut value = 0i32;
    while let Some(Kind::Sign(sign @ code::SUPERSCRIPT..=0xa9)) = view.get(at).map(|t| t.kind) {
        value = value.saturating_mul(10).saturating_add(i32::from(sign - code::SUPERSCRIPT));
        at += 1;
    }
    (at > first).then_some((if negative { -value } else { value }, at))
}

fn small(digits: &[u8]) -> Option<i32> {
    if digits.len() > 4 { Some(9999) } else { std::str::from_utf8(digits).ok()?.parse().ok() }
}

/// 3:1, 45 to 1, 1/4: the value, its measure and the token after it.
pub(super) fn ratio(
    view: &View<'_>,
    at: usize,
    end: usize,
    left: Option<Numeral>,
) -> Option<(Option<Numeral>, Measure, usize)> {
    let sign = view.get(end)?;
    let colon =
        sign.sign(b':') && sign.glued() && view.get(end + 1).is_some_and(|t| t.glued() && t.kind == Kind::Number);
    let to_one = view.text(end) == b"to"
        && view.text(end + 1) == b"1"
        && view.get(end + 2).is_none_or(|t| !t.glued() || t.sign(b'.') && !amount_after(view, end + 3));
    if colon || to_one {
        let unit = view.text(end + 1) == b"1";
        return Some((if unit { left } else { None }, Measure::Multiple, end + 2));
    }
    let slash =
        sign.sign(b'/') && sign.glued() && view.get(end + 1).is_some_and(|t| t.glued() && t.kind == Kind::Number);
    if slash {
        let (a, b) = (view.integer(at)?, view.integer(end + 1)?);
        let percent =
            (a < 1000 && (1..1000).contains(&b)).then(|| Numeral { mantissa: (a * 100 + b / 2) / b, exponent: 0 });
        return Some((percent, Measure::Fraction, end + 2));
    }
    None
}

/// A scale word that no readable number stands before: Roman numerals, letters for digits.
pub(super) fn hidden_number(view: &View<'_>, at: usize) -> Option<usize> {
    let token = view.get(at)?;
    let next = view.get(at + 1)?;
    let scale = next.is(class::SCALE)
        && next.word.value >= 3
        && next.end - next.start > 4
        && view.text(at + 1).last() != Some(&b's');
    if !scale
        || next.gap == Gap::Paragraph
        || token.is(class::DET
            | class::A
            | class::UNIT
            | class::TENS
            | class::SCALE
            | class::FRACTION
            | class::FILLER
            | class::NIL)
    {
        return None;
    }
    let text = view.text(at);
    let roman = text.len() <= 8 && text.iter().all(|b| b"IVXLCDM".contains(b));
    let oddly = text.len() <= 2 && text.contains(&code::LETTER);
    (roman || oddly).then_some(at + 2)
}
