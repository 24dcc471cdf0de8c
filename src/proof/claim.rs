//! Claim contracts, section 2: what each kind of claim must show beyond that nothing regressed.

use serde::Serialize;

use super::vocabulary::{CheckKind, ClaimKind, Grade, Status};

/// The largest budget of a performance claim, in milliseconds.
const BUDGET_MS_MAX: f64 = 1e12;

/// What a claim about documents alone is worth at most.
pub const DOCS_CONFIDENCE_MAX: f64 = 0.8;

/// The probability from which a jury upholds.
const UPHELD: f64 = 0.5;

/// How much a jury's probability weighs.
const JURY_WEIGHT: f64 = 0.7;

/// Endings of documents.
const DOCUMENTS: [&str; 11] = ["md", "markdown", "txt", "rst", "adoc", "png", "jpg", "gif", "svg", "webp", "pdf"];

/// A claim and what it brings.
#[derive(Clone, Debug, PartialEq)]
pub enum Contract<'a> {
    /// The public surface did not move: before and after, where they are known.
    BehaviorPreserving {
        /// Names before.
        before: Option<&'a [String]>,
        /// Names after.
        after: Option<&'a [String]>,
    },
    /// Every changed path is covered by a passing check.
    BehaviorAdding,
    /// A benchmark within a budget.
    PerfBudget {
        /// In milliseconds.
        budget_ms: f64,
    },
    /// Only documents changed, and somebody read them.
    DocsOnly {
        /// What the reader wrote.
        review: &'a str,
    },
    /// A jury upholds the claim.
    LlmJury {
        /// The jury's latest word on exactly this claim.
        jury: Option<Jury>,
    },
}

/// A jury's word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jury {
    /// Whether it upholds the claim.
    pub upholds: bool,
    /// How probable it finds it.
    pub probability: f64,
}

/// A measured check of this run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured<'a> {
    /// Its kind.
    pub kind: CheckKind,
    /// How it ended.
    pub status: Status,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// The changed paths that it covers.
    pub covers: &'a [String],
}

/// What the run found.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidenced<'a> {
    /// Regressions and new failures.
    pub regressions: usize,
    /// The changed paths.
    pub changed: &'a [String],
    /// The checks.
    pub checks: &'a [Measured<'a>],
}

/// One obligation of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obligation {
    /// Its name.
    pub id: &'static str,
    /// Whether it is met.
    pub met: bool,
    /// Why, or why not.
    pub detail: String,
}

impl Contract<'_> {
    /// The kind.
    pub fn kind(&self) -> ClaimKind {
        match self {
            Self::BehaviorPreserving { .. } => ClaimKind::BehaviorPreserving,
            Self::BehaviorAdding => ClaimKind::BehaviorAdding,
            Self::PerfBudget { .. } => ClaimKind::PerfBudget,
            Self::DocsOnly { .. } => ClaimKind::DocsOnly,
            Self::LlmJury { .. } => ClaimKind::LlmJury,
        }
    }

    /// The obligations, in the order of the protocol.
    pub fn obligations(&self, found: &Evidenced<'_>) -> Vec<Obligation> {
        let mut list =
            vec![obligation("zero-regressions", found.regressions == 0, format!("{} regressions", found.regressions))];
        match self {
            Self::BehaviorPreserving { before, after } => list.push(surface(*before, *after)),
            Self::BehaviorAdding => list.push(new_paths(found)),
            Self::PerfBudget { budget_ms } => list.extend(budget(*budget_ms, found)),
            Self::DocsOnly { review } => {
                let other: Vec<&str> =
                    found.changed.iter().map(String::as_str).filter(|path| !is_document(path)).collect();
                list.push(obligation("docs-only-changes", other.is_empty(), named("not a document", &other)));
                let is_read = !review.trim().is_empty();
                list.push(obligation(
                    "jury-review",
                    is_read,
                    if is_read { "reviewed" } else { "nobody reviewed it" }.into(),
                ));
            }
            Self::LlmJury { jury } => list.extend(jury_obligations(*jury)),
        }
        list
    }
}

/// The grade of a claim: what the run proved, as far as every obligation is met.
pub fn grade(run: Grade, obligations: &[Obligation]) -> Grade {
    let is_unmet = obligations.iter().any(|obligation| !obligation.met);
    super::verdict::doubt(run, super::verdict::Doubts { is_unmet, ..Default::default() })
}

/// What a jury makes of a confidence: an upheld claim moves towards the jury's probability, a denied one is lowered by it. A word
/// that contradicts its own number counts for nothing.
pub fn fuse(current: f64, jury: Jury) -> f64 {
    match (jury.upholds, jury.probability >= UPHELD) {
        (true, true) => (1.0 - JURY_WEIGHT) * current + JURY_WEIGHT * jury.probability,
        (false, false) => current * jury.probability.powf(JURY_WEIGHT),
        (true, false) | (false, true) => current,
    }
}

fn obligation(id: &'static str, met: bool, detail: String) -> Obligation {
    Obligation { id, met, detail }
}

fn named(what: &str, names: &[&str]) -> String {
    if names.is_empty() { "nothing is missing".to_owned() } else { format!("{what}: {}", names.join(", ")) }
}

fn surface(before: Option<&[String]>, after: Option<&[String]>) -> Obligation {
    let (Some(before), Some(after)) = (before, after) else {
        return obligation("api-surface-unchanged", false, "the surface is not known before and after".into());
    };
    let missing = |from: &[String], to: &[String]| -> Vec<String> {
        from.iter().filter(|name| !to.contains(name)).cloned().collect()
    };
    let (gone, new) = (missing(before, after), missing(after, before));
    let met = gone.is_empty() && new.is_empty();
    let detail =
        if met { "unchanged".to_owned() } else { format!("gone: {}; new: {}", gone.join(", "), new.join(", ")) };
    obligation("api-surface-unchanged", met, detail)
}

fn new_paths(found: &Evidenced<'_>) -> Obligation {
    let is_covered =
        |path: &String| found.checks.iter().any(|check| check.status == Status::Pass && check.covers.contains(path));
    let open: Vec<&str> = found.changed.iter().filter(|path| !is_covered(path)).map(String::as_str).collect();
    obligation("new-paths-covered", open.is_empty(), named("no passing check covers", &open))
}

fn budget(budget_ms: f64, found: &Evidenced<'_>) -> [Obligation; 2] {
    let measured: Vec<f64> = found
        .checks
        .iter()
        .filter(|check| check.kind == CheckKind::Benchmark && check.status.is_decisive())
        .map(|check| check.duration_ms)
        .collect();
    let is_budget = budget_ms > 0.0 && budget_ms <= BUDGET_MS_MAX;
    // a duration that is no number is within no budget
    let within = is_budget && !measured.is_empty() && measured.iter().all(|duration| *duration <= budget_ms);
    let detail =
        if is_budget { format!("{measured:?} of {budget_ms} ms") } else { "the budget is no budget".to_owned() };
    [
        obligation("benchmark-evidence", !measured.is_empty(), format!("{} measurements", measured.len())),
        obligation("within-budget", within, detail),
    ]
}

fn is_document(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| DOCUMENTS.contains(&ending.as_str()))
}

fn jury_obligations(jury: Option<Jury>) -> [Obligation; 2] {
    let upholds = jury.is_some_and(|jury| jury.upholds && jury.probability >= UPHELD);
    let detail = jury.map_or("no jury was heard".to_owned(), |jury| format!("probability {}", jury.probability));
    [obligation("jury-delivered", jury.is_some(), detail.clone()), obligation("jury-upholds", upholds, detail)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(contract: &Contract<'_>, found: &Evidenced<'_>) -> Vec<(&'static str, bool)> {
        contract.obligations(found).into_iter().map(|obligation| (obligation.id, obligation.met)).collect()
    }

    #[test]
    fn each_kind_asks_for_its_own() {
        let paths = ["src/a.rs".to_owned()];
        let check = |kind, status, duration_ms| Measured { kind, status, duration_ms, covers: &paths };
        let pass = [check(CheckKind::Benchmark, Status::Pass, 5.0)];
        let found = Evidenced { regressions: 0, changed: &paths, checks: &pass };
        let none = Evidenced { regressions: 1, changed: &paths, checks: &[] };
        assert_eq!(met(&Contract::BehaviorAdding, &found), [("zero-regressions", true), ("new-paths-covered", true)]);
        assert_eq!(met(&Contract::BehaviorAdding, &none), [("zero-regressions", false), ("new-paths-covered", false)]);
        for (budget_ms, checks, want) in [
            (5.0, &pass[..], [true, true]),
            (4.9, &pass, [true, false]),
            (f64::NAN, &pass, [true, false]),
            (2e12, &pass, [true, false]),
            (5.0, &[], [false, false]),
        ] {
            let found = Evidenced { regressions: 0, changed: &[], checks };
            let got = met(&Contract::PerfBudget { budget_ms }, &found);
            assert_eq!([got[1].1, got[2].1], want, "{budget_ms}");
        }
        let unmeasured = [check(CheckKind::Benchmark, Status::Pass, f64::NAN)];
        let found = Evidenced { regressions: 0, changed: &[], checks: &unmeasured };
        assert!(!met(&Contract::PerfBudget { budget_ms: 1.0 }, &found)[2].1);
        let one = ["f".to_owned()];
        for (before, after, want) in
            [(Some(&one[..]), Some(&one[..]), true), (Some(&one), Some(&[]), false), (Some(&one), None, false)]
        {
            assert_eq!(met(&Contract::BehaviorPreserving { before, after }, &found)[1].1, want);
        }
    }

    #[test]
    fn documents_need_a_reader_and_a_jury_must_uphold() {
        let documents = ["a.md".to_owned(), "b/C.PDF".to_owned()];
        let code = ["a.md".to_owned(), "build.rs".to_owned()];
        let found = |changed| Evidenced { regressions: 0, changed, checks: &[] };
        let ids =
            |review, changed: &[String]| met(&Contract::DocsOnly { review }, &Evidenced { changed, ..found(&[]) });
        assert_eq!(ids("read", &documents)[1..], [("docs-only-changes", true), ("jury-review", true)]);
        assert_eq!(ids(" ", &code)[1..], [("docs-only-changes", false), ("jury-review", false)]);
        for (jury, want) in [
            (None, [false, false]),
            (Some(Jury { upholds: true, probability: 0.5 }), [true, true]),
            (Some(Jury { upholds: true, probability: 0.49 }), [true, false]),
            (Some(Jury { upholds: false, probability: 0.9 }), [true, false]),
        ] {
            let got = met(&Contract::LlmJury { jury }, &found(&[]));
            assert_eq!([got[1].1, got[2].1], want);
        }
    }

    #[test]
    fn an_unmet_obligation_is_never_proven() {
        let unmet = [obligation("zero-regressions", false, String::new())];
        assert_eq!(grade(Grade::Proven, &unmet), Grade::Stale);
        assert_eq!(grade(Grade::Regressed, &unmet), Grade::Regressed);
        assert_eq!(grade(Grade::Proven, &[]), Grade::Proven);
        assert_eq!(fuse(0.5, Jury { upholds: true, probability: 0.3 }), 0.5);
        assert!((fuse(0.5, Jury { upholds: true, probability: 0.9 }) - 0.78).abs() < 1e-12);
        assert!(fuse(0.5, Jury { upholds: false, probability: 0.2 }) < 0.2);
    }
}
