use std::collections::BTreeMap;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde_json::Value as Json;

use super::*;
use crate::memo::{Coverage, Fact};

/// The folder of saved documents of the SEC; none where it is not on the machine.
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("JIM_TEST_DATA").map(|data| PathBuf::from(data).join("edgar"));
    let folder = folder.filter(|folder| folder.is_dir());
    if folder.is_none() {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: JIM_TEST_DATA names no folder with edgar/ in it");
        }
    }
    folder
}

const LABELS: [(&str, &str); 13] = [
    ("revenue", "Revenue"),
    ("net_income", "Net income"),
    ("operating_income", "Operating income"),
    ("cost_of_revenue", "Cost of revenue"),
    ("gross_profit", "Gross profit"),
    ("rnd", "Research and development expense"),
    ("operating_cash_flow", "Operating cash flow"),
    ("assets", "Total assets"),
    ("liabilities", "Total liabilities"),
    ("equity", "Shareholders' equity"),
    ("cash", "Cash and cash equivalents"),
    ("eps_diluted", "Diluted EPS"),
    ("shares_outstanding", "Shares outstanding"),
];

const TICKERS: [(&str, &str); 7] = [
    ("CIK0000019617", "JPM"),
    ("CIK0000320193", "AAPL"),
    ("CIK0000789019", "MSFT"),
    ("CIK0001045810", "NVDA"),
    ("CIK0001640147", "SNOW"),
    ("CIK0001679788", "COIN"),
    ("CIK0001997711", "LPA"),
];

fn text(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number(value: &Json) -> Decimal {
    Decimal::from_str(&value.to_string()).expect("a number").normalize()
}

fn labelled<'a>(facts: &'a [Fact], label: &str) -> Option<&'a Fact> {
    facts.iter().find(|fact| fact.label == label)
}

fn check_citation(fact: &Fact, expected: &Json, what: &str) {
    let cited = &fact.provenance;
    assert_eq!(cited.accession, text(&expected["accn"]), "{what}");
    assert_eq!(cited.form, text(&expected["form"]), "{what}");
    assert_eq!(cited.filed.map(|day| day.to_string()), text(&expected["filed"]), "{what}");
    assert_eq!(fact.period_end.map(|day| day.to_string()), text(&expected["end"]), "{what}");
}

fn check(key: &str, expected: &Json, label: &str, facts: &[Fact], what: &str) {
    let fact = labelled(facts, label).unwrap_or_else(|| panic!("{what} is missing"));
    check_citation(fact, expected, what);
    if key == "shares_outstanding" {
        assert_eq!(fact.value, number(&expected["val"]), "{what}");
        return;
    }
    assert_eq!(fact.value, number(&expected["value"]), "{what}");
    assert_eq!(Some(fact.unit.to_string()), text(&expected["unit"]), "{what}");
    assert_eq!(fact.period_start.map(|day| day.to_string()), text(&expected["start"]), "{what}");
    let tag = text(&expected["tag"]).expect("a tag");
    let tag = if tag.contains(':') { tag } else { format!("us-gaap:{tag}") };
    assert_eq!(fact.provenance.concept, Some(tag), "{what}");
    if !expected["prior_year_value"].is_null() {
        let prior = labelled(facts, &format!("{label} (prior year)")).unwrap_or_else(|| panic!("{what} before"));
        assert_eq!(prior.value, number(&expected["prior_year_value"]), "{what} before");
        assert_eq!(prior.provenance.accession, text(&expected["prior_year_accn"]), "{what} before");
        assert_eq!(prior.fiscal_year, fact.fiscal_year.map(|year| year - 1), "{what} before");
    }
}

/// Expected facts by filer; where two documents of one filer differ, the value wins over null.
fn expected(folder: &Path) -> BTreeMap<String, (String, BTreeMap<String, Json>)> {
    let body = std::fs::read(folder.join("expected_latest_annual.json")).expect("the expected values");
    let list: Vec<Json> = serde_json::from_slice(&body).expect("JSON");
    let mut out: BTreeMap<String, (String, BTreeMap<String, Json>)> = BTreeMap::new();
    for one in list {
        let filer = text(&one["file"]).expect("a file name")[..13].to_owned();
        let end = text(&one["fiscal_year_end"]).expect("a year end");
        let joined = &mut out.entry(filer).or_insert_with(|| (end, BTreeMap::new())).1;
        for (key, value) in one["facts"].as_object().expect("facts") {
            if !value.is_null() || !joined.contains_key(key) {
                joined.insert(key.clone(), value.clone());
            }
        }
    }
    out
}

#[tokio::test]
async fn every_expected_value_and_accession_is_reproduced() {
    let Some(folder) = data() else { return };
    let source = Folder::open(folder.clone()).await.expect("the folder opens");
    let expected = expected(&folder);
    assert_eq!(expected.len(), TICKERS.len());
    let (mut values, mut nulls) = (0, 0);
    for (filer, ticker) in TICKERS {
        let snapshot = source.fetch_snapshot(ticker).await.expect(ticker);
        let (end, facts) = &expected[filer];
        for (key, label) in LABELS {
            let what = format!("{ticker} {key}");
            match &facts[key] {
                Json::Null => {
                    nulls += 1;
                    assert!(labelled(snapshot.facts(), label).is_none(), "{what} must stay missing");
                    assert!(snapshot.limits().iter().any(|limit| limit.contains(label)), "{what} is not named");
                }
                found => {
                    values += 1;
                    check(key, found, label, snapshot.facts(), &what);
                }
            }
        }
        let assets_or_income = labelled(snapshot.facts(), "Net income").expect("net income");
        assert_eq!(assets_or_income.period_end.map(|day| day.to_string()).as_ref(), Some(end));
    }
    assert_eq!((values, nulls), (70, 21), "values and nulls seen");
}

#[tokio::test]
async fn years_are_numbered_as_the_filer_counts() {
    let Some(folder) = data() else { return };
    let source = Folder::open(folder).await.expect("the folder opens");
    // NVIDIA and Snowflake close in January and name the year after the calendar year of its end.
    let years = [("NVDA", 2026), ("SNOW", 2025), ("AAPL", 2025), ("COIN", 2022), ("LPA", 2024), ("MSFT", 2026)];
    for (ticker, year) in years {
        let snapshot = source.fetch_snapshot(ticker).await.expect(ticker);
        let fact = labelled(snapshot.facts(), "Revenue").expect("revenue");
        assert_eq!((fact.fiscal_year, fact.fiscal_period.as_deref()), (Some(year), Some("FY")), "{ticker}");
    }
}

#[tokio::test]
async fn recorded_data_says_so_with_its_date() {
    let Some(folder) = data() else { return };
    let source = Folder::open(folder).await.expect("the folder opens");
    let snapshot = source.fetch_snapshot("COIN").await.expect("COIN");
    assert!(snapshot.limits()[0].starts_with("Recorded data") && snapshot.limits()[0].contains("2023-02-21"));
    assert_eq!(snapshot.as_of().to_string(), "2023-02-21 0:00:00.0 +00:00:00");
    assert_eq!(snapshot.coverage(), Coverage::Narrow);
    assert_eq!(snapshot.subject().cik, 1_679_788);
    let apple = source.fetch_snapshot("AAPL").await.expect("AAPL");
    assert_eq!(apple.coverage(), Coverage::Complete);
}

#[tokio::test]
async fn a_listed_company_without_a_document_is_unknown() {
    let Some(folder) = data() else { return };
    let source = Folder::open(folder).await.expect("the folder opens");
    assert_eq!(source.get_subject("TSLA"), Lookup::Unknown);
    assert!(matches!(source.get_subject("COIN"), Lookup::Known(subject) if subject.cik == 1_679_788));
    assert!(matches!(source.fetch_snapshot("TSLA").await, Err(SourceError::Insufficient(_))));
}

fn saved(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, body) in files {
        std::fs::write(folder.path().join(name), body).expect("a file");
    }
    folder
}

const ONE: &str = r#"{"0":{"cik_str":7,"ticker":"ONE","title":"One"}}"#;

#[tokio::test]
async fn faults_of_a_folder_are_told_apart() {
    let none = Folder::open(PathBuf::from("/nowhere/at/all")).await;
    assert!(matches!(none, Err(Error::Read { .. })));
    let folder = saved(&[("company_tickers.json", "<html>")]);
    assert!(matches!(Folder::open(folder.path().to_owned()).await, Err(Error::Content { .. })));
    let folder = saved(&[("company_tickers.json", ONE), ("submissions_CIK0000000007.json", "{}")]);
    assert!(matches!(Folder::open(folder.path().to_owned()).await, Err(Error::Content { .. })));

    let folder = saved(&[("company_tickers.json", ONE), ("CIK0000000007.json", "{\"cik\":")]);
    let source = Folder::open(folder.path().to_owned()).await.expect("opens");
    assert!(matches!(source.fetch_snapshot("ONE").await, Err(SourceError::Unavailable { .. })));
    let folder =
        saved(&[("company_tickers.json", ONE), ("CIK0000000007.json", r#"{"cik":8,"entityName":"X","facts":{}}"#)]);
    let source = Folder::open(folder.path().to_owned()).await.expect("opens");
    assert!(matches!(source.fetch_snapshot("ONE").await, Err(SourceError::Unavailable { .. })), "another filer's");
    let folder =
        saved(&[("company_tickers.json", ONE), ("CIK0000000007.json", r#"{"cik":7,"entityName":"X","facts":{}}"#)]);
    let source = Folder::open(folder.path().to_owned()).await.expect("opens");
    assert!(matches!(source.fetch_snapshot("ONE").await, Err(SourceError::Insufficient(_))), "no figures");
}

#[test]
fn names_of_documents() {
    assert_eq!(cik_of("CIK0000320193.json"), Some(320_193));
    assert_eq!(cik_of("CIK0001679788.fy2022-assembled.json"), Some(1_679_788));
    for other in
        ["submissions_CIK0000320193.json", "CIK320193.json", "CIK0000320193x.json", "CIK0000320193.txt", "CIKé"]
    {
        assert_eq!(cik_of(other), None, "{other}");
    }
}
