//! What stands before a figure: its sign, brackets around it, and the words that hedge it.

use super::clean::code;
use super::lexicon::class;
use super::read::Raw;
use super::suffix;
use super::token::Kind;
use super::view::View;
use super::{Hedge, Sign};

/// Looks back from the figure for its sign and its hedge.
pub(super) fn before(view: &View<'_>, raw: &mut Raw) {
    let mut first = raw.first;
    let counted = raw.last + usize::from(view.is(raw.last, class::SHARE_WORD | class::UNIT_WORD));
    let bracket = view.before(first).is_some_and(|t| t.sign(b'(')) && closes(view, counted);
    if bracket {
        first -= 1;
        raw.sign = bracket_sign(view, first, raw.sign);
        raw.first = first;
        raw.last = suffix::outside(view, counted + 1, raw);
    } else if let Some(token) = view.before(first) {
        let attached = view.tokens[first].glued();
        let outside = view.before(first - 1);
        let free = !token.glued()
            || outside.is_none_or(|t| matches!(t.kind, Kind::Sign(b'(' | b':' | b'=' | b'|' | b'~' | b'"' | b'\'')));
        match token.kind {
            Kind::Sign(b'-' | code::MINUS | code::EN_DASH) if attached && free => {
                raw.sign = Sign::Minus;
                first -= 1;
                raw.first = first;
            }
            Kind::Sign(b'+') if attached && free => {
                raw.sign = Sign::Plus;
                first -= 1;
                raw.first = first;
            }
            Kind::Word if matches!(token.text(view.bytes), b"negative" | b"minus" | b"Negative" | b"Minus") => {
                raw.sign = Sign::Minus;
                first -= 1;
            }
            _ => {}
        }
        if view.before(first).is_some_and(|t| t.sign(b'(')) && closes(view, raw.last) && raw.sign == Sign::Minus {
            raw.last += 1;
            raw.first = first - 1;
        }
    }
    raw.hedge = hedge(view, first, raw.hedge);
}

fn closes(view: &View<'_>, at: usize) -> bool {
    view.get(at).is_some_and(|t| t.sign(b')'))
}

/// What brackets around a whole figure mean, by what stands before them.
fn bracket_sign(view: &View<'_>, bracket: usize, shown: Sign) -> Sign {
    if shown == Sign::Minus {
        return shown;
    }
    match view.before(bracket) {
        None => Sign::Minus,
        Some(t) if matches!(t.kind, Kind::Sign(b':' | b'=' | b'|' | b'$')) => Sign::Minus,
        Some(t) if t.is(class::VERB) || t.text(view.bytes) == b"of" => Sign::Minus,
        Some(_) => Sign::Brackets,
    }
}

/// The words before a figure that say how exactly it is meant. At most four words back.
fn hedge(view: &View<'_>, first: usize, shown: Hedge) -> Hedge {
    let mut found = shown;
    let mut at = first;
    for _ in 0..4 {
        let Some(token) = view.before(at) else { break };
        let text = token.text(view.bytes);
        let back = at.checked_sub(2).filter(|&i| i >= view.segment.first).map(|i| &view.tokens[i]);
        let back_is = |classes: u64| back.is_some_and(|t| t.is(classes));
        let back_text = back.map_or(&b""[..], |t| t.text(view.bytes));
        let (next, step) = match token.kind {
            Kind::Sign(b'~') => (Hedge::About, 1),
            Kind::Sign(b'>' | code::AT_LEAST) => (Hedge::Over, 1),
            Kind::Sign(code::LESS | code::AT_MOST) => (Hedge::Under, 1),
            Kind::Word if token.is(class::THAN) && back_is(class::MORE) => (Hedge::Over, 2),
            Kind::Word if token.is(class::THAN) && back_is(class::LESS) => (Hedge::Under, 2),
            Kind::Word if text == b"least" && back_text == b"at" => (Hedge::Over, 2),
            Kind::Word if text == b"most" && back_text == b"at" => (Hedge::Under, 2),
            Kind::Word if text == b"to" && back_text.eq_ignore_ascii_case(b"up") => (Hedge::Under, 2),
            Kind::Word if text == b"of" && back_text == b"excess" => (Hedge::Over, 2),
            Kind::Word if token.is(class::NEARLY) => (Hedge::Nearly, 1),
            Kind::Word if token.is(class::APPROX) => (Hedge::About, 1),
            Kind::Sign(b'.') if back_is(class::APPROX) => (Hedge::About, 2),
            Kind::Word if token.is(class::OVER) => (Hedge::Over, 1),
            Kind::Word if token.is(class::UNDER) => (Hedge::Under, 1),
            Kind::Word if token.is(class::A) || text == b"the" => (found, 1),
            _ => break,
        };
        // a bound says more than an approximation
        if !matches!(found, Hedge::Over | Hedge::Under) {
            found = next;
        }
        at -= step;
    }
    found
}
