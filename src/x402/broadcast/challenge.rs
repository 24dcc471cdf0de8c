//! The 402 with both rails: rendered once, but for the nonce.
//!
//! The nonce has a fixed length at a known place of the JSON text, and base64 codes three bytes at a time. So only the groups
//! around it are coded anew, and the header is put together from three pieces.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{FLOW, METHOD};
use crate::evm::{B256, checksummed};
use crate::limits::{CHALLENGE_HEADER_BYTES_MAX, OFFER_BROADCAST_LIFE_S};
use crate::x402::challenge::{TooLarge, body_v1};
use crate::x402::{Offer, SCHEME};

/// Hex digits of a nonce.
const DIGITS: usize = 64;

/// A 402 whose version 2 half offers both rails, ready but for the nonce.
#[derive(Clone, Debug)]
pub struct ChallengeTemplate {
    // base64 of whole groups before the nonce, the bytes of the groups around it, base64 of what follows
    before: String,
    around: Vec<u8>,
    digits_at: usize,
    after: String,
    body: Vec<u8>,
}

impl ChallengeTemplate {
    /// Renders the terms with the reason why there is no answer and with the extensions of version 2 (empty: none).
    ///
    /// The ordinary entry comes first, for clients that take the first one that they know.
    pub fn new(offer: &Offer, error: &str, extensions: &Map<String, Value>) -> Result<Self, TooLarge> {
        let (head, tail) = text_around_nonce(offer, error, extensions);
        let bytes = (head.len() + DIGITS + tail.len()).div_ceil(3) * 4;
        if bytes > CHALLENGE_HEADER_BYTES_MAX {
            return Err(TooLarge { bytes });
        }
        let (head, tail) = (head.as_bytes(), tail.as_bytes());
        let (whole, start) = head.split_at(head.len() / 3 * 3);
        let missing = (3 - (start.len() + DIGITS) % 3) % 3;
        let (end, rest) = tail.split_at(missing.min(tail.len()));
        Ok(Self {
            before: STANDARD.encode(whole),
            around: [start, &[b'0'; DIGITS], end].concat(),
            digits_at: start.len(),
            after: STANDARD.encode(rest),
            body: body_v1(offer, error),
        })
    }

    /// Value of `PAYMENT-REQUIRED` with that nonce.
    pub fn header(&self, nonce: &B256) -> String {
        let mut around = self.around.clone();
        around[self.digits_at..self.digits_at + DIGITS]
            .copy_from_slice(alloy_primitives::hex::encode(nonce).as_bytes());
        let coded = around.len().div_ceil(3) * 4;
        let mut header = String::with_capacity(self.before.len() + coded + self.after.len());
        header.push_str(&self.before);
        STANDARD.encode_string(&around, &mut header);
        header.push_str(&self.after);
        header
    }

    /// The body: the version 1 object as JSON text.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// The JSON text before and after the digits of the nonce. Written by hand, so that their place is known and not searched for.
fn text_around_nonce(offer: &Offer, error: &str, extensions: &Map<String, Value>) -> (String, String) {
    let ordinary: Vec<String> = offer.methods().map(|method| offer.requirements_by(method).to_string()).collect();
    let head = format!(
        concat!(
            r#"{{"x402Version":2,"error":{error},"resource":{resource},"accepts":[{ordinary},"#,
            r#"{{"scheme":"{scheme}","network":"{network}","amount":"{amount}","asset":"{asset}","payTo":"{pay_to}","#,
            r#""maxTimeoutSeconds":{life},"extra":{{"name":{name},"version":{version},"#,
            r#""assetTransferMethod":"{method}","paymentFlow":"{flow}","nonce":"0x"#,
        ),
        error = json!(error),
        resource = offer.resource(),
        ordinary = ordinary.join(","),
        scheme = SCHEME,
        network = offer.network,
        amount = offer.amount,
        asset = checksummed(&offer.asset),
        pay_to = checksummed(&offer.pay_to),
        life = OFFER_BROADCAST_LIFE_S,
        name = json!(offer.token_name),
        version = json!(offer.token_version),
        method = METHOD,
        flow = FLOW,
    );
    let extensions = match extensions.is_empty() {
        true => String::new(),
        false => format!(r#","extensions":{}"#, Value::Object(extensions.clone())),
    };
    (head, format!(r#""}}}}]{extensions}}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x402::{Challenge, PeerChallenge, fixture, read_body, read_required};
    use proptest::prelude::*;

    fn extensions() -> Map<String, Value> {
        Map::from_iter([("refusal-contract".to_owned(), json!({"info": {"contract_id": "ab"}}))])
    }

    fn decoded(header: &str) -> Value {
        serde_json::from_slice(&STANDARD.decode(header).expect("base64")).expect("JSON")
    }

    #[test]
    fn the_second_entry_is_the_first_one_with_its_own_time_and_extra() {
        let offer = fixture::offer();
        let nonce = B256::repeat_byte(0xab);
        let template = ChallengeTemplate::new(&offer, "Payment required", &extensions()).expect("small enough");
        let shown = decoded(&template.header(&nonce));
        let ordinary = Challenge::render(&offer, "Payment required", &extensions()).expect("small enough");
        let mut want = decoded(&ordinary.header);
        let mut second = offer.requirements_v2();
        second["maxTimeoutSeconds"] = json!(600);
        second["extra"] = json!({
            "name": "USDC", "version": "2", "assetTransferMethod": "eip3009-client-broadcast",
            "paymentFlow": "upfront", "nonce": format!("0x{}", "ab".repeat(32)),
        });
        want["accepts"].as_array_mut().expect("a list").push(second);
        assert_eq!(shown, want);
        assert_eq!(template.body(), ordinary.body);
    }

    #[test]
    fn a_buyer_who_does_not_know_the_rail_sees_the_ordinary_terms() {
        let offer = fixture::offer();
        let template = ChallengeTemplate::new(&offer, "Payment required", &extensions()).expect("small enough");
        let PeerChallenge { offers, unusable, .. } =
            read_required(&template.header(&B256::repeat_byte(1))).expect("readable");
        assert_eq!((offers.len(), unusable), (1, 1));
        assert_eq!(offers[0].requirements, offer.requirements_v2());
        assert_eq!(read_body(template.body()).expect("version 1").offers.len(), 1);
    }

    #[test]
    fn a_header_that_clients_would_not_take_is_an_error() {
        let big = Map::from_iter([("big".to_owned(), json!("x".repeat(CHALLENGE_HEADER_BYTES_MAX)))]);
        assert!(matches!(ChallengeTemplate::new(&fixture::offer(), "e", &big), Err(TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn the_header_is_the_base64_of_one_text_whatever_it_says(
            error in any::<String>(), bytes in any::<[u8; 32]>(), name in "[ -~]{0,9}", bare in any::<bool>(),
        ) {
            let offer = Offer { token_name: name, ..fixture::offer() };
            let extensions = if bare { Map::new() } else { extensions() };
            let nonce = B256::from(bytes);
            if let Ok(template) = ChallengeTemplate::new(&offer, &error, &extensions) {
                let header = template.header(&nonce);
                let shown = decoded(&header);
                prop_assert_eq!(&shown["error"], &json!(error));
                prop_assert_eq!(&shown["accepts"][1]["extra"]["name"], &json!(offer.token_name));
                prop_assert_eq!(&shown["accepts"][1]["extra"]["nonce"], &json!(format!("{nonce:#x}")));
                let (head, tail) = text_around_nonce(&offer, &error, &extensions);
                prop_assert_eq!(header, STANDARD.encode(format!("{head}{nonce:x}{tail}")));
            }
        }
    }
}
