//! Binding and judgement: which fact each figure states, and whether it states it truly.
//!
//! Pure and closed: a draft becomes [`Accepted`] only here, and what cannot be read is a violation. Implements the decisions of
//! the gate's specification over what [`super::figure`] extracts; ADR-0008 section on sourcing. It fetches, stores and repairs
//! nothing.

mod agree;
mod bind;
mod conflict;
mod entity;
mod feedback;
mod index;
mod label;
mod period;
mod polarity;
mod precision;
mod span;
mod table;

use std::fmt;

pub use conflict::{Conflict, conflicts};

use rust_decimal::Decimal;
use serde::{Serialize, Serializer};

use self::index::Index;
use self::table::Table;
use super::draft::Draft;
use super::fact::Fact;
use super::figure::{Found, Scan, token};
use super::snapshot::Snapshot;
use crate::limits;

/// Why a figure or a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The citation names no fact of the snapshot.
    PhantomCitation,
    /// Nothing is cited for the figure.
    Uncited,
    /// The figure fits no grammar, or its value is hidden.
    UnreadableFigure,
    /// The figure counts something else than the fact.
    UnitMismatch,
    /// Another currency.
    CurrencyMismatch,
    /// A loss told as a gain, or the reverse.
    SignMismatch,
    /// A rise told as a fall, or the reverse.
    DirectionMismatch,
    /// Not the fact's value at the precision shown.
    ValueMismatch,
    /// The text names another measure.
    LabelMismatch,
    /// The text names another period.
    PeriodMismatch,
    /// The text names another company.
    EntityMismatch,
    /// The facts contradict each other.
    ConflictingFacts,
    /// There is nothing to read.
    EmptyMemo,
}

impl Reason {
    /// The words of the public contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PhantomCitation => "phantom citation",
            Self::Uncited => "uncited",
            Self::UnreadableFigure => "unreadable figure",
            Self::UnitMismatch => "unit mismatch",
            Self::CurrencyMismatch => "currency mismatch",
            Self::SignMismatch => "sign mismatch",
            Self::DirectionMismatch => "direction mismatch",
            Self::ValueMismatch => "value mismatch",
            Self::LabelMismatch => "label mismatch",
            Self::PeriodMismatch => "period mismatch",
            Self::EntityMismatch => "entity mismatch",
            Self::ConflictingFacts => "conflicting facts",
            Self::EmptyMemo => "empty memo",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a cited fact says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// The fact.
    pub id: String,
    /// Its value, in base units.
    #[serde(with = "rust_decimal::serde::str")]
    pub value: Decimal,
}

/// One reason to refuse, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Why.
    pub reason: Reason,
    /// The field of the draft; none when one text was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The figure as written.
    pub figure: String,
    /// What the figure was read as, without its sign.
    #[serde(skip_serializing_if = "Option::is_none", with = "rust_decimal::serde::str_option")]
    pub value: Option<Decimal>,
    /// The sentence, item or row that it stands in, cut to a bound.
    pub segment: String,
    /// Byte offset of the figure in the text as given.
    pub start: usize,
    /// Byte offset of its end.
    pub end: usize,
    /// The ids that are cited for it.
    pub cited: Vec<String>,
    /// What those say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Expected>,
}

/// What the gate found in one text or draft.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether there is no violation.
    pub passed: bool,
    /// Figures that were read.
    pub figures_checked: usize,
    /// Figures that state the fact they cite.
    pub figures_covered: usize,
    /// Ids that figures or sentences cite, in the order of their first use.
    pub citations: Vec<String>,
    /// Every reason to refuse, in the order of the text.
    pub violations: Vec<Violation>,
}

/// A draft that states nothing but facts of its snapshot. Only [`judge`] makes one:
///
/// ```
/// use jim::memo::gate::{Accepted, judge};
/// use jim::memo::{Draft, Snapshot};
///
/// fn accept(snapshot: Snapshot, draft: Draft) -> Option<Accepted> {
///     judge(snapshot, draft).ok()
/// }
/// ```
///
/// ```compile_fail,E0451
/// use jim::memo::gate::{Accepted, Report};
/// use jim::memo::{Draft, Snapshot};
///
/// fn forge(snapshot: Snapshot, draft: Draft, report: Report) -> Accepted {
///     Accepted { snapshot, draft, report }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    snapshot: Snapshot,
    draft: Draft,
    report: Report,
}

/// A draft that was refused, with the snapshot for another try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    snapshot: Box<Snapshot>,
    report: Report,
}

impl Accepted {
    /// The facts.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The memo.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Counts and citations.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Rejected {
    /// The violations.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The facts, for a retry.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Gives the facts back.
    pub fn into_snapshot(self) -> Snapshot {
        *self.snapshot
    }

    /// What a synthesizer is told: one line a violation with what the facts say and what to do, a bounded number of them.
    pub fn feedback(&self) -> String {
        feedback::of(self.snapshot.facts(), &self.report.violations)
    }
}

/// Checks one text against the facts. A text over [`limits::DRAFT_BYTES_MAX`] is refused unread.
pub fn check(facts: &[Fact], text: &str) -> Report {
    let mut report = Report::default();
    if text.len() > limits::DRAFT_BYTES_MAX {
        report.violations.push(oversized());
    } else if text.trim().is_empty() {
        report.violations.push(empty());
    } else {
        let index = Index::new(facts);
        read(&index, &mut vec![false; index.len()], text, None, &mut report);
    }
    report.passed = report.violations.is_empty();
    report
}

/// Checks every field of a draft; offsets in violations are within their field.
pub fn judge(snapshot: Snapshot, draft: Draft) -> Result<Accepted, Rejected> {
    let mut report = Report::default();
    if draft.len_bytes() > limits::DRAFT_BYTES_MAX {
        report.violations.push(oversized());
    } else if draft.fields().all(|(_, text)| text.trim().is_empty()) {
        report.violations.push(empty());
    } else {
        let index = Index::new(snapshot.facts());
        let mut cited = vec![false; index.len()];
        for (field, text) in draft.fields() {
            read(&index, &mut cited, text, Some(&field), &mut report);
        }
    }
    report.passed = report.violations.is_empty();
    if report.passed {
        Ok(Accepted { snapshot, draft, report })
    } else {
        Err(Rejected { snapshot: Box::new(snapshot), report })
    }
}

/// Judges one text, up to [`limits::VIOLATIONS_MAX`] violations and the end of the sentence that reached them. `cited` tells which facts the report lists as cited already.
fn read(index: &Index<'_>, cited: &mut [bool], text: &str, field: Option<&str>, report: &mut Report) {
    let scan = Scan::new(text);
    let mut table = Table::default();
    for found in scan.found() {
        if report.violations.len() >= limits::VIOLATIONS_MAX {
            return;
        }
        cite(&scan, &found, index, cited, field, report);
        table.enter(&scan, &found);
        bind::figures(&scan, &found, index, &table, field, report);
    }
}

/// Notes the ids that a segment cites, and refuses those that name no fact.
fn cite(
    scan: &Scan<'_>,
    found: &Found,
    index: &Index<'_>,
    cited: &mut [bool],
    field: Option<&str>,
    report: &mut Report,
) {
    for citation in &found.citations {
        let token = &scan.tokens[citation.token];
        for id in token::ids(token.text(&scan.clean.bytes)) {
            if let Some(at) = index.position(id) {
                if !std::mem::replace(&mut cited[at], true) {
                    report.citations.push(id.to_owned());
                }
            } else if report.violations.len() < limits::VIOLATIONS_MAX {
                let quoted = report.violations.len() < limits::VIOLATIONS_QUOTED_MAX;
                let start = scan.clean.start(token.start as usize);
                let end = scan.clean.end(token.end as usize, scan.text);
                report.violations.push(Violation {
                    reason: Reason::PhantomCitation,
                    field: field.map(str::to_owned),
                    figure: shown(scan.text.get(start..end).unwrap_or_default()),
                    value: None,
                    segment: if quoted { segment_text(scan, found) } else { String::new() },
                    start,
                    end,
                    cited: vec![shown(id)],
                    expected: Vec::new(),
                });
            }
        }
    }
}

/// A figure or an id as written, cut to a bound.
fn shown(written: &str) -> String {
    written.chars().take(limits::FIGURE_SHOWN_CHARS_MAX).collect()
}

/// The text of a segment, cut to [`limits::SEGMENT_SHOWN_BYTES_MAX`].
pub(crate) fn segment_text(scan: &Scan<'_>, found: &Found) -> String {
    let first = scan.tokens.get(found.segment.first).map_or(0, |t| scan.clean.start(t.start as usize));
    let last = scan.tokens.get(found.segment.last - 1).map_or(0, |t| scan.clean.end(t.end as usize, scan.text));
    let mut end = last.min(first + limits::SEGMENT_SHOWN_BYTES_MAX);
    while !scan.text.is_char_boundary(end) {
        end -= 1;
    }
    scan.text.get(first..end).unwrap_or_default().to_owned()
}

fn empty() -> Violation {
    whole(Reason::EmptyMemo)
}

fn oversized() -> Violation {
    whole(Reason::UnreadableFigure)
}

/// A violation of the text as a whole.
fn whole(reason: Reason) -> Violation {
    Violation {
        reason,
        field: None,
        figure: String::new(),
        value: None,
        segment: String::new(),
        start: 0,
        end: 0,
        cited: Vec::new(),
        expected: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
