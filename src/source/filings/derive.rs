//! Our own arithmetic over reported facts: margins, growth, returns, leverage, cash flow.
//!
//! A derived fact states its formula over the ids of the facts it was computed from, so that a reader can recompute it.
//! Grammar of a formula: ids, the integer literal 100, `+ - * /`, parentheses and `abs()`. The result is rounded half
//! away from zero to [`PLACES`] decimals where there is a division, and exact otherwise.
//! Inputs are reported facts only, never derived ones, of one fiscal year and one currency; growth takes both years from
//! one filing, because a later filing restates for splits and rules. Where a quotient would have no meaning (a
//! denominator of zero or below) there is no fact.

use rust_decimal::{Decimal, RoundingStrategy};

use crate::memo::{Currency, Fact, Provenance, Unit};

/// Decimals of derived percentages and multiples.
const PLACES: u32 = 4;

/// Which year of a concept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum When {
    /// The year that the memo is about.
    Now,
    /// The year before.
    Before,
}

/// A reported fact with the name under which rules find it.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    /// Key of the concept.
    pub(crate) key: &'static str,
    /// Its year.
    pub(crate) when: When,
    /// The fact, with its id.
    pub(crate) fact: Fact,
}

/// An input of a rule.
type Input = (&'static str, When);

/// The arithmetic of a rule.
#[derive(Clone, Copy, Debug)]
enum Formula {
    /// a / b
    Quotient(Input, Input),
    /// (a - b) / c
    DifferenceQuotient(Input, Input, Input),
    /// (a + b) / c
    SumQuotient(Input, Input, Input),
    /// a - b
    Difference(Input, Input),
    /// a + b
    Sum(Input, Input),
    /// (a - b) / abs(b) of one concept in two years of one filing
    Growth(&'static str),
}

/// What a rule yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yields {
    Percent,
    Multiple,
    Money,
}

struct Rule {
    label: &'static str,
    yields: Yields,
    formula: Formula,
    /// The rule is left out when this concept is reported for the year.
    unless: Option<&'static str>,
}

use Formula::{Difference, DifferenceQuotient, Growth, Quotient, Sum, SumQuotient};
use Yields::{Money, Multiple, Percent};

/// All rules, in the order of the facts that they yield.
#[rustfmt::skip]
const RULES: &[Rule] = &[
    rule("Revenue growth (YoY)", Percent, Growth("revenue")),
    rule("Operating income growth (YoY)", Percent, Growth("operating_income")),
    rule("Net income growth (YoY)", Percent, Growth("net_income")),
    rule("Diluted EPS growth (YoY)", Percent, Growth("eps_diluted")),
    rule("Operating cash flow growth (YoY)", Percent, Growth("operating_cash_flow")),
    rule("Total assets growth (YoY)", Percent, Growth("assets")),
    unless("Gross profit (derived)", Money, Difference(now("revenue"), now("cost_of_revenue")), "gross_profit"),
    rule("Gross margin", Percent, Quotient(now("gross_profit"), now("revenue"))),
    unless("Gross margin", Percent, DifferenceQuotient(now("revenue"), now("cost_of_revenue"), now("revenue")), "gross_profit"),
    rule("Gross margin (prior year)", Percent, Quotient(before("gross_profit"), before("revenue"))),
    rule("Operating margin", Percent, Quotient(now("operating_income"), now("revenue"))),
    rule("Operating margin (prior year)", Percent, Quotient(before("operating_income"), before("revenue"))),
    rule("Net margin", Percent, Quotient(now("net_income"), now("revenue"))),
    rule("Net margin (prior year)", Percent, Quotient(before("net_income"), before("revenue"))),
    rule("Research and development as share of revenue", Percent, Quotient(now("rnd"), now("revenue"))),
    rule("EBITDA", Money, Sum(now("operating_income"), now("depreciation"))),
    rule("EBITDA margin", Percent, SumQuotient(now("operating_income"), now("depreciation"), now("revenue"))),
    rule("Effective tax rate", Percent, Quotient(now("income_tax"), now("pretax_income"))),
    rule("Interest coverage", Multiple, Quotient(now("operating_income"), now("interest_expense"))),
    rule("Operating cash flow margin", Percent, Quotient(now("operating_cash_flow"), now("revenue"))),
    rule("Free cash flow", Money, Difference(now("operating_cash_flow"), now("capex"))),
    rule("Free cash flow (prior year)", Money, Difference(before("operating_cash_flow"), before("capex"))),
    rule("Free cash flow margin", Percent, DifferenceQuotient(now("operating_cash_flow"), now("capex"), now("revenue"))),
    rule("Return on equity", Percent, Quotient(now("net_income"), now("equity"))),
    rule("Return on assets", Percent, Quotient(now("net_income"), now("assets"))),
    rule("Liabilities to equity", Multiple, Quotient(now("liabilities"), now("equity"))),
    rule("Assets to equity", Multiple, Quotient(now("assets"), now("equity"))),
    rule("Long-term debt to equity", Multiple, Quotient(now("long_term_debt"), now("equity"))),
    rule("Current ratio", Multiple, Quotient(now("current_assets"), now("current_liabilities"))),
    rule("Cash as share of assets", Percent, Quotient(now("cash"), now("assets"))),
];

const fn now(key: &'static str) -> Input {
    (key, When::Now)
}

const fn before(key: &'static str) -> Input {
    (key, When::Before)
}

const fn rule(label: &'static str, yields: Yields, formula: Formula) -> Rule {
    Rule { label, yields, formula, unless: None }
}

const fn unless(label: &'static str, yields: Yields, formula: Formula, reported: &'static str) -> Rule {
    Rule { label, yields, formula, unless: Some(reported) }
}

/// The derived facts, with ids that go on after the reported ones.
pub(crate) fn derive(reported: &[Reported]) -> Vec<Fact> {
    let mut out = Vec::new();
    for rule in RULES {
        if rule.unless.is_some_and(|key| find(reported, now(key)).is_some()) {
            continue;
        }
        if let Some(fact) = apply(rule, reported, reported.len() + out.len() + 1) {
            out.push(fact);
        }
    }
    out
}

fn find(reported: &[Reported], (key, when): Input) -> Option<&Fact> {
    reported.iter().find(|one| one.key == key && one.when == when).map(|one| &one.fact)
}

/// What the arithmetic gives: the exact or rounded value, its text, and the facts in the order of the text.
struct Computed<'a> {
    value: Decimal,
    text: String,
    inputs: Vec<&'a Fact>,
}

fn apply(rule: &Rule, reported: &[Reported], number: usize) -> Option<Fact> {
    let computed = compute(rule.formula, rule.yields, |input| find(reported, input))?;
    let first = *computed.inputs.first()?;
    let currency = common_currency(&computed.inputs)?;
    let unit = match rule.yields {
        Percent => Unit::Percent,
        Multiple => Unit::Multiple,
        Money => Unit::Money(currency),
    };
    Some(Fact {
        id: format!("C{number}"),
        label: rule.label.to_owned(),
        value: computed.value.normalize(),
        unit,
        currency: unit.currency(),
        entity: first.entity.clone(),
        period_start: first.period_start,
        period_end: first.period_end,
        fiscal_year: first.fiscal_year,
        fiscal_period: first.fiscal_period.clone(),
        // The inputs are all the issuer's own; who vouches for them does not change by arithmetic.
        provenance: Provenance {
            source: "derived".to_owned(),
            origin: first.provenance.origin.clone(),
            form: None,
            accession: None,
            filing_url: None,
            filed: None,
            concept: None,
        },
        derived_from: distinct_ids(&computed.inputs),
        formula: Some(computed.text),
        restated: None,
    })
}

fn compute<'a>(formula: Formula, yields: Yields, get: impl Fn(Input) -> Option<&'a Fact>) -> Option<Computed<'a>> {
    let hundred = Decimal::ONE_HUNDRED;
    let scaled = |quotient: Option<Decimal>| {
        let value = if yields == Percent { quotient?.checked_mul(hundred)? } else { quotient? };
        Some(value.round_dp_with_strategy(PLACES, RoundingStrategy::MidpointAwayFromZero))
    };
    let suffix = if yields == Percent { " * 100" } else { "" };
    let one_year = |facts: &[&Fact]| {
        let first = facts.first().and_then(|fact| fact.fiscal_year);
        first.is_some() && facts.iter().all(|fact| fact.fiscal_year == first)
    };
    let (value, text, inputs) = match formula {
        Quotient(a, b) => {
            let (a, b) = (get(a)?, get(b)?);
            let value = scaled(divide(a.value, b.value))?;
            (value, format!("{} / {}{suffix}", a.id, b.id), vec![a, b])
        }
        DifferenceQuotient(a, b, c) => {
            let (a, b, c) = (get(a)?, get(b)?, get(c)?);
            let value = scaled(divide(a.value.checked_sub(b.value)?, c.value))?;
            (value, format!("({} - {}) / {}{suffix}", a.id, b.id, c.id), vec![a, b, c])
        }
        SumQuotient(a, b, c) => {
            let (a, b, c) = (get(a)?, get(b)?, get(c)?);
            let value = scaled(divide(a.value.checked_add(b.value)?, c.value))?;
            (value, format!("({} + {}) / {}{suffix}", a.id, b.id, c.id), vec![a, b, c])
        }
        Difference(a, b) => {
            let (a, b) = (get(a)?, get(b)?);
            (a.value.checked_sub(b.value)?, format!("{} - {}", a.id, b.id), vec![a, b])
        }
        Sum(a, b) => {
            let (a, b) = (get(a)?, get(b)?);
            (a.value.checked_add(b.value)?, format!("{} + {}", a.id, b.id), vec![a, b])
        }
        Growth(key) => {
            let (a, b) = (get(now(key))?, get(before(key))?);
            let one_filing = a.provenance.accession.is_some() && a.provenance.accession == b.provenance.accession;
            let value = scaled(divide(a.value.checked_sub(b.value)?, b.value))?;
            let text = format!("({} - {}) / abs({}){suffix}", a.id, b.id, b.id);
            return one_filing.then(|| Computed { value, text, inputs: vec![a, b] });
        }
    };
    one_year(&inputs).then_some(Computed { value, text, inputs })
}

/// None for a denominator of zero or below.
fn divide(a: Decimal, b: Decimal) -> Option<Decimal> {
    (b > Decimal::ZERO).then(|| a.checked_div(b)).flatten()
}

/// The currency of all inputs; none when they differ or when one has none.
fn common_currency(inputs: &[&Fact]) -> Option<Currency> {
    let first = inputs.first()?.currency?;
    inputs.iter().all(|fact| fact.currency == Some(first)).then_some(first)
}

fn distinct_ids(inputs: &[&Fact]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for fact in inputs {
        if !ids.contains(&fact.id) {
            ids.push(fact.id.clone());
        }
    }
    ids
}

#[cfg(test)]
mod tests;
