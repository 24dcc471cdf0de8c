//! The settings as they are written, before they are checked: one struct per table of `config/jim.toml`.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) listen: String,
    pub(super) operator_listen: String,
    pub(super) public_url: String,
    pub(super) data_dir: String,
    pub(super) keys_dir: String,
    pub(super) database_url: String,
    pub(super) postgres_bin: String,
    pub(super) demo_faults: bool,
    pub(super) payments: Payments,
    pub(super) refunds: Refunds,
    pub(super) call_chain: CallChain,
    pub(super) synth: Synth,
    pub(super) filings: Filings,
    pub(super) freshness: Freshness,
    pub(super) policy: Policy,
    pub(super) operator: Operator,
    pub(super) limits: Limits,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Payments {
    #[serde(deserialize_with = "list_or_text")]
    pub(super) facilitator_url: Vec<String>,
    pub(super) network: String,
    pub(super) asset: String,
    pub(super) asset_decimals: u8,
    pub(super) asset_name: String,
    #[serde(deserialize_with = "text_or_number")]
    pub(super) asset_version: String,
    pub(super) pay_to: String,
    pub(super) contract_wallets: bool,
    #[serde(deserialize_with = "list_or_text")]
    pub(super) rails: Vec<String>,
    pub(super) upto_facilitator: String,
    pub(super) rpc_url: String,
    pub(super) confirmations: u32,
    pub(super) treasury_key_file: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refunds {
    #[serde(deserialize_with = "switch_or_empty")]
    pub(super) auto: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallChain {
    pub(super) identity: String,
    pub(super) max_depth: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Synth {
    pub(super) kind: String,
    pub(super) url: String,
    pub(super) model: String,
    pub(super) api_key_file: String,
    pub(super) timeout_s: u64,
    #[serde(deserialize_with = "text_or_number")]
    pub(super) input_usd: String,
    #[serde(deserialize_with = "text_or_number")]
    pub(super) output_usd: String,
    pub(super) max_attempts: u32,
    pub(super) fallback: bool,
    pub(super) judge: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filings {
    pub(super) source: String,
    pub(super) user_agent: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Freshness {
    pub(super) max_age_hours: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    #[serde(deserialize_with = "list_or_text")]
    pub(super) denied_subjects: Vec<String>,
    pub(super) payer_list_file: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operator {
    pub(super) token_file: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) rate_per_minute: u32,
    pub(super) max_in_flight: u32,
}

/// A variable that reads as a number (`2`) is still text here.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("text")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }
    deserializer.deserialize_any(Text)
}

/// true or false, or an empty text for what follows from other settings.
fn switch_or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    struct Switch;
    impl Visitor<'_> for Switch {
        type Value = Option<bool>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("true, false or an empty text")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Option<bool>, E> {
            if text.is_empty() { Ok(None) } else { Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)) }
        }

        fn visit_bool<E: Error>(self, on: bool) -> Result<Option<bool>, E> {
            Ok(Some(on))
        }
    }
    deserializer.deserialize_any(Switch)
}

/// A list, or its items in one text with commas between, as a variable is easily written.
fn list_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        List(Vec<String>),
        Text(String),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::List(list) => list,
        Either::Text(text) => text.split(',').map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect(),
    })
}
