//! `jim gate`: the sourcing gate alone. Exit status: 0; with `--memo` 1 when the memo fails; 2 when a file cannot be read.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::fail;
use crate::memo::case::{self, Case, CaseResult, Verdict};

/// Judge a memo against facts, or a file of cases; prints one JSON object a memo.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("input").required(true).args(["memo", "cases"]))]
pub(super) struct Gate {
    /// JSON file with the facts: an array of {id, label, value, unit, ...}.
    #[arg(long, value_name = "FILE", requires = "memo")]
    facts: Option<PathBuf>,
    /// Text file with the memo, or - for standard input.
    #[arg(long, value_name = "FILE", requires = "facts")]
    memo: Option<PathBuf>,
    /// JSON Lines file with cases: {id, facts, memo} a line.
    #[arg(long, value_name = "FILE", conflicts_with = "facts")]
    cases: Option<PathBuf>,
}

impl Gate {
    pub(super) fn run(self) -> ExitCode {
        match self.judge() {
            Ok(status) => status,
            Err(error) => fail(2, format!("{error:#}")),
        }
    }

    fn judge(&self) -> anyhow::Result<ExitCode> {
        if let Some(path) = &self.cases {
            let cases = case::cases(&read(path)?).map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?;
            let mut out = std::io::stdout().lock();
            for case in &cases {
                writeln!(out, "{}", serde_json::to_string(&case::run(case))?)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let (Some(facts), Some(memo)) = (&self.facts, &self.memo) else {
            anyhow::bail!("give --facts and --memo, or --cases");
        };
        let parsed = case::facts(&read(facts)?).map_err(|e| anyhow::anyhow!("{}: {e}", facts.display()))?;
        let case = Case { id: memo.display().to_string(), facts: parsed, memo: read(memo)? };
        let result: CaseResult = case::run(&case);
        println!("{}", serde_json::to_string(&result)?);
        Ok(if result.verdict == Verdict::Pass { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let read =
        if path == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(path) };
    read.map_err(|e| anyhow::anyhow!("{} cannot be read: {e}", path.display()))
}
