//! Adapters that gather facts. Each implements `pipeline::port::Source`; none knows what the facts are used for.

pub mod cache;
pub mod filings;

use std::path::PathBuf;

/// Why a source cannot be opened. All are faults of the configuration or of the machine, never of a buyer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting names no source.
    #[error("filings.source is {0:?} and must be `live`, `folder:PATH` or `sample`")]
    Setting(String),
    /// The SEC refuses callers that do not say who they are.
    #[error("filings.user_agent must hold a name and a contact mail address, as `Example Research ops@example.com`")]
    UserAgent,
    /// An address that is neither https nor on this machine.
    #[error("{0:?} is not an https address")]
    Base(String),
    /// A file or folder cannot be read.
    #[error("{path}: {cause}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A file holds something else than it should.
    #[error("{path}: {cause}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Client(String),
}
