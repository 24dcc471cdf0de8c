//! Chooses, among everything that a filer ever filed, the values of its latest fiscal year and the year before.
//!
//! The rule: fix the fiscal year end first; then take, per concept, the best tag that has an annual value with exactly
//! that end. A concept without one is missing, never older. Per period the newest filing counts, by day of filing and
//! then by accession number. The fields `fy` and `fp` describe the filing and not the value, so periods are told by
//! their dates alone.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use time::Date;

use super::companyfacts::{CompanyFacts, Entry};
use super::concepts::{self, Concept, Kind, Measure};
use crate::memo::fact::Restated;
use crate::memo::{Currency, Unit};

/// Forms that carry a whole year's audited statements.
const ANNUAL_FORMS: [&str; 7] = ["10-K", "10-K/A", "10-KT", "20-F", "20-F/A", "40-F", "40-F/A"];

/// Days from first to last of a fiscal year: years of 52 and 53 weeks are 363 to 370.
const YEAR_DAYS: std::ops::RangeInclusive<i64> = 340..=390;

/// Days between the ends of two fiscal years that follow each other.
const PRIOR_DAYS: std::ops::RangeInclusive<i64> = 300..=400;

/// Coarsest rounding that filers use for money: millions.
const ROUNDING_DIGITS_MAX: u32 = 6;

/// Two values that differ by more than one part in this many are never the same value rounded twice.
const ROUNDING_PARTS: i64 = 100;

/// The latest fiscal year of a filer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Year {
    /// Its last day.
    pub(crate) end: Date,
    /// Its number, as the filer counts.
    pub(crate) fiscal_year: i32,
    /// Number of the year before.
    pub(crate) prior_fiscal_year: i32,
    /// What was found, in the order of the concept table.
    pub(crate) values: Vec<Value>,
    /// The share count of the newest cover page.
    pub(crate) shares: Option<Entry>,
    /// Concepts that the filer does not report for this year.
    pub(crate) missing: Vec<&'static Concept>,
}

/// One concept's value for the year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// What it is.
    pub(crate) concept: &'static Concept,
    /// The tag it was filed under.
    pub(crate) tag: &'static str,
    /// Its unit.
    pub(crate) unit: Unit,
    /// The value of the year.
    pub(crate) current: Chosen,
    /// The value of the year before under the same tag.
    pub(crate) prior: Option<Chosen>,
}

/// An entry that counts, and what it replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The entry.
    pub(crate) entry: Entry,
    /// The value before the newest change that is more than rounding.
    pub(crate) restated: Option<Restated>,
}

/// The latest fiscal year; none when the filer has no annual value of any anchor concept.
pub(crate) fn latest_year(facts: &CompanyFacts) -> Option<Year> {
    let end = anchor_entries(facts).map(|(_, entry)| entry.end).max()?;
    let currency = reporting_currency(facts, end)?;
    let fiscal_year = fiscal_year_of(facts, end).unwrap_or_else(|| end.year());
    let mut values: Vec<Value> = Vec::new();
    let mut missing = Vec::new();
    for concept in concepts::TABLE {
        match value_of(facts, concept, currency, end) {
            Some(value) if repeats_another(&value, &values) => {}
            Some(value) => values.push(value),
            None => missing.push(concept),
        }
    }
    let prior_end = values.iter().find_map(|value| Some(value.prior.as_ref()?.entry.end));
    let prior_fiscal_year = prior_end.and_then(|prior| fiscal_year_of(facts, prior)).filter(|year| *year < fiscal_year);
    Some(Year {
        end,
        fiscal_year,
        prior_fiscal_year: prior_fiscal_year.unwrap_or(fiscal_year - 1),
        values,
        shares: cover_shares(facts, end),
        missing,
    })
}

/// Annual entries of the concepts that fix the year end, with their unit.
fn anchor_entries(facts: &CompanyFacts) -> impl Iterator<Item = (&str, &Entry)> {
    concepts::ANCHORS
        .iter()
        .filter_map(|key| concepts::by_key(key))
        .flat_map(|concept| concept.tags.iter().map(move |tag| (concept, *tag)))
        .flat_map(move |(concept, tag)| {
            facts.units(tag).flat_map(move |unit| annual(facts, concept, tag, unit).map(move |entry| (unit, entry)))
        })
}

/// The currency of the statements. A translation for the reader's convenience covers fewer years than the books do.
fn reporting_currency(facts: &CompanyFacts, end: Date) -> Option<Currency> {
    let mut periods: BTreeMap<&str, (bool, BTreeSet<Date>)> = BTreeMap::new();
    for (unit, entry) in anchor_entries(facts) {
        let seen = periods.entry(unit).or_default();
        seen.0 |= entry.end == end;
        seen.1.insert(entry.end);
    }
    periods
        .into_iter()
        .filter(|(_, (reaches, _))| *reaches)
        .filter_map(|(unit, (_, ends))| Some((unit.parse::<Currency>().ok()?, ends.len())))
        .max_by_key(|(currency, ends)| (*ends, *currency == Currency::USD))
        .map(|(currency, _)| currency)
}

/// The filer's own number for the year with this end: `fy` of the newest annual filing whose latest year ends there.
/// A filing carries one `fy` for all its columns, so filings in which `end` is only a comparison do not count.
fn fiscal_year_of(facts: &CompanyFacts, end: Date) -> Option<i32> {
    let mut filings: BTreeMap<(Date, &str), (Date, Option<i32>)> = BTreeMap::new();
    for (_, entry) in anchor_entries(facts).filter(|(_, entry)| entry.full_year) {
        let main = filings.entry((entry.filed, &entry.accession)).or_insert((entry.end, entry.fy));
        main.0 = main.0.max(entry.end);
    }
    filings.into_values().rev().filter(|(main_end, _)| *main_end == end).find_map(|(_, fy)| fy)
}

fn value_of(facts: &CompanyFacts, concept: &'static Concept, currency: Currency, end: Date) -> Option<Value> {
    let unit = match concept.measure {
        Measure::Money => Unit::Money(currency),
        Measure::PerShare => Unit::PerShare(currency),
        Measure::Shares => Unit::Shares,
        Measure::Pure => Unit::Ratio,
    };
    let unit_name = match unit {
        Unit::Ratio => "pure".to_owned(),
        other => other.to_string(),
    };
    let mut reaching = concept.tags.iter().filter_map(|tag| {
        let chosen = choose(facts, concept, tag, &unit_name, |entry| entry.end == end)?;
        Some((*tag, chosen))
    });
    let mut best = reaching.next()?;
    if concept.key == concepts::REVENUE
        && Some(&best.0) == concept.tags.first()
        && let Some(second) = reaching.next().filter(|(tag, _)| Some(tag) == concept.tags.get(1))
        && second.1.entry.value > best.1.entry.value
    {
        best = second;
    }
    let (tag, current) = best;
    let prior = concept
        .with_prior
        .then(|| choose(facts, concept, tag, &unit_name, |entry| PRIOR_DAYS.contains(&(end - entry.end).whole_days())))
        .flatten();
    Some(Value { concept, tag, unit, current, prior })
}

/// The same number under the tag or the meaning of another concept says nothing new.
fn repeats_another(value: &Value, before: &[Value]) -> bool {
    value.concept.unless_equal_to.is_some_and(|key| {
        before.iter().any(|other| other.concept.key == key && other.current.entry.value == value.current.entry.value)
    })
}

fn annual<'a>(
    facts: &'a CompanyFacts,
    concept: &Concept,
    tag: &str,
    unit: &str,
) -> impl Iterator<Item = &'a Entry> + use<'a> {
    let kind = concept.kind;
    facts.entries(tag, unit).iter().filter(move |entry| {
        ANNUAL_FORMS.contains(&entry.form.as_str())
            && match (kind, entry.start) {
                (Kind::Duration, Some(start)) => YEAR_DAYS.contains(&(entry.end - start).whole_days()),
                (Kind::Instant, None) => true,
                (Kind::Duration, None) | (Kind::Instant, Some(_)) => false,
            }
    })
}

/// The newest value among the annual ones that `wanted` lets through, and what it changed of its own period.
fn choose(
    facts: &CompanyFacts,
    concept: &Concept,
    tag: &str,
    unit: &str,
    wanted: impl Fn(&Entry) -> bool,
) -> Option<Chosen> {
    let candidates: Vec<&Entry> = annual(facts, concept, tag, unit).filter(|entry| wanted(entry)).collect();
    let rank = |entry: &Entry| (entry.end, entry.filed, entry.accession.clone(), entry.start, entry.value);
    let newest = *candidates.iter().max_by_key(|entry| rank(entry))?;
    let restated = candidates
        .iter()
        .filter(|entry| (entry.start, entry.end) == (newest.start, newest.end) && entry.filed < newest.filed)
        .filter(|entry| !same_but_for_rounding(entry.value, newest.value))
        .max_by_key(|entry| rank(entry))
        .map(|entry| Restated { value: entry.value, accession: entry.accession.clone() });
    Some(Chosen { entry: newest.clone(), restated })
}

/// Whether the two can be one value, rounded to thousands here and to millions there.
fn same_but_for_rounding(a: Decimal, b: Decimal) -> bool {
    let Some(difference) = a.checked_sub(b).map(|difference| difference.abs()) else { return false };
    let close =
        difference.checked_mul(Decimal::from(ROUNDING_PARTS)).is_some_and(|scaled| scaled <= a.abs().max(b.abs()));
    let step = grain(a).max(grain(b));
    difference.is_zero() || (close && difference + difference <= step)
}

/// The last place that a value was rounded to: 100,000 for 4,462,400,000 and 0.01 for 7.46.
fn grain(value: Decimal) -> Decimal {
    let value = value.normalize();
    if value.scale() > 0 {
        return Decimal::new(1, value.scale());
    }
    let (mut rest, mut step) = (value.mantissa().unsigned_abs(), 1_i64);
    for _ in 0..ROUNDING_DIGITS_MAX {
        if rest == 0 || !rest.is_multiple_of(10) {
            break;
        }
        rest /= 10;
        step *= 10;
    }
    Decimal::from(step)
}

/// The newest cover page's share count, from any form. A count older than the year end is of another time: a filer
/// with several classes of shares stops giving one number.
fn cover_shares(facts: &CompanyFacts, year_end: Date) -> Option<Entry> {
    facts
        .entries(concepts::SHARES_TAG, "shares")
        .iter()
        .filter(|entry| entry.end >= year_end)
        .max_by_key(|entry| (entry.end, entry.filed, entry.accession.clone(), entry.value))
        .cloned()
}

#[cfg(test)]
mod tests;
