//! The closed word lists of the protocol, section 2. Their order is material of the fingerprint.

use serde::{Deserialize, Serialize};

/// A closed list of words: an enum whose variants are written as the protocol writes them.
macro_rules! words {
    ($(#[$note:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every word, in the order of the protocol.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as it stands in records.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Reads the word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Which way one check moved between its baseline and now.
    Verdict {
        /// Pass, and pass again.
        StillPassing = "still-passing",
        /// Failed before, fails now: not charged to this run.
        StillFailing = "still-failing",
        /// Passed before, fails now.
        Regression = "regression",
        /// Failed before, passes now.
        Fixed = "fixed",
        /// Fails, and was never seen before.
        NewFailure = "new-failure",
        /// Seen for the first time.
        NewCheck = "new-check",
        /// In the baseline, not in this run.
        NotRun = "not-run",
        /// One of the sides settled nothing.
        Indeterminate = "indeterminate",
    }
}

words! {
    /// What a whole run concluded.
    Grade {
        /// Everything affected ran again, decisive and green.
        Proven = "proven",
        /// Something broke.
        Regressed = "regressed",
        /// Something did not answer.
        Stale = "stale",
        /// Nothing objective speaks for the claim.
        Unproven = "unproven",
        /// There is nothing to compare with.
        NoBaseline = "no-baseline",
    }
}

words! {
    /// How a log is linked and signed.
    ChainMode {
        /// Version 1 lines only: no links.
        Legacy = "legacy",
        /// Linked, no signature.
        Unsigned = "unsigned",
        /// Linked, and at least one checkpoint carries a signature.
        Signed = "signed",
    }
}

words! {
    /// Kinds of claims, each with obligations of its own.
    ClaimKind {
        /// The public surface must not move.
        BehaviorPreserving = "behavior-preserving",
        /// Every changed path is covered by a passing check.
        BehaviorAdding = "behavior-adding",
        /// A benchmark within a budget.
        PerfBudget = "perf-budget",
        /// Only documents changed, and somebody read them.
        DocsOnly = "docs-only",
        /// A jury upholds the claim.
        LlmJury = "llm-jury",
    }
}

words! {
    /// How one run of a check ended.
    Status {
        /// The check holds.
        Pass = "pass",
        /// The check does not hold.
        Fail = "fail",
        /// It could not be carried out.
        Error = "error",
        /// It took too long.
        Timeout = "timeout",
        /// It was stopped.
        Aborted = "aborted",
        /// It was left out.
        Skipped = "skipped",
    }
}

words! {
    /// What kind of check a record is of.
    CheckKind {
        /// A test.
        Test = "test",
        /// A build.
        Build = "build",
        /// A lint.
        Lint = "lint",
        /// A type check.
        Typecheck = "typecheck",
        /// A measurement.
        Benchmark = "benchmark",
        /// Anything else.
        Other = "other",
    }
}

words! {
    /// Where a check was found.
    Source {
        /// A Node package.
        PackageJson = "package.json",
        /// A Python project.
        Pyproject = "pyproject.toml",
        /// tox.
        Tox = "tox.ini",
        /// make.
        Makefile = "Makefile",
        /// cargo.
        CargoToml = "Cargo.toml",
        /// A Go module.
        GoMod = "go.mod",
        /// composer.
        ComposerJson = "composer.json",
        /// The deployment's own configuration.
        Config = "config",
        /// A test that was conjured.
        Synthetic = "synthetic",
    }
}

impl Status {
    /// Only a pass and a fail settle the question of a check.
    pub fn is_decisive(self) -> bool {
        match self {
            Self::Pass | Self::Fail => true,
            Self::Error | Self::Timeout | Self::Aborted | Self::Skipped => false,
        }
    }
}
