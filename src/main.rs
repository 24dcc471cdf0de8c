//! The `jim` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    jim::cli::main()
}
