//! One offer and one buyer for the tests of this module and of its users.

use alloy_primitives::B256;
use serde_json::{Map, Value, json};

use super::{
    BROADCAST_FLOW, BROADCAST_METHOD, Challenge, Offer, OutgoingPayment, Permit2Rails, Version, codec, pay, read_body,
    read_required,
};
use crate::evm::{Address, Network, SecretKey, parse_address};
use crate::money::Atomic;

/// The time at which [`payment`] was signed.
pub(crate) const NOW_S: u64 = 1_790_000_000;

/// Public test key of a development chain. It holds nothing.
pub(crate) fn buyer() -> SecretKey {
    SecretKey::from_hex("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d").expect("a test key")
}

pub(crate) fn offer() -> Offer {
    let address = |text| parse_address(text).expect("an address");
    Offer {
        network: Network::new(84_532),
        asset: address("0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
        amount: Atomic(50_000),
        pay_to: address("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
        max_timeout_s: 240,
        token_name: "USDC".to_owned(),
        token_version: "2".to_owned(),
        resource_url: "http://127.0.0.1:4021/research/fundamentals".to_owned(),
        description: "A cited memo".to_owned(),
        mime_type: "application/json".to_owned(),
        service_name: Some("jim".to_owned()),
        tags: vec!["research".to_owned()],
        output_schema: Some(json!({"input": {"type": "http", "method": "GET"}})),
        permit2: Permit2Rails::default(),
    }
}

/// A payment for [`offer`] by [`buyer`].
pub(crate) fn payment(version: Version, nonce: u8) -> OutgoingPayment {
    let challenge = Challenge::render(&offer(), "payment required", &Map::new()).expect("small enough");
    let read = match version {
        Version::V1 => read_body(&challenge.body),
        Version::V2 => read_required(&challenge.header),
    };
    pay(&read.expect("readable").offers[0], &buyer(), B256::repeat_byte(nonce), NOW_S)
}

/// [`offer`] with both rails by Permit2.
pub(crate) fn permit_offer() -> Offer {
    Offer { permit2: Permit2Rails { exact: true, upto: Some(FACILITATOR) }, ..offer() }
}

/// Who may settle what is signed for `upto`.
pub(crate) const FACILITATOR: Address = Address::repeat_byte(0xfa);

/// A payment for [`permit_offer`] by [`buyer`], by its second (`exact`) or third (`upto`) entry.
pub(crate) fn permit_payment(entry: usize, nonce: u8) -> OutgoingPayment {
    let challenge = Challenge::render(&permit_offer(), "payment required", &Map::new()).expect("small enough");
    let offers = read_required(&challenge.header).expect("readable").offers;
    pay(&offers[entry], &buyer(), B256::repeat_byte(nonce), NOW_S)
}

/// The JSON behind [`permit_payment`].
pub(crate) fn permit_document(entry: usize) -> Value {
    let text = permit_payment(entry, 1).header_value;
    serde_json::from_slice(&codec::decode_base64(&text).expect("base64")).expect("JSON")
}

/// The JSON behind [`payment`].
pub(crate) fn document(version: Version) -> Value {
    let text = payment(version, 1).header_value;
    serde_json::from_slice(&codec::decode_base64(&text).expect("base64")).expect("JSON")
}

/// A payment for [`offer`] by a transfer that the buyer has broadcast, under a nonce that is not ours.
pub(crate) fn broadcast_document() -> Value {
    let mut accepted = offer().requirements_v2();
    accepted["maxTimeoutSeconds"] = json!(crate::limits::OFFER_BROADCAST_LIFE_S);
    accepted["extra"]["assetTransferMethod"] = json!(BROADCAST_METHOD);
    accepted["extra"]["paymentFlow"] = json!(BROADCAST_FLOW);
    accepted["extra"]["nonce"] = json!(B256::repeat_byte(0xbb));
    json!({
        "x402Version": 2,
        "accepted": accepted,
        "resource": {"url": offer().resource_url},
        "payload": {"txHash": B256::repeat_byte(0xaa)},
    })
}

/// A header value of any JSON.
pub(crate) fn header(value: &Value) -> String {
    codec::encode(value)
}
