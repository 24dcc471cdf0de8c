//! The steps as screens of text.

use std::fmt::Write;

use serde_json::Value;

use super::steps::Step;

/// One screen: title, verdict, and the values as a table.
pub(super) fn screen(step: Step, ok: bool, value: &Value) -> String {
    let mut out =
        format!("\n({}) {}  [{}]\n{}\n", step.letter(), step.title(), if ok { "ok" } else { "FAILED" }, "-".repeat(78));
    if let Value::Object(map) = value {
        for (name, item) in map {
            match (step, name.as_str()) {
                (Step::Memo, "facts") => facts(&mut out, item),
                (Step::Ledger, "rows") => rows(&mut out, item),
                (Step::Ledger, "summary") => table(&mut out, "", item),
                (_, name) if item.is_object() => table(&mut out, name, item),
                (_, name) => line(&mut out, name, item),
            }
        }
    }
    out
}

fn line(out: &mut String, name: &str, item: &Value) {
    let text = match item {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            items.iter().map(|i| i.as_str().map_or_else(|| i.to_string(), str::to_owned)).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    };
    let _ = writeln!(out, "  {name:<22} {text}");
}

fn table(out: &mut String, name: &str, item: &Value) {
    if !name.is_empty() {
        let _ = writeln!(out, "  {name}");
    }
    for (key, value) in item.as_object().into_iter().flatten() {
        line(out, key, value);
    }
}

fn facts(out: &mut String, item: &Value) {
    let text = |fact: &Value, key: &str| fact[key].as_str().unwrap_or("").to_owned();
    for fact in item.as_array().into_iter().flatten() {
        let _ = writeln!(
            out,
            "  [{}] {:<28} {:>18} {:<10} {}\n       {}",
            text(fact, "id"),
            text(fact, "label"),
            text(fact, "value"),
            text(fact, "unit"),
            text(fact, "accession"),
            text(fact, "filing_url")
        );
    }
}

fn rows(out: &mut String, item: &Value) {
    let _ = writeln!(
        out,
        "  {:<8} {:<9} {:<18} {:>9} {:>9} {:>9}",
        "subject", "payment", "refused", "revenue", "cost", "margin"
    );
    for row in item.as_array().into_iter().flatten() {
        let micros = |key: &str| row[key].as_i64().unwrap_or(0);
        let cost = micros("data_cost_micros") + micros("inference_cost_micros");
        let _ = writeln!(
            out,
            "  {:<8} {:<9} {:<18} {:>9} {:>9} {:>9}",
            row["subject"].as_str().unwrap_or(""),
            row["settle_state"].as_str().unwrap_or(""),
            row["refusal_code"].as_str().unwrap_or("-"),
            micros("revenue_micros"),
            cost,
            micros("margin_micros")
        );
    }
}
