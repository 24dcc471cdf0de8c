//! The `jim` command.

fn main() {}
