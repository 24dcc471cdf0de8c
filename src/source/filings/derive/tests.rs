use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::source::filings::concepts;

fn fact(id: usize, value: Decimal, unit: Unit, fiscal_year: i32, accession: &str) -> Fact {
    Fact {
        id: format!("C{id}"),
        label: "x".to_owned(),
        value,
        unit,
        currency: unit.currency(),
        entity: None,
        period_start: None,
        period_end: None,
        fiscal_year: Some(fiscal_year),
        fiscal_period: Some("FY".to_owned()),
        provenance: Provenance {
            source: "sec-edgar".to_owned(),
            origin: "primary".to_owned(),
            form: None,
            accession: Some(accession.to_owned()),
            filing_url: None,
            filed: None,
            concept: None,
        },
        derived_from: Vec::new(),
        formula: None,
        restated: None,
    }
}

fn reported(values: &[(&'static str, When, &str)]) -> Vec<Reported> {
    let usd = Unit::Money(Currency::USD);
    values
        .iter()
        .enumerate()
        .map(|(i, (key, when, value))| {
            let year = if *when == When::Now { 2023 } else { 2022 };
            Reported { key, when: *when, fact: fact(i + 1, value.parse().expect("a number"), usd, year, "A") }
        })
        .collect()
}

fn get<'a>(facts: &'a [Fact], label: &str) -> Option<&'a Fact> {
    facts.iter().find(|fact| fact.label == label)
}

/// Recomputes a formula from its text alone: sums of products over ids, `100`, parentheses and `abs()`.
struct Reader<'a> {
    rest: &'a str,
    values: &'a [Reported],
}

impl Reader<'_> {
    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        self.rest = rest;
        true
    }

    fn sum(&mut self) -> Decimal {
        let mut value = self.product();
        loop {
            if self.take("+") {
                value += self.product();
            } else if self.take("-") {
                value -= self.product();
            } else {
                return value;
            }
        }
    }

    fn product(&mut self) -> Decimal {
        let mut value = self.atom();
        loop {
            if self.take("*") {
                value *= self.atom();
            } else if self.take("/") {
                value /= self.atom();
            } else {
                return value;
            }
        }
    }

    fn atom(&mut self) -> Decimal {
        let abs = self.take("abs");
        if self.take("(") {
            let value = self.sum();
            assert!(self.take(")"), "{}", self.rest);
            return if abs { value.abs() } else { value };
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match self.values.iter().find(|one| one.fact.id == word) {
            Some(one) => one.fact.value,
            None => word.parse().expect("an id or a number"),
        }
    }
}

fn recompute(formula: &str, values: &[Reported]) -> Decimal {
    let mut reader = Reader { rest: formula, values };
    let value = reader.sum();
    assert_eq!(reader.rest, "", "the whole formula is read");
    value
}

const LOSS_YEAR: [(&str, When, &str); 6] = [
    ("revenue", When::Now, "3194208000"),
    ("revenue", When::Before, "7839444000"),
    ("net_income", When::Now, "-2624949000"),
    ("net_income", When::Before, "3624120000"),
    ("operating_cash_flow", When::Now, "-1585419000"),
    ("capex", When::Now, "2933000"),
];

#[test]
fn a_loss_year() {
    let facts = derive(&reported(&LOSS_YEAR));
    let margin = get(&facts, "Net margin").expect("net margin");
    assert_eq!((margin.value.to_string().as_str(), margin.formula.as_deref()), ("-82.1784", Some("C3 / C1 * 100")));
    assert_eq!(margin.derived_from, ["C3", "C1"]);
    assert_eq!((margin.unit, margin.currency, margin.fiscal_year), (Unit::Percent, None, Some(2023)));
    assert_eq!((margin.provenance.source.as_str(), margin.provenance.origin.as_str()), ("derived", "primary"));
    let growth = get(&facts, "Net income growth (YoY)").expect("growth from a profit");
    assert_eq!(growth.formula.as_deref(), Some("(C3 - C4) / abs(C4) * 100"));
    assert_eq!(growth.value.to_string(), "-172.43");
    let free = get(&facts, "Free cash flow").expect("free cash flow");
    assert_eq!((free.value.to_string().as_str(), free.unit.to_string().as_str()), ("-1588352000", "USD"));
    let before = get(&facts, "Net margin (prior year)").expect("the year before");
    assert_eq!((before.fiscal_year, before.value.to_string().as_str()), (Some(2022), "46.2293"));
}

#[test]
fn quotients_without_meaning_are_no_facts() {
    for denominator in ["0", "-5"] {
        let facts = derive(&reported(&[
            ("revenue", When::Now, denominator),
            ("net_income", When::Now, "10"),
            ("net_income", When::Before, denominator),
            ("equity", When::Now, denominator),
            ("liabilities", When::Now, "3"),
            ("pretax_income", When::Now, denominator),
            ("income_tax", When::Now, "1"),
        ]));
        assert!(facts.is_empty(), "{facts:?}");
    }
}

#[test]
fn growth_needs_both_years_from_one_filing() {
    let mut values = reported(&[("eps_diluted", When::Now, "2.94"), ("eps_diluted", When::Before, "11.93")]);
    assert_eq!(get(&derive(&values), "Diluted EPS growth (YoY)").expect("growth").value.to_string(), "-75.3562");
    values[1].fact.provenance.accession = Some("B".to_owned());
    assert!(derive(&values).is_empty());
}

#[test]
fn years_and_currencies_are_not_mixed() {
    let mut values = reported(&[("revenue", When::Now, "100"), ("net_income", When::Now, "10")]);
    assert_eq!(derive(&values).len(), 1);
    values[1].fact.fiscal_year = Some(2022);
    assert!(derive(&values).is_empty());
    values[1].fact.fiscal_year = Some(2023);
    values[1].fact.currency = Some("EUR".parse().expect("a currency"));
    assert!(derive(&values).is_empty());
    values[1].fact.currency = None;
    assert!(derive(&values).is_empty());
}

#[test]
fn gross_profit_is_derived_only_where_none_is_reported() {
    let two = [("revenue", When::Now, "100"), ("cost_of_revenue", When::Now, "30")];
    let facts = derive(&reported(&two));
    assert_eq!(get(&facts, "Gross profit (derived)").and_then(|fact| fact.formula.as_deref()), Some("C1 - C2"));
    let margin = get(&facts, "Gross margin").expect("gross margin");
    assert_eq!(margin.formula.as_deref(), Some("(C1 - C2) / C1 * 100"));
    assert_eq!(margin.derived_from, ["C1", "C2"], "reported facts, each once");
    let three = [two[0], two[1], ("gross_profit", When::Now, "71")];
    let facts = derive(&reported(&three));
    assert!(get(&facts, "Gross profit (derived)").is_none());
    assert_eq!(facts.iter().filter(|fact| fact.label == "Gross margin").count(), 1);
    assert_eq!(get(&facts, "Gross margin").expect("gross margin").formula.as_deref(), Some("C3 / C1 * 100"));
}

#[test]
fn rules_name_concepts_that_exist_and_labels_are_distinct() {
    for rule in RULES {
        let keys = match rule.formula {
            Quotient(a, b) | Difference(a, b) | Sum(a, b) => vec![a, b],
            DifferenceQuotient(a, b, c) | SumQuotient(a, b, c) => vec![a, b, c],
            Growth(key) => vec![now(key), before(key)],
        };
        for (key, when) in keys {
            let concept = concepts::by_key(key).unwrap_or_else(|| panic!("{key}"));
            assert!(when == When::Now || concept.with_prior, "{key} has no year before");
        }
    }
    let always: Vec<&str> = RULES.iter().filter(|rule| rule.unless.is_none()).map(|rule| rule.label).collect();
    assert_eq!(always.iter().collect::<HashSet<_>>().len(), always.len());
    let reported: HashSet<&str> = concepts::TABLE.iter().map(|concept| concept.label).collect();
    assert!(RULES.iter().all(|rule| !reported.contains(rule.label)));
}

fn all_inputs() -> Vec<(&'static str, When)> {
    concepts::TABLE.iter().flat_map(|concept| [(concept.key, When::Now), (concept.key, When::Before)]).collect()
}

proptest! {
    #[test]
    fn every_formula_gives_its_value_and_nothing_panics(
        values in proptest::collection::vec(proptest::option::of((-9_000_000_000_000_000_i64..9_000_000_000_000_000, 0_u32..5)), 84..=84)
    ) {
        let usd = Unit::Money(Currency::USD);
        let mut inputs = Vec::new();
        for ((key, when), value) in all_inputs().into_iter().zip(values) {
            let Some((mantissa, scale)) = value else { continue };
            let year = if when == When::Now { 2023 } else { 2022 };
            let fact = fact(inputs.len() + 1, Decimal::new(mantissa, scale), usd, year, "A");
            inputs.push(Reported { key, when, fact });
        }
        let derived = derive(&inputs);
        for (i, fact) in derived.iter().enumerate() {
            prop_assert_eq!(&fact.id, &format!("C{}", inputs.len() + i + 1));
            let formula = fact.formula.as_deref().expect("a formula");
            let half_step = Decimal::new(5, PLACES + 1);
            // The text multiplies last, as the code does; the 28 digits of a quotient are cut once more by it.
            prop_assert!((recompute(formula, &inputs) - fact.value).abs() <= half_step + Decimal::new(1, 9), "{}", formula);
            prop_assert!(fact.value.scale() <= PLACES);
            for id in &fact.derived_from {
                prop_assert!(formula.contains(id.as_str()));
                prop_assert!(inputs.iter().any(|one| &one.fact.id == id), "derived from a reported fact");
            }
        }
    }

    #[test]
    fn the_largest_numbers_do_not_panic(pick in proptest::collection::vec(0_u8..4, 84..=84)) {
        let usd = Unit::Money(Currency::USD);
        let extremes = [Decimal::MAX, Decimal::MIN, Decimal::new(1, 28), Decimal::ZERO];
        let inputs: Vec<Reported> = all_inputs().into_iter().zip(pick).enumerate().map(|(i, ((key, when), pick))| {
            Reported { key, when, fact: fact(i + 1, extremes[usize::from(pick)], usd, 2023, "A") }
        }).collect();
        derive(&inputs);
    }
}
