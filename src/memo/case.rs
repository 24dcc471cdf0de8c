//! Case lines and facts files for the gate alone: `jim gate --cases FILE` and `jim gate --facts F --memo F`.
//!
//! Lenient in what it ignores, strict in what it reads: unknown members pass, a value keeps its digits, and a line that cannot
//! be read is an error with its number. It judges nothing itself.

use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::Date;

use super::fact::{Fact, Provenance, Unit};
use super::gate::{self, Reason};

/// One case: facts, and a memo over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name of the case; its line number when it has none.
    pub id: String,
    /// The facts.
    pub facts: Vec<Fact>,
    /// The memo.
    pub memo: String,
}

/// The gate's answer to one case, as one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    /// The name of the case.
    pub id: String,
    /// Whether the memo passed.
    pub verdict: Verdict,
    /// Figures read.
    pub figures: usize,
    /// Figures that state the fact they cite.
    pub covered: usize,
    /// The violations.
    pub violations: Vec<CaseViolation>,
}

/// Pass or fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No violation.
    Pass,
    /// At least one.
    Fail,
}

/// A violation in a case's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseViolation {
    /// Why.
    pub reason: Reason,
    /// The figure as written.
    pub figure: String,
    /// Its sentence.
    pub segment: String,
    /// Byte offset in the memo.
    pub start: usize,
    /// Byte offset of its end.
    pub end: usize,
    /// The ids cited for it.
    pub cited: Vec<String>,
}

/// Why a file of cases or facts cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line is no JSON object of the expected shape.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A facts file is no JSON of the expected shape.
    #[error("facts: {0}")]
    Facts(String),
}

/// Reads a file of case lines; blank lines are skipped.
pub fn cases(text: &str) -> Result<Vec<Case>, Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| case(line, i + 1).map_err(|reason| Error::Line { line: i + 1, reason })).collect()
}

/// Reads a facts file: an array of facts, or an object with the member `facts`.
pub fn facts(text: &str) -> Result<Vec<Fact>, Error> {
    #[derive(Deserialize)]
    struct Holder<'a> {
        #[serde(borrow)]
        facts: Vec<RawFact<'a>>,
    }
    let raw = if text.trim_start().starts_with('[') {
        serde_json::from_str::<Vec<RawFact<'_>>>(text)
    } else {
        serde_json::from_str::<Holder<'_>>(text).map(|holder| holder.facts)
    };
    let raw = raw.map_err(|error| Error::Facts(error.to_string()))?;
    raw.into_iter().map(|fact| fact.read().map_err(Error::Facts)).collect()
}

/// Runs the gate on one case.
pub fn run(case: &Case) -> CaseResult {
    let report = gate::check(&case.facts, &case.memo);
    CaseResult {
        id: case.id.clone(),
        verdict: if report.passed { Verdict::Pass } else { Verdict::Fail },
        figures: report.figures_checked,
        covered: report.figures_covered,
        violations: report.violations.into_iter().map(CaseViolation::from).collect(),
    }
}

impl From<gate::Violation> for CaseViolation {
    fn from(v: gate::Violation) -> Self {
        Self { reason: v.reason, figure: v.figure, segment: v.segment, start: v.start, end: v.end, cited: v.cited }
    }
}

#[derive(Deserialize)]
struct RawCase<'a> {
    id: Option<String>,
    #[serde(borrow)]
    facts: Vec<RawFact<'a>>,
    memo: String,
}

#[derive(Deserialize)]
struct RawFact<'a> {
    id: String,
    label: String,
    #[serde(borrow)]
    value: &'a RawValue,
    unit: String,
    currency: Option<String>,
    entity: Option<String>,
    fiscal_year: Option<i32>,
    fiscal_period: Option<String>,
    period_start: Option<String>,
    period_end: Option<String>,
    #[serde(borrow)]
    period: Option<&'a RawValue>,
    source: Option<String>,
    origin: Option<String>,
    form: Option<String>,
    accession: Option<String>,
    concept: Option<String>,
    #[serde(default)]
    derived_from: Vec<String>,
    formula: Option<String>,
}

/// A period as some case files write it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawPeriod {
    start: Option<String>,
    end: Option<String>,
    instant: Option<String>,
    #[serde(skip)]
    year: Option<i32>,
}

impl RawPeriod {
    /// An object with dates, or the caption of a column: "December 31, 2018", "Fiscal Year 2019". A caption with several years is
    /// the time from the first to the last of them.
    fn read(raw: &RawValue) -> Option<Self> {
        if let Ok(period) = serde_json::from_str(raw.get()) {
            return Some(period);
        }
        let caption: String = serde_json::from_str(raw.get()).ok()?;
        let numbers = caption.split(|c: char| !c.is_ascii_digit()).filter(|part| part.len() == 4);
        let mut years: Vec<i32> =
            numbers.filter_map(|part| part.parse().ok()).filter(|y| (1900..2100).contains(y)).collect();
        years.sort_unstable();
        let (first, last) = (*years.first()?, *years.last()?);
        let day = |year: i32, day: &str| Some(format!("{year}-{day}"));
        Some(if first == last {
            Self { year: Some(first), ..Self::default() }
        } else {
            Self { start: day(first, "01-01"), end: day(last, "12-31"), ..Self::default() }
        })
    }
}

fn case(line: &str, number: usize) -> Result<Case, String> {
    let raw: RawCase<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let facts = raw.facts.into_iter().map(RawFact::read).collect::<Result<_, _>>()?;
    Ok(Case { id: raw.id.unwrap_or_else(|| number.to_string()), facts, memo: raw.memo })
}

impl RawFact<'_> {
    fn read(self) -> Result<Fact, String> {
        let id = self.id;
        let value =
            decimal(self.value.get()).ok_or_else(|| format!("fact {id}: {} is not a value", self.value.get()))?;
        let unit: Unit = self.unit.parse().map_err(|error| format!("fact {id}: {error}"))?;
        let stated =
            self.currency.map(|code| code.parse()).transpose().map_err(|error| format!("fact {id}: {error}"))?;
        let period: RawPeriod = self.period.and_then(RawPeriod::read).unwrap_or_default();
        let day = |text: Option<String>| -> Option<Date> {
            text.and_then(|text| Date::parse(&text, time::macros::format_description!("[year]-[month]-[day]")).ok())
        };
        Ok(Fact {
            label: self.label,
            value,
            currency: unit.currency().or(stated),
            unit,
            entity: self.entity,
            period_start: day(self.period_start.or(period.start)),
            period_end: day(self.period_end.or(period.end).or(period.instant)),
            fiscal_year: self.fiscal_year.or(period.year),
            fiscal_period: self.fiscal_period,
            provenance: Provenance {
                source: self.source.unwrap_or_else(|| "case".to_owned()),
                origin: self.origin.unwrap_or_else(|| "primary".to_owned()),
                form: self.form,
                accession: self.accession,
                filing_url: None,
                filed: None,
                concept: self.concept,
            },
            derived_from: self.derived_from,
            formula: self.formula,
            restated: None,
            id,
        })
    }
}

/// A JSON number or string, digit for digit.
fn decimal(raw: &str) -> Option<Decimal> {
    let text = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(raw);
    if text.contains(['e', 'E']) { Decimal::from_scientific(text).ok() } else { Decimal::from_str(text).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"id":"a","facts":[{"id":"C1","label":"Revenue","value":48217000000.10,"unit":"USD","extra":1}],"memo":"It was $48.2 billion [C1]."}"#;

    #[test]
    fn a_case_keeps_the_digits_of_its_values() {
        let cases = cases(LINE).expect("a case");
        assert_eq!(cases[0].facts[0].value.to_string(), "48217000000.10");
        assert_eq!(cases[0].facts[0].provenance.source, "case");
        let answer = serde_json::to_value(run(&cases[0])).expect("JSON");
        assert_eq!(answer["verdict"], "pass");
        assert_eq!(answer["covered"], 1);
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        let error = cases(&format!("{LINE}\n\n{{\"facts\":3}}\n")).expect_err("no case");
        assert!(error.to_string().starts_with("line 3: "), "{error}");
        let error =
            cases(r#"{"facts":[{"id":"C1","label":"x","value":"NaN","unit":"USD"}],"memo":""}"#).expect_err("no value");
        assert!(error.to_string().contains("C1"), "{error}");
    }
}
