//! Verdicts and grades, section 2: what a run means against its baseline.

use super::vocabulary::{Grade, Status, Verdict};

/// The posterior that certifies, when none is given.
pub const TARGET: f64 = 0.97;

/// Compares one check with its baseline.
pub fn verdict(baseline: Option<Status>, current: Option<Status>) -> Verdict {
    use Status::{Fail, Pass};
    match (baseline, current) {
        (None, None | Some(Pass)) => Verdict::NewCheck,
        (Some(_), None) => Verdict::NotRun,
        (None, Some(Fail)) => Verdict::NewFailure,
        (Some(Pass), Some(Pass)) => Verdict::StillPassing,
        (Some(Fail), Some(Fail)) => Verdict::StillFailing,
        (Some(Pass), Some(Fail)) => Verdict::Regression,
        (Some(Fail), Some(Pass)) => Verdict::Fixed,
        (_, Some(Status::Error | Status::Timeout | Status::Aborted | Status::Skipped))
        | (Some(Status::Error | Status::Timeout | Status::Aborted | Status::Skipped), Some(_)) => {
            Verdict::Indeterminate
        }
    }
}

/// What a run found, for its grade.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Run {
    /// Whether there is a baseline.
    pub has_baseline: bool,
    /// Whether any verdict is a regression or a new failure.
    pub broke: bool,
    /// No check was found, or none is affected.
    pub nothing_affected: bool,
    /// Affected checks without a decisive answer.
    pub unverified: usize,
    /// Checks of the baseline that are gone.
    pub vanished: usize,
    /// Decisive answers of affected checks in this run.
    pub decisive: usize,
    /// The posterior, where there is one.
    pub confidence: Option<f64>,
    /// Whether every affected check must answer, whatever the posterior.
    pub requires_full_coverage: bool,
}

/// The grade of a run. Pessimistic: what is missing never counts as good.
pub fn grade(run: &Run) -> Grade {
    if !run.has_baseline {
        return Grade::NoBaseline;
    }
    if run.broke {
        return Grade::Regressed;
    }
    match run.confidence.filter(|_| !run.requires_full_coverage) {
        Some(_) if run.nothing_affected => Grade::Unproven,
        // a posterior that is no number reaches no target
        Some(posterior) if run.decisive > 0 && run.vanished == 0 && posterior >= TARGET => Grade::Proven,
        Some(_) => Grade::Stale,
        None if run.unverified > 0 || run.vanished > 0 => Grade::Stale,
        None if run.nothing_affected => Grade::Unproven,
        None => Grade::Proven,
    }
}

/// What lowers a grade after the run was graded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Green evidence that never executed the change.
    pub is_uncovered: bool,
    /// The chain does not audit, or the baseline absorbed what it should have shown.
    pub is_untrusted: bool,
    /// An obligation of the claim is not met.
    pub is_unmet: bool,
}

/// Lowers `proven` where something speaks against it.
pub fn doubt(grade: Grade, doubts: Doubts) -> Grade {
    match grade {
        Grade::Proven if doubts.is_uncovered => Grade::Unproven,
        Grade::Proven if doubts.is_untrusted || doubts.is_unmet => Grade::Stale,
        other => other,
    }
}
