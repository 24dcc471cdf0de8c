//! Baselines: what every check said when the work began, section 1, and the document that keeps them.

use serde::{Deserialize, Serialize};

use super::address::merkle_root;
use super::evidence::{self, Evidence, Workspace};
use super::vocabulary::Status;
use crate::canonical::{self, Scratch, View};

/// A baseline document. [`Baseline::build`] makes one, [`Baseline::parse`] takes one up that holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    baseline_id: String,
    created_at: String,
    workspace: Workspace,
    checks: Vec<Evidence>,
    root: String,
}

/// Why there is no baseline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No check was found.
    #[error("no check was found")]
    NoChecks,
    /// A check settled nothing, so there is nothing to compare with later.
    #[error("the check {check_id} ended with {status}, which settles nothing")]
    Indecisive {
        /// The check.
        check_id: String,
        /// How it ended.
        status: Status,
    },
}

/// What is wrong with a baseline file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No JSON object.
    Unparseable,
    /// It has no id.
    NoId,
    /// What the id is made of is not there.
    Material,
    /// The id is not the address of the content.
    NotSelfAddressed,
    /// A check in it is not named by its content.
    Check {
        /// Its place among the checks, from 0.
        at: usize,
        /// The id that it states.
        record: Option<String>,
    },
    /// The root is not that of the checks.
    Root,
}

/// What a look at a baseline file found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The id that it states.
    pub id: Option<String>,
    /// Whether the id is the address of the content.
    pub is_self_addressed: bool,
    /// What is wrong.
    pub flaws: Vec<Flaw>,
}

impl Baseline {
    /// Keeps the records of a run.
    pub fn build(created_at: String, workspace: Workspace, checks: Vec<Evidence>) -> Result<Self, Refused> {
        if checks.is_empty() {
            return Err(Refused::NoChecks);
        }
        if let Some(check) = checks.iter().map(Evidence::observed).find(|check| !check.status.is_decisive()) {
            return Err(Refused::Indecisive { check_id: check.check_id.clone(), status: check.status });
        }
        let root = merkle_root(checks.iter().map(Evidence::id));
        let check_ids: Vec<&str> = checks.iter().map(|check| check.observed().check_id.as_str()).collect();
        let baseline_id = canonical::address(&serde_json::json!({
            "createdAt": created_at, "workspace": workspace, "checkIds": check_ids, "root": root,
        }));
        Ok(Self { baseline_id, created_at, workspace, checks, root })
    }

    /// Takes up a file, when everything in it can be derived again.
    pub fn parse(text: &str) -> Result<Self, Vec<Flaw>> {
        let flaws = read(text).flaws;
        if flaws.is_empty() { serde_json::from_str(text).map_err(|_| vec![Flaw::Material]) } else { Err(flaws) }
    }

    /// The state that its records were made on.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.baseline_id
    }

    /// The root of its records.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Its records.
    pub fn checks(&self) -> &[Evidence] {
        &self.checks
    }

    /// When it was kept.
    pub fn created_at(&self) -> &str {
        &self.created_at
    }

    /// How the check stood, when the baseline has it.
    pub fn status(&self, check_id: &str) -> Option<Status> {
        self.checks.iter().map(Evidence::observed).find(|check| check.check_id == check_id).map(|check| check.status)
    }

    /// The file as it is saved: its digest goes on the chain.
    pub fn to_file(&self) -> String {
        serde_json::to_string_pretty(self).expect("text, numbers and lists of them serialize")
    }
}

/// Reads a baseline file as a stranger does: everything in it is derived again.
pub fn read(text: &str) -> Reading {
    let mut tape = canonical::Tape::default();
    let Some(view) = tape.read(text).ok().filter(|view| view.is_object()) else {
        return Reading { flaws: vec![Flaw::Unparseable], ..Reading::default() };
    };
    let Some(id) = view.get_text("baselineId").map(|id| id.to_str().into_owned()).filter(|id| !id.is_empty()) else {
        return Reading { flaws: vec![Flaw::NoId], ..Reading::default() };
    };
    let Some(material) = material(view) else {
        return Reading { id: Some(id), flaws: vec![Flaw::Material], ..Reading::default() };
    };
    let is_self_addressed = canonical::sha256_hex(&material) == id;
    let mut flaws = Vec::new();
    if !is_self_addressed {
        flaws.push(Flaw::NotSelfAddressed);
    }
    check_records(view, &mut flaws);
    Reading { id: Some(id), is_self_addressed, flaws }
}

/// The canonical text that the id is the address of.
fn material(view: View<'_>) -> Option<Vec<u8>> {
    let mut scratch = Scratch::default();
    let created_at = view.get("createdAt").filter(|at| at.text().is_some())?;
    let root = view.get("root").filter(|root| root.text().is_some())?;
    let workspace = view.get("workspace").filter(|workspace| workspace.is_object())?;
    let mut out = b"{\"checkIds\":[".to_vec();
    for (i, check) in view.get("checks")?.items()?.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match check.get("checkId") {
            Some(id) => out.extend_from_slice(id.canonical(&mut scratch)),
            None => out.extend_from_slice(b"null"),
        }
    }
    for (name, value) in [("],\"createdAt\":", created_at), (",\"root\":", root), (",\"workspace\":", workspace)] {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(value.canonical(&mut scratch));
    }
    out.push(b'}');
    Some(out)
}

fn check_records(view: View<'_>, flaws: &mut Vec<Flaw>) {
    let mut scratch = Scratch::default();
    let mut ids = Vec::new();
    for (at, check) in view.get("checks").and_then(View::items).into_iter().flatten().enumerate() {
        let id = check.get_text("evidenceId").map(|id| id.to_str().into_owned());
        if !evidence::is_self_addressed(check, &mut scratch) {
            flaws.push(Flaw::Check { at, record: id.clone() });
        }
        ids.extend(id);
    }
    let root = view.get_text("root");
    if root.is_none_or(|root| !root.is(&merkle_root(ids.iter().map(String::as_str)))) {
        flaws.push(Flaw::Root);
    }
}
