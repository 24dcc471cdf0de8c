//! Canonical JSON against suites made by others: RFC 8785 documents, and the doubles of the ECMAScript number suite.

use jim::canonical::{Scratch, Tape};
use serde_json::Value;

fn suite(name: &str) -> Option<String> {
    let Ok(folder) = std::env::var("JIM_TEST_DATA") else {
        eprintln!("skipped: JIM_TEST_DATA does not name the folder with vectors/jcs");
        return None;
    };
    let path = std::path::Path::new(&folder).join("vectors/jcs").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(std::fs::read_to_string(path).expect("the suite reads"))
}

fn canonical(text: &str) -> Vec<u8> {
    Tape::default().read(text).expect("JSON").canonical(&mut Scratch::default()).to_vec()
}

#[test]
fn documents_of_the_rfc() {
    let Some(text) = suite("documents.json") else { return };
    for case in serde_json::from_str::<Vec<Value>>(&text).expect("a list") {
        if case["app"] == "same" {
            let input = case["input"].as_str().expect("text");
            assert_eq!(jim::canonical::hex(&canonical(input)), case["outputHex"], "{}", case["name"]);
        }
    }
}

#[test]
fn texts_of_the_protocol() {
    let Some(text) = suite("app_canonical.json") else { return };
    let file: Value = serde_json::from_str(&text).expect("JSON");
    for case in file["texts"].as_array().expect("texts") {
        let got = canonical(case["input"].as_str().expect("text"));
        assert_eq!(String::from_utf8_lossy(&got), case["canonical"].as_str().expect("text"), "{}", case["name"]);
    }
}

#[test]
fn doubles_are_written_as_javascript_writes_them() {
    let Some(text) = suite("es6_numbers.txt") else { return };
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (bits, want) = line.split_once(',').expect("bits and text");
        let number = f64::from_bits(u64::from_str_radix(bits, 16).expect("hex"));
        if number.is_finite() {
            // the shortest text that reads back as this double
            assert_eq!(canonical(&format!("{number:e}")), want.as_bytes(), "{bits}");
        }
    }
}
