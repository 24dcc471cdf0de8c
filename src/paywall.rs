//! The seam between a verified payment and the answer it pays for: `Verified` is committed or refused, never both.

pub mod port;
