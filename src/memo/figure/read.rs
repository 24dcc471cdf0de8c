//! The grammar of one figure: currency, number, scale, unit, sign and hedge.

use super::clean::code;
use super::currency;
use super::lead;
use super::numeral::{Numeral, Reading};
use super::suffix;
use super::token::Kind;
use super::view::View;
use super::words;
use super::{Counted, Hedge, Measure, Sign};

/// A figure in terms of tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) numeral: Option<Numeral>,
    pub(super) measure: Measure,
    pub(super) sign: Sign,
    pub(super) hedge: Hedge,
    pub(super) per_share: bool,
    pub(super) counted: Counted,
    pub(super) ratio: bool,
    pub(super) scaled: bool,
    pub(super) grouped: bool,
    pub(super) scale: i32,
    pub(super) header_exponent: i32,
}

impl Raw {
    pub(super) fn new(first: usize) -> Self {
        Self {
            first,
            last: first,
            numeral: None,
            measure: Measure::Bare,
            sign: Sign::Bare,
            hedge: Hedge::Exact,
            per_share: false,
            counted: Counted::Unsaid,
            ratio: false,
            scaled: false,
            grouped: false,
            scale: 0,
            header_exponent: 0,
        }
    }
}

/// The figure that begins at `at`, when one does. `header` is the power of ten of the table's header.
pub(super) fn figure(view: &View<'_>, at: usize, header: i32) -> Option<Raw> {
    let mut raw = Raw::new(at);
    let code = suffix::scaled_code(view, at);
    let (mark, number) = code.map_or_else(|| currency::before(view, at), |(mark, _)| (Some(mark), at + 1));
    raw.measure = mark.map_or(Measure::Bare, Measure::Money);
    let mut i = number;
    let mut open = false;
    if mark.is_some() {
        while let Some(token) = view.get(i) {
            match token.kind {
                Kind::Sign(b'-' | code::MINUS) => raw.sign = Sign::Minus,
                Kind::Sign(b'(') if !open => open = true,
                _ => break,
            }
            i += 1;
        }
    }
    let token = view.get(i)?;
    let end = match token.kind {
        Kind::Number => digits(view, i, &mut raw),
        Kind::Word => words::words(view, i, &mut raw, mark.is_some())?,
        Kind::Sign(code::UNREADABLE) => run_of(view, i, code::UNREADABLE),
        Kind::Sign(fraction @ code::HALF..=0xb4) => vulgar(fraction, i, &mut raw),
        Kind::Sign(code::SUPERSCRIPT..=0xaa) if lone_superscript(view, i) => i + 1,
        Kind::Sign(_) | Kind::Citation => return None,
    };
    if let Some((_, exponent)) = code {
        raw.numeral = raw.numeral.map(|n| n.scaled(exponent));
        raw.scale += exponent;
        raw.scaled = true;
    }
    raw.last = suffix::read(view, end, &mut raw, open);
    if raw.numeral.is_some() && !raw.scaled {
        raw.header_exponent = header;
    }
    lead::before(view, &mut raw);
    Some(raw)
}

/// A number in digits; leaves it unreadable when it fits no grammar.
fn digits(view: &View<'_>, at: usize, raw: &mut Raw) -> usize {
    let mut end = at + 1;
    match view.reading(at) {
        Reading::Number(numeral, grouped) => {
            raw.numeral = Some(numeral);
            raw.grouped = grouped;
        }
        Reading::Dotted | Reading::Unreadable => return end,
    }
    if let Some((exponent, after)) = suffix::scientific(view, end) {
        raw.numeral = raw.numeral.map(|n| n.scaled(exponent));
        raw.scaled = true;
        end = after;
    }
    // 1/4, 3:1 and 45 to 1
    if let Some((numeral, measure, after)) = suffix::ratio(view, at, end, raw.numeral) {
        raw.numeral = numeral;
        raw.measure = if raw.measure == Measure::Bare { measure } else { raw.measure };
        end = after;
    }
    end
}

fn vulgar(sign: u8, at: usize, raw: &mut Raw) -> usize {
    raw.measure = Measure::Fraction;
    let percent = [50, 25, 75, 33, 67];
    raw.numeral = percent.get(usize::from(sign - code::HALF)).map(|&mantissa| Numeral { mantissa, exponent: 0 });
    at + 1
}

fn run_of(view: &View<'_>, mut at: usize, sign: u8) -> usize {
    while view.sign(at, sign) {
        at += 1;
    }
    at
}

/// A superscript that follows no word: it hides a digit rather than marking a footnote.
fn lone_superscript(view: &View<'_>, at: usize) -> bool {
    !view.tokens[at].glued() || view.before(at).is_some_and(|t| t.kind == Kind::Number)
}
