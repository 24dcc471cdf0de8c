//! Vectors of sections 2, 3 and 8: canonical text, output, records, roots, verdicts, grades, dialects.

use jim::canonical::{self, Scratch, Tape};
use jim::proof::address::{dirt_digest, merkle_root};
use jim::proof::confidence::{History, Impact, Trust};
use jim::proof::dialect::{Dialect, adjudicate, fingerprint};
use jim::proof::evidence::{Evidence, Observation, is_self_addressed};
use jim::proof::key::encode_signature;
use jim::proof::verdict::{Run, grade, verdict};
use jim::proof::vocabulary::{Grade, Status};
use jim::proof::{baseline, output};
use serde_json::Value;

use super::{cases, public, text, vectors};

#[test]
fn canonical_text() {
    let file = vectors("canonical_json.json");
    for case in cases(&file, "cases") {
        let (mut tape, mut scratch) = (Tape::default(), Scratch::default());
        let view = tape.read(text(&case, "input_json")).unwrap_or_else(|error| panic!("{error}: {case}"));
        let got = view.canonical(&mut scratch);
        assert_eq!(String::from_utf8_lossy(got), text(&case, "canonical"), "{}", case["id"]);
        assert_eq!(canonical::sha256_hex(got), text(&case, "sha256"), "{}", case["id"]);
    }
}

#[test]
fn normalised_output() {
    for case in cases(&vectors("normalize_output.json"), "cases") {
        let option = |name: &str| case["options"][name].as_str();
        let got = output::normalize(text(&case, "raw"), option("root"), option("home"));
        assert_eq!(got, text(&case, "normalized"), "{}", case["id"]);
        assert_eq!(canonical::sha256_hex(got.as_bytes()), text(&case, "digest"), "{}", case["id"]);
    }
}

#[test]
fn record_addresses() {
    for case in cases(&vectors("evidence.json"), "cases") {
        let observed: Observation = serde_json::from_value(case["record_without_id"].clone()).expect("an observation");
        let sealed = Evidence::seal(observed).expect("a record");
        assert_eq!(sealed.id(), text(&case, "evidenceId"), "{}", case["id"]);
        let line = serde_json::to_string(&sealed).expect("text");
        let (mut tape, mut scratch) = (Tape::default(), Scratch::default());
        let view = tape.read(&line).expect("JSON");
        assert!(is_self_addressed(view, &mut scratch), "{}", case["id"]);
        let bare = view.canonical_without(&mut scratch, Some("evidenceId"));
        assert_eq!(String::from_utf8_lossy(bare), text(&case, "canonical"), "{}", case["id"]);
    }
}

#[test]
fn roots_and_dirt() {
    let file = vectors("evidence.json");
    let list = |value: &Value| -> Vec<String> {
        value.as_array().expect("a list").iter().map(|item| item.as_str().expect("text").to_owned()).collect()
    };
    for case in cases(&file, "merkle") {
        assert_eq!(merkle_root(list(&case["addresses"]).iter().map(String::as_str)), text(&case, "root"));
    }
    for case in cases(&file, "dirt") {
        assert_eq!(dirt_digest(list(&case["dirty"]).iter().map(String::as_str)), text(&case, "dirtDigest"));
    }
}

#[test]
fn verdicts_and_grades() {
    let file = vectors("evidence.json");
    let status = |value: &Value| value.as_str().map(|word| Status::parse(word).expect("a status"));
    for case in cases(&file, "verdicts") {
        let got = verdict(status(&case["baseline"]), status(&case["current"]));
        assert_eq!(got.as_str(), text(&case, "verdict"), "{case}");
    }
    for case in cases(&file, "grades") {
        let count = |at: usize| case[at].as_u64().expect("a count") as usize;
        let run = Run {
            has_baseline: case[0] == true,
            broke: case[1] != "none",
            nothing_affected: case[2] == true,
            unverified: count(3),
            vanished: count(4),
            decisive: count(5),
            confidence: case[6].as_f64(),
            requires_full_coverage: case[7] == true,
        };
        assert_eq!(Some(grade(&run)), case[8].as_str().and_then(Grade::parse), "{case}");
    }
}

#[test]
fn excerpts_keep_the_head() {
    let file = vectors("evidence.json");
    let sources: Vec<Value> = cases(&file, "excerpts");
    let heads = sources.iter().filter(|case| case["strategy"] == "head");
    let mut seen = 0;
    for case in heads {
        let kept = text(case, "text");
        let budget = case["budget"].as_u64().expect("a budget") as usize;
        let omitted = case["omittedChars"].as_u64().expect("a count");
        // the vector holds what is kept; anything may follow it
        let whole = format!("{kept}{}", "x".repeat(omitted as usize));
        let got = output::head(&whole, budget);
        assert_eq!((got.text.as_str(), got.omitted_units), (kept, omitted), "{}", case["id"]);
        seen += 1;
    }
    assert!(seen >= 10);
}

#[test]
fn baseline_document() {
    let file = vectors("evidence.json");
    let document = file["baseline"]["document"].to_string();
    let reading = baseline::read(&document);
    assert_eq!(reading.id.as_deref(), Some(text(&file["baseline"], "baselineId")));
    assert!(reading.is_self_addressed && reading.flaws.is_empty(), "{reading:?}");
    let doctored = document.replacen("\"exitCode\":0", "\"exitCode\":7", 1);
    assert_ne!(doctored, document);
    let reading = baseline::read(&doctored);
    assert!(reading.is_self_addressed, "the id covers the stated root alone");
    assert_eq!(reading.flaws.len(), 1, "{reading:?}");
}

#[test]
fn dialects() {
    let file = vectors("constants.json");
    for (version, want) in file["fingerprints"].as_object().expect("fingerprints") {
        assert_eq!(fingerprint(version), *want, "{version}");
    }
    for case in cases(&file, "adjudicate") {
        let kind = match adjudicate(case["protocol"].as_str(), case["fingerprint"].as_str()) {
            Dialect::Current => "current",
            Dialect::Legacy => "legacy",
            Dialect::Unknown { .. } => "unknown",
        };
        assert_eq!(kind, text(&case, "kind"), "{case}");
    }
}

#[test]
fn signatures() {
    let file = vectors("constants.json");
    for case in cases(&file, "signatures") {
        let (name, message, signature) = (text(&case, "key"), text(&case, "message"), text(&case, "sig_base64"));
        let id = text(&file["keys"][name], "keyId").to_owned();
        let keys = public(name);
        assert_eq!(keys.check(&id, message.as_bytes(), signature), Some(true));
        assert_eq!(keys.check(&id, b"another", signature), Some(false));
        assert_eq!(keys.check(&id, message.as_bytes(), &format!("{signature}\n")), Some(false));
        assert_eq!(keys.check(&id, message.as_bytes(), signature.trim_end_matches('=')), Some(false));
        assert_eq!(keys.check("0000000000000000", message.as_bytes(), signature), None);
        assert_eq!(encode_signature(&[0; 64]).len(), signature.len());
    }
}

#[test]
fn confidence() {
    for case in cases(&vectors("evidence.json"), "confidence_model") {
        let number = |name: &str| case[name].as_f64().unwrap_or_else(|| panic!("{name} in {case}"));
        let history =
            History { runs: number("runs") as u32, passes: number("passes") as u32, flips: number("flips") as u32 };
        let impact = [Impact::Exact, Impact::Prefix, Impact::Wildcard][match number("impact") {
            1.0 => 0,
            0.7 => 1,
            _ => 2,
        }];
        let trust = [Trust::Organic, Trust::Synthetic, Trust::Drifted]
            .into_iter()
            .find(|t| t.false_pass() == number("falsePass"));
        let trust = trust.expect("a known chance");
        for (got, want) in [
            (history.prior(impact), number("priorHealthy")),
            (history.false_fail(), number("falseFail")),
            (history.posterior(impact, trust, true), number("after_pass")),
            (history.posterior(impact, trust, false), number("after_fail")),
        ] {
            assert!((got - want).abs() < 1e-12, "{got} for {case}");
        }
    }
}
