//! jim's own renderer as a synthesizer: no model, no cost, always sourced.

use async_trait::async_trait;

use crate::memo::{Mode, Snapshot, render};
use crate::money::UsdMicros;
use crate::pipeline::port::{SynthesisError, Synthesizer, Written};

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

    async fn draft(&self, snapshot: &Snapshot, mode: Mode, _feedback: Option<&str>) -> Result<Written, SynthesisError> {
        Ok(Written { draft: render::draft(snapshot, mode), cost: UsdMicros(0) })
    }
}
