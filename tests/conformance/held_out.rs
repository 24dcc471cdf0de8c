//! Memos over companies that no other case names: fabrications that must be refused and truths that must pass.
//!
//! `held_out.txt` and `adversarial.txt` hold them. `=` opens a set, `id | label | value | unit | more` is a fact, `+` a true memo, `-` a fabricated one,
//! `#` says why the lines below it are there. `\n`, `\t` and `\u{..}` are escapes.

use jim::memo::case::{Verdict, cases, run};
use serde_json::{Value, json};

/// The file's own escapes, so that invisible characters can be seen in it.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(hex) = rest.strip_prefix("u{") {
            let end = hex.find('}').expect("a closed escape");
            let code = u32::from_str_radix(&hex[..end], 16).expect("hex");
            out.push(char::from_u32(code).expect("a character"));
            rest = &hex[end + 1..];
        } else {
            let mut chars = rest.chars();
            out.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                other => other.expect("an escape"),
            });
            rest = chars.as_str();
        }
    }
    out + rest
}

/// `C1 | Revenue | 48.2 | USD | fiscal_year=2025 | entity=Calder`.
fn fact(line: &str) -> Value {
    let mut parts = line.split('|').map(str::trim);
    let mut next = || parts.next().expect("four parts");
    let mut fact = json!({"id": next(), "label": next(), "value": next(), "unit": next()});
    for more in parts {
        let (key, value) = more.split_once('=').expect("a key and a value");
        fact[key] = value.parse::<i32>().map_or_else(|_| json!(value), |n| json!(n));
    }
    fact
}

#[test]
fn memos_about_other_companies_get_the_verdict_of_a_reader() {
    judge(include_str!("held_out.txt"), (80, 150));
}

#[test]
fn memos_made_to_deceive_get_the_verdict_of_a_reader() {
    judge(include_str!("adversarial.txt"), (70, 150));
}

/// Judges every memo of a file that holds at least so many truths and fabrications.
fn judge(file: &str, least: (usize, usize)) {
    let mut facts: Vec<Value> = Vec::new();
    let (mut truths, mut fabrications, mut wrong) = (0, 0, Vec::new());
    for (number, line) in file.lines().enumerate() {
        let (kind, rest) = line.split_at(line.len().min(1));
        let expected = match kind {
            "" | "#" => continue,
            "=" => {
                facts.clear();
                continue;
            }
            "+" => Verdict::Pass,
            "-" => Verdict::Fail,
            _ => {
                facts.push(fact(line));
                continue;
            }
        };
        truths += usize::from(expected == Verdict::Pass);
        fabrications += usize::from(expected == Verdict::Fail);
        let case = json!({"facts": facts, "memo": unescaped(rest.trim_start())}).to_string();
        let result = run(&cases(&case).expect("a case")[0]);
        if result.verdict != expected {
            let why: Vec<_> = result.violations.iter().map(|v| format!("{}: {}", v.reason, v.figure)).collect();
            wrong.push(format!("{}: {line} | {}", number + 1, why.join("; ")));
        }
    }
    eprintln!("{truths} truths, {fabrications} fabrications, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(truths >= least.0 && fabrications >= least.1, "the file was cut");
}
