use super::*;
use crate::source::filings::companyfacts::day;

fn entry(start: Option<&str>, end: &str, value: i64, accession: &str) -> Entry {
    Entry {
        start: start.map(|start| day(start).expect("a day")),
        end: day(end).expect("a day"),
        value: Decimal::from(value),
        accession: accession.to_owned(),
        fy: Some(2023),
        full_year: true,
        form: "10-K".to_owned(),
        filed: day("2024-02-01").expect("a day"),
    }
}

fn subject() -> Subject {
    Subject { ticker: "ONE".to_owned(), cik: 7, name: "One".to_owned() }
}

const ACCN: &str = "0000000007-24-000001";

fn facts() -> CompanyFacts {
    let mut facts = CompanyFacts::empty(7, "One");
    for (end, value) in [("2023-12-31", 120), ("2022-12-31", 100)] {
        let start = format!("{}-01-01", &end[..4]);
        facts.add("us-gaap:Revenues", "USD", entry(Some(&start), end, value, ACCN));
        facts.add("us-gaap:Assets", "USD", entry(None, end, value * 10, ACCN));
    }
    facts
}

#[test]
fn facts_carry_ids_in_order_and_everything_a_reader_needs() {
    let snapshot = snapshot(subject(), &facts(), Origin::Recorded).expect("a snapshot");
    for (i, fact) in snapshot.facts().iter().enumerate() {
        assert_eq!(fact.id, format!("C{}", i + 1));
        assert_eq!(fact.entity.as_deref(), Some("One"));
        let derived = fact.provenance.source == "derived";
        assert_eq!(derived, fact.formula.is_some());
        assert_eq!(derived, fact.provenance.filing_url.is_none());
        assert_eq!(derived, fact.derived_from.len() >= 2);
    }
    let labels: Vec<&str> = snapshot.facts().iter().map(|fact| fact.label.as_str()).collect();
    assert_eq!(labels[..4], ["Revenue", "Revenue (prior year)", "Total assets", "Total assets (prior year)"]);
    assert_eq!(snapshot.facts()[1].fiscal_year, Some(2022));
    assert!(labels.contains(&"Revenue growth (YoY)"));
}

#[test]
fn missing_things_are_named_and_never_filled() {
    let snapshot = snapshot(subject(), &facts(), Origin::Fetched(OffsetDateTime::UNIX_EPOCH)).expect("a snapshot");
    assert_eq!(snapshot.as_of(), OffsetDateTime::UNIX_EPOCH);
    let [only] = snapshot.limits() else { panic!("one sentence, not {:?}", snapshot.limits()) };
    for label in ["Net income", "Total liabilities", "Shares outstanding", "Diluted EPS", "Gross profit"] {
        assert!(only.contains(label), "{label}");
        assert!(snapshot.facts().iter().all(|fact| fact.label != label));
    }
    assert!(!only.contains("Revenue;") && !only.contains("Goodwill"));
    assert_eq!(snapshot.coverage(), Coverage::Narrow);
}

#[test]
fn a_filer_without_usable_figures_is_insufficient() {
    let mut cash_only = CompanyFacts::empty(7, "One");
    let ocf = "us-gaap:NetCashProvidedByUsedInOperatingActivities";
    cash_only.add(ocf, "USD", entry(Some("2023-01-01"), "2023-12-31", 5, ACCN));
    for facts in [CompanyFacts::empty(7, "One"), cash_only] {
        let refused = snapshot(subject(), &facts, Origin::Recorded);
        assert!(matches!(refused, Err(SourceError::Insufficient(_))), "{refused:?}");
    }
}

#[test]
fn addresses_of_filings() {
    assert_eq!(
        filing_url(320_193, "0000320193-25-000079"),
        "https://www.sec.gov/Archives/edgar/data/320193/000032019325000079/0000320193-25-000079-index.htm"
    );
}
