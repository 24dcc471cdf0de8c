//! What several integration tests build on.

pub(crate) mod database;
