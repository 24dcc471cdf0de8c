use super::*;
use crate::memo::Coverage;

#[tokio::test]
async fn every_sample_company_gives_a_snapshot() {
    let sample = Sample::open().expect("the sample reads");
    assert!(sample.companies.len() >= 4);
    for ticker in ["COIN", "AAPL", "NVDA", "JPM", "LPA"] {
        let snapshot = sample.fetch_snapshot(ticker).await.expect(ticker);
        assert!(matches!(sample.get_subject(ticker), Lookup::Known(subject) if &subject == snapshot.subject()));
        assert!(snapshot.facts().len() >= 20, "{ticker} has {}", snapshot.facts().len());
        assert!(snapshot.limits()[0].starts_with("Recorded data"), "{ticker}");
    }
}

#[tokio::test]
async fn coinbase_shows_its_loss_year() {
    let sample = Sample::open().expect("the sample reads");
    let snapshot = sample.fetch_snapshot("coin").await.expect("COIN");
    let find = |label: &str| snapshot.facts().iter().find(|fact| fact.label == label);
    let loss = find("Net income").expect("net income");
    assert_eq!(loss.value.to_string(), "-2624949000");
    assert_eq!(loss.fiscal_year, Some(2022));
    assert_eq!(
        loss.provenance.filing_url.as_deref(),
        Some("https://www.sec.gov/Archives/edgar/data/1679788/000167978823000031/0001679788-23-000031-index.htm")
    );
    assert_eq!(find("Net margin").expect("net margin").value.to_string(), "-82.1784");
    assert_eq!(find("Revenue growth (YoY)").expect("growth").value.to_string(), "-59.2547");
    assert!(find("Net income growth (YoY)").is_some(), "the year before was a profit");
    assert!(find("Total assets").is_none());
    assert!(snapshot.limits().iter().any(|limit| limit.contains("Total assets")));
    assert_eq!(snapshot.coverage(), Coverage::Narrow);
}

#[tokio::test]
async fn an_unknown_ticker_is_insufficient() {
    let sample = Sample::open().expect("the sample reads");
    assert_eq!(sample.get_subject("ZZZZ"), Lookup::Unknown);
    assert!(matches!(sample.fetch_snapshot("ZZZZ").await, Err(SourceError::Insufficient(_))));
}

#[test]
fn a_broken_sample_does_not_open() {
    assert!(Sample::parse("{}").is_err());
    assert!(Sample::parse(&SAMPLE.replacen("0001679788-23-000031", "0001679788/23/000031", 1)).is_err());
    assert!(Sample::parse(&SAMPLE.replacen("2022-12-31", "2022-12-32", 1)).is_err());
}
