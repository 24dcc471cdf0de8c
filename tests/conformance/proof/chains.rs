//! Vectors of section 4: what a walk sees, and what a host's audit says.

use jim::proof::audit::{Subject, audit};
use jim::proof::key::Keys;
use jim::proof::walk::{Entry, Walk};
use serde_json::{Value, json};

use super::{cases, public, text, vectors};

/// The walk as the vectors write it.
fn walk(log: &str) -> Value {
    let mut walk = Walk::default();
    let (mut breaks, mut corrupt, mut malformed, mut checkpoints) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for line in log.split('\n') {
        let Some(step) = walk.step(line.as_bytes()) else { continue };
        if !step.linked {
            breaks.push(step.line);
        }
        match step.entry {
            Entry::Corrupt => corrupt.push(step.line),
            Entry::UnknownKind => malformed.push(step.line),
            Entry::Checkpoint(checkpoint) => {
                if !checkpoint.is_well_formed {
                    malformed.push(step.line);
                }
                let count = checkpoint.payload.get("count").and_then(|count| count.number()).expect("a number");
                let count = if count.fract() == 0.0 && count.is_finite() { json!(count as i64) } else { json!(count) };
                checkpoints.push(json!({
                    "index": step.line,
                    "count": if count.is_null() { json!("Infinity") } else { count },
                    "expectedCount": checkpoint.records,
                    "headLiared": !checkpoint.head_holds,
                    "expectedHead": step.before.to_string(),
                    "signed": checkpoint.signature.is_some(),
                    "keyId": checkpoint.key_id.map(|id| id.to_str().into_owned()),
                }));
            }
            Entry::Evidence(_) | Entry::Marker(_) | Entry::Ignored => {}
        }
    }
    json!({
        "mode": walk.mode().as_str(),
        "records": walk.state().records,
        "chainBreaks": breaks,
        "corruptLines": corrupt,
        "malformedCheckpoints": malformed,
        "tailRecords": walk.state().tail_records,
        "checkpoints": checkpoints,
    })
}

#[test]
fn walks() {
    for case in cases(&vectors("chains.json"), "cases") {
        assert_eq!(walk(text(&case, "log")), case["walk"], "{}", case["id"]);
    }
}

#[test]
fn audits() {
    let settings = [
        ("audit_no_key", Keys::default()),
        ("audit_right_key", public("workspace")),
        ("audit_wrong_key", public("other")),
    ];
    for case in cases(&vectors("chains.json"), "cases") {
        let subject = Subject {
            log: text(&case, "log"),
            anchor: case["anchor"].as_str(),
            baseline: case["baseline"].as_str(),
            workspace_key: Some("ec358e8b9c50222c"),
        };
        for (setting, keys) in &settings {
            let got = serde_json::to_value(audit(&subject, keys)).expect("JSON");
            assert_eq!(got, case[*setting], "{} {setting}", case["id"]);
        }
    }
}

#[test]
fn only_a_checkpoint_of_our_own_vouches() {
    let file = vectors("chains.json");
    let floor = |id: &str, name: &str, workspace: &str| {
        let case = cases(&file, "cases").into_iter().find(|case| case["id"] == id).expect("a case");
        let subject = Subject { log: text(&case, "log"), anchor: None, baseline: None, workspace_key: Some(workspace) };
        audit(&subject, &public(name)).vouched_floor
    };
    assert_eq!(floor("signed-valid", "workspace", "ec358e8b9c50222c"), Some(9));
    assert_eq!(floor("signed-valid", "other", "ec358e8b9c50222c"), None);
    assert_eq!(floor("signed-valid", "workspace", "another"), None);
    assert_eq!(floor("attacker-checkpoint-over-tail", "workspace", "ec358e8b9c50222c"), Some(9));
    assert_eq!(floor("edited-line-rechained", "workspace", "ec358e8b9c50222c"), None);
}
