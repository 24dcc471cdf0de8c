//! The two APIs on the wire: OpenAI's chat completions, which many servers speak, and Anthropic's messages.

use serde_json::{Value, json};

use super::Price;
use crate::limits::{FOREIGN_TEXT_CHARS_MAX, MODEL_TOKENS_MAX};
use crate::money::UsdMicros;
use crate::pipeline::port::Tokens;

/// The version of Anthropic's API that is spoken.
pub(super) const ANTHROPIC_VERSION: &str = "2023-06-01";

/// How a model is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `POST {url}/chat/completions`.
    OpenAi,
    /// `POST {url}/v1/messages`.
    Anthropic,
}

/// What a call that was answered with success holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// The text, or why there is none to use.
    pub(super) text: Result<String, String>,
    /// What the API counted; None where it does not say.
    pub(super) tokens: Option<Tokens>,
}

impl Api {
    /// Name in settings and in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// Base URL of the company's own servers.
    pub fn default_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }

    /// Path of a call, after the base URL.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "chat/completions",
            Self::Anthropic => "v1/messages",
        }
    }

    /// Path of the list of models, after the base URL.
    pub(super) fn models_path(self) -> &'static str {
        match self {
            Self::OpenAi => "models",
            Self::Anthropic => "v1/models?limit=1000",
        }
    }

    /// The body of a call.
    pub(super) fn request(self, model: &str, rules: &str, question: &str) -> Value {
        match self {
            Self::OpenAi => json!({
                "model": model,
                "max_completion_tokens": MODEL_TOKENS_MAX,
                "response_format": {"type": "json_object"},
                "messages": [{"role": "system", "content": rules}, {"role": "user", "content": question}],
            }),
            Self::Anthropic => json!({
                "model": model,
                "max_tokens": MODEL_TOKENS_MAX,
                "system": rules,
                "messages": [{"role": "user", "content": question}],
            }),
        }
    }

    /// Reads the body of a call that was answered with success.
    pub(super) fn read(self, body: &Value) -> Completion {
        match self {
            Self::OpenAi => read_openai(body),
            Self::Anthropic => read_anthropic(body),
        }
    }
}

impl Price {
    /// What tokens cost, rounded up to a whole micro; the greatest amount where it does not fit.
    pub(super) fn of(&self, tokens: Tokens) -> UsdMicros {
        let part = |price: UsdMicros, count: u64| i128::from(price.0).saturating_mul(i128::from(count));
        let sum = part(self.input, tokens.input).saturating_add(part(self.output, tokens.output));
        let micros = sum.saturating_add(999_999) / 1_000_000;
        UsdMicros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

fn read_openai(body: &Value) -> Completion {
    let choice = &body["choices"][0];
    let message = &choice["message"];
    let text = match (message["refusal"].as_str(), choice["finish_reason"].as_str(), message["content"].as_str()) {
        (Some(refusal), _, _) if !refusal.is_empty() => Err(format!("the model refused: {}", clean(refusal))),
        (_, Some("length"), _) => Err("the answer was cut off at its greatest length; write less".to_owned()),
        (_, Some("content_filter"), _) => Err("the answer was withheld by a filter".to_owned()),
        (_, _, Some(text)) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("the answer was empty".to_owned()),
    };
    Completion { text, tokens: tokens(body, "prompt_tokens", "completion_tokens") }
}

fn read_anthropic(body: &Value) -> Completion {
    let blocks = body["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    let whole: String = texts.collect();
    let text = match body["stop_reason"].as_str() {
        Some("refusal") => Err("the model refused".to_owned()),
        Some("max_tokens" | "model_context_window_exceeded") => {
            Err("the answer was cut off at its greatest length; write less".to_owned())
        }
        _ if whole.trim().is_empty() => Err("the answer was empty".to_owned()),
        _ => Ok(whole),
    };
    let mut tokens = tokens(body, "input_tokens", "output_tokens");
    if let Some(tokens) = &mut tokens {
        // what was read from or written to the API's cache is counted apart
        for kept in ["cache_creation_input_tokens", "cache_read_input_tokens"] {
            tokens.input = tokens.input.saturating_add(body["usage"][kept].as_u64().unwrap_or(0));
        }
    }
    Completion { text, tokens }
}

fn tokens(body: &Value, input: &str, output: &str) -> Option<Tokens> {
    let usage = &body["usage"];
    Some(Tokens { input: usage[input].as_u64()?, output: usage[output].as_u64()? })
}

/// What an API says of an error, fit for a log.
pub(super) fn error_text(body: &Value) -> String {
    let error = &body["error"];
    let words = [error["type"].as_str(), error["code"].as_str(), error["message"].as_str()];
    let text: Vec<&str> = words.into_iter().flatten().collect();
    clean(&text.join(": "))
}

/// Printable ASCII, cut.
fn clean(text: &str) -> String {
    text.chars().filter(|c| (' '..='~').contains(c)).take(FOREIGN_TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_rounded_up_and_never_overflows() {
        let price = Price { input: UsdMicros(3_000_000), output: UsdMicros(15_000_000) };
        assert_eq!(price.of(Tokens { input: 1_000, output: 200 }), UsdMicros(6_000));
        assert_eq!(price.of(Tokens { input: 0, output: 0 }), UsdMicros(0));
        let cheap = Price { input: UsdMicros(1), output: UsdMicros(0) };
        assert_eq!(cheap.of(Tokens { input: 1, output: 0 }), UsdMicros(1));
        let most = Price { input: UsdMicros(i64::MAX), output: UsdMicros(i64::MAX) };
        assert_eq!(most.of(Tokens { input: u64::MAX, output: u64::MAX }), UsdMicros(i64::MAX));
    }

    #[test]
    fn answers_of_both_apis_are_read_with_what_they_used() {
        let openai = |message: Value, reason: &str| {
            Api::OpenAi.read(&json!({
                "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
            }))
        };
        let anthropic = |content: Value, reason: &str| {
            Api::Anthropic.read(&json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason,
                "usage": {"input_tokens": 4, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 6, "output_tokens": 3},
            }))
        };
        let good = [
            openai(json!({"role": "assistant", "content": "{}", "refusal": null}), "stop"),
            anthropic(
                json!([{"type": "text", "text": "{"}, {"type": "thinking"}, {"type": "text", "text": "}"}]),
                "end_turn",
            ),
        ];
        for read in good {
            assert_eq!(read, Completion { text: Ok("{}".into()), tokens: Some(Tokens { input: 10, output: 3 }) });
        }
        let bad = [
            (
                openai(json!({"role": "assistant", "content": null, "refusal": "I can't\n."}), "stop"),
                "refused: I can't.",
            ),
            (openai(json!({"role": "assistant", "content": "{\"ti", "refusal": null}), "length"), "cut off"),
            (openai(json!({"role": "assistant", "content": "", "refusal": null}), "stop"), "empty"),
            (openai(json!({"role": "assistant", "content": "x"}), "content_filter"), "filter"),
            (anthropic(json!([]), "refusal"), "refused"),
            (anthropic(json!([{"type": "text", "text": "{\"ti"}]), "max_tokens"), "cut off"),
            (anthropic(json!([]), "end_turn"), "empty"),
        ];
        for (read, word) in bad {
            assert!(read.text.as_ref().is_err_and(|why| why.contains(word)), "{read:?}");
            assert_eq!(read.tokens, Some(Tokens { input: 10, output: 3 }), "what was answered is paid for");
        }
        assert_eq!(Api::OpenAi.read(&json!({})).tokens, None);
    }
}
