//! Every figure of a delivered answer went through the gate: the JSON is walked, leaf by leaf, and whatever is no fact, no gated
//! text and no name or count of a closed list may not hold one.

use jim::memo::{Draft, Section, case, figure, gate};
use serde_json::Value;

use crate::support::buyer::{Ask, Buyer};
use crate::support::service::Service;

/// Leaves that name something, by path: ids, dates and codes, and numbers that count the work. Figures stand in none of them.
const NAMES: [&str; 10] = [
    "order_id",
    "proof.order_id",
    "proof.contract_id",
    "as_of",
    "subject.cik",
    "subject.ticker",
    "subject.name",
    "sourcing.figures_checked",
    "sourcing.figures_covered",
    "sourcing.attempts",
];

/// Texts that the gate must have read.
fn is_gated(path: &str) -> bool {
    matches!(path, "memo.title" | "memo.summary") || path.starts_with("memo.sections[")
}

/// The leaves of a value with their paths.
fn leaves<'a>(value: &'a Value, path: String, out: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(member, path, out);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                leaves(item, format!("{path}[{at}]"), out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push((path, value)),
    }
}

/// What went around the gate in an answer; nothing is right.
fn ungated(answer: &Value) -> Vec<String> {
    let facts = case::facts(&answer.to_string()).expect("the facts of an answer are facts");
    let mut all = Vec::new();
    leaves(answer, String::new(), &mut all);
    let mut out = Vec::new();
    for (path, value) in all {
        let held = match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(_) => !path.starts_with("facts[") && !NAMES.contains(&path.as_str()),
            Value::String(text) if is_gated(&path) => {
                let report = gate::check(&facts, text);
                !report.passed || report.figures_checked != report.figures_covered
            }
            Value::String(text) if path == "memo.markdown" => *text != draft_of(answer).markdown(),
            Value::String(_) if path.starts_with("facts[") || NAMES.contains(&path.as_str()) => false,
            // ids of facts that are there
            Value::String(id) if path.starts_with("citations[") => !facts.iter().any(|fact| fact.id == *id),
            Value::String(text) => !figure::extract(text).is_empty(),
            Value::Array(_) | Value::Object(_) => unreachable!("no leaf"),
        };
        if held {
            out.push(format!("{path}: {value}"));
        }
    }
    out
}

/// The memo of an answer, from its fields.
fn draft_of(answer: &Value) -> Draft {
    let memo = &answer["memo"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let section = |value: &Value| Section { heading: text(&value["heading"]), markdown: text(&value["markdown"]) };
    let sections = memo["sections"].as_array().expect("sections").iter().map(section).collect();
    Draft { title: text(&memo["title"]), summary: text(&memo["summary"]), sections }
}

async fn sold(service: &Service, key: u8, query: &str) -> Value {
    let reply = Buyer::new(service, key).buy_there(&Ask::get(&format!("/research/fundamentals?{query}"))).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    if reply.header("content-type") == Some("application/json") { reply.json() } else { reply.text().into() }
}

/// jim's own renderer over the compiled-in filings.
async fn renderer() -> Service {
    Service::start_with(|_, parts| {
        parts.synthesizer = None;
        parts.source = None;
    })
    .await
}

#[tokio::test]
async fn every_figure_of_an_answer_went_through_the_gate() {
    let service = renderer().await;
    for (key, ticker) in ["COIN", "AAPL", "NVDA", "JPM", "LPA"].into_iter().enumerate() {
        for (place, mode) in ["agent", "human"].into_iter().enumerate() {
            let key = u8::try_from(key * 2 + place + 1).expect("a small number");
            let answer = sold(&service, key, &format!("ticker={ticker}&mode={mode}")).await;
            assert_eq!(ungated(&answer), [""; 0], "{ticker} {mode}");
            assert!(answer["sourcing"]["figures_covered"].as_u64() > Some(10), "{ticker} {mode}");
        }
    }
}

#[tokio::test]
async fn the_other_forms_hold_the_gated_memo_and_names_of_sources() {
    let service = renderer().await;
    let json = sold(&service, 1, "ticker=AAPL").await;
    let markdown = sold(&service, 2, "ticker=AAPL&format=md").await;
    let text = markdown.as_str().expect("text");
    let sources = text.strip_prefix(&draft_of(&json).markdown()).expect("the gated memo comes first");
    let facts = json["facts"].as_array().expect("facts");
    for line in sources.lines().filter(|line| line.starts_with("- [C")) {
        let id = line.trim_start_matches("- [").split(']').next().unwrap_or_default();
        let fact = facts.iter().find(|fact| fact["id"] == id).expect("a source of a fact that is there");
        let named = ["label", "formula", "filing_url", "accession", "form"].map(|name| fact[name].as_str());
        let rest = named.into_iter().flatten().fold(line.to_owned(), |rest, part| rest.replace(part, ""));
        assert!(figure::extract(&rest.replace(&format!("[{id}]"), "")).is_empty(), "{line}");
    }
}

#[tokio::test]
async fn the_walk_finds_what_went_around_the_gate() {
    let service = renderer().await;
    let answer = sold(&service, 1, "ticker=AAPL").await;
    let smuggled: [fn(&mut Value); 6] = [
        |answer| answer["headline"] = "Revenue of $61 billion".into(),
        |answer| answer["score"] = 7.into(),
        |answer| answer["limits"][0] = "Revenue fell 12 percent.".into(),
        |answer| answer["memo"]["summary"] = "Revenue was $61 billion [C1].".into(),
        |answer| answer["memo"]["sections"][0]["heading"] = "Up 12%".into(),
        |answer| answer["memo"]["markdown"] = "Revenue was $61 billion [C1].".into(),
    ];
    for (place, smuggle) in smuggled.into_iter().enumerate() {
        let mut changed = answer.clone();
        smuggle(&mut changed);
        assert_ne!(ungated(&changed), [""; 0], "smuggled figure {place}");
    }
}
