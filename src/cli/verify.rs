//! `jim verify`: a proof bundle from its bytes alone. Exit status: 0 clean; 1 problems; 2 when a file cannot be read.
//!
//! With keys, clean means that one of them signed all of it: a bundle that names another key is not accused, and not passed either.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::fail;
use crate::limits;
use crate::proof::bundle::{self, CheckpointSignature, Mode, Verification};
use crate::proof::key::Keys;
use crate::proof::order::{self, Answered};

/// Verify a proof bundle: digests, chain, records, signatures, anchor, baseline.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The bundle, as a service hands it out; - for standard input.
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// The body of the answer: run the gate again over its facts and memo, and compare with the records.
    #[arg(long, value_name = "BODY")]
    answer: Option<PathBuf>,
    /// Public key of the workspace in PEM form; may be given several times.
    #[arg(long = "key", alias = "keys", value_name = "PUB.pem")]
    keys: Vec<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    clean: bool,
    #[serde(flatten)]
    result: &'a Verification,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a Answered>,
}

impl Verify {
    pub(super) fn run(self) -> ExitCode {
        match self.verify() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => fail(2, format!("{error:#}")),
        }
    }

    fn verify(&self) -> anyhow::Result<bool> {
        let mut keys = Keys::default();
        for path in &self.keys {
            let pem =
                std::fs::read_to_string(path).with_context(|| format!("key {} cannot be read", path.display()))?;
            keys.add_pem(&pem).with_context(|| format!("key {}", path.display()))?;
        }
        let (result, answered) = match &self.answer {
            None => (verify_file(&self.bundle, &keys)?, None),
            Some(answer) => {
                let (result, answered) = self.verify_with_answer(answer, &keys)?;
                (result, Some(answered))
            }
        };
        let is_signed = keys.is_empty() || result.checkpoint_signature == Some(CheckpointSignature::Verified);
        let is_answered = answered.as_ref().is_none_or(|answered| answered.findings.is_empty());
        let is_clean = result.is_clean() && is_signed && is_answered;
        if self.json {
            let shown = Shown { clean: is_clean, result: &result, answer: answered.as_ref() };
            println!("{}", serde_json::to_string(&shown)?);
        } else {
            show(&mut io::stdout().lock(), &result, answered.as_ref(), !is_signed)?;
        }
        Ok(is_clean)
    }

    /// An order is small: its log is held for the second look.
    fn verify_with_answer(&self, answer: &Path, keys: &Keys) -> anyhow::Result<(Verification, Answered)> {
        let bytes = read(&self.bundle)?;
        let result = bundle::verify(bytes.as_slice(), keys)?;
        let body = read(answer)?;
        let parsed: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let file = |name: &str| parsed["files"][name].as_str();
        let answered = order::check_answer(file(bundle::EVIDENCE).unwrap_or_default(), file(bundle::BASELINE), &body);
        Ok((result, answered))
    }
}

fn verify_file(path: &Path, keys: &Keys) -> anyhow::Result<Verification> {
    if path == Path::new("-") {
        return Ok(bundle::verify(io::stdin().lock(), keys)?);
    }
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    bundle::verify(file, keys).with_context(|| format!("{} cannot be read", path.display()))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(|| format!("{} cannot be read", path.display()))?)
    };
    let bound = limits::PROOF_ORDER_BYTES_MAX;
    let mut bytes = Vec::new();
    source.take(bound + 1).read_to_end(&mut bytes).with_context(|| format!("{} cannot be read", path.display()))?;
    anyhow::ensure!(bytes.len() as u64 <= bound, "{} has more than {bound} bytes", path.display());
    Ok(bytes)
}

fn show(out: &mut impl Write, result: &Verification, answered: Option<&Answered>, is_unsigned: bool) -> io::Result<()> {
    let signature = match (result.chain_mode, result.checkpoint_signature) {
        (Mode::Signed, Some(CheckpointSignature::Verified)) => "signed, and the signatures verify",
        (Mode::Signed, _) => "signed, and a signature does not verify",
        (Mode::SignedUnverified, _) => "signed; no key that it names was given, so nobody's signature was checked",
        (Mode::Unsigned, _) => "not signed",
        (Mode::Legacy, _) => "of the first version, without links",
    };
    writeln!(out, "workspace  {}", result.workspace_key.as_deref().unwrap_or("none"))?;
    writeln!(out, "records    {}", result.records)?;
    writeln!(out, "chain      {signature}")?;
    if let Some(anchor) = &result.anchor {
        writeln!(out, "anchor     count {}, key {}", anchor.count, anchor.key_id)?;
    }
    if let Some(baseline) = &result.baseline_id {
        writeln!(out, "baseline   {baseline}")?;
    }
    if result.legacy_protocol {
        writeln!(out, "dialect    of an ancestor of ours")?;
    }
    if let Some(answered) = answered.filter(|answered| answered.gate_rerun) {
        writeln!(out, "gate       run again over the answer, {} figures checked", answered.figures_checked)?;
    }
    for problem in &result.problems {
        writeln!(out, "problem    {}: {problem}", problem.code())?;
    }
    for finding in answered.map(|answered| &answered.findings).into_iter().flatten() {
        writeln!(out, "problem    answer: {finding}")?;
    }
    if result.problems.is_empty() && is_unsigned {
        writeln!(out, "problem    none of the keys that were given signed this bundle")?;
    }
    Ok(())
}
