//! What a model answered, read strictly: one memo of the agreed shape, or what is wrong with it, in words for its next attempt.

use serde_json::{Map, Value};

use crate::limits::{DRAFT_BYTES_MAX, HEADING_CHARS_MAX, MODEL_JSON_DEPTH_MAX, SECTIONS_MAX};
use crate::memo::{Draft, Section};
use crate::strict_json;

/// The memo in an answer.
pub(super) fn draft(text: &str) -> Result<Draft, String> {
    let mut members = object(text)?;
    let title = line(members.remove("title"), "title")?;
    let summary = prose(members.remove("summary"), "summary")?;
    let Some(Value::Array(listed)) = members.remove("sections") else {
        return Err("sections must be a list".to_owned());
    };
    known(&members, "the memo")?;
    if listed.len() > SECTIONS_MAX {
        return Err(format!("at most {SECTIONS_MAX} sections are read"));
    }
    let sections = listed.into_iter().map(section).collect::<Result<Vec<_>, _>>()?;
    let draft = Draft { title, summary, sections };
    if draft.len_bytes() > DRAFT_BYTES_MAX {
        return Err(format!("the memo is longer than {DRAFT_BYTES_MAX} bytes"));
    }
    Ok(draft)
}

/// Whether a review says yes, and nothing else.
pub(super) fn is_yes(text: &str) -> bool {
    object(text).is_ok_and(|members| members.get("faithful") == Some(&Value::Bool(true)))
}

fn section(value: Value) -> Result<Section, String> {
    let Value::Object(mut members) = value else { return Err("a section must be an object".to_owned()) };
    let heading = line(members.remove("heading"), "heading")?;
    let markdown = prose(members.remove("markdown"), "markdown")?;
    known(&members, "a section")?;
    Ok(Section { heading, markdown })
}

/// One JSON object, bare or in the fence that many models put around it.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.trim();
    let inner = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"))
        .unwrap_or(text);
    match strict_json::parse(inner.trim().as_bytes(), MODEL_JSON_DEPTH_MAX) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("answer with one JSON object".to_owned()),
        Err(error) => Err(format!("answer with one JSON object: {error}")),
    }
}

fn line(value: Option<Value>, name: &str) -> Result<String, String> {
    let text = prose(value, name)?;
    if text.contains(['\n', '\r']) || text.chars().count() > HEADING_CHARS_MAX {
        return Err(format!("{name} must be one line of at most {HEADING_CHARS_MAX} characters"));
    }
    Ok(text)
}

fn prose(value: Option<Value>, name: &str) -> Result<String, String> {
    match value {
        Some(Value::String(text)) => Ok(text),
        Some(_) | None => Err(format!("{name} must be text")),
    }
}

/// What is left of an object is nothing that we know.
fn known(left: &Map<String, Value>, what: &str) -> Result<(), String> {
    match left.keys().next() {
        None => Ok(()),
        Some(_) => Err(format!("{what} has members that are not read")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn memo() -> Value {
        json!({"title": "Acme", "summary": "Revenue: $1 [C1].", "sections": [{"heading": "Income", "markdown": "x"}]})
    }

    #[test]
    fn a_memo_is_read_bare_and_in_a_fence() {
        let bare = memo().to_string();
        for text in [bare.clone(), format!("```json\n{bare}\n```"), format!("\n```{bare}```\n")] {
            assert_eq!(draft(&text).expect("a memo").sections[0].heading, "Income");
        }
    }

    #[test]
    fn anything_else_is_told_what_is_wrong() {
        let with = |name: &str, value: Value| {
            let mut memo = memo();
            memo[name] = value;
            memo.to_string()
        };
        for (text, word) in [
            (String::new(), "one JSON object"),
            ("Here is your memo: {}".to_owned(), "one JSON object"),
            ("[]".to_owned(), "one JSON object"),
            ("{}".to_owned(), "title"),
            (with("title", json!("a\nb")), "one line"),
            (with("title", json!("x".repeat(201))), "one line"),
            (with("summary", json!(7)), "summary"),
            (with("sections", json!({})), "sections"),
            (with("sections", json!([7])), "section"),
            (with("sections", json!([{"heading": "x"}])), "markdown"),
            (with("sections", json!(vec![json!({"heading": "x", "markdown": "y"}); 25])), "at most"),
            (with("price", json!(1)), "not read"),
            (with("summary", json!("x".repeat(DRAFT_BYTES_MAX))), "longer"),
            (r#"{"title":"a","title":"b","summary":"","sections":[]}"#.to_owned(), "one JSON object"),
        ] {
            let why = draft(&text).expect_err(&text);
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(is_yes(r#"{"faithful": true, "reasons": []}"#));
        for no in ["", "true", "yes", r#"{"faithful": "true"}"#, r#"{"faithful": false}"#, r#"{"faithful": 1}"#, "{}"] {
            assert!(!is_yes(no), "{no}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange_to_be_read(text in "\\PC{0,300}") {
            let _ = draft(&text);
            prop_assert!(!is_yes(&text) || text.contains("faithful"));
        }
    }
}
