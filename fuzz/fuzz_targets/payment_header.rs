//! Whatever stands in a payment header, of either version: reading it never panics, and what a facilitator would be asked
//! about is the payment that was read. A payment of the client-broadcast rail is never read as one that we settle. The input is
//! tried as the header, and as the document inside it.

#![no_main]

use std::sync::LazyLock;

use jim::evm::{Address, B256};
use jim::money::Atomic;
use jim::x402::{
    IssuedOffer, Malformed, Offer, Payment, Permit2Rails, Presented, Version, check_window, decode, decode_presented,
    facilitator_request, match_broadcast, match_offer, verify_signature,
};
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
    permit2: Permit2Rails { exact: true, upto: Some(Address::repeat_byte(0xfa)) },
});

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for version in [Version::V1, Version::V2] {
        rule(decode(version, text), decode_presented(version, text));
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
            rule(Payment::from_value(version, value.clone()), Presented::from_value(version, value));
        }
    }
});

/// One text, read for the rail that we settle and for both.
fn rule(exact: Result<Payment, Malformed>, either: Result<Presented, Malformed>) {
    match either {
        Ok(Presented::Exact(payment)) => {
            check(&payment);
            assert_eq!(exact, Ok(payment));
        }
        Ok(Presented::Broadcast(payment)) => {
            assert!(exact.is_err(), "two payments in one text");
            let issued = IssuedOffer {
                nonce: payment.nonce.unwrap_or(B256::ZERO),
                product: String::new(),
                amount: OFFER.amount,
                issued_at_s: 1_750_000_000,
            };
            let _ = match_broadcast(&payment, &OFFER, &issued);
            let _ = payment.payload_sha256();
        }
        Err(_) => assert!(exact.is_err(), "what is no payment at all is none that we settle"),
    }
}

fn check(payment: &Payment) {
    let _ = check_window(&payment.authorization, 1_750_000_000, 85);
    let _ = verify_signature(payment, &OFFER);
    let _ = match_offer(payment, &OFFER);
    let Some(asked) = facilitator_request(payment, &OFFER) else {
        assert!(payment.method(&OFFER).is_err(), "the offer's network has a name in both versions");
        return;
    };
    let read = Payment::from_value(payment.version, asked.payment_payload).expect("what we send can be read");
    assert_eq!(read.authorization, payment.authorization);
    assert_eq!(read.payload_sha256(), payment.payload_sha256(), "one identity for every spelling");
}
