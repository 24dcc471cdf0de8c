//! Vectors of section 4: what a walk sees.

use jim::proof::walk::{Entry, Walk};
use serde_json::{Value, json};

use super::{cases, text, vectors};

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
