//! Turns the chosen values of a filer's latest year into the snapshot that is sold: ids, labels, citations, limits.

use rust_decimal::Decimal;
use time::{Date, OffsetDateTime, Time};

use super::companyfacts::{CompanyFacts, Entry};
use super::concepts::{self, Weight};
use super::derive::{self, Reported, When};
use super::pick::{self, Chosen, Year};
use crate::memo::{Coverage, Fact, Provenance, Snapshot, Subject, Unit};
use crate::pipeline::port::SourceError;

/// Where the facts of one snapshot came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Fetched from the SEC at this moment.
    Fetched(OffsetDateTime),
    /// Kept from an earlier time; the newest filing in it tells which.
    Recorded,
}

/// The snapshot of a filer.
///
/// [`SourceError::Insufficient`] when there is no fiscal year with at least revenue, net income or assets.
pub(crate) fn snapshot(subject: Subject, facts: &CompanyFacts, origin: Origin) -> Result<Snapshot, SourceError> {
    let usable = |year: &Year| year.values.iter().any(|value| concepts::USABLE.contains(&value.concept.key));
    let year = pick::latest_year(facts)
        .filter(usable)
        .ok_or_else(|| SourceError::Insufficient(format!("no annual figures are on file for {}", subject.ticker)))?;
    let recorded = facts.newest_filed.unwrap_or(year.end);
    let as_of = match origin {
        Origin::Fetched(at) => at,
        Origin::Recorded => recorded.with_time(Time::MIDNIGHT).assume_utc(),
    };
    let reported = reported(&subject, &year);
    let derived = derive::derive(&reported);
    let all: Vec<Fact> = reported.into_iter().map(|one| one.fact).chain(derived).collect();
    let limits = limits(&year, origin, recorded);
    Snapshot::new(subject, as_of, all, coverage(&year), limits).map_err(|invalid| SourceError::Unavailable {
        public: "the facts could not be put together".into(),
        cause: invalid.to_string(),
    })
}

/// Page of a filing in the SEC's archive.
pub(crate) fn filing_url(cik: u64, accession: &str) -> String {
    let folder: String = accession.chars().filter(char::is_ascii_digit).collect();
    format!("https://www.sec.gov/Archives/edgar/data/{cik}/{folder}/{accession}-index.htm")
}

fn reported(subject: &Subject, year: &Year) -> Vec<Reported> {
    let mut out: Vec<Reported> = Vec::new();
    for value in &year.values {
        let years = [
            (When::Now, Some(&value.current), year.fiscal_year),
            (When::Before, value.prior.as_ref(), year.prior_fiscal_year),
        ];
        for (when, chosen, fiscal_year) in years {
            let Some(Chosen { entry, restated }) = chosen else { continue };
            let mut fact = fact(subject, out.len() + 1, entry, value.unit, value.tag);
            fact.label = label(value.concept.label, value.tag, when);
            fact.fiscal_year = Some(fiscal_year);
            fact.fiscal_period = Some("FY".to_owned());
            fact.restated.clone_from(restated);
            out.push(Reported { key: value.concept.key, when, fact });
        }
    }
    if let Some(entry) = &year.shares {
        let mut fact = fact(subject, out.len() + 1, entry, Unit::Shares, concepts::SHARES_TAG);
        fact.label = concepts::SHARES.1.to_owned();
        out.push(Reported { key: concepts::SHARES.0, when: When::Now, fact });
    }
    out
}

/// Sales are not all revenue: where the filer tags net sales, the label says so.
fn label(label: &str, tag: &str, when: When) -> String {
    let label = if tag == "us-gaap:SalesRevenueNet" { "Net sales" } else { label };
    match when {
        When::Now => label.to_owned(),
        When::Before => format!("{label} (prior year)"),
    }
}

fn fact(subject: &Subject, number: usize, entry: &Entry, unit: Unit, tag: &str) -> Fact {
    Fact {
        id: format!("C{number}"),
        label: String::new(),
        value: positive_zero(entry.value),
        unit,
        currency: unit.currency(),
        entity: Some(subject.name.clone()),
        period_start: entry.start,
        period_end: Some(entry.end),
        fiscal_year: None,
        fiscal_period: None,
        provenance: Provenance {
            source: "sec-edgar".to_owned(),
            origin: "primary".to_owned(),
            form: Some(entry.form.clone()),
            accession: Some(entry.accession.clone()),
            filing_url: Some(filing_url(subject.cik, &entry.accession)),
            filed: Some(entry.filed),
            concept: Some(tag.to_owned()),
        },
        derived_from: Vec::new(),
        formula: None,
        restated: None,
    }
}

fn positive_zero(value: Decimal) -> Decimal {
    if value.is_zero() { Decimal::ZERO } else { value }
}

fn coverage(year: &Year) -> Coverage {
    let core = |weight: Weight| weight == Weight::Core;
    let found =
        year.values.iter().filter(|value| core(value.concept.weight)).count() + usize::from(year.shares.is_some());
    let missing =
        year.missing.iter().filter(|concept| core(concept.weight)).count() + usize::from(year.shares.is_none());
    if missing == 0 {
        Coverage::Complete
    } else if found > missing {
        Coverage::Partial
    } else {
        Coverage::Narrow
    }
}

/// Sentences for the buyer.
fn limits(year: &Year, origin: Origin, recorded: Date) -> Vec<String> {
    let mut out = Vec::new();
    if origin == Origin::Recorded {
        out.push(format!(
            "Recorded data: the newest filing in it is of {recorded}; nothing was fetched for this memo."
        ));
    }
    let mut missing: Vec<&str> =
        year.missing.iter().filter(|concept| concept.weight != Weight::Extra).map(|concept| concept.label).collect();
    if year.shares.is_none() {
        missing.push(concepts::SHARES.1);
    }
    if !missing.is_empty() {
        out.push(format!(
            "Not on file as company-wide figures for the fiscal year ended {}: {}.",
            year.end,
            missing.join("; ")
        ));
    }
    out
}

#[cfg(test)]
mod tests;
