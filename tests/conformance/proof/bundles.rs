//! Vectors of section 5: the result of a verification, member by member, and what ours adds to it.

use jim::proof::bundle::{Problem, Verification, verify};
use jim::proof::key::Keys;
use serde_json::Value;

use super::{cases, public, text, vectors};

/// Problems that the reference does not look for, although the protocol asks for it.
const OURS: [&str; 8] = [
    "record-not-self-addressed",
    "tail-not-vouched",
    "checkpoint-workspace-mismatch",
    "manifest-workspace-mismatch",
    "manifest-created-at",
    "baseline-check-not-self-addressed",
    "baseline-root-mismatch",
    "baseline-digest-mismatch",
];

/// A problem as the vectors write it.
fn code(problem: &Problem) -> String {
    let code = problem.code();
    match problem {
        Problem::ManifestEntryMalformed { entry } | Problem::ManifestPathOutsideLayout { entry, .. } => {
            format!("{code}@{entry}")
        }
        Problem::UncoveredTail { records } => format!("{code}:{records}"),
        Problem::TransparencyMalformed { rule } => format!("{code}:{rule}"),
        other => match (other.place(), other.path()) {
            (Some(place), _) => format!("{code}@{}", place.line),
            (None, Some(path)) => format!("{code}:{path}"),
            (None, None) => code.to_owned(),
        },
    }
}

/// The result as the vectors write it, without what is ours.
fn as_vector(result: &Verification) -> Value {
    let mut value = serde_json::to_value(result).expect("a result serializes");
    let members = value.as_object_mut().expect("an object");
    members.remove("workspaceKey");
    members.remove("records");
    let theirs = result.problems.iter().filter(|problem| !OURS.contains(&problem.code()));
    members.insert("problems".into(), theirs.map(code).collect::<Vec<_>>().into());
    value
}

#[test]
fn results() {
    let settings = [("no_key", Keys::default()), ("right_key", public("workspace")), ("wrong_key", public("other"))];
    for case in cases(&vectors("bundles.json"), "cases") {
        let bundle = case["bundle"].to_string();
        for (setting, keys) in &settings {
            let result = verify(bundle.as_bytes(), keys).expect("bytes in memory read");
            let name = format!("{} with {setting}", text(&case, "id"));
            let (mut got, mut want) = (as_vector(&result), case[*setting].clone());
            if case.get("spec_gap").is_some() {
                if *setting == "right_key" {
                    assert!(!result.is_clean(), "{name}");
                }
                // everything but the problem that the reference does not see
                for problem in want["problems"].as_array().expect("a list") {
                    assert!(got["problems"].as_array().is_some_and(|ours| ours.contains(problem)), "{name}");
                }
                got["problems"] = Value::Null;
                want["problems"] = Value::Null;
            } else if want["problems"] == serde_json::json!([]) {
                assert_eq!(result.problems, [], "{name}");
            }
            assert_eq!(got, want, "{name}");
        }
    }
}
