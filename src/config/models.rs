//! Who writes memos: jim's own renderer, or a language model behind one of two APIs.

use std::path::PathBuf;
use std::time::Duration;

use super::raw::Raw;
use super::{Error, bad, base_url, filled};
use crate::limits;
use crate::money::UsdMicros;
use crate::synth::model::{Api, Price};

/// A language model that writes memos.
#[derive(Clone, Debug)]
pub struct Model {
    /// How it is spoken to.
    pub api: Api,
    /// Base URL, without a slash at its end.
    pub url: String,
    /// Its name at the API.
    pub name: String,
    /// File with the key; None: none is sent.
    pub api_key_file: Option<PathBuf>,
    /// How long one call may take.
    pub timeout: Duration,
    /// What its tokens cost.
    pub price: Price,
    /// Whether a second call reviews each draft that the gate accepted.
    pub judge: bool,
    /// Whether the renderer writes when the model's drafts cannot be used.
    pub fallback: bool,
}

impl Model {
    /// Legal but risky combinations, as sentences for the log.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.price == Price::default() {
            out.push("synth.input_usd and synth.output_usd are 0: the ledger books every draft as free".to_owned());
        }
        if self.api_key_file.is_some() && self.url.starts_with("http://") {
            out.push("synth.url is not https: the API key can be read by anybody on the way".to_owned());
        }
        out
    }
}

/// The model that the settings name; None: the renderer writes.
pub(super) fn model(all: &Raw) -> Result<Option<Model>, Error> {
    let raw = &all.synth;
    let api = match raw.kind.as_str() {
        "renderer" => return Ok(None),
        "openai" => Api::OpenAi,
        "anthropic" => Api::Anthropic,
        other => return Err(bad("synth.kind", other, "must be renderer, openai or anthropic")),
    };
    let name = filled(&raw.model).ok_or_else(|| bad("synth.model", "", "name the model that is to write"))?;
    let api_key_file = filled(&raw.api_key_file).map(PathBuf::from);
    let url = filled(&raw.url).map(|url| base_url("synth.url", url)).transpose()?;
    if api_key_file.is_none() && url.is_none() {
        return Err(bad("synth.api_key_file", "", "name a file with the key; only a server of your own needs none"));
    }
    let timeout = Duration::from_secs(raw.timeout_s);
    if timeout.is_zero() || timeout > limits::WORK_BUDGET {
        let why = format!("must be 1 to {}: a run takes no longer", limits::WORK_BUDGET.as_secs());
        return Err(bad("synth.timeout_s", &raw.timeout_s.to_string(), &why));
    }
    let price = |key: &'static str, text: &str| -> Result<UsdMicros, Error> {
        text.parse().map_err(|_| bad(key, text, "must be dollars for a million tokens, as 2.50"))
    };
    Ok(Some(Model {
        api,
        url: url.unwrap_or_else(|| api.default_url().to_owned()),
        name: name.to_owned(),
        api_key_file,
        timeout,
        price: Price {
            input: price("synth.input_usd", &raw.input_usd)?,
            output: price("synth.output_usd", &raw.output_usd)?,
        },
        judge: raw.judge,
        fallback: raw.fallback,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::with;
    use super::*;

    #[test]
    fn the_renderer_is_the_default() {
        assert!(with("").expect("the defaults").model.is_none());
    }

    #[test]
    fn a_model_is_named_with_its_api_its_key_and_its_price() {
        let toml =
            "[synth]\nkind = 'anthropic'\nmodel = 'm-1'\napi_key_file = '/k'\ninput_usd = '3'\noutput_usd = '15.25'\n";
        let model = with(toml).expect("complete").model.expect("a model");
        assert_eq!(
            (model.api, model.url.as_str(), model.fallback),
            (Api::Anthropic, "https://api.anthropic.com", true)
        );
        assert_eq!((model.price.input, model.price.output), (UsdMicros(3_000_000), UsdMicros(15_250_000)));
        assert_eq!(model.warnings(), [""; 0]);
        let open = with("[synth]\nkind = 'openai'\nmodel = 'm'\nurl = 'http://127.0.0.1:8000'\napi_key_file = '/k'\n");
        assert_eq!(open.expect("legal").model.expect("a model").warnings().len(), 2);
        let own = with("[synth]\nkind = 'openai'\nmodel = 'm'\nurl = 'http://127.0.0.1:8000/v1/'\n").expect("no key");
        assert_eq!(own.model.expect("a model").url, "http://127.0.0.1:8000/v1");
        for (toml, word) in [
            ("kind = 'gpt'", "must be renderer"),
            ("kind = 'openai'", "synth.model"),
            ("kind = 'openai'\nmodel = 'm'", "synth.api_key_file"),
            ("kind = 'openai'\nmodel = 'm'\nurl = 'ftp://x'", "synth.url"),
            ("kind = 'openai'\nmodel = 'm'\napi_key_file = '/k'\ntimeout_s = 0", "synth.timeout_s"),
            ("kind = 'openai'\nmodel = 'm'\napi_key_file = '/k'\ninput_usd = 'free'", "synth.input_usd"),
        ] {
            let text = with(&format!("[synth]\n{toml}")).expect_err(toml).to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}
