//! Who writes drafts. Each writer implements [`crate::pipeline::port::Synthesizer`]; none of them is believed.

pub mod faulty;
pub mod renderer;
