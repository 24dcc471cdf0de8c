//! What is shared with the other integration tests.

#[path = "../it/support/database.rs"]
pub(crate) mod database;
