use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rust_decimal::Decimal;
use time::OffsetDateTime;

use super::*;
use crate::memo::draft::Section;
use crate::memo::fixture;
use crate::memo::snapshot::{Coverage, Subject};

fn fact(id: &str, label: &str, unit: &str, value: Decimal) -> Fact {
    fixture::fact(id, label, unit.parse().expect("a unit"), value)
}

fn revenue() -> Vec<Fact> {
    vec![
        fact("C1", "Revenue", "USD", Decimal::from(48_217_000_000i64)),
        fact("C2", "Net margin", "%", Decimal::new(1527, 2)),
    ]
}

fn snapshot() -> Snapshot {
    let subject = Subject { ticker: "CLDR".to_owned(), cik: 1, name: "Calder".to_owned() };
    Snapshot::new(subject, OffsetDateTime::UNIX_EPOCH, revenue(), Coverage::Narrow, Vec::new()).expect("a snapshot")
}

/// Ways to write a number, each with a place for it.
fn written(value: u64, cents: u64, style: usize) -> String {
    let plain = value.to_string();
    let grouped = |mark: &str| {
        let digits: Vec<char> = plain.chars().collect();
        let mut out = String::new();
        for (i, digit) in digits.iter().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                out.push_str(mark);
            }
            out.push(*digit);
        }
        out
    };
    let other =
        |zero: u32| plain.bytes().filter_map(|b| char::from_u32(zero + u32::from(b - b'0'))).collect::<String>();
    match style {
        0 => format!("${}", grouped(",")),
        1 => format!("{} dollars", grouped("_")),
        2 => format!("{} dollars", grouped("\u{202f}")),
        3 => format!("USD {}", grouped("'")),
        4 => format!("${plain}.{cents:02} billion"),
        5 => format!("{plain}.{cents:02}bn"),
        6 => format!("${plain}-million"),
        7 => format!("{plain}.{cents:02}B"),
        8 => format!("{plain} mln"),
        9 => format!("{plain}e3 dollars"),
        10 => format!("{plain} x 10^4 dollars"),
        11 => format!("{plain}×10⁵ dollars"),
        12 => format!("$({plain}) million"),
        13 => format!("-${plain}k"),
        14 => format!("**${plain}** **billion**"),
        15 => format!("{} billion", other(0xff10)),
        16 => format!("{} million", other(0x660)),
        17 => format!("{}\u{200b}billion", other(0x1d7ce)),
        18 => format!("{plain}%"),
        19 => format!("{plain}.{cents:02} per cent"),
        20 => format!("{plain} bps"),
        21 => format!("{plain}x"),
        22 => format!("€{plain}"),
        23 => format!("about ${plain} billion"),
        24 => format!("{plain}.{cents:02}"),
        _ => plain,
    }
}

const STYLES: usize = 26;

const PLACES: &[(&str, &str)] = &[
    ("Revenue was ", " [C1]."),
    ("Revenue was ", "."),
    ("It reached ", " this year [C2]."),
    ("| Revenue | ", " | [C1] |"),
    ("* Revenue: ", "\n* More"),
    ("Sales of ", " and more [C1, C2]."),
    ("[C1] Sales hit ", ", a record."),
    ("Revenue (", ") [C1]"),
    ("Revenue — ", " [C1]"),
];

/// Whether any reading of the figure lies near a fact: then the property says nothing about it.
fn close(value: u64, cents: u64) -> bool {
    let shown = value as f64 + cents as f64 / 100.0;
    let powers = [0, 1, 2, 3, 4, 5, 6, 9, 12];
    [48_217_000_000.0, 15.27].iter().any(|fact| {
        powers.iter().any(|p| {
            (shown * 10f64.powi(*p) / fact - 1.0).abs() < 0.2 || (shown / 10f64.powi(*p) / fact - 1.0).abs() < 0.2
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        max_global_rejects: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/regressions/gate.txt"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_figure_that_is_no_fact_never_passes(
        value in prop_oneof![13u64..100, 100u64..100_000, 100_000u64..10_000_000_000_000],
        cents in 0u64..100,
        style in 0..STYLES,
        place in 0..PLACES.len(),
    ) {
        prop_assume!(!close(value, cents));
        let (before, after) = PLACES[place];
        let memo = format!("{before}{}{after}", written(value, cents, style));
        let report = check(&revenue(), &memo);
        prop_assert!(!report.passed, "{memo}");
    }

    #[test]
    fn any_text_is_read_without_a_panic_and_spans_lie_in_it(text in any::<String>()) {
        for figure in crate::memo::figure::extract(&text) {
            prop_assert!(text.get(figure.start..figure.end).is_some_and(|t| !t.is_empty()), "{text:?}");
        }
    }

    #[test]
    fn figures_and_marks_in_any_order_are_read(parts in proptest::collection::vec(0usize..24, 0..24)) {
        const PARTS: [&str; 24] = [
            "$", "61", "billion", " ", ".", ",", "-", "(", ")", "[C1]", "%", "x", "\u{2212}", "\n", "|", "e", "**", "&#54;", "six", "hundred", "and", "/", "½", "⁶",
        ];
        let text: String = parts.iter().map(|&i| PARTS[i]).collect();
        let report = check(&revenue(), &text);
        prop_assert_eq!(report.passed, report.violations.is_empty());
        for violation in report.violations {
            prop_assert!(text.get(violation.start..violation.end).is_some(), "{}", text);
        }
    }
}

#[test]
fn hostile_texts_of_the_greatest_size_are_read_in_linear_time() {
    let seeds = [
        "9",
        "9,",
        "1.",
        "$1 ",
        "[C1]",
        "[C1, C2",
        "(",
        "-",
        "<!--",
        "*",
        " *",
        "six ",
        "hundred ",
        "and ",
        "&#54;",
        "1-",
        "1:",
        "$(",
        "a million ",
        "\u{200b}",
        "C",
        "U.S.",
        "1 000",
        "Revenue was $1 billion, ",
        "[",
        "+1 ",
        "|",
        "loss ",
        "of ",
        "0x1",
        "e1",
    ];
    for seed in seeds {
        let text = seed.repeat(limits::DRAFT_BYTES_MAX / seed.len());
        // a quadratic walk over a quarter of a mebibyte would take minutes, not a test
        let report = check(&revenue(), &text);
        assert!(report.violations.len() <= text.len(), "{seed}");
    }
}

#[test]
fn a_draft_over_the_bound_is_refused_unread() {
    let text = "[C1] ".repeat(limits::DRAFT_BYTES_MAX / 5 + 1);
    let report = check(&revenue(), &text);
    assert_eq!((report.passed, report.figures_checked, report.violations.len()), (false, 0, 1));
}

#[test]
fn every_field_of_a_draft_is_checked() {
    let good = Draft {
        title: "Calder".to_owned(),
        summary: "Revenue was $48.2 billion [C1].".to_owned(),
        sections: Vec::new(),
    };
    let accepted = judge(snapshot(), good.clone()).expect("a true draft");
    assert_eq!(
        (accepted.report().figures_covered, accepted.report().citations.as_slice()),
        (1, &["C1".to_owned()][..])
    );
    let lie = "Revenue was $61 billion [C1]".to_owned();
    let section =
        |heading: &str, markdown: &str| vec![Section { heading: heading.to_owned(), markdown: markdown.to_owned() }];
    let drafts = [
        ("title", Draft { title: lie.clone(), ..good.clone() }),
        ("summary", Draft { summary: lie.clone(), ..good.clone() }),
        ("sections[0].heading", Draft { sections: section(&lie, ""), ..good.clone() }),
        ("sections[0].markdown", Draft { sections: section("", &lie), ..good }),
    ];
    for (field, draft) in drafts {
        let rejected = judge(snapshot(), draft).expect_err("a false draft");
        let violation = &rejected.report().violations[0];
        assert_eq!((violation.field.as_deref(), violation.reason), (Some(field), Reason::ValueMismatch));
        assert_eq!(&lie[violation.start..violation.end], "$61 billion");
        let line = format!(
            "value mismatch in {field}: \"$61 billion\" cites C1; C1 says Revenue: 48217000000 USD. State the fact's value, rounded at most to the digits shown; do no arithmetic.\n"
        );
        assert_eq!(rejected.feedback(), line);
    }
}

#[test]
fn an_empty_draft_is_rejected_and_feedback_is_bounded() {
    let draft = Draft { title: " ".to_owned(), summary: "\n".to_owned(), sections: Vec::new() };
    let rejected = judge(snapshot(), draft).expect_err("nothing to sell");
    assert_eq!(rejected.report().violations[0].reason, Reason::EmptyMemo);
    let many = Draft { title: "$61 ".repeat(50), summary: String::new(), sections: Vec::new() };
    let rejected = judge(snapshot(), many).expect_err("lies");
    assert_eq!(rejected.report().violations.len(), 50);
    assert_eq!(rejected.feedback().lines().count(), limits::VIOLATIONS_LISTED_MAX + 1);
    assert!(rejected.feedback().ends_with("and 30 more\n"));
}

#[test]
fn feedback_is_short_whatever_is_cited() {
    let ids = (0..300).map(|i| format!("C{i}")).collect::<Vec<_>>().join(", ");
    let text = format!("{} [{ids}] [C{}]", "$61 ".repeat(200), "9".repeat(100_000));
    let draft = Draft { title: text, summary: String::new(), sections: Vec::new() };
    let feedback = judge(snapshot(), draft).expect_err("lies").feedback();
    assert!(feedback.len() < (limits::VIOLATIONS_LISTED_MAX + 1) * 1500, "{}", feedback.len());
}

#[test]
fn reasons_are_told_apart() {
    let facts = revenue();
    let reason = |memo: &str| check(&facts, memo).violations.first().map(|v| v.reason);
    assert_eq!(reason("Revenue was $48.2 billion."), Some(Reason::Uncited));
    assert_eq!(reason("Revenue was €48.2 billion [C1]."), Some(Reason::CurrencyMismatch));
    assert_eq!(reason("Revenue was 48.2% [C1]."), Some(Reason::UnitMismatch));
    assert_eq!(reason("Revenue was -$48.2 billion [C1]."), Some(Reason::SignMismatch));
    assert_eq!(reason("Revenue was $48.3 billion [C1]."), Some(Reason::ValueMismatch));
    assert_eq!(reason("Revenue was $48.2 billion [C9]."), Some(Reason::PhantomCitation));
    assert_eq!(reason("Revenue was 6l billion [C1]."), Some(Reason::UnreadableFigure));
    assert_eq!(reason("Net income was $48.2 billion [C1]."), Some(Reason::LabelMismatch));
    assert_eq!(reason("Revenue was $48.2 billion [C1]."), None);
}
