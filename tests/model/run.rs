//! Runs the checker and keeps what it found.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// What one run found.
#[derive(Debug)]
pub(crate) struct Run {
    /// The variant.
    pub(crate) name: String,
    /// Distinct states that were seen.
    pub(crate) states: usize,
    /// Longest way from the start.
    pub(crate) depth: usize,
    /// Wall clock, milliseconds.
    pub(crate) millis: u128,
    /// Safety properties with a counterexample, each with its steps.
    pub(crate) broken: Vec<(&'static str, Vec<String>)>,
    /// Reachability properties without an example.
    pub(crate) unreached: Vec<&'static str>,
    /// Reachability properties with an example: name and number of steps.
    pub(crate) reached: Vec<(&'static str, usize)>,
    /// Moves of the table that were taken.
    pub(crate) taken: u64,
}

/// Explores everything, or, with `until`, until that property has a counterexample.
pub(crate) fn run<M>(name: String, model: M, until: Option<&'static str>, taken: fn(&M) -> u64) -> Run
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + PartialEq + std::fmt::Debug,
{
    let properties = model.properties();
    let start = Instant::now();
    // `All` never comes true in a run of the design, where no safety property is discovered: everything is explored
    let finish = until.map_or(HasDiscoveries::All, |property| HasDiscoveries::AnyOf(BTreeSet::from([property])));
    let checker = model.checker().finish_when(finish).spawn_bfs().join();
    let millis = start.elapsed().as_millis();
    let taken = taken(checker.model());
    let mut run = Run {
        name,
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        millis,
        broken: Vec::new(),
        unreached: Vec::new(),
        reached: Vec::new(),
        taken,
    };
    let mut found = checker.discoveries();
    for property in properties {
        let path = found.remove(property.name);
        let safety = property.expectation == Expectation::Always;
        match path {
            Some(path) => {
                let steps: Vec<String> = path.into_actions().into_iter().map(|act| format!("{act:?}")).collect();
                if safety {
                    run.broken.push((property.name, steps));
                } else {
                    run.reached.push((property.name, steps.len()));
                }
            }
            None if !safety => run.unreached.push(property.name),
            None => {}
        }
    }
    run
}

impl Run {
    /// One line of the table.
    pub(crate) fn line(&self) -> String {
        let broken: Vec<&str> = self.broken.iter().map(|(name, _)| *name).collect();
        let outcome = if broken.is_empty() { "all hold".to_owned() } else { format!("broken: {}", broken.join("; ")) };
        let seconds = format!("{}.{:02}", self.millis / 1000, self.millis % 1000 / 10);
        format!("{:<58} {:>9} states {seconds:>6} s  depth {:>2}  {outcome}", self.name, self.states, self.depth)
    }

    /// The counterexample of one property.
    pub(crate) fn steps(&self, property: &str) -> Option<&[String]> {
        self.broken.iter().find(|(name, _)| *name == property).map(|(_, steps)| steps.as_slice())
    }
}
