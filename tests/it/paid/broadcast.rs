//! The client-broadcast rail on the face: what a 402 offers with it and without it, and that offering writes nothing.

use std::collections::HashSet;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use jim::config::Rails;
use jim::evm::{B256, checksummed, parse_address, parse_word};
use jim::money::Atomic;
use jim::signer::load_or_create_bytes;
use jim::x402::{self, Candidate, Offer, OfferSecret, PeerOffer, Version};
use serde_json::{Value, json};

use crate::support::buyer::{Ask, Buyer, Reply, now_s, reason_of};
use crate::support::rows::Rows;
use crate::support::service::{MEMO, Service};

/// A service with the rail on, and its keys folder.
async fn start() -> (Service, PathBuf) {
    let mut keys = PathBuf::new();
    let service = Service::start_with(|settings, _| {
        settings.payments.rails = Rails { client_broadcast: true, ..Rails::default() };
        keys.clone_from(&settings.keys_dir);
    })
    .await;
    (service, keys)
}

/// The version 2 terms, as they stand in the header.
fn terms(reply: &Reply) -> Value {
    assert_eq!(reply.status, 402, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let header = reply.header("payment-required").expect("terms");
    serde_json::from_slice(&STANDARD.decode(header).expect("base64")).expect("JSON")
}

fn nonce(terms: &Value) -> B256 {
    parse_word(terms["accepts"][1]["extra"]["nonce"].as_str().expect("a nonce")).expect("a word")
}

/// What a buyer who takes the first entry that he knows would pay.
fn ordinary(reply: &Reply) -> PeerOffer {
    let mut read = x402::read_required(reply.header("payment-required").expect("terms")).expect("readable");
    assert_eq!((read.offers.len(), read.unusable), (1, 1));
    read.offers.remove(0)
}

#[tokio::test]
async fn with_the_rail_on_each_402_offers_it_under_a_nonce_of_its_own_and_writes_nothing() {
    let (service, keys) = start().await;
    let buyer = Buyer::new(&service, 1);
    let asks =
        [Ask::memo(), Ask::memo(), Ask::get("/research/fundamentals"), Ask { method: Method::HEAD, ..Ask::memo() }];
    let mut seen = HashSet::new();
    let secret = OfferSecret::from_bytes(load_or_create_bytes(&keys.join("offer.key")).expect("the secret"));
    for ask in asks {
        let shown = terms(&buyer.send(&ask, None).await);
        let (first, second) = (&shown["accepts"][0], &shown["accepts"][1]);
        assert_eq!(shown["accepts"].as_array().map(Vec::len), Some(2));
        assert_eq!(first["extra"], json!({"name": "USDC", "version": "2"}));
        for same in ["scheme", "network", "amount", "asset", "payTo"] {
            assert_eq!(first[same], second[same], "{same}");
        }
        assert_eq!((&first["maxTimeoutSeconds"], &second["maxTimeoutSeconds"]), (&json!(180), &json!(600)));
        assert_eq!(second["extra"]["assetTransferMethod"], "eip3009-client-broadcast");
        assert_eq!(second["extra"]["paymentFlow"], "upfront");
        assert!(seen.insert(nonce(&shown)), "a nonce twice");
        let known =
            secret.recognise(&nonce(&shown), [Candidate { product: "research:fundamentals", offer: &offer(first) }]);
        let known = known.expect("made by the secret in the keys folder");
        assert_eq!(
            (known.amount.to_string(), known.is_open(now_s())),
            (first["amount"].as_str().expect("text").into(), true)
        );
    }
    assert_eq!((service.rows().await, service.settle_calls()), (Rows::default(), 0));
}

/// The members of our offer that count for a nonce, from its terms.
fn offer(first: &Value) -> Offer {
    let text = |key: &str| first[key].as_str().expect("text");
    Offer {
        network: text("network").parse().expect("a network"),
        asset: parse_address(text("asset")).expect("an address"),
        amount: Atomic(0),
        pay_to: parse_address(text("payTo")).expect("an address"),
        max_timeout_s: 0,
        token_name: String::new(),
        token_version: String::new(),
        resource_url: String::new(),
        description: String::new(),
        mime_type: String::new(),
        service_name: None,
        tags: Vec::new(),
        output_schema: None,
        permit2: Default::default(),
    }
}

#[tokio::test]
async fn with_the_rail_on_the_ordinary_one_sells_as_ever_and_says_why_it_did_not() {
    let (service, _) = start().await;
    let buyer = Buyer::new(&service, 1);
    let asked = buyer.send(&Ask::memo(), None).await;
    let late = buyer.sign_for(&ordinary(&asked), now_s() - 3_600);
    let unpaid = buyer.send(&Ask::memo(), Some(&late)).await;
    assert!(reason_of(&unpaid).contains("valid_before"), "{}", reason_of(&unpaid));
    assert_ne!(nonce(&terms(&unpaid)), nonce(&terms(&asked)));
    let payment = buyer.sign_for(&ordinary(&unpaid), now_s());
    assert_eq!(buyer.send(&Ask::memo(), Some(&payment)).await.status, 200);
    assert_eq!(service.rows().await, Rows::SOLD);
}

#[tokio::test]
async fn the_secret_of_the_offers_outlives_a_restart() {
    let (service, keys) = start().await;
    let secret = || load_or_create_bytes(&keys.join("offer.key")).expect("the secret");
    let before = secret();
    let service = service.stop().await.open().await;
    assert_eq!(secret(), before);
    assert_eq!(terms(&service.get(MEMO).await)["accepts"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn with_the_rail_off_each_402_has_the_same_bytes_and_no_secret_is_made() {
    let mut keys = PathBuf::new();
    let service = Service::start_with(|settings, _| keys.clone_from(&settings.keys_dir)).await;
    let (one, two) = (service.get(MEMO).await, service.get(MEMO).await);
    assert_eq!(one.header("payment-required"), two.header("payment-required"));
    assert_eq!(one.body, two.body);
    assert_eq!(terms(&one)["accepts"].as_array().map(Vec::len), Some(1));
    assert!(keys.join("workspace.pem").exists() && !keys.join("offer.key").exists());
}

#[tokio::test]
async fn without_the_rail_a_hash_buys_nothing_and_is_not_recorded() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let first = &terms(&buyer.send(&Ask::memo(), None).await)["accepts"][0];
    let mut accepted = first.clone();
    accepted["extra"]["assetTransferMethod"] = json!("eip3009-client-broadcast");
    let hash = json!(B256::repeat_byte(7));
    let send = async |document: Value| {
        let ask = Ask::memo().header(Version::V2.payment_header(), &STANDARD.encode(document.to_string()));
        buyer.send(&ask, None).await
    };
    let document = json!({"x402Version": 2, "accepted": accepted, "payload": {"txHash": hash}});
    let reply = send(document.clone()).await;
    assert_eq!(reason_of(&reply), "the client-broadcast rail is not switched on");
    let mut both = document;
    both["txHash"] = hash;
    assert_eq!(send(both).await.status, 400);
    assert_eq!((service.rows().await, service.world.scribe.drafts()), (Rows::default(), 0));
    assert_eq!(first["payTo"], json!(checksummed(&service.app.pay_to)));
}
