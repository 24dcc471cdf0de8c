//! Whatever a bundle says: the verification ends with a result, the same one however the bytes arrive, and it is never proven by
//! a key that nobody holds.

#![no_main]

use std::io::Read;

use jim::proof::bundle::verify;
use jim::proof::key::Keys;
use libfuzzer_sys::fuzz_target;

/// Hands out a few bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = out.len().min(self.0.len()).min(3);
        out[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let keys = Keys::default();
    let result = verify(bytes, &keys).expect("bytes in memory read");
    assert!(!result.is_proven());
    assert_eq!(verify(Trickle(bytes), &keys).expect("bytes in memory read"), result);
    serde_json::to_string(&result).expect("a result serializes");
});
