use super::*;

fn document(cik: &str, entries: &str) -> Vec<u8> {
    format!(
        r#"{{"cik":{cik},"entityName":"X","facts":{{"us-gaap":{{"Assets":{{"label":null,"description":null,
        "units":{{"USD":[{entries}],"segment":[]}}}}}}}}}}"#
    )
    .into_bytes()
}

fn entry(val: &str) -> String {
    format!(
        r#"{{"end":"2022-12-31","val":{val},"accn":"0001679788-23-000031","fy":null,"fp":null,"form":"8-K","filed":"2023-02-21"}}"#
    )
}

fn value_of(val: &str) -> Option<String> {
    let facts = CompanyFacts::parse(&document("1", &entry(val))).expect("the document reads");
    facts.entries("us-gaap:Assets", "USD").first().map(|entry| entry.value.to_string())
}

#[test]
fn values_are_kept_digit_by_digit() {
    for (filed, kept) in [
        ("0.00001", "0.00001"),
        ("1e-05", "0.00001"),
        ("4424900000000", "4424900000000"),
        ("7.46", "7.46"),
        ("20.02", "20.02"),
        ("-3.86", "-3.86"),
        ("0.1", "0.1"),
        ("123456789012.34", "123456789012.34"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
    ] {
        assert_eq!(value_of(filed).as_deref(), Some(kept), "{filed}");
    }
}

#[test]
fn what_cannot_be_exact_or_is_no_number_is_dropped() {
    for filed in ["36893488147419103233", "1e300", "null", "\"12\"", "true"] {
        assert_eq!(value_of(filed), None, "{filed}");
    }
}

#[test]
fn the_filer_is_a_number_or_padded_digits() {
    for cik in ["1997711", "\"0001997711\""] {
        assert_eq!(CompanyFacts::parse(&document(cik, "")).expect("reads").cik, 1_997_711);
    }
    assert!(matches!(CompanyFacts::parse(&document("\"LPA\"", "")), Err(Error::Cik(_))));
    assert!(matches!(CompanyFacts::parse(b"<html>"), Err(Error::Shape(_))));
}

#[test]
fn an_entry_that_cannot_be_cited_is_dropped() {
    let good = entry("1");
    for (from, to) in [
        ("0001679788-23-000031", "0001679788-23-00003/"),
        ("0001679788-23-000031", "../../../../etc/a"),
        ("2022-12-31", "2022-13-31"),
        ("2023-02-21", "soon"),
        ("\"accn\":\"0001679788-23-000031\",", ""),
        ("8-K", "<b>"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        let facts = CompanyFacts::parse(&document("1", &bad)).expect("the document reads");
        assert!(facts.entries("us-gaap:Assets", "USD").is_empty(), "{to}");
    }
}

#[test]
fn joining_keeps_what_either_has_once() {
    let mut one = CompanyFacts::parse(&document("7", &entry("1"))).expect("reads");
    let both = format!("{},{}", entry("1"), entry("2").replace("000031", "000032"));
    one.merge(CompanyFacts::parse(&document("7", &both)).expect("reads")).expect("one filer");
    assert_eq!(one.entries("us-gaap:Assets", "USD").len(), 2);
    let other = CompanyFacts::parse(&document("8", "")).expect("reads");
    assert!(matches!(one.merge(other), Err(Error::OtherFiler { expected: 7, found: 8 })));
}
