//! Several thousand memos made by code: true statements of the facts of six unlike filers in many notations, and every kind of
//! lie told about each. A true one must pass, a lie must not.
//!
//! The table of kinds is printed; a kind with a wrong verdict fails the test.

use std::collections::BTreeMap;

use jim::memo::case;
use jim::memo::fact::{Fact, Unit};
use jim::memo::gate::check;
use rust_decimal::{Decimal, RoundingStrategy};

/// Name, fiscal year, and facts as label, value, unit.
type Filer = (&'static str, i32, &'static [(&'static str, &'static str, &'static str)]);

/// Filers that have little in common.
const FILERS: [Filer; 6] = [
    (
        "Brightwater Utilities",
        2024,
        &[
            ("Operating revenues", "4873200000", "USD"),
            ("Net income", "612450000", "USD"),
            ("Capital expenditures", "1288700000", "USD"),
            ("Diluted EPS", "3.17", "USD/shares"),
            ("Dividend yield", "4.26", "%"),
            ("Allowed return on equity", "9.65", "%"),
            ("Customers", "2417300", "count"),
        ],
    ),
    (
        "Kestrel Semiconductor",
        2025,
        &[
            ("Revenue", "918640000", "USD"),
            ("Gross margin", "57.3", "%"),
            ("Operating income", "187320000", "USD"),
            ("Research and development", "243910000", "USD"),
            ("Inventories", "301180000", "USD"),
            ("Current ratio", "3.4", "x"),
            ("Shares outstanding", "84310000", "shares"),
        ],
    ),
    (
        "Halvorsen Shipping",
        2023,
        &[
            ("Total revenues", "2314800000", "EUR"),
            ("EBITDA", "871500000", "EUR"),
            ("Net debt", "3042600000", "EUR"),
            ("EBITDA margin", "37.6", "%"),
            ("Net debt to EBITDA", "3.5", "x"),
            ("Vessels", "143", "count"),
        ],
    ),
    (
        "Marisol Biotech",
        2024,
        &[
            ("Net loss", "-214370000", "USD"),
            ("Cash and cash equivalents", "538920000", "USD"),
            ("Operating cash flow", "-187640000", "USD"),
            ("Collaboration revenue", "42180000", "USD"),
            ("Loss per share", "-2.84", "USD/shares"),
        ],
    ),
    (
        "Union Prairie Bank",
        2025,
        &[
            ("Total deposits", "27418000000", "USD"),
            ("Net interest margin", "3.41", "%"),
            ("Net interest margin change", "-0.23", "pp"),
            ("Efficiency ratio", "61.8", "%"),
            ("Book value per share", "48.72", "USD/shares"),
            ("Deposit growth (YoY)", "6.7", "%"),
        ],
    ),
    (
        "Tanaka Precision",
        2024,
        &[
            ("Net sales", "748300000000", "JPY"),
            ("Operating profit", "91640000000", "JPY"),
            ("Operating margin", "12.2", "%"),
            ("Order backlog", "412700000000", "JPY"),
            ("Employees", "18460", "count"),
        ],
    ),
];

fn facts(&(name, year, rows): &Filer) -> Vec<Fact> {
    let rows: Vec<String> = rows.iter().enumerate().map(|(i, (label, value, unit))| {
        format!(r#"{{"id":"C{}","label":"{label}","value":"{value}","unit":"{unit}","entity":"{name}","fiscal_year":{year},"fiscal_period":"FY"}}"#, i + 1)
    }).collect();
    case::facts(&format!("[{}]", rows.join(","))).expect("facts")
}

/// A magnitude over a scale, rounded to so many decimals.
fn over(value: Decimal, exponent: u32, decimals: u32) -> String {
    let scaled = value / Decimal::from(10u64.pow(exponent));
    format!("{:.*}", decimals as usize, scaled.round_dp_with_strategy(decimals, RoundingStrategy::MidpointAwayFromZero))
}

/// Words and letters for powers of ten.
const SCALES: [(u32, &[&str]); 3] =
    [(12, &[" trillion", "T"]), (9, &[" billion", "bn", "B"]), (6, &[" million", "M", "mn"])];

/// True ways to write a magnitude of a unit, without its sign.
fn written(magnitude: Decimal, unit: Unit) -> Vec<String> {
    let mut numbers = Vec::new();
    if magnitude >= Decimal::from(1_000_000) {
        for (exponent, words) in SCALES {
            if magnitude >= Decimal::from(10u64.pow(exponent)) {
                for decimals in 1..4 {
                    numbers.extend(words.iter().map(|word| over(magnitude, exponent, decimals) + word));
                }
                break;
            }
        }
        numbers.push(grouped(magnitude));
    } else {
        numbers.push(magnitude.normalize().to_string());
    }
    let money = |sign: &str, code: &str, name: &str| -> Vec<String> {
        numbers.iter().flat_map(|n| [format!("{sign}{n}"), format!("{code} {n}"), format!("{n} {name}")]).collect()
    };
    let each = |forms: &[&str]| {
        numbers.iter().flat_map(|n| forms.iter().map(|f| f.replace("{}", n)).collect::<Vec<_>>()).collect()
    };
    match unit {
        Unit::Money(currency) => match currency.code() {
            "EUR" => money("€", "EUR", "euros"),
            "JPY" => money("¥", "JPY", "yen"),
            _ => money("$", "USD", "dollars"),
        },
        Unit::PerShare(_) => each(&["${} per share", "${}", "${} a share"]),
        Unit::Percent => each(&["{}%", "{} percent", "{} per cent"]),
        Unit::Points => each(&["{} percentage points", "{} pp"]),
        Unit::Multiple => each(&["{}x", "{} times"]),
        Unit::Shares => each(&["{} shares"]),
        Unit::Ratio | Unit::Count | Unit::Index => numbers,
    }
}

fn grouped(value: Decimal) -> String {
    let digits = value.trunc().to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Sentences: {l} label, {f} figure, {c} citation, {y} year, {e} entity.
const TRUE: [&str; 8] = [
    "{l} came to {f} {c} in fiscal {y}.",
    "For FY{y}, {l} was {f} {c}, the filing shows.",
    "- {l}: {f} {c}",
    "| Measure | FY{y} |\n|---|---|\n| {l} | {f} {c} |",
    "| {l} | {f} | {c} |",
    "{e}'s {l} stood at {f} {c}.",
    "{e} reported {l} of {f} {c} for {y}.",
    "At {e}, {l} ({f}) {c} was in line with plan.",
];

struct Tally(BTreeMap<String, (u32, u32)>, Vec<String>);

impl Tally {
    fn judge(&mut self, kind: &str, facts: &[Fact], memo: &str, true_one: bool) {
        let report = check(facts, memo);
        let slot = self.0.entry(format!("{} {kind}", if true_one { "true" } else { "lie " })).or_default();
        slot.1 += 1;
        if report.passed != true_one {
            slot.0 += 1;
            let why: Vec<_> = report.violations.iter().map(|v| format!("{}: {}", v.reason, v.figure)).collect();
            self.1.push(format!("{kind}: {memo} | {}", why.join("; ")));
        }
    }
}

fn fill(template: &str, label: &str, figure: &str, cited: &str, year: i32, entity: &str) -> String {
    let year = year.to_string();
    [("{l}", label), ("{f}", figure), ("{c}", cited), ("{y}", year.as_str()), ("{e}", entity)]
        .iter()
        .fold(template.to_owned(), |text, (mark, with)| text.replace(mark, with))
}

/// The last digit shown, moved by three.
fn last_digit(figure: &str) -> Option<String> {
    let at = figure.rfind(|c: char| c.is_ascii_digit())?;
    let digit = figure.as_bytes()[at] - b'0';
    // zeros at the end of a grouped number are shown digits as well
    Some(format!("{}{}{}", &figure[..at], (digit + 3) % 10, &figure[at + 1..]))
}

fn first_digit(figure: &str) -> Option<String> {
    let at = figure.find(|c: char| c.is_ascii_digit())?;
    let digit = figure.as_bytes()[at] - b'0';
    Some(format!("{}{}{}", &figure[..at], digit % 9 + 1, &figure[at + 1..]))
}

fn other_scale(figure: &str) -> Option<String> {
    [
        (" billion", " million"),
        (" million", " billion"),
        (" trillion", " billion"),
        ("bn", "mn"),
        ("mn", "bn"),
        ("B", "M"),
        ("M", "B"),
        ("T", "B"),
    ]
    .iter()
    .find(|(from, _)| figure.contains(from) && (from.len() > 1 || figure.ends_with(from)))
    .map(|(from, to)| figure.replace(from, to))
}

fn other_currency(figure: &str) -> Option<String> {
    [
        ("$", "€"),
        ("€", "£"),
        ("¥", "$"),
        ("USD ", "CAD "),
        ("EUR ", "USD "),
        ("JPY ", "EUR "),
        ("dollars", "euros"),
        ("euros", "pounds"),
        ("yen", "dollars"),
    ]
    .iter()
    .find(|(from, _)| figure.contains(from))
    .map(|(from, to)| figure.replace(from, to))
}

fn other_unit(figure: &str) -> Option<String> {
    let number = figure.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number = number.trim_start_matches(|c: char| !c.is_ascii_digit());
    if figure.contains("percentage points") || figure.contains("pp") {
        Some(format!("{number}%"))
    } else if figure.contains('%') || figure.contains("per") && !figure.contains("share") {
        Some(format!("{number} percentage points"))
    } else if figure.contains("times") || figure.ends_with('x') {
        Some(format!("${number}"))
    } else {
        Some(format!("{number}%"))
    }
}

#[test]
fn lies_of_every_kind_are_refused_and_truths_are_not() {
    let mut tally = Tally(BTreeMap::new(), Vec::new());
    for filer in &FILERS {
        let (name, year, _) = *filer;
        let facts = facts(filer);
        for (i, fact) in facts.iter().enumerate() {
            let negative = fact.value.is_sign_negative();
            let label = fact.label.split(" (").next().unwrap_or_default();
            for (k, bare) in written(fact.value.abs(), fact.unit).into_iter().enumerate() {
                let figure = if negative { format!("-{bare}") } else { bare.clone() };
                let cited = format!("[{}]", fact.id);
                // every notation goes through every sentence, a lie through one of them
                for template in TRUE {
                    tally.judge("statement", &facts, &fill(template, label, &figure, &cited, year, name), true);
                }
                let template = TRUE[(i + k) % TRUE.len()];
                let with = |figure: &str| fill(template, label, figure, &cited, year, name);
                let lies = [
                    ("last digit", last_digit(&figure)),
                    ("first digit", first_digit(&figure)),
                    ("scale", other_scale(&figure)),
                    ("currency", other_currency(&figure)),
                    ("unit", other_unit(&figure)),
                    ("sign", Some(if negative { format!("+{bare}") } else { format!("-{bare}") })),
                    ("brackets", (!negative && template.contains("was {f}")).then(|| format!("({bare})"))),
                    ("hidden digit", Some(figure.replacen(|c: char| c.is_ascii_digit(), "\u{2466}", 1))),
                    ("nearly", Some(format!("exactly {}", first_digit(&figure).unwrap_or_default()))),
                ];
                for (kind, lie) in lies {
                    if let Some(lie) = lie {
                        tally.judge(kind, &facts, &with(&lie), false);
                    }
                }
                let sentence = with(&figure);
                tally.judge("phantom", &facts, &sentence.replace(&cited, "[C77]"), false);
                tally.judge("uncited", &facts, &sentence.replace(&cited, ""), false);
                tally.judge(
                    "uncited addition",
                    &facts,
                    &format!("{} That compares with {} before.", sentence, first_digit(&bare).unwrap_or_default()),
                    false,
                );
                let other = &facts[(i + 1) % facts.len()];
                tally.judge("other citation", &facts, &sentence.replace(&cited, &format!("[{}]", other.id)), false);
                if template.contains("{y}") {
                    tally.judge("year", &facts, &fill(template, label, &figure, &cited, year - 1, name), false);
                }
                if template.contains("{e}'s") {
                    tally.judge("entity", &facts, &fill(template, label, &figure, &cited, year, "Nimbus"), false);
                }
                let named = other.label.split(" (").next().unwrap_or_default();
                tally.judge("label", &facts, &fill(template, named, &figure, &cited, year, name), false);
                let quarter = format!("In the third quarter of {year}, {label} was {figure} {cited}.");
                tally.judge("quarter", &facts, &quarter, false);
            }
        }
        pairs(&mut tally, &facts);
    }
    for (kind, (wrong, of)) in &tally.0 {
        eprintln!("{kind:24} {wrong:4} wrong of {of:5}");
    }
    assert!(tally.1.is_empty(), "{} wrong\n{}", tally.1.len(), tally.1.join("\n"));
}

/// Two facts of one sentence: in order, exchanged, and as a range.
fn pairs(tally: &mut Tally, facts: &[Fact]) {
    for pair in facts.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        let figure = |fact: &Fact| {
            let first = written(fact.value.abs(), fact.unit).remove(0);
            if fact.value.is_sign_negative() { format!("-{first}") } else { first }
        };
        let (x, y, label_a, label_b) = (figure(a), figure(b), &a.label, &b.label);
        let (id_a, id_b) = (&a.id, &b.id);
        tally.judge(
            "respectively",
            facts,
            &format!("{label_a} and {label_b} were {x} and {y}, respectively [{id_a}, {id_b}]."),
            true,
        );
        tally.judge(
            "two figures",
            facts,
            &format!("{label_a} was {x} [{id_a}] while {label_b} was {y} [{id_b}]."),
            true,
        );
        if x != y {
            tally.judge(
                "respectively",
                facts,
                &format!("{label_a} and {label_b} were {y} and {x}, respectively [{id_a}, {id_b}]."),
                false,
            );
            tally.judge(
                "exchange",
                facts,
                &format!("{label_a} was {y} [{id_a}] while {label_b} was {x} [{id_b}]."),
                false,
            );
            tally.judge(
                "exchanged citations",
                facts,
                &format!("{label_a} was {x} [{id_b}]. {label_b} was {y} [{id_a}]."),
                false,
            );
            tally.judge(
                "range",
                facts,
                &format!("It lay between {x} and {} [{id_a}].", first_digit(&x).unwrap_or_default()),
                false,
            );
        }
    }
}
