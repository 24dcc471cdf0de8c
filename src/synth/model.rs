//! A language model as a synthesizer: it is told the facts and the rules, its answer is read strictly, and what it costs is written
//! down call by call. What it says is a proposal; nothing here decides whether it may be sold.

mod client;
mod prompt;
mod reading;
mod wire;

use std::time::Duration;

use async_trait::async_trait;

use crate::canonical::sha256_hex;
use crate::memo::{Draft, Snapshot};
use crate::money::UsdMicros;
use crate::pipeline::port::{Assignment, Meter, Opinion, SynthesisError, Synthesizer};

pub use client::BadModel;
use client::{Client, Failure};
pub use wire::Api;

/// What is spoken to, and how.
#[derive(Clone, Debug)]
pub struct ModelTerms {
    /// The API.
    pub api: Api,
    /// Its base URL, without a slash at its end.
    pub url: String,
    /// The model, by its name there.
    pub model: String,
    /// How long one call may take.
    pub timeout: Duration,
    /// What tokens cost.
    pub price: Price,
    /// Whether a second call reviews each draft.
    pub judge: bool,
}

/// Dollar micros for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Read by the model.
    pub input: UsdMicros,
    /// Written by it.
    pub output: UsdMicros,
}

/// A model that writes memos.
#[derive(Debug)]
pub struct ModelWriter {
    client: Client,
    judge: bool,
    identity: String,
}

impl ModelWriter {
    /// A writer; `key` is sent with each call and stands in no log and no error. No call is made.
    pub fn new(terms: ModelTerms, key: Option<&str>) -> Result<Self, BadModel> {
        let identity = [
            terms.api.name(),
            &terms.url,
            &terms.model,
            &format!("judge {}", terms.judge),
            &sha256_hex(prompt::ALL.concat().as_bytes()),
        ]
        .join(" ");
        let judge = terms.judge;
        Ok(Self { client: Client::new(terms, key)?, judge, identity })
    }

    /// Asks the API for its models, which costs nothing: whether ours is among them, in words for the operator.
    pub async fn check(&self) -> Result<String, String> {
        self.client.check().await
    }
}

#[async_trait]
impl Synthesizer for ModelWriter {
    fn name(&self) -> &'static str {
        self.client.api().name()
    }

    fn identity(&self) -> Option<&str> {
        Some(&self.identity)
    }

    async fn draft(&self, assignment: &Assignment<'_>) -> Result<Draft, SynthesisError> {
        let question = prompt::memo(assignment);
        match self.client.ask(prompt::RULES, &question, assignment.meter).await {
            Ok(text) => reading::draft(&text).map_err(SynthesisError::Unusable),
            Err(Failure::Unusable(why)) => Err(SynthesisError::Unusable(why)),
            Err(Failure::Unavailable(why)) => Err(SynthesisError::Unavailable(why)),
        }
    }

    /// Anything but a clear yes is a no.
    async fn review(&self, snapshot: &Snapshot, draft: &Draft, meter: &Meter) -> Opinion {
        if !self.judge {
            return Opinion::Skipped;
        }
        match self.client.ask(prompt::REVIEW_RULES, &prompt::review(snapshot, draft), meter).await {
            Ok(text) if reading::is_yes(&text) => Opinion::Faithful,
            Ok(_) => Opinion::Refused,
            Err(Failure::Unusable(why) | Failure::Unavailable(why)) => {
                tracing::warn!(why, "a review could not be had, so its draft is refused");
                Opinion::Refused
            }
        }
    }
}
