//! How sure a run makes us, for the posterior regime of grades: one factor a check, their product the claim's.

/// How surely a change reaches a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impact {
    /// The changed path itself.
    Exact,
    /// A path that begins with it.
    Prefix,
    /// Anything, or nothing known.
    Wildcard,
}

/// How easily a check passes what is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// A check of the project.
    Organic,
    /// A conjured test.
    Synthetic,
    /// A check whose script changed since the baseline.
    Drifted,
}

/// What is known of a check from earlier runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Decisive runs.
    pub runs: u32,
    /// Those that passed.
    pub passes: u32,
    /// Neighbours that disagree.
    pub flips: u32,
}

impl Impact {
    fn strength(self) -> f64 {
        match self {
            Self::Exact => 1.0,
            Self::Prefix => 0.7,
            Self::Wildcard => 0.5,
        }
    }
}

impl Trust {
    /// The chance that a broken state passes.
    pub fn false_pass(self) -> f64 {
        match self {
            Self::Organic => 0.02,
            Self::Synthetic => 0.15,
            Self::Drifted => 0.5,
        }
    }
}

impl History {
    /// The chance that the check holds, before it runs.
    pub fn prior(self, impact: Impact) -> f64 {
        let failures = f64::from(self.runs) - f64::from(self.passes);
        let risk = (failures + 1.0) / (f64::from(self.runs) + 5.0);
        (1.0 - risk * impact.strength()).clamp(0.05, 0.999)
    }

    /// The chance that a sound state fails.
    pub fn false_fail(self) -> f64 {
        if self.runs == 0 {
            return 0.05;
        }
        let neighbours = self.runs.saturating_sub(1).max(1);
        (f64::from(self.flips) / (2.0 * f64::from(neighbours))).clamp(0.01, 0.3)
    }

    /// The chance that the check holds, after it passed or failed.
    pub fn posterior(self, impact: Impact, trust: Trust, passed: bool) -> f64 {
        let (prior, alpha, beta) = (self.prior(impact), self.false_fail(), trust.false_pass());
        let (sound, broken) = if passed { (1.0 - alpha, beta) } else { (alpha, 1.0 - beta) };
        prior * sound / (prior * sound + (1.0 - prior) * broken)
    }
}
