//! Reads the input of a product, from query parameters or a JSON body alike.
//!
//! Absent or empty input is no error: the caller is shown the terms. Present but invalid input is refused before any payment is
//! looked at; a parameter that nobody asked for is a typing error of a buyer who would pay for the wrong thing.

use serde::Serialize;
use serde_json::Value;

use crate::memo::Mode;

/// What a ticker looks like. Anything else (look-alike letters of other scripts included) is no ticker.
pub const TICKER_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9.-]{0,9}$";

/// Longest ticker.
const TICKER_CHARS_MAX: usize = 10;

/// Form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The whole answer.
    #[default]
    Json,
    /// The memo in Markdown.
    Md,
    /// The memo as a page.
    Html,
}

/// A valid request for a fundamentals memo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fundamentals {
    /// Upper case, class shares by dash.
    pub ticker: String,
    /// Who it is for.
    pub mode: Mode,
    /// Form of the answer.
    pub format: Format,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing, or only empty values: show the terms.
    Absent,
    /// A request that can be worked on.
    Asked(Fundamentals),
    /// A request that cannot; the text says what is wrong.
    Invalid(String),
}

/// Reads names and values; a name may stand once.
pub fn read(pairs: &[(String, String)]) -> Input {
    if pairs.iter().all(|(_, value)| value.trim().is_empty()) {
        return Input::Absent;
    }
    let (mut ticker, mut mode, mut format) = (None, None, None);
    for (name, value) in pairs {
        let slot = match name.as_str() {
            "ticker" => &mut ticker,
            "mode" => &mut mode,
            "format" => &mut format,
            other => {
                return Input::Invalid(format!(
                    "unknown parameter {}; known are ticker, mode and format",
                    shown(other)
                ));
            }
        };
        if slot.replace(value.trim()).is_some() {
            return Input::Invalid(format!("parameter {name} stands twice"));
        }
    }
    let mode = match mode.filter(|m| !m.is_empty()) {
        None | Some("agent") => Mode::Agent,
        Some("human") => Mode::Human,
        Some(other) => return Input::Invalid(format!("mode must be agent or human, not {}", shown(other))),
    };
    let format = match format.filter(|f| !f.is_empty()) {
        None | Some("json") => Format::Json,
        Some("md") => Format::Md,
        Some("html") => Format::Html,
        Some(other) => return Input::Invalid(format!("format must be json, md or html, not {}", shown(other))),
    };
    match ticker.filter(|t| !t.is_empty()) {
        None => Input::Absent,
        Some(text) => match normalise_ticker(text) {
            Some(ticker) => Input::Asked(Fundamentals { ticker, mode, format }),
            None => Input::Invalid(format!("{} is not a ticker; it must match {TICKER_PATTERN}", shown(text))),
        },
    }
}

/// Reads a JSON body: an object whose members are text. `null` counts as absent.
pub fn pairs_of(body: &Value) -> Result<Vec<(String, String)>, String> {
    let Value::Object(map) = body else {
        return Err("the body must be a JSON object".into());
    };
    map.iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name.clone(), text.clone())),
            _ => Err(format!("member {} must be text", shown(name))),
        })
        .collect()
}

/// Upper case with class shares by dash, or None when it is no ticker.
pub fn normalise_ticker(text: &str) -> Option<String> {
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
    let starts_well = text.bytes().next()?.is_ascii_alphanumeric();
    (starts_well && text.len() <= TICKER_CHARS_MAX && text.bytes().all(good))
        .then(|| text.to_ascii_uppercase().replace('.', "-"))
}

/// A bounded, printable form of what a caller sent.
fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(40).flat_map(char::escape_default).collect();
    if text.chars().nth(40).is_some() {
        out.push_str("...");
    }
    format!("\"{out}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(pairs: &[(&str, &str)]) -> Input {
        read(&pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>())
    }

    #[test]
    fn absent_and_empty_input_shows_the_terms() {
        for pairs in [&[][..], &[("ticker", "")], &[("ticker", "  ")], &[("mode", "human")], &[("foo", "")]] {
            assert_eq!(ask(pairs), Input::Absent, "{pairs:?}");
        }
    }

    #[test]
    fn a_ticker_is_read_in_any_case_and_class_shares_by_dash() {
        for text in ["BRK.B", "brk-b", " brk.b "] {
            let Input::Asked(asked) = ask(&[("ticker", text)]) else { panic!("{text} was not read") };
            assert_eq!(asked.ticker, "BRK-B");
        }
    }

    #[test]
    fn invalid_input_says_what_is_wrong() {
        for (pairs, word) in [
            (&[("ticker", "C\u{41e}IN")][..], "ticker"),
            (&[("ticker", "COIN\u{202e}")], "ticker"),
            (&[("ticker", "ABCDEFGHIJK")], "ticker"),
            (&[("ticker", "COIN"), ("ticker", "AAPL")], "twice"),
            (&[("ticker", "COIN"), ("mode", "fast")], "mode"),
            (&[("ticker", "COIN"), ("format", "pdf")], "format"),
            (&[("tickr", "COIN")], "tickr"),
        ] {
            let Input::Invalid(text) = ask(pairs) else { panic!("{pairs:?} was accepted") };
            assert!(text.contains(word), "{text:?} does not name {word}");
            assert!(text.is_ascii(), "{text:?}");
        }
    }

    #[test]
    fn a_body_is_an_object_of_texts() {
        assert_eq!(pairs_of(&json!({"ticker": "COIN", "mode": null})), Ok(vec![("ticker".into(), "COIN".into())]));
        assert!(pairs_of(&json!(["COIN"])).is_err());
        assert!(pairs_of(&json!({"ticker": 7})).is_err());
    }
}
