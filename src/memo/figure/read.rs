//! The grammar of one figure: currency, number, scale, unit, sign and hedge.

use super::clean::code;
use super::inert::structural;
use super::lexicon::{self, class};
use super::numeral::{Numeral, Reading};
use super::part;
use super::spelled::{self, Spelled};
use super::suffix;
use super::token::{Gap, Kind, Token};
use super::view::View;
use super::{Counted, Figure, Hedge, Mark, Measure, Sign};
use crate::memo::fact::Currency;

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
    let (currency, number) = currency_before(view, at);
    raw.measure = currency.map_or(Measure::Bare, Measure::Money);
    let mut i = number;
    let mut open = false;
    if currency.is_some() {
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
        Kind::Word => words(view, i, &mut raw, currency.is_some())?,
        Kind::Sign(code::UNREADABLE) => run_of(view, i, code::UNREADABLE),
        Kind::Sign(fraction @ code::HALF..=0xb4) => vulgar(fraction, i, &mut raw),
        Kind::Sign(code::SUPERSCRIPT..=0xaa) if lone_superscript(view, i) => i + 1,
        Kind::Sign(_) | Kind::Citation => return None,
    };
    raw.last = suffix::read(view, end, &mut raw, open);
    if raw.numeral.is_some() && !raw.scaled {
        raw.header_exponent = header;
    }
    before(view, &mut raw);
    Some(raw)
}

/// A currency sign, code or prefixed sign at `at`, and the position after it.
fn currency_before(view: &View<'_>, at: usize) -> (Option<Mark>, usize) {
    let Some(token) = view.get(at) else { return (None, at) };
    if let Kind::Sign(sign) = token.kind {
        return match mark_of_sign(sign) {
            Some(mark) => (Some(prefixed(view, at).unwrap_or(mark)), at + 1),
            None => (None, at),
        };
    }
    if token.kind != Kind::Word {
        return (None, at);
    }
    // the letters of C$ and of US$ are read with their sign
    if dollar_prefix(view, at) && amount_next(view, at + 2) {
        return (Some(dollar(view.text(at))), at + 2);
    }
    match lexicon::currency(token.word) {
        Some(currency)
            if view.get(at + 1).is_some_and(|t| t.kind == Kind::Number && t.gap <= Gap::Line)
                && names_currency(view, at) =>
        {
            (Some(Mark::Of(currency)), at + 1)
        }
        _ => (None, at),
    }
}

/// A code counts in capitals, a name in any letters.
fn names_currency(view: &View<'_>, at: usize) -> bool {
    let text = view.text(at);
    let code = text.len() == 3
        && lexicon::currency(lexicon::word(text)).is_some_and(|c| text.eq_ignore_ascii_case(c.code().as_bytes()));
    !code || text.iter().all(u8::is_ascii_uppercase) || matches!(text, b"usd" | b"eur" | b"gbp")
}

fn amount_next(view: &View<'_>, at: usize) -> bool {
    view.get(at).is_some_and(|t| {
        t.kind == Kind::Number
            || t.is(class::UNIT | class::TENS)
            || matches!(t.kind, Kind::Sign(b'(' | b'-' | code::MINUS))
    })
}

fn prefixed(view: &View<'_>, at: usize) -> Option<Mark> {
    let before = at.checked_sub(1).filter(|&i| i >= view.segment.first)?;
    (view.tokens[at].sign(b'$') && view.tokens[at].glued() && dollar_prefix(view, before))
        .then(|| dollar(view.text(before)))
}

/// US$, C$, "hk $"; the article of "a $5 note" is none.
fn dollar_prefix(view: &View<'_>, at: usize) -> bool {
    let Some(sign) = view.get(at + 1).filter(|t| t.sign(b'$') && t.gap <= Gap::Space) else { return false };
    let text = view.text(at);
    let letter = text.len() == 1 && !text.eq_ignore_ascii_case(b"c");
    view.is(at, class::DOLLAR_PREFIX) && (!letter || sign.glued() && text[0].is_ascii_uppercase())
}

fn dollar(prefix: &[u8]) -> Mark {
    let code = match prefix.to_ascii_lowercase().as_slice() {
        b"us" | b"usd" => "USD",
        b"c" | b"ca" | b"cad" | b"can" => "CAD",
        b"a" | b"au" | b"aud" => "AUD",
        b"hk" | b"hkd" => "HKD",
        b"nz" | b"nzd" => "NZD",
        b"s" | b"sgd" => "SGD",
        b"nt" => "TWD",
        b"r" => "BRL",
        _ => return Mark::Unknown,
    };
    code.parse().map_or(Mark::Unknown, Mark::Of)
}

pub(super) fn mark_of_sign(sign: u8) -> Option<Mark> {
    let code = match sign {
        b'$' => return Some(Mark::Of(Currency::USD)),
        code::EURO => "EUR",
        code::POUND => "GBP",
        code::YEN => return Some(Mark::YenOrYuan),
        code::RUPEE => "INR",
        code::WON => "KRW",
        code::RUBLE => "RUB",
        code::LIRA => "TRY",
        code::BITCOIN => "BTC",
        code::CENT => return Some(Mark::Cents),
        code::OTHER_CURRENCY => return Some(Mark::Unknown),
        _ => return None,
    };
    Some(code.parse().map_or(Mark::Unknown, Mark::Of))
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

/// A number, fraction or multiple in words.
fn words(view: &View<'_>, at: usize, raw: &mut Raw, money: bool) -> Option<usize> {
    let token = view.get(at)?;
    if let Some(end) = suffix::hidden_number(view, at) {
        return Some(end);
    }
    if token.is(class::MULTIPLE | class::HALVED) && !view.is(at + 1, class::A) && !view.is(at + 2, class::TIME) {
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

/// Looks back from the figure for its sign and its hedge.
fn before(view: &View<'_>, raw: &mut Raw) {
    let mut first = raw.first;
    let bracket = view.before(first).is_some_and(|t| t.sign(b'(')) && closes(view, raw.last);
    if bracket {
        first -= 1;
        raw.sign = bracket_sign(view, first, raw.sign);
        raw.first = first;
        raw.last = suffix::outside(view, raw.last + 1, raw);
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
            Kind::Sign(b'<' | code::AT_MOST) => (Hedge::Under, 1),
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

/// Gives both ends of a range the unit and scale that only the second one shows.
pub(super) fn share_units(view: &View<'_>, figures: &mut [Figure]) {
    for i in 1..figures.len() {
        let (left, right) = figures.split_at_mut(i);
        let (Some(a), Some(b)) = (left.last_mut(), right.first_mut()) else { continue };
        let between = &view.tokens[a.tokens.1.min(b.tokens.0)..b.tokens.0];
        let Some(kind) = connector(view, between, a.tokens.0) else { continue };
        let listed = kind == Connector::And;
        if a.measure == Measure::Bare
            && a.counted == Counted::Unsaid
            && (b.measure != Measure::Multiple || !listed)
            && !(listed && matches!(b.measure, Measure::Money(_)))
        {
            a.measure = b.measure;
        } else if b.measure == Measure::Bare && matches!(a.measure, Measure::Money(_)) && !listed {
            b.measure = a.measure;
        }
        if b.scaled && !a.scaled && !listed && a.significant <= 6 {
            rescale(a, b);
        }
    }
}

/// Multiplies `a` by the scale word of `b`.
fn rescale(a: &mut Figure, b: &Figure) {
    let scale = super::power(b.scale);
    let bigger = |d: rust_decimal::Decimal| d.checked_mul(scale);
    if let (Some(magnitude), Some(quantum), Some(coarse)) =
        (a.magnitude.and_then(bigger), bigger(a.quantum), bigger(a.coarse_quantum))
    {
        a.magnitude = Some(magnitude);
        a.quantum = quantum;
        a.coarse_quantum = coarse;
        a.scaled = true;
        a.header_exponent = 0;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connector {
    Dash,
    To,
    And,
}

fn connector(view: &View<'_>, between: &[Token], first: usize) -> Option<Connector> {
    match between {
        [t] if matches!(t.kind, Kind::Sign(b'-' | b'~' | code::EN_DASH | code::EM_DASH | code::MINUS)) => {
            Some(Connector::Dash)
        }
        [] => Some(Connector::Dash),
        [t] if t.text(view.bytes) == b"to" => Some(Connector::To),
        [t] if t.text(view.bytes) == b"and" => {
            let from = first.saturating_sub(3).max(view.segment.first);
            let ranged = view.tokens[from..first].iter().any(|t| t.text(view.bytes).eq_ignore_ascii_case(b"between"));
            Some(if ranged { Connector::To } else { Connector::And })
        }
        [t] if t.text(view.bytes) == b"or" => Some(Connector::And),
        _ => None,
    }
}
