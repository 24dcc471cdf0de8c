//! Whatever lines the header has: the ruling is the same twice, never lets a loop or a deep chain through, and echoes no
//! more than it may. What it lets through reads back as itself.

#![no_main]

use jim::call_chain::{Violation, rule};
use jim::evm::Address;
use libfuzzer_sys::fuzz_target;

const OURS: Address = Address::repeat_byte(0xaa);

fuzz_target!(|input: (u8, &[u8])| {
    let max_depth = usize::from(input.0 % 6);
    let lines = || input.1.split(|byte| *byte == b'\n');
    let ruling = rule(lines(), OURS, max_depth);
    assert_eq!(ruling, rule(lines(), OURS, max_depth), "a pure function");
    match ruling {
        Ok(chain) => {
            assert!(chain.hops().len() < max_depth && !chain.hops().contains(&OURS));
            // one line with at least one item: an empty line is no chain
            assert_eq!(rule([chain.header_value()], OURS, max_depth).as_ref(), Ok(&chain));
            let longer = chain.appended(OURS, max_depth).expect("below the ceiling there is room for one");
            assert_eq!(longer.hops().len(), chain.hops().len() + 1);
            let back = rule([longer.header_value()], OURS, usize::MAX);
            assert!(matches!(back, Err(Violation::Loop { .. })), "our own chain comes back as a loop");
        }
        Err(violation) => {
            assert!(violation.hops().len() <= max_depth);
            assert!(violation.code().starts_with("call_chain_"));
        }
    }
});
