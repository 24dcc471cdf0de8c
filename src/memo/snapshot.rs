//! The facts that one memo may state, as they were gathered.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use time::OffsetDateTime;

use super::derived;
use super::fact::Fact;
use super::fingerprint::Fingerprint;
use crate::limits;

/// What a memo is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// Ticker, upper case, as `BRK-B`.
    pub ticker: String,
    /// SEC number of the filer.
    pub cik: u64,
    /// Name of the company.
    pub name: String,
}

/// How much of the product's fact list could be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// Everything that the product lists.
    Complete,
    /// The core is there, something is missing and named in `limits`.
    Partial,
    /// Only a few facts.
    Narrow,
}

/// The facts of one run. Fields are private: a snapshot is valid from the moment it exists. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Snapshot(Arc<Gathered>);

#[derive(Debug)]
struct Gathered {
    subject: Subject,
    as_of: OffsetDateTime,
    facts: Vec<Fact>,
    coverage: Coverage,
    limits: Vec<String>,
    /// Made on first use.
    json: OnceLock<Box<RawValue>>,
    /// Made on first use.
    fingerprint: OnceLock<Fingerprint>,
}

/// Why a set of facts is no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Two facts have one id.
    #[error("two facts have the id {0}")]
    DuplicateId(String),
    /// A derived fact names a fact that is not there.
    #[error("fact {fact} is derived from {missing}, which is not in the snapshot")]
    MissingInput {
        /// The derived fact.
        fact: String,
        /// The id that is missing.
        missing: String,
    },
    /// A derived fact is not what its formula gives.
    #[error("fact {0} is not what its formula gives")]
    Arithmetic(String),
    /// More facts than [`limits::FACTS_MAX`].
    #[error("{0} facts are more than a snapshot may hold")]
    TooMany(usize),
}

impl Snapshot {
    /// Checks ids, inputs and arithmetic of derived facts. `limits` are sentences for the buyer: what is missing, recorded or stale.
    pub fn new(
        subject: Subject,
        as_of: OffsetDateTime,
        facts: Vec<Fact>,
        coverage: Coverage,
        limits: Vec<String>,
    ) -> Result<Self, Invalid> {
        if facts.len() > limits::FACTS_MAX {
            return Err(Invalid::TooMany(facts.len()));
        }
        let mut ids = HashMap::new();
        for fact in &facts {
            if ids.insert(fact.id.as_str(), fact).is_some() {
                return Err(Invalid::DuplicateId(fact.id.clone()));
            }
        }
        for fact in &facts {
            if let Some(missing) = fact.derived_from.iter().find(|id| !ids.contains_key(id.as_str())) {
                return Err(Invalid::MissingInput { fact: fact.id.clone(), missing: missing.clone() });
            }
            if !derived::holds(fact, |id| ids.get(id).copied()) {
                return Err(Invalid::Arithmetic(fact.id.clone()));
            }
        }
        let (json, fingerprint) = (OnceLock::new(), OnceLock::new());
        Ok(Self(Arc::new(Gathered { subject, as_of, facts, coverage, limits, json, fingerprint })))
    }

    /// What the facts are about.
    pub fn subject(&self) -> &Subject {
        &self.0.subject
    }

    /// When the facts were retrieved; for recorded data, when they were recorded.
    pub fn as_of(&self) -> OffsetDateTime {
        self.0.as_of
    }

    /// The facts, in the order of their ids.
    pub fn facts(&self) -> &[Fact] {
        &self.0.facts
    }

    /// How much of the list could be filled.
    pub fn coverage(&self) -> Coverage {
        self.0.coverage
    }

    /// Sentences for the buyer.
    pub fn limits(&self) -> &[String] {
        &self.0.limits
    }

    /// The facts as the JSON of an answer has them, made once.
    pub fn facts_json(&self) -> &RawValue {
        self.0.json.get_or_init(|| to_raw_value(&self.0.facts).expect("facts are text, numbers and lists of them"))
    }

    /// What a memo over these facts depends on, as one digest, made once.
    pub fn fingerprint(&self) -> Fingerprint {
        *self.0.fingerprint.get_or_init(|| Fingerprint::of(self))
    }
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        let key = |s: &Self| (s.subject().clone(), s.as_of(), s.coverage());
        Arc::ptr_eq(&self.0, &other.0)
            || (key(self) == key(other) && self.facts() == other.facts() && self.limits() == other.limits())
    }
}

impl Eq for Snapshot {}
