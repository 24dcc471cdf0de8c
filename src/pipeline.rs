//! snapshot -> draft -> gate: the work that is sold.

pub mod port;
