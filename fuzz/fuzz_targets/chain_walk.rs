//! Whatever a log says: the walk ends, counts what it shows, and goes on from any line as if it had never stopped.

#![no_main]

use jim::proof::address::Digest;
use jim::proof::audit::{Subject, audit};
use jim::proof::chain::Chain;
use jim::proof::key::Keys;
use jim::proof::walk::{Entry, Walk};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|log: &[u8]| {
    let mut walk = Walk::default();
    let (mut records, mut lines, mut is_whole) = (0, 0, true);
    for line in log.split(|byte| *byte == b'\n') {
        let before = walk.state().head;
        let mut again = Walk::resume(walk.state(), walk.lines());
        let resumed = again.step(line).map(|step| (step.line, step.digest, step.linked));
        let Some(step) = walk.step(line) else {
            assert!(resumed.is_none());
            continue;
        };
        assert_eq!(resumed, Some((step.line, step.digest, step.linked)));
        assert_eq!((step.line, step.before), (lines, before));
        lines += 1;
        is_whole &= step.linked && !matches!(step.entry, Entry::Corrupt | Entry::UnknownKind | Entry::Ignored);
        if matches!(step.entry, Entry::Evidence(_) | Entry::Marker(_)) {
            records += 1;
        }
        assert_eq!(walk.state().records, records);
        assert!(walk.state().tail_records <= records);
    }
    if lines == 0 {
        assert_eq!(walk.state().head, Digest::GENESIS);
    }
    let text = String::from_utf8_lossy(log);
    let found = audit(
        &Subject { log: &text, anchor: Some(&text), baseline: Some(&text), workspace_key: None },
        &Keys::default(),
    );
    assert!(found.vouched_floor.is_none(), "nobody's key vouches for nothing");
    if Chain::reopen("w", [log]).is_ok() {
        assert!(is_whole, "a broken chain is not extended");
    }
});
