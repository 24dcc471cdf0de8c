//! What must hold for every figure: the gate and a slow reference agree, truths in every place pass, fabrications in none.
//!
//! `JIM_GATE_CASES=100000` runs that many cases of each property; otherwise a number that takes a second.

use jim::memo::case;
use jim::memo::fact::Fact;
use jim::memo::figure::extract;
use jim::memo::gate::check;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rust_decimal::Decimal;

use super::reference::{NOTATIONS, Scale, Shown};

fn config() -> ProptestConfig {
    let cases = std::env::var("JIM_GATE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    ProptestConfig {
        cases,
        max_global_rejects: cases.saturating_mul(20),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/regressions/properties.txt"))),
        ..ProptestConfig::default()
    }
}

fn fact(label: &str, value: Decimal, unit: &str) -> Vec<Fact> {
    let text = format!(r#"[{{"id":"C1","label":"{label}","value":"{value}","unit":"{unit}"}}]"#);
    case::facts(&text).expect("a fact")
}

fn shown() -> impl Strategy<Value = Shown> {
    (prop_oneof![1u64..1000, 1u64..10_000_000], 0u32..4, 0usize..5, any::<bool>())
        .prop_map(|(digits, decimals, scale, negative)| Shown { digits, decimals, scale: Scale::ALL[scale], negative })
}

/// A fact near the figure, in hundredths: most differ from it in or behind the last digit shown.
fn near(shown: &Shown, parts: i64) -> i128 {
    let exponent = match shown.scale {
        Scale::One => 0,
        Scale::Thousand => 3,
        Scale::Million => 6,
        Scale::Billion => 9,
        Scale::Trillion => 12,
    };
    let unit = 10i128.pow(exponent + 2) / 10i128.pow(shown.decimals);
    let value = i128::from(shown.digits) * unit + unit * i128::from(parts) / 1000;
    if shown.negative { -value } else { value }
}

/// What may stand around a figure.
const PLACES: [(&str, &str); 14] = [
    ("Total came in at ", " [C1]."),
    ("Total: ", " [C1]"),
    ("It was ", "[C1], they say."),
    ("- ", " [C1]\n- next"),
    ("Total was ", ", as reported [C1]."),
    ("(Total: ", " [C1])"),
    ("Total (FY) was ", ". [C1] More follows."),
    ("[C1] says ", "."),
    ("\"", "\" [C1]"),
    ("Total\t", "\t[C1]"),
    ("Total = ", "; [C1]"),
    ("**Total:** ", " [C1]"),
    ("| Total | ", " [C1] |"),
    ("> Total of ", " [C1]\n> more"),
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_gate_and_the_slow_reference_agree(
        shown in shown(), parts in -1200i64..1200, notation in 0..NOTATIONS, word in 0usize..8, place in 0..PLACES.len(),
    ) {
        let hundredths = near(&shown, parts);
        prop_assume!(hundredths.abs() < 10i128.pow(20));
        let facts = fact("Total", Decimal::from_i128_with_scale(hundredths, 2), "USD");
        let (before, after) = PLACES[place];
        let memo = format!("{before}{}{after}", shown.write(notation, word));
        let report = check(&facts, &memo);
        prop_assert_eq!(report.passed, shown.states(hundredths), "{} over {} | {:?}", memo, facts[0].value, report.violations);
    }

    #[test]
    fn a_fabricated_figure_passes_in_no_notation(
        shown in shown(), fact_digits in 1i64..1_000_000_000, decimals in 0u32..6, notation in 0..NOTATIONS, word in 0usize..8, place in 0..PLACES.len(), unit in 0usize..9,
    ) {
        let value = Decimal::new(fact_digits, decimals);
        let hundredths = (value * Decimal::ONE_HUNDRED).round();
        let far = |n: &Shown| {
            let exact = i128::from(n.digits) * 10i128.pow(14) * match n.scale { Scale::One => 1, Scale::Thousand => 1000, Scale::Million => 1_000_000, Scale::Billion => 1_000_000_000, Scale::Trillion => 1_000_000_000_000 } / 10i128.pow(n.decimals + 12);
            let fact = hundredths.mantissa();
            (exact - fact).abs() * 5 > fact
        };
        prop_assume!(far(&shown));
        let unit = ["USD", "EUR", "USD/shares", "shares", "%", "pp", "x", "count", "index"][unit];
        let facts = fact("Total", value, unit);
        let (before, after) = PLACES[place];
        let memo = format!("{before}{}{after}", shown.write(notation, word));
        prop_assert!(!check(&facts, &memo).passed, "{} over {} {}", memo, value, unit);
        let bare = memo.replace("[C1]", "");
        prop_assert!(!check(&facts, &bare).passed, "{}", bare);
    }

    #[test]
    fn spans_are_in_order_and_point_into_the_text(parts in proptest::collection::vec(0usize..40, 0..30)) {
        const PARTS: [&str; 40] = [
            "$", "61", "billion", " ", ".", ",", "-", "(", ")", "[C1]", "%", "x", "\u{2212}", "\n", "|", "e", "**", "&#54;", "six", "hundred",
            "and", "/", "½", "⁶", "FY2024", "Q3", "loss", "of", "€", "1,234", "per share", "bps", "to", "\u{200b}", "\u{ff16}", "respectively", "<!--", "-->", "_", "\\",
        ];
        let text: String = parts.iter().map(|&i| PARTS[i]).collect();
        let mut last = 0;
        for figure in extract(&text) {
            prop_assert!(text.get(figure.start..figure.end).is_some_and(|t| !t.is_empty()), "{text:?}");
            prop_assert!(figure.start >= last, "{text:?}");
            last = figure.start;
        }
        let report = check(&fact("Total", Decimal::new(61, 0), "USD"), &text);
        prop_assert_eq!(&report, &check(&fact("Total", Decimal::new(61, 0), "USD"), &text));
    }
}

/// Units with the ways in which each is written truly.
const UNITS: [(&str, &[&str]); 12] = [
    ("USD", &["${}", "{} USD", "USD {}", "{} dollars", "US${}"]),
    ("EUR", &["€{}", "{} EUR", "EUR {}", "{} euros", "{}€"]),
    ("GBP", &["£{}", "{} GBP", "GBP {}"]),
    ("JPY", &["¥{}", "{} JPY", "{} yen"]),
    ("USD/shares", &["${} per share", "${} a share", "${}/share", "${} per diluted share"]),
    ("shares", &["{} shares", "{}"]),
    ("%", &["{}%", "{} percent", "{} per cent", "{} pct", "{}\u{ff05}"]),
    ("pp", &["{} pp", "{} percentage points", "{} points"]),
    ("x", &["{}x", "{} times", "{}×"]),
    ("ratio", &["{}", "{}x"]),
    ("count", &["{}"]),
    ("index", &["{}"]),
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_truth_passes_in_every_unit_size_sign_and_place(
        digits in 1i64..10_000_000, power in -9i32..9, negative in any::<bool>(), unit in 0..UNITS.len(), form in 0usize..5, place in 0..PLACES.len(), grouped in any::<bool>(),
    ) {
        let mut value = Decimal::from(digits);
        for _ in 0..power.abs() {
            value = if power > 0 { value * Decimal::TEN } else { value / Decimal::TEN };
        }
        let value = value.normalize();
        let (unit, forms) = UNITS[unit];
        let (before, after) = PLACES[place];
        // a lone integer in the place of a list number, a year or a small count is not written like this by anybody
        let bare = matches!(unit, "count" | "index" | "ratio" | "shares") && value.is_integer();
        prop_assume!(!bare || (place < 3 || place == 10 || place == 12) && value > Decimal::from(2100));
        let text = value.to_string();
        let (whole, fraction) = text.split_once('.').map_or((text.clone(), String::new()), |(w, f)| (w.to_owned(), format!(".{f}")));
        let whole = if grouped {
            let bytes: Vec<char> = whole.chars().collect();
            let mut out = String::new();
            for (i, c) in bytes.iter().enumerate() {
                if i > 0 && (bytes.len() - i).is_multiple_of(3) { out.push(','); }
                out.push(*c);
            }
            out
        } else { whole };
        let sign = if negative { "-" } else { "" };
        let written = format!("{sign}{}", forms[form % forms.len()].replace("{}", &format!("{whole}{fraction}")));
        let facts = fact("Total", if negative { -value } else { value }, unit);
        let memo = format!("{before}{written}{after}");
        let report = check(&facts, &memo);
        prop_assert!(report.passed && report.figures_covered == 1, "{} over {} {} | {:?}", memo, facts[0].value, unit, report);
    }
}
