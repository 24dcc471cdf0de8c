use super::*;
use crate::source::filings::companyfacts::day;

/// One entry: `(form, filed, sequence of the accession, fy)`.
type Filing = (&'static str, &'static str, u32, i32);

const FY23: Filing = ("10-K", "2024-02-01", 1, 2023);
const FY22: Filing = ("10-K", "2023-02-01", 1, 2022);

fn add(facts: &mut CompanyFacts, tag: &str, unit: &str, period: (Option<&str>, &str), value: &str, filing: Filing) {
    let (form, filed, sequence, fy) = filing;
    let entry = Entry {
        start: period.0.map(|start| day(start).expect("a day")),
        end: day(period.1).expect("a day"),
        value: value.parse().expect("a number"),
        accession: accession(filed, sequence),
        fy: Some(fy),
        full_year: true,
        form: form.to_owned(),
        filed: day(filed).expect("a day"),
    };
    facts.add(tag, unit, entry);
}

fn accession(filed: &str, sequence: u32) -> String {
    format!("0000000007-{}-{sequence:06}", &filed[2..4])
}

const Y23: (Option<&str>, &str) = (Some("2023-01-01"), "2023-12-31");
const Y22: (Option<&str>, &str) = (Some("2022-01-01"), "2022-12-31");
const END23: (Option<&str>, &str) = (None, "2023-12-31");

const REVENUES: &str = "us-gaap:Revenues";
const CONTRACTS: &str = "us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax";
const INCOME: &str = "us-gaap:NetIncomeLoss";

fn filer() -> CompanyFacts {
    let mut facts = CompanyFacts::empty(7, "One");
    add(&mut facts, INCOME, "USD", Y23, "50", FY23);
    add(&mut facts, INCOME, "USD", Y22, "40", FY23);
    facts
}

fn value<'a>(year: &'a Year, key: &str) -> Option<&'a Value> {
    year.values.iter().find(|value| value.concept.key == key)
}

fn current(facts: &CompanyFacts, key: &str) -> Option<(String, &'static str)> {
    let year = latest_year(facts).expect("a year");
    value(&year, key).map(|value| (value.current.entry.value.to_string(), value.tag))
}

#[test]
fn a_tag_that_stopped_is_missing_and_never_older() {
    let mut facts = filer();
    add(&mut facts, REVENUES, "USD", Y22, "900", FY22);
    assert_eq!(current(&facts, "revenue"), None);
    add(&mut facts, CONTRACTS, "USD", Y23, "300", FY23);
    assert_eq!(current(&facts, "revenue"), Some(("300".to_owned(), CONTRACTS)), "the tag that reaches the year");
}

#[test]
fn total_revenues_come_first_unless_they_are_the_smaller() {
    let mut facts = filer();
    add(&mut facts, CONTRACTS, "USD", Y23, "300", FY23);
    add(&mut facts, REVENUES, "USD", Y23, "310", FY23);
    assert_eq!(current(&facts, "revenue"), Some(("310".to_owned(), REVENUES)));
    assert_eq!(current(&facts, "contract_revenue"), Some(("300".to_owned(), CONTRACTS)), "named as what it is");

    let mut facts = filer();
    add(&mut facts, CONTRACTS, "USD", Y23, "300", FY23);
    add(&mut facts, REVENUES, "USD", Y23, "12", FY23);
    assert_eq!(current(&facts, "revenue"), Some(("300".to_owned(), CONTRACTS)));
    assert_eq!(current(&facts, "contract_revenue"), None, "not twice");

    let mut facts = filer();
    add(&mut facts, CONTRACTS, "USD", Y23, "300", FY23);
    add(&mut facts, REVENUES, "USD", Y23, "300", FY23);
    assert_eq!(current(&facts, "revenue"), Some(("300".to_owned(), REVENUES)));
}

#[test]
fn quarters_and_sums_of_quarters_are_no_years() {
    let mut facts = filer();
    for start in ["2023-10-01", "2023-04-01", "2022-10-01"] {
        add(&mut facts, REVENUES, "USD", (Some(start), "2023-12-31"), "7", FY23);
    }
    add(&mut facts, REVENUES, "USD", END23, "8", FY23);
    assert_eq!(current(&facts, "revenue"), None);
    for (start, end) in [("2023-01-02", "2023-12-31"), ("2022-12-26", "2023-12-31")] {
        let mut facts = filer();
        add(&mut facts, REVENUES, "USD", (Some(start), end), "9", FY23);
        assert!(current(&facts, "revenue").is_some(), "years of 52 and 53 weeks");
    }
}

#[test]
fn only_annual_forms_count_for_annual_figures() {
    let mut facts = filer();
    for form in ["10-Q", "8-K", "DEF 14A", "S-1"] {
        add(&mut facts, "us-gaap:Assets", "USD", (None, "2024-03-31"), "5", (form, "2024-05-01", 9, 2024));
        add(&mut facts, REVENUES, "USD", Y23, "5", (form, "2024-05-01", 9, 2024));
    }
    assert_eq!(latest_year(&facts).expect("a year").end.to_string(), "2023-12-31");
    assert_eq!(current(&facts, "revenue"), None);
    for form in ANNUAL_FORMS {
        let mut facts = filer();
        add(&mut facts, REVENUES, "USD", Y23, "5", (form, "2024-05-01", 9, 2023));
        assert!(current(&facts, "revenue").is_some(), "{form}");
    }
}

#[test]
fn the_newest_filing_of_a_period_wins_by_day_and_then_by_number() {
    let mut facts = filer();
    add(&mut facts, REVENUES, "USD", Y23, "3", ("10-K/A", "2024-06-01", 2, 2023));
    add(&mut facts, REVENUES, "USD", Y23, "2", ("10-K/A", "2024-06-01", 1, 2023));
    add(&mut facts, REVENUES, "USD", Y23, "1", FY23);
    assert_eq!(current(&facts, "revenue").expect("revenue").0, "3");
}

#[test]
fn the_year_before_is_of_the_same_tag() {
    let mut facts = filer();
    add(&mut facts, REVENUES, "USD", Y23, "300", FY23);
    add(&mut facts, CONTRACTS, "USD", Y22, "250", FY23);
    let year = latest_year(&facts).expect("a year");
    assert_eq!(value(&year, "revenue").expect("revenue").prior, None);
    assert_eq!(
        value(&year, "net_income").and_then(|value| value.prior.clone()).expect("a year").entry.value,
        40.into()
    );
}

#[test]
fn a_changed_value_is_marked_with_the_one_it_replaced() {
    let mut facts = filer();
    add(&mut facts, REVENUES, "USD", Y23, "53851000000", FY23);
    add(&mut facts, REVENUES, "USD", Y23, "47501000000", ("10-K/A", "2024-06-01", 2, 2023));
    let year = latest_year(&facts).expect("a year");
    let restated = value(&year, "revenue").expect("revenue").current.restated.clone().expect("restated");
    assert_eq!((restated.value, restated.accession), (53_851_000_000_i64.into(), accession("2024-02-01", 1)));
}

#[test]
fn a_split_marks_the_year_before() {
    let mut facts = filer();
    let eps = "us-gaap:EarningsPerShareDiluted";
    add(&mut facts, eps, "USD/shares", Y22, "11.93", FY22);
    add(&mut facts, eps, "USD/shares", Y22, "1.19", FY23);
    add(&mut facts, eps, "USD/shares", Y23, "2.94", FY23);
    let year = latest_year(&facts).expect("a year");
    let prior = value(&year, "eps_diluted").and_then(|value| value.prior.clone()).expect("a year before");
    assert_eq!(prior.entry.value.to_string(), "1.19");
    assert_eq!(prior.restated.expect("restated").value.to_string(), "11.93");
}

#[test]
fn coarser_rounding_is_no_restatement() {
    let same = |a: &str, b: &str| same_but_for_rounding(a.parse().expect("a"), b.parse().expect("b"));
    for (a, b) in [
        ("4462383000", "4462400000"),
        ("5010123000", "5010000000"),
        ("5010123000", "5010100000"),
        ("7.46", "7.46"),
        ("20.019", "20.02"),
        ("0", "0"),
        ("-4462383000", "-4462400000"),
    ] {
        assert!(same(a, b) && same(b, a), "{a} {b}");
    }
    for (a, b) in [
        ("11.89", "2.97"),
        ("5704000000", "8235000000"),
        ("26321000000", "27524000000"),
        ("63598000000", "64225000000"),
        ("928000000", "1715000000"),
        ("5000000000", "4600000000"),
        ("5000000", "4600000"),
        ("100", "-100"),
        ("1", "0"),
    ] {
        assert!(!same(a, b) && !same(b, a), "{a} {b}");
    }
    let huge = Decimal::MAX;
    assert!(!same_but_for_rounding(huge, -huge), "no overflow");
}

#[test]
fn the_currency_of_the_books_is_not_that_of_a_translation() {
    let mut facts = CompanyFacts::empty(7, "One");
    let assets = "ifrs-full:Assets";
    for (end, value) in [("2023-12-31", "700"), ("2022-12-31", "600")] {
        add(&mut facts, assets, "EUR", (None, end), value, FY23);
    }
    add(&mut facts, assets, "USD", END23, "770", FY23);
    add(&mut facts, "ifrs-full:DilutedEarningsLossPerShare", "EUR/shares", Y23, "1.5", FY23);
    let year = latest_year(&facts).expect("a year");
    assert_eq!(value(&year, "assets").expect("assets").unit.to_string(), "EUR");
    assert_eq!(value(&year, "eps_diluted").expect("EPS").unit.to_string(), "EUR/shares");
}

#[test]
fn a_second_view_is_left_out_when_it_says_the_same() {
    let mut facts = filer();
    add(&mut facts, "us-gaap:ProfitLoss", "USD", Y23, "50", FY23);
    assert_eq!(current(&facts, "profit"), None);
    let mut facts = filer();
    add(&mut facts, "us-gaap:ProfitLoss", "USD", Y23, "55", FY23);
    assert_eq!(current(&facts, "profit").expect("with minorities").0, "55");
    assert_eq!(current(&facts, "net_income").expect("the parent's").0, "50");
}

#[test]
fn shares_are_the_newest_count_of_a_cover_page_or_none() {
    let mut facts = filer();
    add(&mut facts, concepts::SHARES_TAG, "shares", (None, "2019-01-31"), "9", ("10-K", "2019-02-01", 1, 2018));
    add(&mut facts, "us-gaap:CommonStockSharesOutstanding", "shares", END23, "8", FY23);
    assert_eq!(latest_year(&facts).expect("a year").shares, None, "an old count is of another time");
    add(&mut facts, concepts::SHARES_TAG, "shares", (None, "2024-01-20"), "100", FY23);
    add(&mut facts, concepts::SHARES_TAG, "shares", (None, "2024-04-20"), "98", ("10-Q", "2024-05-01", 3, 2024));
    assert_eq!(latest_year(&facts).expect("a year").shares.expect("a count").value, 98.into());
}

#[test]
fn the_number_of_a_year_is_that_of_its_own_filing() {
    let mut facts = CompanyFacts::empty(7, "One");
    let (y26, y25) = ((Some("2025-01-27"), "2026-01-25"), (Some("2024-01-29"), "2025-01-26"));
    let (k26, k25) = (("10-K", "2026-02-25", 1, 2026), ("10-K", "2025-02-26", 1, 2024));
    add(&mut facts, INCOME, "USD", y26, "120", k26);
    add(&mut facts, INCOME, "USD", y25, "72", k26);
    let year = latest_year(&facts).expect("a year");
    assert_eq!((year.fiscal_year, year.prior_fiscal_year), (2026, 2025), "counted back from the one filing");
    add(&mut facts, INCOME, "USD", y25, "72", k25);
    let year = latest_year(&facts).expect("a year");
    assert_eq!((year.fiscal_year, year.prior_fiscal_year), (2026, 2024), "as its own filing numbered it");
}

#[test]
fn a_filer_without_annual_figures_has_no_year() {
    assert_eq!(latest_year(&CompanyFacts::empty(7, "One")), None);
    let mut facts = CompanyFacts::empty(7, "One");
    add(&mut facts, INCOME, "USD", (Some("2023-10-01"), "2023-12-31"), "5", ("10-Q", "2024-02-01", 1, 2024));
    add(&mut facts, INCOME, "segment", Y23, "5", FY23);
    assert_eq!(latest_year(&facts), None);
}
