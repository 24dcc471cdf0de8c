//! How a fact's value is written: exact, with its unit.

use rust_decimal::Decimal;

use crate::memo::fact::{Currency, Fact, Unit};

/// The value with its unit, at full precision: nothing is rounded away, so nothing can be rounded wrongly.
pub(super) fn of(fact: &Fact) -> String {
    let value = fact.value.normalize();
    let sign = if value.is_sign_negative() && !value.is_zero() { "-" } else { "" };
    let digits = grouped(value.abs());
    match fact.unit {
        Unit::Money(currency) => money(sign, &digits, currency),
        Unit::PerShare(currency) => format!("{} per share", money(sign, &digits, currency)),
        Unit::Shares => format!("{sign}{digits} shares"),
        Unit::Percent => format!("{sign}{digits}%"),
        Unit::Points => format!("{sign}{digits} pp"),
        Unit::Multiple => format!("{sign}{digits}x"),
        Unit::Ratio | Unit::Count | Unit::Index => format!("{sign}{digits}"),
    }
}

fn money(sign: &str, digits: &str, currency: Currency) -> String {
    match currency.code() {
        "USD" => format!("{sign}${digits}"),
        code => format!("{sign}{digits} {code}"),
    }
}

/// Digits in groups of three before the point.
fn grouped(value: Decimal) -> String {
    let plain = value.to_string();
    let (whole, fraction) =
        plain.split_once('.').map_or((plain.as_str(), None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::with_capacity(plain.len() + plain.len() / 3);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}
