//! Which citation each figure of a segment is bound to, and the verdict on each (decisions 4 and 5).

use super::{Expected, Index, Reason, Report, Violation, agree, label, polarity, precision, segment_text};
use crate::limits;
use crate::memo::fact::Fact;
use crate::memo::figure::{Figure, Found, Scan, token};

/// Citations that stand side by side: `[C1][C2]` or `[C1, C2]`.
struct Group<'a> {
    /// First token.
    at: usize,
    ids: Vec<&'a str>,
}

/// A segment with what it names.
struct Words<'a> {
    scan: &'a Scan<'a>,
    found: &'a Found,
    named: label::Named,
}

/// Judges every figure of a segment.
pub(super) fn figures(scan: &Scan<'_>, found: &Found, index: &Index<'_>, field: Option<&str>, report: &mut Report) {
    if found.figures.is_empty() {
        return;
    }
    let groups = groups(scan, found);
    let polarity = polarity::read(scan, found);
    let mut named = label::read(scan, found);
    for (fact, _) in groups.iter().flat_map(|group| &group.ids).filter_map(|id| index.get(id)) {
        named.settle(fact);
    }
    let segment = Words { scan, found, named };
    let mut next = 0;
    let mut first = 0;
    while first < found.figures.len() {
        while groups.get(next).is_some_and(|g| g.at < found.figures[first].tokens.0) {
            next += 1;
        }
        let before_next = |f: &Figure| groups.get(next).is_none_or(|g| f.tokens.0 < g.at);
        let last = first + found.figures[first..].iter().take_while(|f| before_next(f)).count().max(1);
        // none follows: the nearest before it
        let follows = groups.get(next).is_some();
        let group = groups.get(next).or(groups.last());
        let ids: &[&str] = group.map_or(&[], |g| &g.ids);
        let in_order = follows && ids.len() == last - first && ids.len() > 1;
        for (i, figure) in found.figures[first..last].iter().enumerate() {
            let ids = if in_order { &ids[i..=i] } else { ids };
            let ids = &ids[..ids.len().min(limits::FACTS_MAX)];
            report.figures_checked += 1;
            let verdict = verdict(&segment, figure, ids, index, &polarity[first + i]);
            match verdict {
                None => report.figures_covered += 1,
                Some(reason) => report.violations.push(violation(scan, found, figure, reason, ids, index, field)),
            }
        }
        first = last;
    }
}

fn groups<'a>(scan: &'a Scan<'_>, found: &Found) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
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

/// Why the figure states none of the facts; none when it states one.
fn verdict(
    words: &Words<'_>,
    figure: &Figure,
    ids: &[&str],
    index: &Index<'_>,
    polarity: &polarity::Context,
) -> Option<Reason> {
    if figure.magnitude.is_none() {
        return Some(Reason::UnreadableFigure);
    }
    let mut worst: Option<Reason> = None;
    let mut known = false;
    for &(fact, conflicting) in ids.iter().filter_map(|id| index.get(id)) {
        known = true;
        match compare(words, figure, fact, polarity) {
            None if conflicting => worst = Some(Reason::ConflictingFacts),
            None => return None,
            // of several facts the one that comes furthest through the checks tells the reason
            Some(reason) => worst = worst.max(Some(reason)),
        }
    }
    if known { worst } else { Some(Reason::Uncited) }
}

/// The first check that fails, in the order of the specification.
fn compare(words: &Words<'_>, figure: &Figure, fact: &Fact, polarity: &polarity::Context) -> Option<Reason> {
    let shown = match agree::shown(figure, fact) {
        Ok(shown) => shown,
        Err(reason) => return Some(reason),
    };
    if let Some(reason) = polarity::check(figure, fact, polarity) {
        return Some(reason);
    }
    if !shown.iter().any(|shown| precision::holds(shown, fact.value.abs(), figure.hedge)) {
        return Some(Reason::ValueMismatch);
    }
    label::check(words.scan, words.found, figure, fact, &words.named)
}

fn violation(
    scan: &Scan<'_>,
    found: &Found,
    figure: &Figure,
    reason: Reason,
    ids: &[&str],
    index: &Index<'_>,
    field: Option<&str>,
) -> Violation {
    Violation {
        reason,
        field: field.map(str::to_owned),
        figure: scan
            .text
            .get(figure.start..figure.end)
            .unwrap_or_default()
            .chars()
            .take(limits::FIGURE_SHOWN_CHARS_MAX)
            .collect(),
        value: figure.magnitude,
        segment: segment_text(scan, found),
        start: figure.start,
        end: figure.end,
        cited: ids.iter().map(|&id| id.to_owned()).collect(),
        expected: ids
            .iter()
            .filter_map(|id| index.get(id))
            .map(|(fact, _)| Expected { id: fact.id.clone(), value: fact.value })
            .collect(),
    }
}
