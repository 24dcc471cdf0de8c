//! The tables beside the journal: the filing cache, and the chain that the simulated facilitator stands in for.

mod filing_cache;
mod simulated;
