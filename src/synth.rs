//! Who writes drafts. Each writer implements [`crate::pipeline::port::Synthesizer`]; none of them is believed.
//!
//! - `renderer`: jim's own, without a model
//! - `model`: a language model behind one of two APIs
//! - `faulty`: the renderer with a switch that makes it lie

pub mod faulty;
pub mod model;
pub mod renderer;
