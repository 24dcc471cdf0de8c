use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rust_decimal::Decimal;
use time::OffsetDateTime;

use super::*;
use crate::memo::fixture;
use crate::memo::gate;
use crate::memo::snapshot::Subject;

const LABELS: &[&str] = &[
    "Revenue",
    "Net income (loss)",
    "Operating income",
    "Impairment loss",
    "Net loss",
    "Total assets",
    "Long-term debt",
    "Cash used in investing activities",
    "Free cash flow",
    "Diluted EPS",
    "Dividends per share",
    "Shares outstanding",
    "Gross margin",
    "Operating margin change",
    "2s10s spread",
    "10-year Treasury yield",
    "P/E (TTM)",
    "RSI (14-day)",
    "50-day moving average",
    "Revenue growth (YoY)",
    "Store count",
    "Decrease in inventories",
    "R&D expense",
    "Income tax benefit",
    "Debt-to-equity",
    "52-week high",
    "Unemployment rate",
    "Total value locked",
    "Accumulated deficit",
    "S&P 500 weight",
    "Interest coverage",
    "Number of 401(k) plans",
];

const UNITS: &[&str] = &[
    "USD",
    "EUR",
    "JPY",
    "GBP",
    "CHF",
    "USD/shares",
    "EUR/shares",
    "shares",
    "%",
    "pp",
    "x",
    "ratio",
    "count",
    "index",
];

pub(crate) fn fact(id: usize, label: &str, unit: &str, value: Decimal, year: Option<i32>) -> Fact {
    Fact {
        entity: Some("Calder Systems".to_owned()),
        fiscal_year: year,
        fiscal_period: year.map(|year| if year % 2 == 0 { "FY".to_owned() } else { "Q3".to_owned() }),
        ..fixture::fact(&format!("C{id}"), label, unit.parse().expect("a unit"), value)
    }
}

fn facts() -> impl Strategy<Value = Vec<Fact>> {
    // mantissas of up to 15 digits over scales of up to nine: 1e-9 to 1e15, both signs, and zero
    let value = (prop_oneof![Just(0i64), -999..999i64, -999_999_999_999_999..999_999_999_999_999i64], 0u32..=9);
    let one = (0..LABELS.len(), 0..UNITS.len(), value, proptest::option::of(2000..2030));
    proptest::collection::vec(one, 1..24).prop_map(|rows| {
        rows.into_iter()
            .enumerate()
            .map(|(i, (label, unit, (mantissa, scale), year))| {
                fact(i + 1, LABELS[label], UNITS[unit], Decimal::new(mantissa, scale), year)
            })
            .collect()
    })
}

fn snapshot(facts: Vec<Fact>) -> Snapshot {
    let subject = Subject { ticker: "CLDR".to_owned(), cik: 1_640_147, name: "Calder Systems, Inc.".to_owned() };
    Snapshot::new(subject, OffsetDateTime::UNIX_EPOCH, facts, Coverage::Complete, Vec::new()).expect("a snapshot")
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/regressions/render.txt"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_is_rendered_passes_the_gate(facts in facts()) {
        let count = facts.len();
        for mode in [Mode::Agent, Mode::Human] {
            let snapshot = snapshot(facts.clone());
            let draft = draft(&snapshot, mode);
            match gate::judge(snapshot, draft.clone()) {
                Ok(accepted) => prop_assert!(accepted.report().figures_covered >= count),
                Err(rejected) => prop_assert!(false, "{}\n{}", rejected.feedback(), draft.markdown()),
            }
        }
    }

    #[test]
    fn any_name_of_a_company_or_measure_passes(name in "\\PC{0,40}", label in "\\PC{0,40}") {
        let mut snapshot_of = snapshot(vec![fact(1, &label, "USD", Decimal::new(4_821, 2), Some(2024))]);
        let subject = Subject { ticker: "X".to_owned(), cik: 1, name };
        snapshot_of = Snapshot::new(subject, snapshot_of.as_of(), snapshot_of.facts().to_vec(), Coverage::Narrow, Vec::new()).expect("a snapshot");
        for mode in [Mode::Agent, Mode::Human] {
            let draft = draft(&snapshot_of, mode);
            if let Err(rejected) = gate::judge(snapshot_of.clone(), draft.clone()) {
                prop_assert!(false, "{}\n{}", rejected.feedback(), draft.markdown());
            }
        }
    }
}
