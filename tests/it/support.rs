//! What several integration tests build on.

pub(crate) mod buyer;
pub(crate) mod chain;
pub(crate) mod database;
pub(crate) mod facilitator;
pub(crate) mod model;
pub(crate) mod refusal;
pub(crate) mod research;
pub(crate) mod rows;
pub(crate) mod seller;
pub(crate) mod service;
pub(crate) mod wire;
pub(crate) mod world;
