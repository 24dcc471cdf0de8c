//! Whether a figure counts what its fact counts: unit and currency (decision 8).

use rust_decimal::Decimal;

use super::Reason;
use super::precision::Shown;
use crate::memo::fact::{Currency, Fact, Unit};
use crate::memo::figure::{Counted, Figure, Mark, Measure, power};

/// One or two readings of a figure.
pub(super) type Readings = [Option<Shown>; 2];

/// What the figure shows in the fact's unit: one reading, or two when a table's header may or may not apply.
pub(super) fn shown(figure: &Figure, fact: &Fact) -> Result<Readings, Reason> {
    let Some(plain) = scaled(figure, 0) else { return Err(Reason::UnreadableFigure) };
    let percent = fact.unit == Unit::Percent;
    match fact.unit {
        Unit::Money(currency) => money(figure, fact, currency),
        Unit::PerShare(currency) => per_share(figure, currency, plain),
        Unit::Shares | Unit::Count => counted(figure, fact, plain),
        Unit::Percent | Unit::Points => match figure.measure {
            Measure::Percent | Measure::Fraction if percent => Ok([Some(plain), None]),
            Measure::Growth if percent && is_change(&fact.label) => growth(plain),
            Measure::Points if !percent || is_difference(&fact.label) => Ok([Some(plain), None]),
            Measure::BasisPoints if !percent || is_difference(&fact.label) => {
                scaled(figure, -2).map(|s| [Some(s), None]).ok_or(Reason::UnitMismatch)
            }
            Measure::Bare if figure.counted == Counted::Points && (!percent || is_difference(&fact.label)) => {
                Ok([Some(plain), None])
            }
            Measure::Bare if percent && figure.ratio => {
                scaled(figure, 2).map(|s| [Some(s), None]).ok_or(Reason::UnitMismatch)
            }
            Measure::Bare
            | Measure::Money(_)
            | Measure::Percent
            | Measure::Points
            | Measure::BasisPoints
            | Measure::Multiple
            | Measure::Fraction
            | Measure::Growth => Err(Reason::UnitMismatch),
        },
        Unit::Multiple | Unit::Ratio => match figure.measure {
            Measure::Multiple | Measure::Growth => Ok([Some(plain), None]),
            Measure::Bare if !matches!(figure.counted, Counted::Units | Counted::Points) && !figure.per_share => {
                Ok([Some(plain), None])
            }
            Measure::Percent | Measure::Fraction if fact.unit == Unit::Ratio => {
                scaled(figure, -2).map(|s| [Some(s), None]).ok_or(Reason::UnitMismatch)
            }
            Measure::Bare
            | Measure::Money(_)
            | Measure::Percent
            | Measure::Points
            | Measure::BasisPoints
            | Measure::Fraction => Err(Reason::UnitMismatch),
        },
        Unit::Index => match figure.measure {
            Measure::Bare if matches!(figure.counted, Counted::Unsaid | Counted::Points) && !figure.per_share => {
                Ok([Some(plain), None])
            }
            Measure::Bare
            | Measure::Money(_)
            | Measure::Percent
            | Measure::Points
            | Measure::BasisPoints
            | Measure::Multiple
            | Measure::Fraction
            | Measure::Growth => Err(Reason::UnitMismatch),
        },
    }
}

fn money(figure: &Figure, fact: &Fact, currency: Currency) -> Result<Readings, Reason> {
    match figure.measure {
        Measure::Bare => {}
        Measure::Money(mark) => same_currency(mark, currency)?,
        Measure::Percent
        | Measure::Points
        | Measure::BasisPoints
        | Measure::Multiple
        | Measure::Fraction
        | Measure::Growth => {
            return Err(Reason::UnitMismatch);
        }
    }
    if figure.counted != Counted::Unsaid || figure.per_share && !priced(&fact.label) {
        return Err(Reason::UnitMismatch);
    }
    scaled(figure, figure.header_exponent).map(|s| [Some(s), None]).ok_or(Reason::ValueMismatch)
}

fn per_share(figure: &Figure, currency: Currency, plain: Shown) -> Result<Readings, Reason> {
    match figure.measure {
        Measure::Bare => {}
        Measure::Money(mark) => same_currency(mark, currency)?,
        Measure::Percent
        | Measure::Points
        | Measure::BasisPoints
        | Measure::Multiple
        | Measure::Fraction
        | Measure::Growth => {
            return Err(Reason::UnitMismatch);
        }
    }
    if figure.counted != Counted::Unsaid || figure.scale > 0 {
        return Err(Reason::UnitMismatch);
    }
    Ok([Some(plain), None])
}

fn counted(figure: &Figure, fact: &Fact, plain: Shown) -> Result<Readings, Reason> {
    let shares = fact.unit == Unit::Shares;
    if figure.measure != Measure::Bare
        || figure.per_share
        || figure.counted == Counted::Units && shares
        || figure.counted == Counted::Points
    {
        return Err(Reason::UnitMismatch);
    }
    let header = if shares && figure.header_exponent != 0 { scaled(figure, figure.header_exponent) } else { None };
    Ok([Some(plain), header])
}

/// "doubled" over a growth of 100 %.
fn growth(plain: Shown) -> Result<Readings, Reason> {
    let percent = (plain.magnitude - Decimal::ONE).abs() * Decimal::ONE_HUNDRED;
    Ok([Some(Shown { magnitude: percent, quantum: Decimal::TEN, coarse: Decimal::TEN, significant: 1 }), None])
}

pub(super) fn same_currency(mark: Mark, currency: Currency) -> Result<(), Reason> {
    let code = currency.code();
    let same = match mark {
        Mark::Of(shown) => shown == currency,
        Mark::YenOrYuan => matches!(code, "JPY" | "CNY"),
        Mark::Cents => !matches!(code, "JPY" | "KRW" | "CNY"),
        Mark::Unknown => false,
    };
    if same { Ok(()) } else { Err(Reason::CurrencyMismatch) }
}

/// The figure times a power of ten.
fn scaled(figure: &Figure, exponent: i32) -> Option<Shown> {
    let times = |value: Decimal| if exponent == 0 { Some(value) } else { value.checked_mul(power(exponent)) };
    Some(Shown {
        magnitude: times(figure.magnitude?)?,
        quantum: times(figure.quantum)?,
        coarse: times(figure.coarse_quantum)?,
        significant: figure.significant,
    })
}

/// Whether a label names money for one unit of something, though its unit is plain money.
fn priced(label: &str) -> bool {
    has(label, &["price", "per share", "per unit", "nav", "dividend", "eps", "close", "value per"])
}

/// Whether the head of a label names a difference of percentages: "2s10s spread", "operating margin change".
fn is_difference(label: &str) -> bool {
    let head = label.split(['(', '[', ',']).next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let ends = |words: &[&str]| words.iter().any(|word| head.ends_with(word));
    ends(&["spread", "difference", "differential", "gap"])
        || ends(&["change", "expansion", "contraction"])
            && has(&head, &["margin", "rate", "yield", "ratio", "percent", "share of"])
}

/// Whether a label names a change.
pub(super) fn is_change(label: &str) -> bool {
    has(label, &["change", "growth", "increase", "decrease", "yoy", "qoq", "variation", "delta"])
}

/// Whether a label holds one of these words, whatever its case.
pub(super) fn has(label: &str, words: &[&str]) -> bool {
    let bytes = label.as_bytes();
    words.iter().any(|word| bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes())))
}
