//! Which section a fact belongs to, by its unit and the words of its label.

use crate::memo::fact::{Fact, Unit};

/// One section of a rendered memo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Income,
    Balance,
    Cash,
    PerShare,
    Derived,
    Other,
}

impl Part {
    pub(super) const ALL: [Self; 6] =
        [Self::Income, Self::Balance, Self::Cash, Self::PerShare, Self::Derived, Self::Other];

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Income => "Income statement",
            Self::Balance => "Balance sheet",
            Self::Cash => "Cash flow",
            Self::PerShare => "Per share",
            Self::Derived => "Derived measures",
            Self::Other => "Other facts",
        }
    }

    /// The section of a fact.
    pub(super) fn of(fact: &Fact) -> Self {
        if !fact.derived_from.is_empty() {
            return Self::Derived;
        }
        let label = fact.label.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| label.contains(word));
        match fact.unit {
            Unit::PerShare(_) => Self::PerShare,
            Unit::Money(_)
                if has(&[
                    "cash flow",
                    "operating activities",
                    "investing",
                    "financing",
                    "capital expenditure",
                    "repurchase",
                ]) =>
            {
                Self::Cash
            }
            Unit::Money(_)
                if has(&[
                    "asset",
                    "liabilit",
                    "equity",
                    "debt",
                    "cash",
                    "inventor",
                    "receivable",
                    "payable",
                    "goodwill",
                ]) =>
            {
                Self::Balance
            }
            Unit::Money(_)
                if has(&["revenue", "sales", "income", "profit", "expense", "cost", "earnings", "loss", "ebit"]) =>
            {
                Self::Income
            }
            Unit::Money(_)
            | Unit::Shares
            | Unit::Percent
            | Unit::Points
            | Unit::Multiple
            | Unit::Ratio
            | Unit::Count
            | Unit::Index => Self::Other,
        }
    }
}
