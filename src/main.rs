//! The `jim` command.

use std::process::ExitCode;

/// A sale makes some thousands of small objects, on several threads: measured against the system's allocator, see CHANGELOG.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    jim::cli::main()
}
