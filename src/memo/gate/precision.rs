//! Whether a shown number is the fact's value at the precision shown (decision 3).

use rust_decimal::Decimal;

use crate::memo::figure::Hedge;

/// A shown magnitude in the fact's unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) magnitude: Decimal,
    /// One unit of the last digit shown.
    pub(super) quantum: Decimal,
    /// One unit of the last digit that is not zero.
    pub(super) coarse: Decimal,
    pub(super) significant: u32,
}

/// Digits of a bound that is still a round number: "topped 45 billion".
const BOUND_DIGITS_MAX: u32 = 2;

/// Whether `shown` states a fact of this magnitude.
pub(super) fn holds(shown: &Shown, fact: Decimal, hedge: Hedge) -> bool {
    if fact.is_zero() || shown.magnitude.is_zero() {
        // a nonzero fact is never shown as zero
        return fact.is_zero() && shown.magnitude.is_zero();
    }
    let below = fact <= shown.magnitude;
    match hedge {
        Hedge::Exact => near(shown, fact, shown.quantum),
        Hedge::About => near(shown, fact, shown.coarse),
        Hedge::Nearly => below && near(shown, fact, shown.coarse),
        Hedge::Over => fact >= shown.magnitude && (near(shown, fact, shown.quantum) || bound(shown, fact)),
        Hedge::Under => below && (near(shown, fact, shown.quantum) || bound(shown, fact)),
    }
}

/// Within half a unit of the last digit and within a tenth of the fact. More digits than the fact has must repeat it.
fn near(shown: &Shown, fact: Decimal, quantum: Decimal) -> bool {
    let Some(difference) = shown.magnitude.checked_sub(fact) else { return false };
    let difference = difference.abs();
    let within_half =
        difference.is_zero() || difference.checked_mul(Decimal::TWO).is_some_and(|twice| twice <= quantum);
    let within_noise = || fact.checked_mul(Decimal::new(1, 15)).is_some_and(|noise| difference <= noise);
    (within_half || within_noise()) && tenth(difference, fact)
}

fn tenth(difference: Decimal, fact: Decimal) -> bool {
    difference.checked_mul(Decimal::TEN).is_some_and(|d| d <= fact)
}

/// A bound near the fact and rounder than it: one as exact as the fact would have stated the fact.
fn bound(shown: &Shown, fact: Decimal) -> bool {
    let significant = fact.mantissa().unsigned_abs().checked_ilog10().map_or(1, |d| d + 1) - trailing_zeros(fact);
    shown.significant <= BOUND_DIGITS_MAX
        && shown.significant < significant
        && shown.magnitude.checked_sub(fact).is_some_and(|d| tenth(d.abs(), fact))
}

fn trailing_zeros(fact: Decimal) -> u32 {
    let mut mantissa = fact.mantissa().unsigned_abs();
    let mut zeros = 0;
    while mantissa != 0 && mantissa.is_multiple_of(10) {
        mantissa /= 10;
        zeros += 1;
    }
    zeros
}
