use super::*;
use crate::x402::fixture::{document, header, offer, payment};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use proptest::prelude::*;
use serde_json::json;

const BOTH: [Version; 2] = [Version::V1, Version::V2];

fn with(version: Version, pointer: &str, value: Value) -> Result<Payment, Malformed> {
    let mut changed = document(version);
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    changed.pointer_mut(parent).expect("a parent").as_object_mut().expect("an object").insert(key.to_owned(), value);
    decode(version, &header(&changed))
}

#[test]
fn a_payment_is_read_back_as_it_was_signed() {
    for version in BOTH {
        let sent = payment(version, 1);
        let read = decode(version, &sent.header_value).expect("a payment");
        assert_eq!(read.authorization, sent.authorization);
        assert_eq!(read.signature.len(), 65);
        let other = if version == Version::V1 { Version::V2 } else { Version::V1 };
        assert_eq!(decode(other, &sent.header_value), Err(Malformed::Version), "under the other header");
    }
}

#[test]
fn only_one_base64_spelling_is_read() {
    let json = document(Version::V2).to_string();
    // lengths that need one and two signs of padding
    let (one, two) = match json.len() % 3 {
        0 => (format!("{json} "), format!("{json}  ")),
        1 => (format!("{json} "), json.clone()),
        _ => (json.clone(), format!("{json}  ")),
    };
    for text in [one, two] {
        let good = STANDARD.encode(&text);
        if decode(Version::V2, &good).is_err() {
            panic!("white space after the JSON value is allowed by RFC 8259");
        }
        assert_eq!(decode(Version::V2, &STANDARD_NO_PAD.encode(&text)), Err(Malformed::Base64));
        for bad in [format!("{good}\n"), format!(" {good}"), good.replacen('e', "e ", 1), format!("{good}=")] {
            assert_eq!(decode(Version::V2, &bad), Err(Malformed::Base64), "{bad:?}");
        }
    }
    assert_eq!(
        decode(Version::V2, &URL_SAFE.encode("{\"a\":\"\u{3ff}\u{3ff}\u{3ff}>>>???\"}")),
        Err(Malformed::Base64)
    );
    assert_eq!(decode(Version::V2, "e31="), Err(Malformed::Base64), "trailing bits that are not zero");
}

#[test]
fn size_is_judged_before_anything_is_decoded() {
    assert_eq!(decode(Version::V2, &"!".repeat(PAYMENT_HEADER_BYTES_MAX + 1)), Err(Malformed::TooLong));
    assert_eq!(decode(Version::V2, &"!".repeat(PAYMENT_HEADER_BYTES_MAX)), Err(Malformed::Base64));
}

#[test]
fn json_with_two_meanings_is_refused() {
    for version in BOTH {
        let text = document(version).to_string();
        let encoded = |text: &str| decode(version, &STANDARD.encode(text));
        for key in ["x402Version", "payload", "signature", "authorization", "from", "value", "nonce"] {
            let twice = text.replacen(&format!("\"{key}\":"), &format!("\"{key}\":null,\"{key}\":"), 1);
            assert_ne!(twice, text);
            assert_eq!(encoded(&twice), Err(Malformed::Json(strict_json::Error::DuplicateKey)), "{key}");
        }
        assert_eq!(encoded(&format!("{text}{{}}")), Err(Malformed::Json(strict_json::Error::NotJson)));
        let deep = format!("{}{}", "[".repeat(20), "]".repeat(20));
        let deep = text.replacen('{', &format!("{{\"x\":{deep},"), 1);
        assert_eq!(encoded(&deep), Err(Malformed::Json(strict_json::Error::TooDeep)));
        assert_eq!(encoded("[]"), Err(Malformed::NotObject));
    }
}

#[test]
fn the_version_is_the_number_of_the_header() {
    for version in BOTH {
        let bad =
            [json!(version.number().to_string()), json!(version.number() as f64), json!(3), json!(null), json!([2])];
        for value in bad {
            assert_eq!(with(version, "/x402Version", value.clone()), Err(Malformed::Version), "{value}");
        }
    }
}

#[test]
fn numbers_are_decimal_strings_only() {
    let bad =
        [json!(50000), json!("0xc350"), json!("050000"), json!("+50000"), json!("5e4"), json!(" 50000"), json!("")];
    for version in BOTH {
        for key in ["value", "validAfter", "validBefore"] {
            for value in bad.iter().cloned().chain([json!("1".repeat(79)), json!(true), json!(null)]) {
                let read = with(version, &format!("/payload/authorization/{key}"), value.clone());
                assert!(matches!(read, Err(Malformed::Member(_))), "{key} {value}");
            }
        }
    }
    for value in bad {
        assert_eq!(with(Version::V2, "/accepted/amount", value), Err(Malformed::Member("accepted.amount")));
    }
    for value in [json!("240"), json!(240.0), json!(-1), json!(1e300)] {
        let read = with(Version::V2, "/accepted/maxTimeoutSeconds", value);
        assert_eq!(read, Err(Malformed::Member("accepted.maxTimeoutSeconds")));
    }
}

#[test]
fn addresses_nonces_and_signatures_have_their_form() {
    for version in BOTH {
        for bad in ["", "0x", "11", "0x11", "x"] {
            for key in ["from", "to", "nonce"] {
                let read = with(version, &format!("/payload/authorization/{key}"), json!(bad));
                assert!(matches!(read, Err(Malformed::Member(_))), "{key} {bad:?}");
            }
        }
        for bad in [json!("0x1"), json!("12"), json!("0x0x12"), json!("0xzz"), json!([1]), json!(null)] {
            assert_eq!(with(version, "/payload/signature", bad), Err(Malformed::Member("payload.signature")));
        }
        for bytes in [0, 1, 64, 66, 500] {
            let read = with(version, "/payload/signature", json!(format!("0x{}", "ab".repeat(bytes))));
            assert_eq!(read.expect("of any length").signature.len(), bytes);
        }
        let read = with(version, "/payload/authorization/from", json!(format!("0x{}", "aB".repeat(20))));
        assert_eq!(read.expect("a wrong checksum is taken by value").authorization.from(), Address::repeat_byte(0xab));
    }
}

#[test]
fn other_kinds_of_payload_are_refused() {
    for version in BOTH {
        for key in ["permit2Authorization", "transaction", "delegationManager", "txHash"] {
            let read = with(version, &format!("/payload/{key}"), json!({"x": 1}));
            assert_eq!(read, Err(Malformed::Unsupported), "beside ours: {key}");
            let alone = with(version, "/payload", json!({key: "0x", "signature": "0x"}));
            let want = match (key, version) {
                ("permit2Authorization", Version::V2) => Malformed::Member("payload.permit2Authorization"),
                _ => Malformed::Unsupported,
            };
            assert_eq!(alone, Err(want), "alone: {key}");
        }
        assert_eq!(with(version, "/payload", json!({})), Err(Malformed::Member("payload.authorization")));
        assert_eq!(with(version, "/payload", json!("x")), Err(Malformed::Member("payload")));
    }
}

#[test]
fn null_is_absent_and_extensions_are_an_object() {
    let plain = with(Version::V2, "/extensions", json!(null)).expect("null extensions");
    assert_eq!(plain.extensions(), None);
    for pointer in ["/resource", "/accepted/outputSchema", "/payload/permit2Authorization"] {
        assert!(with(Version::V2, pointer, json!(null)).is_ok(), "{pointer}");
    }
    let nulls = with(Version::V2, "/accepted/unknown", json!(null)).expect("a null member");
    assert_eq!(nulls.accepted, decode(Version::V2, &payment(Version::V2, 1).header_value).expect("a payment").accepted);
    for bad in [json!("x"), json!([]), json!(1), json!(true)] {
        assert_eq!(with(Version::V2, "/extensions", bad), Err(Malformed::Member("extensions")));
    }
    assert_eq!(with(Version::V2, "/accepted", json!(null)), Err(Malformed::Member("accepted")));
    assert_eq!(with(Version::V2, "/resource", json!("http://x")), Err(Malformed::Member("resource")));
}

#[test]
fn the_key_and_the_digest_do_not_depend_on_the_spelling() {
    let offer = offer();
    let plain = decode(Version::V2, &payment(Version::V2, 1).header_value).expect("a payment");
    let mut shouted = document(Version::V2);
    for pointer in ["/payload/authorization/from", "/payload/authorization/to", "/payload/signature"] {
        let text =
            shouted.pointer(pointer).and_then(Value::as_str).expect("text").to_uppercase().replacen("0X", "0x", 1);
        *shouted.pointer_mut(pointer).expect("a member") = json!(text);
    }
    let signature = shouted.pointer("/payload/signature").and_then(Value::as_str).expect("a signature").to_owned();
    let v = if signature.ends_with("1B") { "00" } else { "01" };
    shouted["payload"]["signature"] = json!(format!("{}{v}", &signature[..130]));
    let shouted = decode(Version::V2, &header(&shouted)).expect("a payment");
    assert_ne!(plain.signature, shouted.signature);
    assert_eq!(plain.payload_sha256(), shouted.payload_sha256());
    let key = plain.auth_key(&offer.network, &offer.asset);
    assert_eq!(key, shouted.auth_key(&offer.network, &offer.asset));
    let nonce = "01".repeat(32);
    assert_eq!(
        key,
        format!(
            "eip155:84532/eip3009/0x036cbd53842c5426634e7929541ec2318f3dcf7e/\
             0x70997970c51812dc3a010c7d01b50e0d17dc79c8/0x{nonce}"
        )
    );
    let other = decode(Version::V2, &payment(Version::V2, 2).header_value).expect("a payment");
    assert_ne!(plain.payload_sha256(), other.payload_sha256());
}

#[test]
fn debug_shows_no_signature() {
    let read = decode(Version::V2, &payment(Version::V2, 1).header_value).expect("a payment");
    let shown = format!("{read:?}");
    assert!(!shown.contains(&hex::encode(&read.signature[..8])) && shown.contains("signature_bytes: 65"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[0-9a-fx]{0,70}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop::collection::btree_map("[a-z]{1,6}", inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect()))
    })
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for version in BOTH {
            let _ = decode(version, &text);
            let _ = decode(version, &STANDARD.encode(&bytes));
        }
    }

    #[test]
    fn any_member_may_be_anything_and_nothing_panics(value in any_json(), pick in any::<prop::sample::Index>()) {
        let pointers = ["/payload", "/payload/authorization", "/payload/signature", "/payload/authorization/value",
            "/payload/authorization/nonce", "/accepted", "/accepted/extra", "/accepted/amount", "/resource", "/extensions"];
        let pointer = pointers[pick.index(pointers.len())];
        if let Ok(read) = with(Version::V2, pointer, value) {
            let _ = (read.payload_sha256(), read.normal_payload());
        }
    }
}
