use rust_decimal::Decimal;
use time::{Date, Duration, OffsetDateTime};

use super::Fingerprint;
use crate::memo::{Coverage, Currency, Fact, Snapshot, Subject, Unit, fixture};

fn fact() -> Fact {
    let mut fact = fixture::fact("C1", "Revenue", Unit::Money(Currency::USD), Decimal::from(48_217_000_000i64));
    (fact.fiscal_year, fact.fiscal_period) = (Some(2025), Some("FY".into()));
    fact.period_end = Some(Date::MIN);
    fact.provenance.accession = Some("0000000001-26-000001".into());
    fact
}

fn of(facts: Vec<Fact>, as_of: OffsetDateTime, limits: &[&str]) -> Fingerprint {
    let subject = Subject { ticker: "CLDR".into(), cik: 1, name: "Calder".into() };
    let limits = limits.iter().map(|&limit| limit.to_owned()).collect();
    Snapshot::new(subject, as_of, facts, Coverage::Narrow, limits).expect("a snapshot").fingerprint()
}

#[test]
fn it_moves_with_everything_that_a_memo_could_state() {
    let now = OffsetDateTime::UNIX_EPOCH;
    let before = of(vec![fact()], now, &[]);
    let changes: [fn(&mut Fact); 9] = [
        |fact| fact.value = Decimal::from(48_217_000_001i64),
        |fact| fact.value = "48217000000.0".parse().expect("the same value, shown more precisely"),
        |fact| fact.provenance.accession = Some("0000000001-26-000002".into()),
        |fact| fact.period_end = Some(Date::MAX),
        |fact| fact.fiscal_year = Some(2024),
        |fact| fact.fiscal_period = Some("Q1".into()),
        |fact| fact.unit = Unit::PerShare(Currency::USD),
        |fact| fact.label = "Net sales".into(),
        |fact| fact.id = "C2".into(),
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let mut changed = fact();
        change(&mut changed);
        assert_ne!(of(vec![changed], now, &[]), before, "change {place}");
    }
    assert_ne!(of(Vec::new(), now, &[]), before);
    assert_ne!(of(vec![fact()], now, &["Recorded data."]), before);
}

#[test]
fn the_same_figures_fetched_later_are_the_same_memo() {
    let now = OffsetDateTime::UNIX_EPOCH;
    assert_eq!(of(vec![fact()], now + Duration::DAY, &[]), of(vec![fact()], now, &[]));
}
