//! Reads the SEC's companyfacts document and joins several documents of one filer.
//!
//! Owns the shape `{cik, entityName, facts: {taxonomy: {Concept: {units: {unit: [entry]}}}}}` and nothing of its meaning:
//! which value counts is `pick`'s business. Values never pass through arithmetic on floats: what the filer wrote is
//! what is kept, or the entry is dropped. Entries that cannot be cited (no accession, no date, no number) are dropped
//! too, and so are concepts that the product does not list.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::Deserialize;
use time::Date;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::concepts;
use super::text;

const DAY: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// Beyond this a JSON number that was read as a float may have lost a digit of what was filed (2^53).
const FLOAT_EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// What one filer has filed, for the concepts that the product lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompanyFacts {
    /// SEC number of the filer.
    pub(crate) cik: u64,
    /// Name of the filer, plain text.
    pub(crate) name: String,
    /// Newest day of filing of any entry, also of concepts that are not listed.
    pub(crate) newest_filed: Option<Date>,
    /// Concept (`us-gaap:Revenues`) to unit (`USD`) to entries.
    series: BTreeMap<String, BTreeMap<String, Vec<Entry>>>,
}

/// One value as filed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// First day of the period; none for a value at a moment.
    pub(crate) start: Option<Date>,
    /// Last day of the period, or the moment.
    pub(crate) end: Date,
    /// The value.
    pub(crate) value: Decimal,
    /// Accession number, well formed.
    pub(crate) accession: String,
    /// Fiscal year **of the filing**.
    pub(crate) fy: Option<i32>,
    /// Fiscal period **of the filing** is the year.
    pub(crate) full_year: bool,
    /// Form of the filing.
    pub(crate) form: String,
    /// Day of the filing.
    pub(crate) filed: Date,
}

/// Why a document is no companyfacts document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Not JSON, or not of this shape.
    #[error("not a companyfacts document: {0}")]
    Shape(#[from] serde_json::Error),
    /// `cik` is neither a number nor digits.
    #[error("the filer's number {0:?} is none")]
    Cik(String),
    /// Documents of two filers were to be joined.
    #[error("document of filer {found} among those of filer {expected}")]
    OtherFiler {
        /// The filer asked for.
        expected: u64,
        /// The filer of the document.
        found: u64,
    },
}

#[derive(Deserialize)]
struct RawDocument<'a> {
    #[serde(borrow)]
    cik: RawCik<'a>,
    #[serde(borrow, rename = "entityName", default)]
    entity_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    facts: HashMap<Cow<'a, str>, HashMap<Cow<'a, str>, RawConcept<'a>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawCik<'a> {
    Number(u64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

/// `label` and `description` may be null, and the product has labels of its own.
#[derive(Deserialize)]
struct RawConcept<'a> {
    #[serde(borrow)]
    units: HashMap<Cow<'a, str>, Vec<RawEntry<'a>>>,
}

#[derive(Deserialize)]
struct RawEntry<'a> {
    #[serde(borrow, default)]
    start: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    end: Option<Cow<'a, str>>,
    #[serde(default)]
    val: serde_json::Value,
    #[serde(borrow, default)]
    accn: Option<Cow<'a, str>>,
    #[serde(default)]
    fy: Option<i32>,
    #[serde(borrow, default)]
    fp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    form: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    filed: Option<Cow<'a, str>>,
}

impl CompanyFacts {
    /// A filer without entries.
    pub(crate) fn empty(cik: u64, name: &str) -> Self {
        Self { cik, name: text::plain_name(name), newest_filed: None, series: BTreeMap::new() }
    }

    /// Reads one document.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Error> {
        let raw: RawDocument<'_> = serde_json::from_slice(body)?;
        let cik = match raw.cik {
            RawCik::Number(number) => number,
            RawCik::Text(digits) => digits.parse().map_err(|_| Error::Cik(digits.chars().take(20).collect()))?,
        };
        let mut facts = Self::empty(cik, raw.entity_name.as_deref().unwrap_or_default());
        for (taxonomy, raw_concepts) in raw.facts {
            for (name, concept) in raw_concepts {
                let tag = format!("{taxonomy}:{name}");
                let listed = concepts::is_listed(&tag);
                for (unit, entries) in concept.units {
                    let read: Vec<Entry> = entries.iter().filter_map(RawEntry::read).collect();
                    facts.newest_filed = facts.newest_filed.max(read.iter().map(|entry| entry.filed).max());
                    if listed {
                        facts.series.entry(tag.clone()).or_default().insert(unit.into_owned(), read);
                    }
                }
            }
        }
        Ok(facts)
    }

    /// Adds one entry; one whose concept is not listed only moves `newest_filed`.
    pub(crate) fn add(&mut self, tag: &str, unit: &str, entry: Entry) {
        self.newest_filed = self.newest_filed.max(Some(entry.filed));
        if concepts::is_listed(tag) {
            self.series.entry(tag.to_owned()).or_default().entry(unit.to_owned()).or_default().push(entry);
        }
    }

    /// Joins another document of the same filer: what either has, the whole has.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), Error> {
        if other.cik != self.cik {
            return Err(Error::OtherFiler { expected: self.cik, found: other.cik });
        }
        if self.name.is_empty() {
            self.name = other.name;
        }
        self.newest_filed = self.newest_filed.max(other.newest_filed);
        for (tag, units) in other.series {
            let mine = self.series.entry(tag).or_default();
            for (unit, entries) in units {
                let list = mine.entry(unit).or_default();
                for entry in entries {
                    if !list.contains(&entry) {
                        list.push(entry);
                    }
                }
            }
        }
        Ok(())
    }

    /// Entries of a concept in a unit.
    pub(crate) fn entries(&self, tag: &str, unit: &str) -> &[Entry] {
        self.series.get(tag).and_then(|units| units.get(unit)).map_or(&[], Vec::as_slice)
    }

    /// Units in which a concept was filed.
    pub(crate) fn units(&self, tag: &str) -> impl Iterator<Item = &str> {
        self.series.get(tag).into_iter().flat_map(|units| units.keys().map(String::as_str))
    }
}

impl RawEntry<'_> {
    fn read(&self) -> Option<Entry> {
        let accession = self.accn.as_deref().filter(|accn| is_accession(accn))?;
        Some(Entry {
            start: match self.start.as_deref() {
                Some(start) => Some(day(start)?),
                None => None,
            },
            end: day(self.end.as_deref()?)?,
            value: exact(&self.val)?,
            accession: accession.to_owned(),
            fy: self.fy,
            full_year: self.fp.as_deref() == Some("FY"),
            form: text::form(self.form.as_deref()?)?,
            filed: day(self.filed.as_deref()?)?,
        })
    }
}

/// A day as `2022-12-31`.
pub(crate) fn day(text: &str) -> Option<Date> {
    Date::parse(text, DAY).ok()
}

/// The number as filed. A float is written back in its shortest form, which is the filed text for up to 15 digits.
fn exact(value: &serde_json::Value) -> Option<Decimal> {
    let serde_json::Value::Number(number) = value else { return None };
    if number.is_f64() && number.as_f64().is_none_or(|float| float.abs() >= FLOAT_EXACT_MAX) {
        return None;
    }
    let text = number.to_string();
    let parsed = if text.contains(['e', 'E']) { Decimal::from_scientific(&text) } else { Decimal::from_str(&text) };
    parsed.ok().map(|decimal| decimal.normalize())
}

/// `0000320193-25-000079`: it becomes part of an address, so nothing else may pass.
pub(crate) fn is_accession(text: &str) -> bool {
    text.len() == 20
        && text
            .bytes()
            .enumerate()
            .all(|(i, byte)| if i == 10 || i == 13 { byte == b'-' } else { byte.is_ascii_digit() })
}

#[cfg(test)]
mod tests;
