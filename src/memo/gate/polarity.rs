//! Sign and direction: what the words around a figure say about its sign (decisions 6 and 7).

use super::Reason;
use super::agree::{has, is_change};
use crate::memo::fact::Fact;
use crate::memo::figure::lexicon::class;
use crate::memo::figure::token::Kind;
use crate::memo::figure::{Figure, Found, Measure, Scan, Sign};

/// Words between a governing word and the figure that it governs.
const REACH: usize = 6;

/// Tokens of the object of a noun of falling.
const OBJECT_REACH: usize = 12;

/// Words of labels that name something good to have: "a loss of" over one of them is false.
const GAINS: &[&str] = &[
    "income", "profit", "earnings", "gain", "eps", "revenue", "sales", "cash", "asset", "deposit", "equity", "backlog",
];

/// What the words near one figure say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    /// The nearest word before that speaks of loss or gain.
    before: Option<Pole>,
    /// The nearest word after, before the next figure.
    after: Option<Pole>,
    /// A word of falling or rising that governs the figure: "fell by 3 %".
    governs: Option<Pole>,
    /// A strong word of loss that governs the figure: "a loss of $3".
    loss: bool,
    /// "a decrease in payroll of $3".
    fall: bool,
}

/// A side of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pole {
    Negative,
    Positive,
}

/// Labels of the cash flow statement whose sign is that of the cash: an increase in inventories is a negative one.
const CASH_EFFECTS: &[&str] =
    &["working capital", "receivable", "inventor", "payable", "operating assets", "prepaid", "accrued"];

/// The context of every figure of a segment; one pass over its tokens.
pub(super) fn read(scan: &Scan<'_>, found: &Found) -> Vec<Context> {
    let mut out = Vec::with_capacity(found.figures.len());
    let mut last: Option<Pole> = None;
    let mut at = found.segment.first;
    for (i, figure) in found.figures.iter().enumerate() {
        // after a word of rising or falling its object says nothing: "a decrease in operating income of"
        let mut held = false;
        while at < figure.tokens.0 {
            let token = &scan.tokens[at];
            let direction = token.is(class::UP | class::DOWN);
            if direction || !held {
                last = pole(scan, at).or(last);
            }
            held = direction || held && !token.sign(b',') && !token.is(class::STOP);
            at += 1;
        }
        let end = found.figures.get(i + 1).map_or(found.segment.last, |next| next.tokens.0);
        let (governs, loss) = governing(scan, found.segment.first, figure.tokens.0);
        let fall = fall_of(scan, found.segment.first, figure.tokens.0);
        out.push(Context { before: last, after: after(scan, figure.tokens.1, end), governs, loss, fall });
    }
    out
}

fn pole(scan: &Scan<'_>, at: usize) -> Option<Pole> {
    let token = &scan.tokens[at];
    if token.kind != Kind::Word || compound(scan, at) {
        return None;
    }
    // "income tax" is no income
    let tax = scan.tokens.get(at + 1).is_some_and(|t| matches!(t.text(&scan.clean.bytes), b"tax" | b"taxes"));
    if token.is(class::NEG | class::NEG_WEAK | class::DOWN) {
        Some(Pole::Negative)
    } else if token.is(class::POS | class::UP) && !tax {
        Some(Pole::Positive)
    } else {
        None
    }
}

/// Whether a word of direction is a part of another word: "back-up", "write-down".
fn compound(scan: &Scan<'_>, at: usize) -> bool {
    let hyphen = |i: usize| scan.tokens.get(i).is_some_and(|t| t.sign(b'-') && t.glued());
    let short = scan.tokens[at].end - scan.tokens[at].start <= 4;
    short && scan.tokens[at].glued() && at > 0 && hyphen(at - 1)
}

/// The first telling word after a figure, within reach.
fn after(scan: &Scan<'_>, from: usize, to: usize) -> Option<Pole> {
    let mut words = 0;
    for at in from..to {
        let token = &scan.tokens[at];
        match token.kind {
            Kind::Citation => {}
            Kind::Word => {
                words += 1;
                if words > REACH {
                    return None;
                }
                let of = words == 1 && token.text(&scan.clean.bytes) == b"of";
                if token.is(class::FILLER | class::VERB | class::YEAR_PREV | class::STOP) && !of {
                    return None;
                }
                // a noun phrase goes on; a preposition or a verb begins another
                if let Some(pole) = pole(scan, at) {
                    return Some(pole);
                }
            }
            Kind::Number | Kind::Sign(_) => return None,
        }
    }
    None
}

/// The word of direction that governs a figure through nothing but fillers, and whether it is a strong word of loss.
fn governing(scan: &Scan<'_>, first: usize, figure: usize) -> (Option<Pole>, bool) {
    let from = figure.saturating_sub(REACH).max(first);
    for at in (from..figure).rev() {
        let token = &scan.tokens[at];
        if token.kind != Kind::Word {
            if matches!(token.kind, Kind::Sign(b'(' | b'$')) {
                continue;
            }
            return (None, false);
        }
        if compound(scan, at) {
            return (None, false);
        }
        if token.is(class::DOWN) {
            return (Some(Pole::Negative), false);
        }
        if token.is(class::UP) {
            return (Some(Pole::Positive), false);
        }
        if token.is(class::STRONG_NEG) {
            return (None, true);
        }
        if !token.is(class::FILLER) {
            return (None, false);
        }
    }
    (None, false)
}

/// Whether a noun of falling with its object governs a figure: "a decrease in payroll and payroll-related benefits of".
fn fall_of(scan: &Scan<'_>, first: usize, figure: usize) -> bool {
    let text = |i: usize| scan.tokens[i].text(&scan.clean.bytes);
    if figure < first + 2 || text(figure - 1) != b"of" {
        return false;
    }
    let from = figure.saturating_sub(OBJECT_REACH).max(first + 1);
    for at in (from..figure - 1).rev() {
        let token = &scan.tokens[at];
        let goes_on = token.kind == Kind::Word && !token.is(class::VERB | class::STOP) || token.sign(b'-');
        if text(at) == b"in" {
            return matches!(text(at - 1), b"decrease" | b"decline" | b"drop" | b"fall");
        }
        // "and" joins the objects; any other break ends the phrase
        if !goes_on && text(at) != b"and" || token.is(class::UP) {
            return false;
        }
    }
    false
}

/// Why the figure's sign or direction contradicts the fact; none when it does not.
pub(super) fn check(figure: &Figure, fact: &Fact, context: &Context) -> Option<Reason> {
    if fact.value.is_zero() || figure.measure == Measure::Growth {
        return None;
    }
    let negative = fact.value.is_sign_negative();
    match (figure.sign, negative) {
        (Sign::Minus, true) | (Sign::Plus, false) => None,
        (Sign::Minus, false) | (Sign::Plus, true) => Some(Reason::SignMismatch),
        (Sign::Brackets, true) => None,
        (Sign::Bare, true) => bare_over_negative(context, fact),
        (Sign::Bare | Sign::Brackets, false) => bare_over_positive(context, fact),
    }
}

fn bare_over_negative(context: &Context, fact: &Fact) -> Option<Reason> {
    let told = match (context.governs, context.after) {
        (Some(pole), _) => pole,
        (None, Some(pole)) => pole,
        (None, None) if context.loss => Pole::Negative,
        (None, None) => match context.before {
            Some(pole) => pole,
            None => return Some(Reason::SignMismatch),
        },
    };
    let cash = has(&fact.label, &["change", "increase", "decrease"]) && has(&fact.label, CASH_EFFECTS);
    if told == Pole::Negative || cash {
        return None;
    }
    Some(if context.governs.is_some() && is_change(&fact.label) {
        Reason::DirectionMismatch
    } else {
        Reason::SignMismatch
    })
}

fn bare_over_positive(context: &Context, fact: &Fact) -> Option<Reason> {
    if context.governs != Some(Pole::Negative) && !context.loss && !context.fall {
        return None;
    }
    let inverse =
        has(&fact.label, &["decrease", "decline", "reduction", "loss", "deficit", "charge", "write", "impair"]);
    if inverse {
        return None;
    }
    if context.governs == Some(Pole::Negative) || context.fall {
        return Some(Reason::DirectionMismatch);
    }
    (context.loss && has(&fact.label, GAINS)).then_some(Reason::SignMismatch)
}

/// Figures of a "fell from A to B" whose facts went the other way, or of "rose to B from A" (decision 7).
pub(super) fn contradicted_levels(scan: &Scan<'_>, found: &Found, stated: &[Option<&Fact>]) -> Vec<usize> {
    let mut out = Vec::new();
    let mut direction = None;
    let mut at = found.segment.first;
    for (i, (first, second)) in found.figures.iter().zip(found.figures.iter().skip(1)).enumerate() {
        while at < first.tokens.0 {
            let token = &scan.tokens[at];
            direction = if compound(scan, at) {
                direction
            } else if token.is(class::UP) {
                Some(Pole::Positive)
            } else if token.is(class::DOWN) {
                Some(Pole::Negative)
            } else {
                direction
            };
            at += 1;
        }
        let (Some(direction), Some(a), Some(b)) = (direction, stated[i], stated[i + 1]) else { continue };
        let (from, to) = match (preposition(scan, found, first), preposition(scan, found, second)) {
            (Some(true), Some(false)) => (a, b),
            (Some(false), Some(true)) => (b, a),
            _ => continue,
        };
        // the size of a loss rises while its value falls: only positive levels are compared
        let comparable = from.unit == to.unit && !from.value.is_sign_negative() && !to.value.is_sign_negative();
        let fell = to.value < from.value;
        if comparable && from.value != to.value && fell != (direction == Pole::Negative) {
            out.push(i);
        }
    }
    out
}

/// Whether "from" stands before a figure, or else "to".
fn preposition(scan: &Scan<'_>, found: &Found, figure: &Figure) -> Option<bool> {
    let from = figure.tokens.0.saturating_sub(3).max(found.segment.first);
    scan.tokens[from..figure.tokens.0].iter().rev().find_map(|token| match token.text(&scan.clean.bytes) {
        b"from" => Some(true),
        b"to" => Some(false),
        _ => None,
    })
}
