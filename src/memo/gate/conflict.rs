//! Facts that contradict each other (decision 11): one measure, company, period and unit, two values, two origins.

use std::collections::HashMap;

use super::precision::{Shown, holds};
use crate::memo::fact::{Fact, Unit};
use crate::memo::figure::Hedge;

/// The origin of an issuer's own filing.
const PRIMARY: &str = "primary";

/// A fact of a peer that a primary source contradicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The peer's fact.
    pub peer: String,
    /// The fact that wins.
    pub primary: String,
}

/// Every peer's fact that a primary fact of the same measure, company, year and unit contradicts. A value that is the primary
/// one, rounded, agrees.
pub fn conflicts(facts: &[Fact]) -> Vec<Conflict> {
    if facts.iter().all(|fact| fact.provenance.origin == PRIMARY) {
        return Vec::new();
    }
    let key = |fact: &Fact| -> (String, Option<String>, Unit) {
        let head = fact.label.split('(').next().unwrap_or_default().trim().to_lowercase();
        (head, fact.entity.as_deref().map(str::to_lowercase), fact.unit)
    };
    let mut primaries: HashMap<_, Vec<&Fact>> = HashMap::new();
    for fact in facts.iter().filter(|fact| fact.provenance.origin == PRIMARY) {
        primaries.entry(key(fact)).or_default().push(fact);
    }
    let peers = facts.iter().filter(|fact| fact.provenance.origin != PRIMARY);
    peers
        .filter_map(|peer| {
            let same = |primary: &&&Fact| same_period(peer, primary) && exact_label(peer, primary);
            let primary = primaries.get(&key(peer))?.iter().find(same)?;
            (!agrees(peer, primary)).then(|| Conflict { peer: peer.id.clone(), primary: primary.id.clone() })
        })
        .collect()
}

/// "Revenue (prior FY)" is another fact than "Revenue"; "Revenue (restated)" from a peer is not.
fn exact_label(peer: &Fact, primary: &Fact) -> bool {
    peer.label == primary.label || !primary.label.contains('(')
}

fn same_period(a: &Fact, b: &Fact) -> bool {
    let years = a.fiscal_year == b.fiscal_year && a.period_end == b.period_end;
    let periods = match (&a.fiscal_period, &b.fiscal_period) {
        (Some(a), Some(b)) => a == b,
        (None, _) | (_, None) => true,
    };
    years && periods
}

fn agrees(peer: &Fact, primary: &Fact) -> bool {
    let value = peer.value.normalize();
    let zeros = trailing_zeros(value.mantissa().unsigned_abs()) as i32 - value.scale() as i32;
    let coarse = crate::memo::figure::power(zeros);
    let shown = Shown { magnitude: value.abs(), quantum: coarse, coarse, significant: 0 };
    peer.value.is_sign_negative() == primary.value.is_sign_negative()
        && holds(&shown, primary.value.abs(), Hedge::Exact)
}

fn trailing_zeros(mut n: u128) -> u32 {
    let mut zeros = 0;
    while n != 0 && n.is_multiple_of(10) {
        n /= 10;
        zeros += 1;
    }
    zeros
}
