//! What is shared with the other integration tests.

#[expect(dead_code, reason = "some of it serves the tests of one process only")]
#[path = "../it/support/database.rs"]
pub(crate) mod database;
