use super::super::tests::any_json;
use super::super::{canonical_json, sha256_hex};
use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn canonical(text: &str) -> Option<String> {
    let (mut tape, mut scratch) = (Tape::default(), Scratch::default());
    let view = tape.read(text).ok()?;
    Some(String::from_utf8(view.canonical(&mut scratch).to_vec()).expect("canonical text is UTF-8"))
}

#[test]
fn text_is_read_as_javascript_reads_it() {
    for (text, want) in [
        ("1e999", "null"),
        ("[-0,1.0,1e21,0.1e-6,9007199254740993,00000]", ""),
        ("[-0,1.0,1e21,0.1e-6,9007199254740993]", "[0,1,1e+21,1e-7,9007199254740992]"),
        (r#""\ud83d\ude00""#, "\"\u{1f600}\""),
        (r#""\ude00\ud83d""#, r#""\ude00\ud83d""#),
        (r#""\ud83dx""#, r#""\ud83dx""#),
        (r#"{"a":1,"b":2,"a":3,"\u0061":4}"#, r#"{"a":4,"b":2}"#),
        (
            r#"{"\udc00":1,"\ud83d\ude00":2,"a\ud800":3,"a":4}"#,
            "{\"a\":4,\"a\\ud800\":3,\"\u{1f600}\":2,\"\\udc00\":1}",
        ),
        ("{\"\u{e000}\":1,\"\u{10000}\":2}", "{\"\u{10000}\":2,\"\u{e000}\":1}"),
        (r#""\/\b""#, r#""/\b""#),
        ("[1,,2]", ""),
        ("[1] 2", ""),
        ("\"a\tb\"", ""),
        ("\u{feff}1", ""),
        ("", ""),
    ] {
        assert_eq!(canonical(text).unwrap_or_default(), want, "{text}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(canonical(&nested(limits::PROOF_DEPTH_MAX)).is_some());
    assert!(canonical(&nested(limits::PROOF_DEPTH_MAX + 1)).is_none());
}

#[test]
fn a_member_is_left_out_at_the_top_only() {
    let (mut tape, mut scratch) = (Tape::default(), Scratch::default());
    let view = tape.read(r#"{"b":{"id":1},"\u0069d":2,"a":0}"#).expect("JSON");
    assert_eq!(view.canonical_without(&mut scratch, Some("id")), br#"{"a":0,"b":{"id":1}}"#);
    assert_eq!(sha256_hex(view.canonical(&mut scratch)).len(), 64);
}

proptest! {
    #[test]
    fn the_tape_and_the_tree_write_the_same(value in any_json()) {
        let want = serde_json_canonicalizer::to_string(&value).expect("canonical");
        prop_assert_eq!(canonical(&value.to_string()).expect("JSON"), want.clone());
        prop_assert_eq!(canonical(&serde_json::to_string_pretty(&value).expect("text")).expect("JSON"), want.clone());
        prop_assert_eq!(canonical_json(&value), want);
    }

    #[test]
    fn what_serde_reads_the_tape_reads(text in r#"[\[\]{}",:0-9eE+\-.\\u a-f]{0,24}"#) {
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(canonical(&text), Some(canonical_json(&value)));
        }
    }
}
