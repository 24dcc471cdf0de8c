//! A small bundle, changed in every way that one hand can change it. Each change is named as a problem.

use jim::proof::baseline::Baseline;
use jim::proof::bundle::{Parts, Verification, pack, verify};
use jim::proof::chain::Chain;
use jim::proof::evidence::{Evidence, Observation, Workspace};
use jim::proof::key::{Keys, encode_signature};
use jim::proof::order::workspace_key;
use jim::proof::vocabulary::{CheckKind, Status};
use serde_json::{Value, json};

use super::TestKey;
use super::orders::{AT, LATER, ORDER, Sale, sale};

fn result(bundle: &[u8], key: &TestKey) -> Verification {
    verify(bundle, &key.held()).expect("bytes in memory read")
}

fn codes(result: &Verification) -> Vec<&'static str> {
    result.problems.iter().map(|problem| problem.code()).collect()
}

/// The bundle with another file, its manifest made to fit: what a forger without the key can do.
fn resealed(sale: &Sale, path: &str, content: &str) -> Vec<u8> {
    let mut bundle: Value = serde_json::from_slice(&sale.bundle()).expect("JSON");
    bundle["files"][path] = content.into();
    for entry in bundle["manifest"]["files"].as_array_mut().expect("files") {
        if entry["path"] == path {
            entry["sha256"] = jim::canonical::sha256_hex(content.as_bytes()).into();
            entry["bytes"] = content.len().into();
        }
    }
    bundle.to_string().into_bytes()
}

/// A log with its links made to fit again from one line on.
fn relinked(lines: &[String]) -> String {
    let mut prev = jim::proof::address::Digest::GENESIS.to_string();
    let mut out = String::new();
    for line in lines {
        let mut envelope: Value = serde_json::from_str(line).expect("an envelope");
        envelope["prev"] = prev.clone().into();
        if envelope["payload"].get("headRef").is_some() {
            envelope["payload"]["headRef"] = prev.clone().into();
        }
        let line = envelope.to_string();
        prev = jim::canonical::sha256_hex(line.as_bytes());
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// One check, its baseline, a checkpoint and an anchor: everything that a bundle can hold, in few bytes.
fn small(key: &TestKey) -> Vec<u8> {
    let mut observed = Observation {
        check_id: "c".into(),
        label: "l\u{e9}".into(),
        kind: CheckKind::Test,
        command: vec!["x".into()],
        source: None,
        status: Status::Pass,
        exit_code: Some(0),
        duration_ms: 1.5,
        output_digest: String::new(),
        output_head: String::new(),
        output_truncated: None,
        output_omitted_chars: None,
        synthetic: None,
        coverage: None,
        recorded_at: "2026-11-30T09:15:00.120Z".into(),
        workspace: Workspace::new("0".into(), vec!["a".into()]),
    };
    observed.set_output("one line\nand \"another\"");
    let record = Evidence::seal(observed.clone()).expect("a record");
    let baseline = Baseline::build(LATER.into(), observed.workspace, vec![record.clone()]).expect("a baseline");
    let file = baseline.to_file();
    let mut chain = Chain::begin(&workspace_key(ORDER));
    let saved = json!({"digest": jim::canonical::sha256_hex(file.as_bytes()), "bytes": file.encode_utf16().count()});
    chain.marker(AT, "baseline/saved", saved.as_object().expect("an object"));
    chain.evidence(AT, &record);
    let segment = chain.seal(AT, key);
    let parts = Parts {
        workspace_key: &workspace_key(ORDER),
        segments: &[&segment.bytes],
        baseline: Some(&file),
        anchor: Some(&segment.checkpoint.to_file()),
        transparency: None,
    };
    let mut bundle = Vec::new();
    pack(&parts, &mut bundle).expect("a bundle");
    bundle
}

#[test]
fn any_byte() {
    let key = TestKey::new(1);
    let bundle = small(&key);
    assert!(result(&bundle, &key).is_proven());
    let mut changed = bundle.clone();
    for at in 0..bundle.len() {
        // a change of the last bit, of the case, or of the whole byte, in turn
        changed[at] ^= [0x01, 0x20, 0xff][at % 3];
        let found = verify(changed.as_slice(), &Keys::default()).expect("bytes in memory read");
        let around = String::from_utf8_lossy(&changed[at.saturating_sub(20)..(at + 20).min(bundle.len())]);
        assert!(!found.problems.is_empty(), "byte {at} in {around:?}");
        changed[at] = bundle[at];
    }
}

#[test]
fn any_length() {
    let key = TestKey::new(1);
    let bundle = small(&key);
    for end in (0..bundle.len()).step_by(3).chain([bundle.len() - 1]) {
        let found = verify(&bundle[..end], &Keys::default()).expect("bytes in memory read");
        assert!(!found.problems.is_empty(), "{end}");
    }
    assert_eq!(codes(&result(&[&bundle[..], b"x"].concat(), &key)), ["bundle-unreadable"]);
    assert_eq!(codes(&result(&[&bundle[..], b" \n"].concat(), &key)), [""; 0]);
}

#[test]
fn any_line_with_the_manifest_made_to_fit() {
    let key = TestKey::new(1);
    let sale = sale(&key);
    let log = sale.log();
    let lines: Vec<String> = log.lines().map(str::to_owned).collect();
    let joined = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let check = |lines: &[String], what: &str| {
        for log in [joined(lines), relinked(lines)] {
            let found = result(&resealed(&sale, "evidence.jsonl", &log), &key);
            assert!(!found.is_clean() && !found.problems.is_empty(), "{what}");
        }
    };
    let last = lines.len() - 1;
    for at in 0..=last {
        let mut less = lines.clone();
        less.remove(at);
        check(&less, &format!("line {at} removed"));
        check(&lines[..at], &format!("cut at {at}"));
        for other in [0, at, last] {
            let mut more = lines.clone();
            more.insert(at, lines[other].clone());
            check(&more, &format!("line {other} inserted at {at}"));
        }
        if at < last {
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            check(&swapped, &format!("lines {at} and {} swapped", at + 1));
        }
    }
}

#[test]
fn a_checkpoint_that_lies() {
    let key = TestKey::new(1);
    let sale = sale(&key);
    let lines: Vec<String> = sale.log().lines().map(str::to_owned).collect();
    let last = lines.len() - 1;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut lines = lines.clone();
        let mut envelope: Value = serde_json::from_str(&lines[last]).expect("an envelope");
        change(&mut envelope);
        lines[last] = envelope.to_string();
        codes(&result(
            &resealed(&sale, "evidence.jsonl", &lines.iter().map(|l| format!("{l}\n")).collect::<String>()),
            &key,
        ))
    };
    let count = |n: Value| with(&|envelope| envelope["payload"]["count"] = n.clone());
    assert!(count(json!(3)).contains(&"malformed-checkpoint"));
    assert!(count(json!(17.5)).contains(&"malformed-checkpoint"));
    assert!(count(json!("17")).contains(&"corrupt-line"));
    let head = with(&|envelope| envelope["payload"]["head"] = "00".repeat(32).into());
    assert!(head.contains(&"head-liar") && head.contains(&"checkpoint-signature-invalid"), "{head:?}");
    let unsigned = with(&|envelope| drop(envelope.as_object_mut().map(|members| members.remove("sig"))));
    assert!(unsigned.contains(&"tail-not-vouched"), "{unsigned:?}");
    let garbage = with(&|envelope| envelope["sig"] = encode_signature(&[7; 64]).into());
    assert!(garbage.contains(&"checkpoint-signature-invalid"), "{garbage:?}");
    let time = with(&|envelope| envelope["payload"]["at"] = "2026-11-30T09:15:02.341Z".into());
    assert!(time.contains(&"checkpoint-signature-invalid"), "{time:?}");
    let foreign = with(&|envelope| envelope["keyId"] = TestKey::new(2).id.into());
    assert!(foreign.contains(&"tail-not-vouched"), "{foreign:?}");
    let elsewhere = with(&|envelope| envelope["payload"]["workspaceKey"] = "0".repeat(32).into());
    assert!(elsewhere.contains(&"checkpoint-workspace-mismatch"), "{elsewhere:?}");
}

#[test]
fn a_checkpoint_of_another_order_is_a_replay() {
    let key = TestKey::new(1);
    let sale = sale(&key);
    let mut lines: Vec<String> = sale.log().lines().map(str::to_owned).collect();
    let at = lines.len() - 1;
    // the genuine checkpoint over a chain with another body
    lines[at - 1] = lines[at - 1].replace("\"charged\":true", "\"charged\":false");
    let found = codes(&result(&resealed(&sale, "evidence.jsonl", &relinked(&lines)), &key));
    assert!(found.contains(&"checkpoint-replayed") && found.contains(&"head-liar"), "{found:?}");
}

#[test]
fn a_record_that_was_edited_keeps_its_name_in_vain() {
    let key = TestKey::new(1);
    let sale = sale(&key);
    let mut lines: Vec<String> = sale.log().lines().map(str::to_owned).collect();
    lines[4] = lines[4].replace("\"status\":\"pass\"", "\"status\":\"fail\"");
    let found = result(&resealed(&sale, "evidence.jsonl", &relinked(&lines)), &key);
    let problem = found.problems.iter().find(|problem| problem.code() == "record-not-self-addressed");
    let place = problem.and_then(|problem| problem.place()).expect("a place");
    let record = sale.log().lines().nth(4).and_then(|line| serde_json::from_str::<Value>(line).ok()).expect("a record");
    assert_eq!((place.line, place.record.as_deref()), (4, record["payload"]["evidenceId"].as_str()));
}

#[test]
fn another_anchor() {
    let key = TestKey::new(1);
    let sale = sale(&key);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut anchor: Value = serde_json::from_str(&sale.ended.checkpoint.to_file()).expect("JSON");
        change(&mut anchor);
        codes(&result(&resealed(&sale, "anchor.json", &anchor.to_string()), &key))
    };
    assert_eq!(with(&|_| {}), [""; 0]);
    for (member, value) in [("count", json!(2)), ("at", json!("x")), ("workspaceKey", json!("x")), ("sig", json!("x"))]
    {
        assert_eq!(with(&|anchor| anchor[member] = value.clone()), ["anchor-signature-invalid"], "{member}");
    }
    assert_eq!(
        with(&|anchor| drop(anchor.as_object_mut().map(|a| a.remove("workspaceKey")))),
        ["anchor-signature-invalid"]
    );
    assert_eq!(with(&|anchor| anchor["keyId"] = "0000000000000000".into()), ["anchor-keyid-mismatch"]);
    assert_eq!(with(&|anchor| anchor["v"] = json!(2)), ["anchor-unparseable"]);
    let earlier = result(&resealed(&sale, "anchor.json", &sale.opened.segment.checkpoint.to_file()), &key);
    assert_eq!(codes(&earlier), ["anchor-head-mismatch"]);
}

#[test]
fn another_baseline_or_header() {
    let key = TestKey::new(1);
    let sale = sale(&key);
    let file = sale.desk.file();
    let swapped = file.replace("2026-11-01", "2026-11-02");
    let found = codes(&result(&resealed(&sale, "baseline.json", &swapped), &key));
    assert!(found.contains(&"baseline-not-self-addressed") && found.contains(&"baseline-digest-mismatch"), "{found:?}");
    let reformatted = serde_json::from_str::<Value>(file).expect("JSON").to_string();
    assert_eq!(codes(&result(&resealed(&sale, "baseline.json", &reformatted), &key)), ["baseline-digest-mismatch"]);
    let doctored = file.replacen("\"exitCode\": 0", "\"exitCode\": 2", 1);
    let found = codes(&result(&resealed(&sale, "baseline.json", &doctored), &key));
    assert_eq!(found, ["baseline-check-not-self-addressed", "baseline-digest-mismatch"]);

    let mut bundle: Value = serde_json::from_slice(&sale.bundle()).expect("JSON");
    for (member, code) in [("createdAt", "manifest-created-at"), ("workspaceKey", "manifest-workspace-mismatch")] {
        let kept = bundle["manifest"][member].clone();
        for other in [json!("2026-11-30T09:15:02.341Z"), json!(null), json!(3)] {
            bundle["manifest"][member] = other;
            assert_eq!(codes(&result(bundle.to_string().as_bytes(), &key)), [code]);
        }
        bundle["manifest"][member] = kept;
    }
    assert_eq!(bundle["manifest"]["workspaceKey"], workspace_key(ORDER));
}
