use super::*;
use crate::limits::PAYMENT_HEADER_BYTES_MAX;
use crate::strict_json;
use crate::x402::decode;
use crate::x402::fixture::{broadcast_document, document, header, payment};
use alloy_primitives::hex;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

fn with(pointer: &str, value: Value) -> Result<Presented, Malformed> {
    let mut changed = broadcast_document();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    changed.pointer_mut(parent).expect("a parent").as_object_mut().expect("an object").insert(key.to_owned(), value);
    decode_presented(Version::V2, &header(&changed))
}

fn broadcast(read: Result<Presented, Malformed>) -> BroadcastPayment {
    match read.expect("well-formed") {
        Presented::Broadcast(payment) => payment,
        Presented::Exact(payment) => panic!("{payment:?}"),
    }
}

#[test]
fn a_hash_is_read_in_the_payload_or_at_the_top() {
    let plain = broadcast(decode_presented(Version::V2, &header(&broadcast_document())));
    assert_eq!((plain.tx, plain.nonce), (B256::repeat_byte(0xaa), Some(B256::repeat_byte(0xbb))));
    assert_eq!(plain.resource_url.as_deref(), Some("http://127.0.0.1:4021/research/fundamentals"));
    assert_eq!(plain.extensions(), None);
    let mut flat = broadcast_document();
    let payload = flat["payload"].take();
    flat["txHash"] = payload["txHash"].clone();
    let flat = broadcast(decode_presented(Version::V2, &header(&flat)));
    assert_eq!((flat.tx, flat.nonce, &flat.accepted), (plain.tx, plain.nonce, &plain.accepted));
    let shouted = broadcast(with("/payload/txHash", json!(format!("0x{}", "AA".repeat(32)))));
    assert_eq!(shouted.tx, plain.tx);
    assert_eq!(shouted.payload_sha256(), plain.payload_sha256(), "one digest for every spelling");
    let other = broadcast(with("/payload/txHash", json!(format!("0x{}", "ac".repeat(32)))));
    assert_ne!(other.payload_sha256(), plain.payload_sha256());
    assert!(format!("{plain:?}").contains("0xaaaa"));
}

#[test]
fn the_nonce_may_be_left_out_and_must_else_be_a_word() {
    assert_eq!(broadcast(with("/accepted/extra/nonce", json!(null))).nonce, None);
    for bad in [json!(""), json!("0x"), json!("0xbb"), json!(7), json!({}), json!("bb".repeat(32))] {
        assert_eq!(with("/accepted/extra/nonce", bad), Err(Malformed::Member("accepted.extra.nonce")));
    }
}

#[test]
fn whatever_is_not_one_hash_alone_is_refused() {
    let hash = json!(format!("0x{}", "aa".repeat(32)));
    for (pointer, value, want) in [
        ("/payload/txHash", json!(null), Malformed::Member("payload.txHash")),
        ("/payload/txHash", json!("0xaa"), Malformed::Member("payload.txHash")),
        ("/payload/txHash", json!("aa".repeat(32)), Malformed::Member("payload.txHash")),
        ("/payload/txHash", json!([hash]), Malformed::Member("payload.txHash")),
        ("/payload/signature", json!("0x12"), Malformed::BroadcastPayload),
        ("/payload/authorization", json!({}), Malformed::BroadcastPayload),
        ("/payload/x", json!(1), Malformed::BroadcastPayload),
        ("/txHash", hash.clone(), Malformed::BroadcastPayload),
        ("/txHash", json!("0xbb"), Malformed::BroadcastPayload),
        ("/payload", json!({}), Malformed::Member("payload.txHash")),
        ("/payload", json!(null), Malformed::Member("payload")),
        ("/payload", json!("0xaa"), Malformed::Member("payload")),
        ("/x402Version", json!(1), Malformed::Version),
        ("/x402Version", json!("2"), Malformed::Version),
        ("/extensions", json!([]), Malformed::Member("extensions")),
        ("/resource", json!("http://x"), Malformed::Member("resource")),
        ("/accepted/amount", json!(50_000), Malformed::Member("accepted.amount")),
        ("/accepted/maxTimeoutSeconds", json!("600"), Malformed::Member("accepted.maxTimeoutSeconds")),
        ("/accepted/payTo", json!(null), Malformed::Member("accepted.payTo")),
    ] {
        assert_eq!(with(pointer, value.clone()), Err(want), "{pointer} {value}");
    }
    for version in [Version::V1, Version::V2] {
        let long = "!".repeat(PAYMENT_HEADER_BYTES_MAX + 1);
        assert_eq!(decode_presented(version, &long), Err(Malformed::TooLong));
    }
    let text = broadcast_document().to_string();
    let twice = STANDARD.encode(text.replacen("\"txHash\":", "\"txHash\":null,\"txHash\":", 1));
    assert_eq!(decode_presented(Version::V2, &twice), Err(Malformed::Json(strict_json::Error::DuplicateKey)));
}

#[test]
fn the_accepted_offer_says_which_rail_it_is() {
    for version in [Version::V1, Version::V2] {
        let text = payment(version, 1).header_value;
        let exact = Presented::Exact(decode(version, &text).expect("a payment"));
        assert_eq!(decode_presented(version, &text), Ok(exact.clone()));
        assert_eq!(Presented::from_value(version, document(version)), Ok(exact));
    }
    let hash = json!({"txHash": hex::encode_prefixed([0xaa; 32])});
    let mut ordinary = document(Version::V2);
    ordinary["payload"] = hash.clone();
    assert_eq!(decode_presented(Version::V2, &header(&ordinary)), Err(Malformed::Unsupported));
    for bad in [json!("permit2"), json!("eip3009"), json!("EIP3009-CLIENT-BROADCAST"), json!(7)] {
        assert_eq!(with("/accepted/extra/assetTransferMethod", bad.clone()), Err(Malformed::Unsupported), "{bad}");
    }
    let mut first = document(Version::V1);
    first["payload"] = hash;
    first["accepted"] = broadcast_document()["accepted"].clone();
    assert_eq!(
        decode_presented(Version::V1, &header(&first)),
        Err(Malformed::Unsupported),
        "no such rail in version 1"
    );
    // read for the rail that we settle alone, it is no payment
    assert_eq!(decode(Version::V2, &header(&broadcast_document())), Err(Malformed::Unsupported));
}

#[test]
fn a_signature_under_the_broadcast_method_is_no_payment_of_either_rail() {
    let mut mixed = document(Version::V2);
    mixed["accepted"] = broadcast_document()["accepted"].clone();
    assert_eq!(decode_presented(Version::V2, &header(&mixed)), Err(Malformed::BroadcastPayload));
    assert_eq!(decode(Version::V2, &header(&mixed)), Err(Malformed::BroadcastPayload));
}
