//! jim's own renderer: a draft made of the facts of a snapshot and nothing else.
//!
//! It is what is sold when no model writes, so whatever it writes must pass the gate (decision 15 of the gate's specification):
//! each figure stands in a sentence or row of its own, right before its citation, at the full precision of its fact.

mod figure;
mod part;

use std::collections::HashMap;
use std::rc::Rc;

use super::draft::{Draft, Mode, Section};
use super::fact::Fact;
use super::snapshot::{Coverage, Snapshot};
use part::Part;

/// Facts that the summary names.
const SUMMARY_FACTS_MAX: usize = 3;

/// A draft of every fact. `Mode::Agent` gives tables, `Mode::Human` sentences.
pub fn draft(snapshot: &Snapshot, mode: Mode) -> Draft {
    let subject = snapshot.subject();
    let name = words(&subject.name);
    let title = format!("{name}: financial facts");
    let mut labels = Labels::default();
    let lines: Vec<Line<'_>> =
        snapshot.facts().iter().map(|fact| Line { fact, part: Part::of(fact), label: labels.of(fact) }).collect();
    let sections = Part::ALL
        .into_iter()
        .filter_map(|part| {
            let lines: Vec<&Line<'_>> = lines.iter().filter(|line| line.part == part).collect();
            let markdown = match mode {
                Mode::Agent => table(&lines),
                Mode::Human => sentences(&lines),
            };
            (!lines.is_empty()).then(|| Section { heading: part.heading().to_owned(), markdown })
        })
        .collect();
    Draft { title, summary: summary(snapshot, &lines, &name), sections }
}

/// A fact as it is written: where it stands and what it is called.
struct Line<'a> {
    fact: &'a Fact,
    part: Part,
    label: Rc<str>,
}

/// Labels that were made already: a measure has one for all its years.
#[derive(Default)]
struct Labels<'a>(HashMap<&'a str, Rc<str>>);

impl<'a> Labels<'a> {
    /// A label as a noun phrase: marks that Markdown or the gate would read are left out.
    fn of(&mut self, fact: &'a Fact) -> Rc<str> {
        Rc::clone(self.0.entry(&fact.label).or_insert_with(|| words(&fact.label).into()))
    }
}

fn summary(snapshot: &Snapshot, lines: &[Line<'_>], name: &str) -> String {
    let coverage = match snapshot.coverage() {
        Coverage::Complete => "Every listed measure was found.",
        Coverage::Partial => "Some listed measures are missing.",
        Coverage::Narrow => "Only a few measures were found.",
    };
    let mut out = format!("Facts about {name}, each with its source. {coverage}");
    for line in lines.iter().take(SUMMARY_FACTS_MAX) {
        out.push(' ');
        out.push_str(&sentence(line));
    }
    out
}

fn table(lines: &[&Line<'_>]) -> String {
    let mut out = String::from("| Measure | Period | Value |\n|---|---|---|\n");
    for Line { fact, label, .. } in lines {
        out.push_str(&format!("| {label} | {} | {} [{}] |\n", period(fact), figure::of(fact), fact.id));
    }
    out
}

fn sentences(lines: &[&Line<'_>]) -> String {
    lines.iter().map(|line| sentence(line)).collect::<Vec<_>>().join("\n\n")
}

/// "Revenue (FY2024): $48,217,000,000 [C1]." A colon states the value without taking a side on its sign.
fn sentence(Line { fact, label, .. }: &Line<'_>) -> String {
    let period = period(fact);
    let period = if period.is_empty() { String::new() } else { format!(" ({period})") };
    format!("{label}{period}: {} [{}].", figure::of(fact), fact.id)
}

/// The fiscal period, or the day on which it ends.
fn period(fact: &Fact) -> String {
    match (fact.fiscal_year, fact.fiscal_period.as_deref(), fact.period_end) {
        (Some(year), Some(period), _) if plain(period) => format!("{period} {year}").replace("FY ", "FY"),
        (Some(year), _, _) => format!("FY{year}"),
        (None, _, Some(end)) => end.to_string(),
        (None, _, None) => String::new(),
    }
}

fn plain(period: &str) -> bool {
    !period.is_empty() && period.len() <= 3 && period.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Text without signs of structure, and without digits that no rule of the gate knows as a name.
fn words(text: &str) -> String {
    let kept: String = text
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '&' | '\'' | '/' | '-' | ',' | '.' | '(' | ')' => c,
            c if c.is_alphabetic() => c,
            _ => ' ',
        })
        .collect();
    let mut out = kept.split_whitespace().collect::<Vec<_>>().join(" ");
    if !silent(&out) {
        // a digit that would count as a figure is not part of a name that can be shown
        out.retain(|c| !c.is_ascii_digit());
    }
    if !silent(&out) {
        out = "Measure".to_owned();
    }
    out
}

/// Whether the gate reads no figure in a text, wherever the renderer puts it.
fn silent(text: &str) -> bool {
    let places = format!("{text}: x\n\nx about {text}, x. {text} (FY2024): x\n\n| {text} | x |");
    super::figure::extract(&places).is_empty()
}

#[cfg(test)]
mod tests;
