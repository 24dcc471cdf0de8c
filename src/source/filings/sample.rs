//! A small selection of filed figures, compiled in, so that the product runs without network and without a folder.
//!
//! `sample.json` was written for this project: per company and per filing the figures of its latest year on record and
//! the year before, with the dates and accession numbers as filed. It goes through the same rule as live data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use rust_decimal::Decimal;
use serde::Deserialize;

use super::companyfacts::{self, CompanyFacts, Entry};
use super::report::{self, Origin};
use super::snapshots::Snapshots;
use super::text;
use super::tickers::Tickers;
use crate::memo::Snapshot;
use crate::pipeline::port::{Lookup, Source, SourceError};
use crate::source::Error;

const SAMPLE: &str = include_str!("sample.json");

/// The selection that is compiled in.
pub(crate) struct Sample {
    tickers: Tickers,
    companies: BTreeMap<u64, CompanyFacts>,
    kept: Snapshots<()>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    companies: Vec<Company>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Company {
    cik: u64,
    tickers: Vec<String>,
    name: String,
    filings: Vec<Filing>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filing {
    accession: String,
    form: String,
    filed: String,
    fiscal_year: i32,
    fiscal_period: String,
    /// Concept, unit, first day or null, last day, value.
    figures: Vec<(String, String, Option<String>, String, Decimal)>,
}

impl Sample {
    /// Reads the selection.
    pub(crate) fn open() -> Result<Self, Error> {
        Self::parse(SAMPLE).map_err(|cause| Error::Content { path: PathBuf::from("the compiled-in sample"), cause })
    }

    fn parse(json: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let mut sample = Self { tickers: Tickers::default(), companies: BTreeMap::new(), kept: Snapshots::new() };
        for company in file.companies {
            for ticker in &company.tickers {
                sample.tickers.insert(ticker, company.cik, &company.name);
            }
            sample.companies.insert(company.cik, company.read()?);
        }
        Ok(sample)
    }
}

impl Company {
    fn read(&self) -> Result<CompanyFacts, String> {
        let mut facts = CompanyFacts::empty(self.cik, &self.name);
        for filing in &self.filings {
            if !companyfacts::is_accession(&filing.accession) {
                return Err(format!("{:?} is no accession number", filing.accession));
            }
            let day = |text: &str| companyfacts::day(text).ok_or_else(|| format!("{text:?} is no day"));
            for (tag, unit, start, end, value) in &filing.figures {
                let entry = Entry {
                    start: start.as_deref().map(day).transpose()?,
                    end: day(end)?,
                    value: *value,
                    accession: filing.accession.clone(),
                    fy: Some(filing.fiscal_year),
                    full_year: filing.fiscal_period == "FY",
                    form: text::form(&filing.form).ok_or_else(|| format!("{:?} is no form", filing.form))?,
                    filed: day(&filing.filed)?,
                };
                facts.add(tag, unit, entry);
            }
        }
        Ok(facts)
    }
}

#[async_trait]
impl Source for Sample {
    fn get_subject(&self, ticker: &str) -> Lookup {
        self.tickers.get(ticker).map_or(Lookup::Unknown, Lookup::Known)
    }

    async fn fetch_snapshot(&self, ticker: &str) -> Result<Snapshot, SourceError> {
        if let Some(kept) = self.kept.get(ticker, |()| true) {
            return Ok(kept);
        }
        let unknown = || SourceError::Insufficient(format!("{ticker} is not among the sample companies"));
        let subject = self.tickers.get(ticker).ok_or_else(unknown)?;
        let facts = self.companies.get(&subject.cik).ok_or_else(unknown)?;
        let snapshot = report::snapshot(subject, facts, Origin::Recorded)?;
        self.kept.keep(ticker, (), &snapshot);
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests;
