//! The gate's speed over a memo as it is sold, beside a naive pattern over the same bytes, and over hostile texts.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jim::memo::case;
use jim::memo::fact::Fact;
use jim::memo::gate;
use regex::Regex;

/// Facts of the memo.
const FACTS: usize = 40;

/// Bytes of the memo, about.
const MEMO_BYTES: usize = 20_000;

/// Bytes of a hostile text: the largest draft that is read.
const HOSTILE_BYTES: usize = 256 * 1024;

const LABELS: [&str; 10] = [
    "Revenue",
    "Gross profit",
    "Operating income",
    "Net income",
    "Total assets",
    "Long-term debt",
    "Operating cash flow",
    "Diluted EPS",
    "Gross margin",
    "Shares outstanding",
];

/// Forty facts: ten measures over four years.
fn facts() -> Vec<Fact> {
    let rows: Vec<String> = (0..FACTS)
        .map(|i| {
            let (label, year) = (LABELS[i % 10], 2022 + i / 10);
            let (value, unit) = match i % 10 {
                7 => (format!("{}.{:02}", 3 + i / 10, i), "USD/shares"),
                8 => (format!("{}.{}", 41 + i / 10, i % 9), "%"),
                9 => (format!("{}", 1_240_000_000u64 + i as u64 * 7_000_000), "shares"),
                _ => (format!("{}", 12_300_000_000u64 + i as u64 * 1_700_000_000), "USD"),
            };
            format!(
                r#"{{"id":"C{}","label":"{label}","value":{value},"unit":"{unit}","fiscal_year":{year},"fiscal_period":"FY"}}"#,
                i + 1
            )
        })
        .collect();
    case::facts(&format!("[{}]", rows.join(","))).expect("facts")
}

/// Sentences, list items and rows that state the facts truly, with prose between them.
fn memo(facts: &[Fact]) -> String {
    let mut out = String::from("# Calder Systems, fiscal years 2022 to 2025\n\n");
    let mut i = 0;
    while out.len() < MEMO_BYTES {
        let fact = &facts[i % facts.len()];
        let value = match fact.unit.to_string().as_str() {
            "USD" => format!("${} million", fact.value / rust_decimal::Decimal::from(1_000_000)),
            "USD/shares" => format!("${} per share", fact.value),
            "shares" => format!("{} million shares", fact.value / rust_decimal::Decimal::from(1_000_000)),
            _ => format!("{}%", fact.value),
        };
        let (label, id, year) = (&fact.label, &fact.id, fact.fiscal_year.unwrap_or_default());
        out.push_str(&match i % 5 {
            0 => format!("{label} for fiscal {year} was {value} [{id}], as the company says in its annual report.\n\n"),
            1 => format!("- {label}: {value} [{id}]\n"),
            2 => format!("In fiscal {year}, {} came to {value} [{id}]. Management points to demand in both segments.\n", label.to_lowercase()),
            3 => format!("| {label} | FY{year} | {value} [{id}] |\n"),
            _ => format!("\nThe 10-K (Item 7, Note 14) explains why {} stood at {value} [{id}] at the end of the year, and what the three regions added.\n\n", label.to_lowercase()),
        });
        i += 1;
    }
    out
}

fn speed(c: &mut Criterion) {
    let facts = facts();
    let memo = memo(&facts);
    let report = gate::check(&facts, &memo);
    assert!(report.passed, "{:?}", report.violations.first());
    let mut group = c.benchmark_group("memo");
    group.throughput(Throughput::Bytes(memo.len() as u64));
    group.bench_function("gate", |b| b.iter(|| gate::check(black_box(&facts), black_box(&memo))));
    let pattern =
        Regex::new(r"(?i)[$€£]?\d[\d,.]*(?:\s?(?:trillion|billion|million|thousand|[tbmk]n?))?\s?(?:%|x\b)?|\[C\d+\]")
            .expect("a pattern");
    group.bench_function("naive pattern", |b| b.iter(|| pattern.find_iter(black_box(&memo)).count()));
    group.finish();
    let mut group = c.benchmark_group("hostile");
    for seed in ["$1 ", "9", "[C1]", "1-", "six ", "loss of "] {
        let text = seed.repeat(HOSTILE_BYTES / seed.len());
        group.throughput(Throughput::Bytes(text.len() as u64));
        group
            .bench_with_input(BenchmarkId::from_parameter(seed), &text, |b, text| b.iter(|| gate::check(&facts, text)));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = speed
}
criterion_main!(benches);
