//! jim's own renderer: a draft made of the facts of a snapshot and nothing else.
//!
//! It is what is sold when no model writes, so whatever it writes must pass the gate (decision 15 of the gate's specification):
//! each figure stands in a sentence or row of its own, right before its citation, at the full precision of its fact.

mod figure;
mod part;

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
    let sections = Part::ALL
        .into_iter()
        .filter_map(|part| {
            let facts: Vec<&Fact> = snapshot.facts().iter().filter(|fact| Part::of(fact) == part).collect();
            let markdown = match mode {
                Mode::Agent => table(&facts),
                Mode::Human => sentences(&facts),
            };
            (!facts.is_empty()).then(|| Section { heading: part.heading().to_owned(), markdown })
        })
        .collect();
    Draft { title, summary: summary(snapshot, &name), sections }
}

fn summary(snapshot: &Snapshot, name: &str) -> String {
    let coverage = match snapshot.coverage() {
        Coverage::Complete => "Every listed measure was found.",
        Coverage::Partial => "Some listed measures are missing.",
        Coverage::Narrow => "Only a few measures were found.",
    };
    let mut out = format!("Facts about {name}, each with its source. {coverage}");
    for fact in snapshot.facts().iter().take(SUMMARY_FACTS_MAX) {
        out.push(' ');
        out.push_str(&sentence(fact));
    }
    out
}

fn table(facts: &[&Fact]) -> String {
    let mut out = String::from("| Measure | Period | Value |\n|---|---|---|\n");
    for fact in facts {
        out.push_str(&format!("| {} | {} | {} [{}] |\n", label(fact), period(fact), figure::of(fact), fact.id));
    }
    out
}

fn sentences(facts: &[&Fact]) -> String {
    facts.iter().map(|fact| sentence(fact)).collect::<Vec<_>>().join("\n\n")
}

/// "Revenue (FY2024): $48,217,000,000 [C1]." A colon states the value without taking a side on its sign.
fn sentence(fact: &Fact) -> String {
    let period = period(fact);
    let period = if period.is_empty() { String::new() } else { format!(" ({period})") };
    format!("{}{period}: {} [{}].", label(fact), figure::of(fact), fact.id)
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

/// A label as a noun phrase: marks that Markdown or the gate would read are left out.
fn label(fact: &Fact) -> String {
    words(&fact.label)
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
