//! An answer against its order: the gate is run again over the answer's own facts and memo, and must say what the records say.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{Inputs, Judged, RULES, grade_of, registry_digest};
use crate::canonical::{self, View};
use crate::memo::gate;
use crate::memo::{Coverage, Draft, Section, Snapshot, Subject, case};
use crate::proof::baseline::Baseline;
use crate::proof::vocabulary::{Grade, Status};
use crate::proof::walk::{Entry, Walk};

/// What an answer and its order disagree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Finding {
    /// The chain is not that of an order that was delivered.
    #[error("the chain holds no delivered order")]
    NotDelivered,
    /// The body is another one than was delivered.
    #[error("the body has the digest {computed}, the order was delivered with {recorded}")]
    Body {
        /// The digest on the chain.
        recorded: String,
        /// The digest of the body.
        computed: String,
    },
    /// The body is no JSON answer with facts and a memo, so that only its digest could be compared.
    #[error("the body is no JSON answer: {reason}")]
    NotAnAnswer {
        /// What is missing.
        reason: String,
    },
    /// The facts are others than were judged.
    #[error("the facts have the digest {computed}, the order was judged on {recorded}")]
    Facts {
        /// The digest on the chain.
        recorded: String,
        /// The digest of the answer's facts.
        computed: String,
    },
    /// The memo is another one than was judged.
    #[error("the memo has the digest {computed}, the order was judged on {recorded}")]
    Memo {
        /// The digest on the chain.
        recorded: String,
        /// The digest of the answer's memo.
        computed: String,
    },
    /// The facts contradict each other or their own arithmetic.
    #[error("the facts do not hold: {reason}")]
    Snapshot {
        /// Why.
        reason: String,
    },
    /// The order was judged by other rules than this program has, so that nothing can be compared.
    #[error("the order was judged by the rules {recorded}, this program has {ours}")]
    Rules {
        /// The registry on the chain.
        recorded: String,
        /// The registry here.
        ours: String,
    },
    /// A rule has no record.
    #[error("the rule {rule} has no record")]
    RuleMissing {
        /// The rule.
        rule: String,
    },
    /// A rule says something else when it is run again.
    #[error("the rule {rule} says {recomputed} when it is run again; its record says {recorded}, or counts otherwise")]
    RuleDiffers {
        /// The rule.
        rule: String,
        /// The status on the chain.
        recorded: String,
        /// The status now.
        recomputed: Status,
    },
    /// The grade does not follow from the records and the baseline.
    #[error("the grade is {recomputed} when it is derived again, the chain says {recorded}")]
    Grade {
        /// The grade on the chain.
        recorded: String,
        /// The grade now.
        recomputed: Grade,
    },
    /// The baseline cannot be compared with.
    #[error("the bundle has no baseline of these rules")]
    NoBaseline,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// Whether the gate was run again.
    pub gate_rerun: bool,
    /// Figures that it checked.
    pub figures_checked: usize,
    /// What does not agree.
    pub findings: Vec<Finding>,
}

/// What the chain of an order says.
#[derive(Default)]
struct Recorded {
    /// Check id, status, output digest.
    rules: Vec<(String, String, String)>,
    grade: String,
    registry: String,
    baseline_id: String,
    facts: String,
    memo: String,
    body: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    subject: Subject,
    memo: Memo,
}

#[derive(Deserialize)]
struct Memo {
    title: String,
    summary: String,
    sections: Vec<Section>,
    markdown: String,
}

/// Compares an answer with the log and the baseline of its bundle, which must have been verified before.
pub fn check_answer(log: &str, baseline: Option<&str>, body: &[u8]) -> Answered {
    let mut answered = Answered::default();
    let recorded = Recorded::read(log);
    let Some(stated) = &recorded.body else {
        answered.findings.push(Finding::NotDelivered);
        return answered;
    };
    let computed = canonical::sha256_hex(body);
    if *stated != computed {
        answered.findings.push(Finding::Body { recorded: stated.clone(), computed });
    }
    recorded.check_grade(baseline, &mut answered.findings);
    match read_body(body) {
        Ok((snapshot, draft, inputs)) => recorded.check_inputs(snapshot, draft, &inputs, &mut answered),
        Err(finding) => answered.findings.push(finding),
    }
    answered
}

fn read_body(body: &[u8]) -> Result<(Snapshot, Draft, Inputs), Finding> {
    let unread = |reason: String| Finding::NotAnAnswer { reason };
    let text = std::str::from_utf8(body).map_err(|error| unread(error.to_string()))?;
    let facts = case::facts(text).map_err(|error| unread(error.to_string()))?;
    let parsed: Body = serde_json::from_str(text).map_err(|error| unread(error.to_string()))?;
    let mut tape = canonical::Tape::default();
    let view = tape.read(text).map_err(|error| unread(error.to_string()))?;
    let member =
        |name| Some(canonical::sha256_hex(View::get(view, name)?.canonical(&mut canonical::Scratch::default())));
    let inputs = Inputs { facts: member("facts").unwrap_or_default(), memo: member("memo") };
    let Memo { title, summary, sections, markdown } = parsed.memo;
    let draft = Draft { title, summary, sections };
    if draft.markdown() != markdown {
        return Err(unread("memo.markdown is not made of the memo's other members".to_owned()));
    }
    let snapshot = Snapshot::new(parsed.subject, OffsetDateTime::UNIX_EPOCH, facts, Coverage::Complete, Vec::new());
    let snapshot = snapshot.map_err(|error| Finding::Snapshot { reason: error.to_string() })?;
    Ok((snapshot, draft, inputs))
}

impl Recorded {
    fn read(log: &str) -> Self {
        let mut recorded = Self::default();
        let mut walk = Walk::default();
        for line in log.split('\n') {
            match walk.step(line.as_bytes()).map(|step| step.entry) {
                Some(Entry::Evidence(Some(record))) => {
                    recorded.rules.push((
                        text(record, "checkId"),
                        text(record, "status"),
                        text(record, "outputDigest"),
                    ));
                }
                Some(Entry::Marker(marker)) => {
                    let Some((label, payload)) = marker.label().zip(marker.payload) else { continue };
                    if label.is("proof/verified") {
                        recorded.grade = text(payload, "grade");
                        recorded.registry = text(payload, "ruleRegistry");
                        recorded.baseline_id = text(payload, "baselineId");
                        recorded.facts = text(payload, "factsDigest");
                        recorded.memo = text(payload, "memoDigest");
                    } else if label.is("order/delivered") {
                        recorded.body = Some(text(payload, "bodySha256"));
                    }
                }
                _ => {}
            }
        }
        recorded
    }

    fn check_grade(&self, baseline: Option<&str>, findings: &mut Vec<Finding>) {
        let parsed = baseline.and_then(|file| Baseline::parse(file).ok()).filter(|b| b.id() == self.baseline_id);
        let Some(baseline) = parsed else {
            findings.push(Finding::NoBaseline);
            return;
        };
        let current =
            |id: &str| self.rules.iter().find(|(rule, ..)| rule == id).and_then(|(_, status, _)| Status::parse(status));
        let known = baseline.checks().iter().map(|check| check.observed().check_id.as_str());
        let new = self.rules.iter().map(|(rule, ..)| rule.as_str()).filter(|id| baseline.status(id).is_none());
        let (recomputed, _) = grade_of(known.chain(new).map(|id| (baseline.status(id), current(id))));
        if self.grade != recomputed.as_str() {
            findings.push(Finding::Grade { recorded: self.grade.clone(), recomputed });
        }
    }

    fn check_inputs(&self, snapshot: Snapshot, draft: Draft, inputs: &Inputs, answered: &mut Answered) {
        let findings = &mut answered.findings;
        if self.facts != inputs.facts {
            findings.push(Finding::Facts { recorded: self.facts.clone(), computed: inputs.facts.clone() });
        }
        let memo = inputs.memo.clone().unwrap_or_default();
        if self.memo != memo {
            findings.push(Finding::Memo { recorded: self.memo.clone(), computed: memo });
        }
        if self.registry != registry_digest() {
            let ours = registry_digest().to_owned();
            findings.push(Finding::Rules { recorded: self.registry.clone(), ours });
            return;
        }
        let report = match gate::judge(snapshot, draft) {
            Ok(accepted) => accepted.report().clone(),
            Err(rejected) => rejected.report().clone(),
        };
        answered.gate_rerun = true;
        answered.figures_checked = report.figures_checked;
        for rule in &RULES {
            let (status, output) = rule.output(Judged::Report(&report), inputs, Some(&self.baseline_id));
            let Some((_, recorded, digest)) = self.rules.iter().find(|(id, ..)| id == rule.id) else {
                answered.findings.push(Finding::RuleMissing { rule: rule.id.to_owned() });
                continue;
            };
            if recorded != status.as_str() || *digest != canonical::sha256_hex(output.as_bytes()) {
                answered.findings.push(Finding::RuleDiffers {
                    rule: rule.id.to_owned(),
                    recorded: recorded.clone(),
                    recomputed: status,
                });
            }
        }
    }
}

fn text(view: View<'_>, name: &str) -> String {
    view.get_text(name).map(|text| text.to_str().into_owned()).unwrap_or_default()
}
