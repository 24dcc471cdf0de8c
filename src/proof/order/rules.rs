//! The rules of the gate as checks: one for each reason to refuse, named and versioned.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Inputs, Judged};
use crate::canonical;
use crate::memo::gate::Reason;
use crate::proof::vocabulary::Status;

/// One rule of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its id, as the check id of records.
    pub id: &'static str,
    /// Raised when what it refuses changes: a record of another version is of another check.
    pub version: u32,
    /// The reason that it gives.
    pub reason: Reason,
}

/// Every rule. Rules are added, never removed: an order whose baseline lacks one is seen.
pub const RULES: [Rule; 13] = [
    Rule { id: "gate:phantom-citation", version: 1, reason: Reason::PhantomCitation },
    Rule { id: "gate:uncited", version: 1, reason: Reason::Uncited },
    Rule { id: "gate:unreadable-figure", version: 1, reason: Reason::UnreadableFigure },
    Rule { id: "gate:unit-mismatch", version: 1, reason: Reason::UnitMismatch },
    Rule { id: "gate:currency-mismatch", version: 1, reason: Reason::CurrencyMismatch },
    Rule { id: "gate:sign-mismatch", version: 1, reason: Reason::SignMismatch },
    Rule { id: "gate:direction-mismatch", version: 1, reason: Reason::DirectionMismatch },
    Rule { id: "gate:value-mismatch", version: 1, reason: Reason::ValueMismatch },
    Rule { id: "gate:label-mismatch", version: 1, reason: Reason::LabelMismatch },
    Rule { id: "gate:period-mismatch", version: 1, reason: Reason::PeriodMismatch },
    Rule { id: "gate:entity-mismatch", version: 1, reason: Reason::EntityMismatch },
    Rule { id: "gate:conflicting-facts", version: 1, reason: Reason::ConflictingFacts },
    Rule { id: "gate:empty-memo", version: 1, reason: Reason::EmptyMemo },
];

/// The rule that gives a reason.
pub fn rule(reason: Reason) -> &'static Rule {
    // no wildcard: a new reason needs a rule before this builds
    let at = match reason {
        Reason::PhantomCitation => 0,
        Reason::Uncited => 1,
        Reason::UnreadableFigure => 2,
        Reason::UnitMismatch => 3,
        Reason::CurrencyMismatch => 4,
        Reason::SignMismatch => 5,
        Reason::DirectionMismatch => 6,
        Reason::ValueMismatch => 7,
        Reason::LabelMismatch => 8,
        Reason::PeriodMismatch => 9,
        Reason::EntityMismatch => 10,
        Reason::ConflictingFacts => 11,
        Reason::EmptyMemo => 12,
    };
    &RULES[at]
}

/// The address of the list of rules: `[{"id", "version"}, ...]`.
pub fn registry_digest() -> &'static str {
    static DIGEST: LazyLock<String> = LazyLock::new(|| {
        let rules = RULES.iter().map(|rule| json!({"id": rule.id, "version": rule.version}));
        canonical::address(&Value::from_iter(rules))
    });
    &DIGEST
}

impl Rule {
    /// What people call it.
    pub fn label(&self) -> &'static str {
        self.reason.as_str()
    }

    /// How it ended, and the output of its record: rule, inputs and counts, and no word of the memo. A rule that had nothing to
    /// check passed, with a count of 0.
    pub(super) fn output(&self, judged: Judged<'_>, inputs: &Inputs, baseline: Option<&str>) -> (Status, String) {
        let (status, counts) = match judged {
            Judged::NotRun => (Status::Error, "not run".to_owned()),
            Judged::Report(report) => {
                let violations = report.violations.iter().filter(|violation| violation.reason == self.reason).count();
                let checked = match self.reason {
                    Reason::EmptyMemo => 1,
                    Reason::PhantomCitation => report.citations.len() + violations,
                    _ => report.figures_checked,
                };
                let status = if violations == 0 { Status::Pass } else { Status::Fail };
                (status, format!("checked {checked}\nviolations {violations}"))
            }
        };
        let output = format!(
            "rule {} version {}\nregistry {}\nbaseline {}\nfacts {}\nmemo {}\n{counts}",
            self.id,
            self.version,
            registry_digest(),
            baseline.unwrap_or("none"),
            inputs.facts,
            inputs.memo.as_deref().unwrap_or("none"),
        );
        (status, output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_its_reason_and_a_name_of_its_own() {
        for (at, listed) in RULES.iter().enumerate() {
            assert_eq!(rule(listed.reason), listed);
            assert_eq!(listed.id, format!("gate:{}", listed.label().replace(' ', "-")));
            assert!(RULES[..at].iter().all(|other| other.id != listed.id));
        }
    }
}
