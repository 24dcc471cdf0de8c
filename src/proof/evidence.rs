//! Evidence records, section 3: one observed run of one check, named by its own content.

use serde::{Deserialize, Serialize, Serializer};

use super::address::{Digest, dirt_digest};
use super::output;
use super::vocabulary::{CheckKind, Source, Status};
use crate::canonical::{self, Scratch, Tape, View};

/// What was observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// Stable id of the check.
    pub check_id: String,
    /// What people call it.
    pub label: String,
    /// What kind of check it is.
    pub kind: CheckKind,
    /// What was run, as arguments.
    pub command: Vec<String>,
    /// Where the check was found; absent on old records.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<Source>,
    /// How it ended.
    pub status: Status,
    /// Exit code; none when there was none.
    pub exit_code: Option<i64>,
    /// How long it took, in milliseconds.
    #[serde(serialize_with = "number")]
    pub duration_ms: f64,
    /// Digest of the normalised output.
    pub output_digest: String,
    /// Excerpt of the normalised output.
    pub output_head: String,
    /// Set when the excerpt leaves something out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_truncated: Option<bool>,
    /// UTF-16 units that it leaves out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_omitted_chars: Option<u64>,
    /// How a conjured test came to be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub synthetic: Option<Synthetic>,
    /// Which changed paths the run touched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub coverage: Option<Coverage>,
    /// When, in UTC with milliseconds: `2026-09-01T08:00:00.000Z`.
    pub recorded_at: String,
    /// What it ran on.
    pub workspace: Workspace,
}

/// How a conjured test came to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Synthetic {
    /// Digest of the test.
    pub script_digest: String,
    /// Where it ran.
    pub sandbox: String,
    /// What it was screened for.
    pub screened: Vec<String>,
    /// Who wrote it.
    pub author: String,
}

/// Which changed paths a run touched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Changed and executed.
    pub changed_executed: Vec<String>,
    /// Changed and not executed.
    pub changed_uncovered: Vec<String>,
}

/// The state that a check ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    /// Digest of the code or of the rules.
    pub head: Option<String>,
    /// What differs from it, sorted.
    pub dirty: Vec<String>,
    /// Digest of the list.
    pub dirt_digest: String,
    /// Digests of the contents, by path.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dirty_digests: Option<serde_json::Map<String, serde_json::Value>>,
    /// Set when the state could not be read in full.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub git_degraded: Option<bool>,
}

/// A record: an observation with the address of its content. Only [`Evidence::seal`] makes one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stated")]
pub struct Evidence {
    #[serde(flatten)]
    observed: Observation,
    #[serde(rename = "evidenceId")]
    id: String,
    /// The record as lines carry it.
    #[serde(skip)]
    json: String,
}

/// A record as somebody states it.
#[derive(Deserialize)]
struct Stated {
    #[serde(flatten)]
    observed: Observation,
    #[serde(rename = "evidenceId")]
    id: String,
}

impl TryFrom<Stated> for Evidence {
    type Error = Unsealable;

    fn try_from(stated: Stated) -> Result<Self, Unsealable> {
        let sealed = Self::seal(stated.observed)?;
        if sealed.id == stated.id { Ok(sealed) } else { Err(Unsealable::OtherContent) }
    }
}

/// The observation cannot be addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsealable {
    /// A duration that is no number, or less than nothing.
    #[error("the duration is not a finite number of milliseconds")]
    Duration,
    /// A stated id that is not the address of the content, or content that we do not know.
    #[error("the id of the record is not the address of its content")]
    OtherContent,
}

impl Workspace {
    /// A state named by a digest and by what differs from it.
    pub fn new(head: String, mut dirty: Vec<String>) -> Self {
        dirty.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
        let dirt_digest = dirt_digest(dirty.iter().map(String::as_str));
        Self { head: Some(head), dirty, dirt_digest, dirty_digests: None, git_degraded: None }
    }
}

impl Observation {
    /// Sets digest and excerpt from normalised output.
    pub fn set_output(&mut self, normalised: &str) {
        self.output_digest = canonical::sha256_hex(normalised.as_bytes());
        let excerpt = output::head(normalised, output::EXCERPT_UNITS);
        let omitted = excerpt.omitted_units;
        self.output_head = excerpt.text;
        (self.output_truncated, self.output_omitted_chars) =
            if omitted > 0 { (Some(true), Some(omitted)) } else { (None, None) };
    }
}

impl Evidence {
    /// Names an observation by its content.
    pub fn seal(observed: Observation) -> Result<Self, Unsealable> {
        Self::seal_with(observed, &mut Tape::default(), &mut Scratch::default())
    }

    /// [`Evidence::seal`] with memory that is used again.
    pub(super) fn seal_with(observed: Observation, tape: &mut Tape, scratch: &mut Scratch) -> Result<Self, Unsealable> {
        if !observed.duration_ms.is_finite() || observed.duration_ms < 0.0 {
            return Err(Unsealable::Duration);
        }
        let text = serde_json::to_string(&observed).expect("text, numbers and lists of them serialize");
        let view = tape.read(&text).expect("what was written is JSON");
        let content = std::str::from_utf8(view.canonical(scratch)).expect("canonical text is UTF-8");
        let id = canonical::sha256_hex(content.as_bytes());
        let json = format!("{},\"evidenceId\":\"{id}\"}}", &content[..content.len() - 1]);
        Ok(Self { observed, id, json })
    }

    /// What was observed.
    pub fn observed(&self) -> &Observation {
        &self.observed
    }

    /// The record as JSON, in canonical order with its id at the end.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The address of the content.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Whether a record carries the address of its own content.
pub fn is_self_addressed(record: View<'_>, scratch: &mut Scratch) -> bool {
    let Some(id) = record.get_text("evidenceId") else { return false };
    Digest::of(record.canonical_without(scratch, Some("evidenceId"))).is(&id.to_str())
}

/// A number as JavaScript prints it: whole ones without a point.
fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() <= crate::limits::SAFE_INTEGER_MAX as f64 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}
