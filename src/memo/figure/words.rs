//! A figure that begins with a word: cardinals, fractions, multiples, nil and no.

use super::Measure;
use super::currency::names_currency;
use super::inert::structural;
use super::lexicon::class;
use super::numeral::Numeral;
use super::part;
use super::read::Raw;
use super::spelled::{self, Spelled};
use super::suffix;
use super::token::{Gap, Kind};
use super::view::View;

/// A number, fraction or multiple in words.
pub(super) fn words(view: &View<'_>, at: usize, raw: &mut Raw, money: bool) -> Option<usize> {
    let token = view.get(at)?;
    if let Some(end) = suffix::hidden_number(view, at) {
        return Some(end);
    }
    let multiple = token.is(class::MULTIPLE | class::HALVED) || token.is(class::BARE_MULTIPLE) && multiplies(view, at);
    if multiple && !view.is(at + 1, class::A) && !view.is(at + 2, class::TIME) {
        raw.measure = Measure::Growth;
        raw.numeral = Some(if token.is(class::HALVED) {
            Numeral { mantissa: 5, exponent: -1 }
        } else {
            Numeral { mantissa: u128::from(token.word.value), exponent: 0 }
        });
        return Some(at + 1);
    }
    if let Some((numeral, end)) = part::of_unit(view, at) {
        raw.numeral = numeral;
        return Some(end);
    }
    if let Some((numeral, end)) = part::fraction(view, at) {
        raw.measure = Measure::Fraction;
        raw.numeral = Some(numeral);
        return Some(end);
    }
    if token.is(class::NIL) || token.is(class::NO) && !token.is(class::UNIT) {
        return nothing(view, at, raw);
    }
    cardinal(view, at, raw, money)
}

/// "double" and its kin where they multiply: "will double", "nearly triple", "double the level of". In a name or a term
/// ("double-entry", "triple net lease"), and in "double down", they do not.
fn multiplies(view: &View<'_>, at: usize) -> bool {
    let led = view.before(at).is_some_and(|t| {
        let modal = matches!(
            t.text(view.bytes),
            b"will"
                | b"would"
                | b"can"
                | b"could"
                | b"should"
                | b"may"
                | b"might"
                | b"must"
                | b"shall"
                | b"to"
                | b"not"
        );
        modal || t.is(class::APPROX | class::NEARLY | class::THAN | class::OVER | class::UNDER)
    });
    let next = view.text(at + 1).to_ascii_lowercase();
    let hyphened = view.get(at + 1).is_some_and(|t| t.sign(b'-') && t.glued());
    let term = hyphened || matches!(next.as_slice(), b"down" | b"check" | b"up");
    let compared = matches!(next.as_slice(), b"the" | b"that" | b"its" | b"their" | b"our" | b"last" | b"what");
    (led || compared) && !term
}

/// A cardinal number in words, with or without an article: "forty-eight", "a dozen", "a million".
fn cardinal(view: &View<'_>, at: usize, raw: &mut Raw, money: bool) -> Option<usize> {
    let article = view.is(at, class::A) && view.text(at).eq_ignore_ascii_case(b"a");
    let start = at + usize::from(article);
    if view.is(start, class::DOZEN) && view.text(start).last() != Some(&b's') {
        raw.numeral = Some(Numeral { mantissa: 12, exponent: 0 });
        return (money || !structural(view, start + 1)).then_some(start + 1);
    }
    let lone_scale = view.is(start, class::SCALE) && view.text(start).len() > 2;
    if article && !(lone_scale && view.get(start).is_some_and(|t| t.gap == Gap::Space)) {
        return None;
    }
    if !article && lone_scale && !money {
        // "several hundred million" is an amount that nobody can check
        let vague = view.before(at).is_some_and(|t| matches!(t.text(view.bytes), b"several" | b"few" | b"many"));
        let plural = view.text(at).last() == Some(&b's');
        return (vague && !plural).then_some(at + 1);
    }
    match spelled::read(view.tokens, start, view.segment.last)? {
        Spelled::Number(numeral, end) => {
            if let Some((numeral, end)) = part::and_a_half(view, end, numeral) {
                raw.numeral = numeral;
                return Some(end);
            }
            raw.numeral = Some(numeral);
            if view.text(end) == b"to" && view.text(end + 1) == b"one" && !structural(view, end + 2) {
                raw.measure = Measure::Multiple;
                return Some(end + 2);
            }
            raw.scaled = numeral.exponent >= 3;
            (money || stands(view, at, end, numeral)).then_some(end)
        }
        Spelled::Unreadable(end) => Some(end),
        Spelled::Ordinal(_) => None,
    }
}

/// Whether a number in words states an amount here, rather than a pronoun, an idiom or a structural count.
fn stands(view: &View<'_>, at: usize, end: usize, numeral: Numeral) -> bool {
    let hyphen = view.get(end).is_some_and(|t| t.sign(b'-') && t.glued());
    let after = end + usize::from(hyphen);
    let unit = view.is(after, class::PERCENT | class::BPS | class::BASIS | class::POINTS | class::CENTS | class::PENCE)
        || view.sign(after, b'%')
        || view.get(after).is_some_and(|t| t.word.currency != 0 && names_currency(view, after))
        || view.is(after, class::TIMES) && view.text(after).len() > 1;
    if unit || view.cited(after) {
        return true;
    }
    if view.is(end, class::ORDINAL)
        || hyphen
            && (view.is(after, class::DURATION | class::NOUN)
                || view.get(after).is_some_and(|t| t.kind == Kind::Word && !t.is(class::SCALE)))
    {
        return false;
    }
    // "a million reasons" and its kin
    if view.is(at, class::A) && numeral.mantissa == 1 {
        let noun = view
            .get(end)
            .is_some_and(|t| t.kind == Kind::Word && t.word.classes & !(class::SHARE | class::UNIT_WORD) == 0);
        return !(noun && !view.is(end, class::SHARE | class::SHARE_WORD | class::UNIT_WORD) && !view.cited(end + 1));
    }
    let small = numeral.exponent == 0 && numeral.mantissa <= 12;
    if !small {
        return true;
    }
    if numeral.mantissa <= 1 || structural(view, after) {
        return false;
    }
    // "came in at five.", "upside: nine": nothing follows that it could count
    let led = view.before(at).is_some_and(|t| {
        t.sign(b':') || t.is(class::VERB) || matches!(t.text(view.bytes), b"at" | b"to" | b"by" | b"about" | b"around")
    });
    if led && view.get(after).is_none_or(|t| t.kind != Kind::Word) {
        return true;
    }
    view.get(after)
        .is_some_and(|t| t.kind == Kind::Word && !t.is(class::DET | class::VERB | class::FILLER | class::YEAR_PREV))
}

/// Nil, zero, and "no repurchases" before a citation.
fn nothing(view: &View<'_>, at: usize, raw: &mut Raw) -> Option<usize> {
    let hyphened = view.get(at + 1).is_some_and(|t| t.sign(b'-') && t.glued())
        || view.get(at)?.glued() && view.before(at).is_some_and(|t| t.sign(b'-'));
    let cited =
        (at + 1..at + 5).take_while(|&i| view.get(i).is_some_and(|t| t.kind != Kind::Number)).any(|i| view.cited(i));
    let unit = view.is(at + 1, class::PERCENT | class::SCALE) || view.get(at + 1).is_some_and(|t| t.word.currency != 0);
    if hyphened || !cited && !unit || view.is(at + 1, class::MORE | class::LESS | class::THAN) {
        return None;
    }
    raw.numeral = Some(Numeral { mantissa: 0, exponent: 0 });
    Some(at + 1)
}
