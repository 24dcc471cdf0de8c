//! The renderer with a switch that makes it lie: for the demo and for tests, never with a real facilitator (`demo_faults`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use super::renderer::Renderer;
use crate::memo::{Draft, Snapshot};
use crate::money::UsdMicros;
use crate::pipeline::port::{Assignment, Meter, Opinion, SynthesisError, Synthesizer};

/// What one lying draft is said to cost, so that the ledger shows a loss.
const LIE_COST: UsdMicros = UsdMicros(1_200);

/// Writes honest drafts until told to lie.
#[derive(Clone, Debug, Default)]
pub struct Faulty {
    lying: Arc<AtomicBool>,
}

impl Faulty {
    /// Whether the next drafts carry a figure that no fact backs.
    pub fn set_lying(&self, lying: bool) {
        self.lying.store(lying, Ordering::SeqCst);
    }
}

#[async_trait]
impl Synthesizer for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn identity(&self) -> Option<&str> {
        None
    }

    async fn draft(&self, assignment: &Assignment<'_>) -> Result<Draft, SynthesisError> {
        let mut draft = Renderer.draft(assignment).await?;
        if self.lying.load(Ordering::SeqCst) {
            let id = assignment.snapshot.facts().first().map_or("C1", |fact| fact.id.as_str());
            draft.summary.push_str(&format!(" Revenue will reach $987.6 trillion [{id}]."));
            assignment.meter.add(LIE_COST, None);
        }
        Ok(draft)
    }

    async fn review(&self, _: &Snapshot, _: &Draft, _: &Meter) -> Opinion {
        Opinion::Skipped
    }
}
