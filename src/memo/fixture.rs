//! A fact for the tests of this module and of its users.

use rust_decimal::Decimal;

use super::{Fact, Provenance, Unit};

/// A fact of nobody and no time: what a test is about is set on it.
pub(crate) fn fact(id: &str, label: &str, unit: Unit, value: Decimal) -> Fact {
    Fact {
        id: id.to_owned(),
        label: label.to_owned(),
        value,
        currency: unit.currency(),
        unit,
        entity: None,
        period_start: None,
        period_end: None,
        fiscal_year: None,
        fiscal_period: None,
        provenance: Provenance {
            source: "case".to_owned(),
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
