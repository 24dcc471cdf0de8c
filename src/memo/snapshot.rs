//! The facts that one memo may state, as they were gathered.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::derived;
use super::fact::Fact;
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

/// The facts of one run. Fields are private: a snapshot is valid from the moment it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    subject: Subject,
    as_of: OffsetDateTime,
    facts: Vec<Fact>,
    coverage: Coverage,
    limits: Vec<String>,
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
        Ok(Self { subject, as_of, facts, coverage, limits })
    }

    /// What the facts are about.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// When the facts were retrieved; for recorded data, when they were recorded.
    pub fn as_of(&self) -> OffsetDateTime {
        self.as_of
    }

    /// The facts, in the order of their ids.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// How much of the list could be filled.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Sentences for the buyer.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }
}
