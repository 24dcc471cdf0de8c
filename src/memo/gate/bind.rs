//! Which citation each figure of a segment is bound to, and the verdict on each (decisions 4 and 5).

use super::index::{Index, Known};
use super::label::Question;
use super::period::Times;
use super::table::{self, Table};
use super::{Expected, Reason, Report, Violation, agree, entity, polarity, precision, segment_text, shown, span};
use crate::limits;
use crate::memo::fact::{Fact, Unit};
use crate::memo::figure::{Figure, Found, Measure, Scan, token};

/// Citations that stand side by side: `[C1][C2]` or `[C1, C2]`.
struct Group<'a> {
    /// First token.
    at: usize,
    ids: Vec<&'a str>,
}

/// A segment under judgement.
struct Bench<'a> {
    scan: &'a Scan<'a>,
    found: &'a Found,
    index: &'a Index<'a>,
    field: Option<&'a str>,
    table: &'a Table,
    named: entity::Named<'a>,
    times: Times,
    /// The column of each figure, in a table.
    columns: Vec<usize>,
}

/// Judges every figure of a segment.
pub(super) fn figures<'a>(
    scan: &'a Scan<'a>,
    found: &'a Found,
    index: &'a Index<'a>,
    table: &'a Table,
    field: Option<&'a str>,
    report: &mut Report,
) {
    if found.figures.is_empty() {
        return;
    }
    let groups = groups(scan, found);
    let polarity = polarity::read(scan, found);
    let cited = groups.iter().flat_map(|group| &group.ids).take(limits::SEGMENT_CITED_MAX);
    let cited = cited.filter_map(|id| index.get(id)).map(|known| known.fact);
    let bench = Bench {
        scan,
        found,
        index,
        field,
        table,
        named: entity::read(scan, found, index),
        times: Times::of(scan, found, cited),
        columns: table::columns(scan, found),
    };
    let mut stated: Vec<Option<&Fact>> = Vec::with_capacity(found.figures.len());
    let mut next = 0;
    while let Some(figure) = found.figures.get(stated.len()) {
        let first = stated.len();
        while groups.get(next).is_some_and(|g| g.at < figure.tokens.0) {
            next += 1;
        }
        let before_next = |f: &Figure| groups.get(next).is_none_or(|g| f.tokens.0 < g.at);
        let count = found.figures[first..].iter().take_while(|f| before_next(f)).count().max(1);
        // none follows: the nearest before it
        let group = groups.get(next).or(groups.last());
        let ids: &[&str] = group.map_or(&[], |g| &g.ids);
        let in_order = next < groups.len() && ids.len() == count && count > 1;
        for (i, figure) in found.figures[first..first + count].iter().enumerate() {
            let ids = if in_order { &ids[i..=i] } else { &ids[..ids.len().min(limits::CITED_PER_FIGURE_MAX)] };
            let verdict = bench.verdict(first + i, ids, &polarity[first + i]);
            stated.push(verdict.ok());
            if let Err(reason) = verdict {
                bench.refuse(figure, reason, ids, report);
            }
        }
    }
    for at in polarity::contradicted_levels(scan, found, &stated) {
        if let Some(fact) = stated[at].take() {
            bench.refuse(&found.figures[at], Reason::DirectionMismatch, &[fact.id.as_str()], report);
        }
    }
    report.figures_checked += found.figures.len();
    report.figures_covered += stated.iter().flatten().count();
}

fn groups<'a>(scan: &'a Scan<'_>, found: &Found) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'_>> = Vec::with_capacity(found.citations.len());
    let mut end = usize::MAX;
    for citation in &found.citations {
        let ids = token::ids(scan.tokens[citation.token].text(&scan.clean.bytes));
        match groups.last_mut() {
            Some(group) if citation.token == end => group.ids.extend(ids),
            _ => groups.push(Group { at: citation.token, ids: ids.collect() }),
        }
        end = citation.token + 1;
    }
    groups
}

impl<'a> Bench<'a> {
    /// The fact that the figure states, or why it states none.
    fn verdict(&self, at: usize, ids: &[&str], polarity: &polarity::Context) -> Result<&'a Fact, Reason> {
        let figure = &self.found.figures[at];
        if figure.magnitude.is_none() {
            return Err(Reason::UnreadableFigure);
        }
        let mut furthest = Reason::Uncited;
        for known in ids.iter().filter_map(|id| self.index.get(id)) {
            match self.compare(at, known, polarity) {
                None if known.conflicting => furthest = Reason::ConflictingFacts,
                None => return Ok(known.fact),
                // of several facts the one that comes furthest through the checks tells the reason
                Some(reason) => furthest = furthest.max(reason),
            }
        }
        Err(furthest)
    }

    /// The first check that fails, in the order of the specification.
    fn compare(&self, at: usize, known: &Known<'_>, polarity: &polarity::Context) -> Option<Reason> {
        let figure = &self.found.figures[at];
        let fact = known.fact;
        let shown = match agree::shown(figure, fact) {
            Ok(shown) => shown,
            Err(reason) => return Some(reason),
        };
        let column = self.columns.get(at).copied().unwrap_or(0);
        if column > 0
            && figure.measure == Measure::Bare
            && let Unit::Money(currency) | Unit::PerShare(currency) = fact.unit
            && self.table.foreign(self.scan, self.found, column, currency)
        {
            return Some(Reason::CurrencyMismatch);
        }
        if let Some(reason) = polarity::check(figure, fact, polarity) {
            return Some(reason);
        }
        if !shown.iter().flatten().any(|shown| precision::holds(shown, fact.value.abs(), figure.hedge)) {
            return Some(Reason::ValueMismatch);
        }
        self.names(at, known)
    }

    /// Whether the text around a figure names another measure, period or entity than the fact's.
    fn names(&self, at: usize, known: &Known<'_>) -> Option<Reason> {
        let figure = &self.found.figures[at];
        let (scan, found) = (self.scan, self.found);
        let column = self.columns.get(at).copied().unwrap_or(0);
        let cells = if column > 0 { self.table.heads(scan, found, column) } else { [None, None] };
        let question = Question { scan, found, index: self.index, times: &self.times.mentions, cells };
        if let Some(reason) = question.check(figure, known) {
            return Some(reason);
        }
        let over = self.table.time(column);
        if over.is_some_and(|time| !span::fits(time, known.fact)) || self.times.contradict(scan, found, at, known.fact)
        {
            return Some(Reason::PeriodMismatch);
        }
        entity::contradicts(known.fact, &self.named).then_some(Reason::EntityMismatch)
    }

    /// Adds a violation. Past a bound only the place and the reason are kept: a hostile memo must not cost its length again.
    fn refuse(&self, figure: &Figure, reason: Reason, ids: &[&str], report: &mut Report) {
        let quoted = report.violations.len() < limits::VIOLATIONS_QUOTED_MAX;
        let written = self.scan.text.get(figure.start..figure.end).unwrap_or_default();
        let facts = ids.iter().filter_map(|id| self.index.get(id));
        report.violations.push(Violation {
            reason,
            field: self.field.map(str::to_owned),
            figure: if quoted { shown(written) } else { String::new() },
            value: figure.magnitude,
            segment: if quoted { segment_text(self.scan, self.found) } else { String::new() },
            start: figure.start,
            end: figure.end,
            cited: if quoted { ids.iter().map(|&id| id.to_owned()).collect() } else { Vec::new() },
            expected: if quoted {
                facts.map(|k| Expected { id: k.fact.id.clone(), value: k.fact.value }).collect()
            } else {
                Vec::new()
            },
        });
    }
}
