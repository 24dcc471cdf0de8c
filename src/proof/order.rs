//! The chain of one sale: a workspace of its own, in two segments.
//!
//! The first is written with the answer or the refusal: the desk's baseline, one record per rule of the gate, the grade, a signed
//! checkpoint. The second is written with the outcome: one marker and its checkpoint together, so that no bundle ever shows a tail
//! that nobody signed. Records name facts and memo by digest and never carry text of the memo: a bundle is public to whoever knows
//! the order's id. Only `proven` may be charged.

mod answer;
mod rules;

use serde::Serialize;
use serde_json::{Map, Value, json};

pub use answer::{Answered, Finding, check_answer};
pub use rules::{RULES, Rule, registry_digest, rule};

use super::address::merkle_root;
use super::baseline::{Baseline, Flaw, Refused};
use super::chain::{Broken, Chain, Segment, Tail};
use super::evidence::{Evidence, Observation, Workspace};
use super::key::Sign;
use super::verdict::{self, Run};
use super::vocabulary::{CheckKind, Grade, Source, Status, Verdict};
use super::walk::{Entry, Walk};
use crate::canonical::{self, Scratch, Tape};
use crate::memo::gate::Report;
use crate::memo::{Draft, Fact};

/// Names what the work was done on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// Address of the facts, as the member `facts` of a JSON answer.
    pub facts: String,
    /// Address of the memo, as the member `memo` of a JSON answer; none when none was written.
    pub memo: Option<String>,
}

/// What the gate said.
#[derive(Clone, Copy, Debug)]
pub enum Judged<'a> {
    /// It judged a memo.
    Report(&'a Report),
    /// It had nothing to judge: a source or the writer failed.
    NotRun,
}

/// The work of one order.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The order.
    pub order_id: &'a str,
    /// When, in UTC with milliseconds.
    pub at: &'a str,
    /// How long the gate took, in milliseconds. One pass answers every rule: each record has an equal share.
    pub duration_ms: f64,
    /// What it was done on.
    pub inputs: &'a Inputs,
    /// What the gate said.
    pub judged: Judged<'a>,
}

/// The first segment of an order.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The bytes to store.
    pub segment: Segment,
    /// What the run concluded.
    pub grade: Grade,
    /// The root of the run's records.
    pub root: String,
}

/// How an order ended. Digests are lower-case hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Charged, and answered with this body.
    Delivered {
        /// SHA-256 of the body.
        body_sha256: &'a str,
        /// The transaction that settled it.
        tx: Option<&'a str>,
    },
    /// Not charged, and answered with this body.
    Refused {
        /// The code of the refusal.
        code: &'a str,
        /// SHA-256 of the body.
        body_sha256: &'a str,
    },
    /// Nobody knows whether the money moved.
    Unknown,
    /// The money went back.
    Refunded {
        /// The transaction that returned it.
        tx: Option<&'a str>,
    },
}

/// The desk's baseline with the text and digest that go on every chain.
#[derive(Clone, Debug)]
pub struct Desk {
    baseline: Baseline,
    file: String,
    file_sha256: String,
}

/// Why a desk has no baseline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDesk {
    /// The reference run was rejected: what it should pass would count as failing before.
    #[error("the reference run does not pass the gate")]
    Rejected,
    /// Not every rule has a decisive record.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The stored file is not the document that it says it is.
    #[error("the stored baseline does not hold: {0:?}")]
    Flawed(Vec<Flaw>),
    /// The stored file is of another set of rules: establish a new one.
    #[error("the stored baseline is of the rules {stored:?}")]
    OtherRules {
        /// Digest of the registry that it names.
        stored: Option<String>,
    },
}

/// The outcome cannot be said of this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an order of grade {grade} cannot be delivered")]
pub struct NotProven {
    /// Its grade.
    pub grade: Grade,
}

/// An order that was stored.
#[derive(Clone, Debug)]
pub struct Reopened {
    /// Where the next segment begins.
    pub tail: Tail,
    /// What the run concluded; none when no run is on the chain.
    pub grade: Option<Grade>,
}

/// The key of an order's workspace: the first 32 hex digits of SHA-256 over `jim/order/1`, a zero byte and the order's id.
pub fn workspace_key(order_id: &str) -> String {
    let mut key = canonical::sha256_hex(format!("jim/order/1\0{order_id}").as_bytes());
    key.truncate(32);
    key
}

impl Inputs {
    /// Addresses facts and memo.
    pub fn of(facts: &[Fact], draft: Option<&Draft>) -> Self {
        #[derive(Serialize)]
        struct Memo<'a> {
            #[serde(flatten)]
            draft: &'a Draft,
            markdown: String,
        }
        let memo = draft.map(|draft| address(&Memo { draft, markdown: draft.markdown() }));
        Self { facts: address(&facts), memo }
    }

    /// What a record's workspace names beside the rules.
    fn dirty(&self) -> Vec<String> {
        let memo = self.memo.iter().map(|memo| format!("memo/{memo}"));
        std::iter::once(format!("facts/{}", self.facts)).chain(memo).collect()
    }
}

fn address(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("facts and drafts serialize");
    let mut tape = Tape::default();
    let view = tape.read(&text).expect("what was written is JSON");
    canonical::sha256_hex(view.canonical(&mut Scratch::default()))
}

impl Desk {
    /// Keeps a reference run as the baseline of all orders.
    pub fn establish(at: &str, inputs: &Inputs, report: &Report) -> Result<Self, NoDesk> {
        if !report.passed {
            return Err(NoDesk::Rejected);
        }
        let work = Work { order_id: "", at, duration_ms: 0.0, inputs, judged: Judged::Report(report) };
        let checks = records(&work, None);
        let workspace = Workspace::new(registry_digest().to_owned(), inputs.dirty());
        Ok(Self::keep(Baseline::build(at.to_owned(), workspace, checks)?))
    }

    /// Takes up a stored baseline. Everything in it is derived again.
    pub fn load(file: &str) -> Result<Self, NoDesk> {
        let baseline = Baseline::parse(file).map_err(NoDesk::Flawed)?;
        let stored = baseline.workspace().head.clone();
        let is_whole = RULES.iter().all(|rule| baseline.status(rule.id) == Some(Status::Pass));
        if stored.as_deref() != Some(registry_digest()) || !is_whole {
            return Err(NoDesk::OtherRules { stored });
        }
        let mut desk = Self::keep(baseline);
        // the bytes that were stored are what chains name
        desk.file = file.to_owned();
        desk.file_sha256 = canonical::sha256_hex(file.as_bytes());
        Ok(desk)
    }

    fn keep(baseline: Baseline) -> Self {
        let file = baseline.to_file();
        let file_sha256 = canonical::sha256_hex(file.as_bytes());
        Self { baseline, file, file_sha256 }
    }

    /// The baseline file, for every bundle.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The baseline.
    pub fn baseline(&self) -> &Baseline {
        &self.baseline
    }
}

/// Writes the first segment of an order.
pub fn open(work: &Work<'_>, desk: &Desk, key: &dyn Sign) -> Opened {
    let baseline = &desk.baseline;
    let mut chain = Chain::begin(&workspace_key(work.order_id));
    chain.marker(
        work.at,
        "baseline/established",
        &members(json!({
            "baselineId": baseline.id(), "root": baseline.root(), "checks": baseline.checks().len(),
            "apiSurface": null, "scriptDigests": 0,
        })),
    );
    chain.marker(
        work.at,
        "baseline/saved",
        &members(json!({
            "digest": desk.file_sha256, "bytes": desk.file.encode_utf16().count(),
        })),
    );
    let records = records(work, Some(baseline.id()));
    for record in &records {
        chain.evidence(work.at, record);
    }
    let (grade, regressions) = conclude(&records, baseline);
    let root = merkle_root(records.iter().map(Evidence::id));
    chain.marker(
        work.at,
        "proof/verified",
        &members(json!({
            "grade": grade, "root": root, "changed": work.inputs.dirty().len(), "attribution": "declared",
            "preExistingExcluded": 0, "regressions": regressions, "confidence": null,
            "orderId": work.order_id, "baselineId": baseline.id(), "ruleRegistry": registry_digest(),
            "factsDigest": work.inputs.facts, "memoDigest": work.inputs.memo,
        })),
    );
    Opened { segment: chain.seal(work.at, key), grade, root }
}

/// Writes the segment of an outcome.
pub fn end(
    tail: Tail,
    grade: Option<Grade>,
    outcome: Outcome<'_>,
    at: &str,
    key: &dyn Sign,
) -> Result<Segment, NotProven> {
    let (label, data) = match outcome {
        Outcome::Delivered { body_sha256, tx } => {
            if let Some(grade) = Some(grade.unwrap_or(Grade::NoBaseline)).filter(|grade| *grade != Grade::Proven) {
                return Err(NotProven { grade });
            }
            ("order/delivered", json!({"charged": true, "bodySha256": body_sha256, "tx": tx}))
        }
        Outcome::Refused { code, body_sha256 } => {
            ("order/refused", json!({"charged": false, "code": code, "bodySha256": body_sha256}))
        }
        Outcome::Unknown => ("order/unknown", json!({"charged": "unknown"})),
        Outcome::Refunded { tx } => ("order/refunded", json!({"charged": false, "tx": tx})),
    };
    let mut chain = Chain::resume(tail);
    chain.marker(at, label, &members(data));
    Ok(chain.seal(at, key))
}

/// Takes up a stored order, reading all of it.
pub fn reopen(order_id: &str, stored: &[u8]) -> Result<Reopened, Broken> {
    let tail = Chain::reopen(&workspace_key(order_id), [stored])?.into_tail();
    let mut grade = None;
    let mut walk = Walk::default();
    for line in stored.split(|byte| *byte == b'\n') {
        if let Some(Entry::Marker(marker)) = walk.step(line).map(|step| step.entry)
            && marker.label().is_some_and(|label| label.is("proof/verified"))
        {
            let word = marker.payload.and_then(|payload| payload.get_text("grade"));
            grade = word.and_then(|word| Grade::parse(&word.to_str()));
        }
    }
    Ok(Reopened { tail, grade })
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        // a transaction that is not known is left out
        Value::Object(map) => map.into_iter().filter(|(name, value)| name != "tx" || !value.is_null()).collect(),
        _ => Map::new(),
    }
}

/// One record per rule, in the order of the registry.
fn records(work: &Work<'_>, baseline_id: Option<&str>) -> Vec<Evidence> {
    let workspace = Workspace::new(registry_digest().to_owned(), work.inputs.dirty());
    // thousandths of a millisecond: a share has no more digits than the clock
    let share = (work.duration_ms.max(0.0) / RULES.len() as f64 * 1000.0).round() / 1000.0;
    let (mut tape, mut scratch) = (Tape::default(), Scratch::default());
    let record = |rule: &Rule| {
        let (status, output) = rule.output(work.judged, work.inputs, baseline_id);
        let mut observed = Observation {
            check_id: rule.id.to_owned(),
            label: rule.label().to_owned(),
            kind: CheckKind::Test,
            command: vec!["jim".to_owned(), "gate".to_owned(), rule.id.to_owned(), rule.version.to_string()],
            source: Some(Source::Config),
            status,
            exit_code: match status {
                Status::Pass => Some(0),
                Status::Fail => Some(1),
                Status::Error | Status::Timeout | Status::Aborted | Status::Skipped => None,
            },
            duration_ms: if share.is_finite() { share } else { 0.0 },
            output_digest: String::new(),
            output_head: String::new(),
            output_truncated: None,
            output_omitted_chars: None,
            synthetic: None,
            coverage: None,
            recorded_at: work.at.to_owned(),
            workspace: workspace.clone(),
        };
        observed.set_output(&output);
        Evidence::seal_with(observed, &mut tape, &mut scratch).expect("the share is finite and not negative")
    };
    RULES.iter().map(record).collect()
}

/// Grade and number of regressions. Every rule of the baseline must answer.
fn conclude(records: &[Evidence], baseline: &Baseline) -> (Grade, usize) {
    let current = |id: &str| records.iter().map(Evidence::observed).find(|r| r.check_id == id).map(|r| r.status);
    let known = baseline.checks().iter().map(|check| check.observed().check_id.as_str());
    let new = records.iter().map(|r| r.observed().check_id.as_str()).filter(|id| baseline.status(id).is_none());
    grade_of(known.chain(new).map(|id| (baseline.status(id), current(id))))
}

/// Grades pairs of baseline and current status, full coverage required.
fn grade_of(pairs: impl Iterator<Item = (Option<Status>, Option<Status>)>) -> (Grade, usize) {
    let (mut regressions, mut unverified, mut decisive) = (0, 0, 0);
    for (baseline, current) in pairs {
        match verdict::verdict(baseline, current) {
            Verdict::Regression | Verdict::NewFailure => regressions += 1,
            Verdict::NotRun | Verdict::Indeterminate => unverified += 1,
            Verdict::StillPassing | Verdict::StillFailing | Verdict::Fixed | Verdict::NewCheck => decisive += 1,
        }
    }
    let run = Run {
        has_baseline: true,
        broke: regressions > 0,
        nothing_affected: regressions + unverified + decisive == 0,
        unverified,
        vanished: 0,
        decisive,
        confidence: None,
        requires_full_coverage: true,
    };
    (verdict::grade(&run), regressions)
}
