//! Money that is owed back, as rows: refunds, what was done about each, and who works on it (migration 0005).

pub mod list;
pub mod work;
