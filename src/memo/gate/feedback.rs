//! Violations as text that a writer can act on: what is wrong, what the cited facts say, and what to do.

use super::{Reason, Violation};
use crate::limits;
use crate::memo::fact::Fact;

/// One line a violation, at most [`limits::VIOLATIONS_LISTED_MAX`] lines, then how many more. A line is bounded too: figure,
/// labels and the number of facts are cut.
pub(super) fn of(facts: &[Fact], violations: &[Violation]) -> String {
    let mut out = String::new();
    for violation in violations.iter().take(limits::VIOLATIONS_LISTED_MAX) {
        out.push_str(&line(facts, violation));
        out.push('\n');
    }
    if let Some(more) = violations.len().checked_sub(limits::VIOLATIONS_LISTED_MAX).filter(|&n| n > 0) {
        out.push_str(&format!("and {more} more\n"));
    }
    out
}

/// `value mismatch in summary: "$61 billion" cites C1; C1 says Revenue, FY2024: 48217000000 USD. State the fact's value ...`
fn line(facts: &[Fact], violation: &Violation) -> String {
    let place = violation.field.as_deref().map(|field| format!(" in {field}")).unwrap_or_default();
    let cited: Vec<&str> = violation.cited.iter().take(limits::CITED_SHOWN_MAX).map(String::as_str).collect();
    let cited = if cited.is_empty() { "nothing".to_owned() } else { cited.join(", ") };
    let expected = violation.expected.iter().take(limits::CITED_SHOWN_MAX);
    let says: Vec<String> = expected.filter_map(|e| facts.iter().find(|fact| fact.id == e.id)).map(say).collect();
    let says = if says.is_empty() { String::new() } else { format!("; {}", says.join("; ")) };
    format!("{}{place}: \"{}\" cites {cited}{says}. {}", violation.reason, violation.figure, advice(violation.reason))
}

fn say(fact: &Fact) -> String {
    let cut = |text: &str| -> String { text.chars().take(limits::FIGURE_SHOWN_CHARS_MAX).collect() };
    let period = match (fact.fiscal_period.as_deref(), fact.fiscal_year, fact.period_end) {
        (Some(period), Some(year), _) => format!(", {period} {year}"),
        (None, Some(year), _) => format!(", {year}"),
        (_, None, Some(end)) => format!(", {end}"),
        (_, None, None) => String::new(),
    };
    let entity = fact.entity.as_deref().map(|entity| format!(" of {}", cut(entity))).unwrap_or_default();
    format!("{} says {}{entity}{period}: {} {}", fact.id, cut(&fact.label), fact.value, fact.unit)
}

fn advice(reason: Reason) -> &'static str {
    match reason {
        Reason::PhantomCitation => "Cite only ids of the facts given.",
        Reason::Uncited => "Put the id of the fact right behind the figure, or leave the figure out.",
        Reason::UnreadableFigure => "Write the figure in plain digits with one scale word and one unit.",
        Reason::UnitMismatch => "Write the figure in the fact's unit.",
        Reason::CurrencyMismatch => "Write the figure in the fact's currency.",
        Reason::SignMismatch => "Give the figure the fact's sign, or words of loss when the fact is negative.",
        Reason::DirectionMismatch => "Say that it rose when the change is positive, that it fell when it is negative.",
        Reason::ValueMismatch => "State the fact's value, rounded at most to the digits shown; do no arithmetic.",
        Reason::LabelMismatch => "Name the measure by the fact's label, or cite the fact that is named.",
        Reason::PeriodMismatch => "Name the fact's period, or cite the fact of the period that is named.",
        Reason::EntityMismatch => "Name the fact's company, or cite a fact of the company that is named.",
        Reason::ConflictingFacts => "Cite the primary source's fact instead.",
        Reason::EmptyMemo => "Write the memo.",
    }
}
