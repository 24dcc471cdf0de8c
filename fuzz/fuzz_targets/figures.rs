//! Whatever a memo says: the gate does not panic, says the same twice, and points into the text when it finds fault.

#![no_main]

use std::sync::LazyLock;

use jim::memo::gate::check;
use jim::memo::{Fact, Provenance, Unit};
use libfuzzer_sys::fuzz_target;

/// One fact of each kind that memos cite, a negative one among them.
static FACTS: LazyLock<Vec<Fact>> = LazyLock::new(|| {
    [
        ("C1", "Revenue", "48217000000", "USD"),
        ("C2", "Revenue growth", "11.99", "%"),
        ("C3", "Net income", "-7364000", "USD"),
        ("C4", "Diluted EPS", "4.87", "USD/shares"),
        ("C5", "Shares outstanding", "1234567", "shares"),
        ("C6", "Price to earnings", "15.5", "x"),
    ]
    .into_iter()
    .map(|(id, label, value, unit)| fact(id, label, value, unit))
    .collect()
});

fuzz_target!(|text: &str| {
    let report = check(&FACTS, text);
    assert_eq!(report, check(&FACTS, text), "a pure function");
    assert_eq!(report.passed, report.violations.is_empty());
    assert!(report.figures_covered <= report.figures_checked);
    if report.passed {
        assert_eq!(report.figures_covered, report.figures_checked, "every figure states a fact");
        assert!(report.citations.iter().all(|id| FACTS.iter().any(|fact| fact.id == *id)), "every citation is a fact");
    }
    for violation in &report.violations {
        assert!(text.get(violation.start..violation.end).is_some(), "{violation:?} points into the text");
    }
});

fn fact(id: &str, label: &str, value: &str, unit: &str) -> Fact {
    let unit: Unit = unit.parse().expect("a unit");
    Fact {
        id: id.to_owned(),
        label: label.to_owned(),
        value: value.parse().expect("a number"),
        unit,
        currency: unit.currency(),
        entity: Some("Calder Systems".to_owned()),
        period_start: None,
        period_end: None,
        fiscal_year: Some(2024),
        fiscal_period: Some("FY".to_owned()),
        provenance: Provenance {
            source: "sec-edgar".to_owned(),
            origin: "primary".to_owned(),
            form: None,
            accession: None,
            filing_url: None,
            filed: None,
            concept: None,
        },
        derived_from: Vec::new(),
        formula: None,
        restated: None,
    }
}
