//! A verified payment exists once.
use jim::paywall::Verified;

fn copy(verified: &Verified) -> Verified {
    verified.clone()
}

fn main() {}
