//! jim's own renderer as a synthesizer: no model, no cost, always sourced.

use async_trait::async_trait;

use crate::memo::{Draft, Snapshot, render};
use crate::pipeline::port::{Assignment, Meter, Opinion, SynthesisError, Synthesizer};

/// Renders the facts as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Renderer;

#[async_trait]
impl Synthesizer for Renderer {
    fn name(&self) -> &'static str {
        "renderer"
    }

    fn identity(&self) -> Option<&str> {
        Some(concat!("renderer ", env!("CARGO_PKG_VERSION")))
    }

    async fn draft(&self, assignment: &Assignment<'_>) -> Result<Draft, SynthesisError> {
        Ok(render::draft(assignment.snapshot, assignment.mode))
    }

    async fn review(&self, _: &Snapshot, _: &Draft, _: &Meter) -> Opinion {
        Opinion::Skipped
    }
}
