//! Whatever stands in a payment header, of either version: reading it never panics, and what a facilitator would be asked
//! about is the payment that was read. The input is tried as the header, and as the document inside it.

#![no_main]

use std::sync::LazyLock;

use jim::evm::Address;
use jim::money::Atomic;
use jim::x402::{Offer, Payment, Version, check_window, decode, facilitator_request, match_offer, verify_signature};
use libfuzzer_sys::fuzz_target;

static OFFER: LazyLock<Offer> = LazyLock::new(|| Offer {
    network: "eip155:84532".parse().expect("a network"),
    asset: Address::repeat_byte(0x03),
    amount: Atomic(50_000),
    pay_to: Address::repeat_byte(0x3c),
    max_timeout_s: 180,
    token_name: "USDC".to_owned(),
    token_version: "2".to_owned(),
    resource_url: "http://127.0.0.1:4021/research/fundamentals".to_owned(),
    description: "a memo".to_owned(),
    mime_type: "application/json".to_owned(),
    service_name: None,
    tags: Vec::new(),
    output_schema: None,
});

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for version in [Version::V1, Version::V2] {
        if let Ok(payment) = decode(version, text) {
            check(&payment);
        }
        if let Ok(value) = serde_json::from_str(text)
            && let Ok(payment) = Payment::from_value(version, value)
        {
            check(&payment);
        }
    }
});

fn check(payment: &Payment) {
    let _ = check_window(&payment.authorization, 1_750_000_000, 85);
    let _ = verify_signature(payment, &OFFER);
    let _ = match_offer(payment, &OFFER);
    let asked = facilitator_request(payment, &OFFER).expect("the offer's network has a name in both versions");
    let read = Payment::from_value(payment.version, asked.payment_payload).expect("what we send can be read");
    assert_eq!(read.authorization, payment.authorization);
    assert_eq!(read.payload_sha256(), payment.payload_sha256(), "one identity for every spelling");
}
