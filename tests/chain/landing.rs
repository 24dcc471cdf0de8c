//! The client-broadcast rail on a real node: the buyer moves the money himself, then asks.

use std::fs;
use std::process::Command;
use std::time::Duration;

use alloy_primitives::B256;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jim::evm::Network;
use jim::money::Atomic;
use jim::x402::{Offer, OfferSecret};
use serde_json::{Value, json};

use crate::Case;
use crate::devnet::{TOKEN, Transfer};
use crate::money::{BOTH_RAILS, CHAIN_ID, Desk, Terms, broadcast, now_s, text};
use crate::process::{output, wait_for};
use crate::world::{World, pay_to};

/// All tests.
pub(crate) const CASES: [Case; 4] = [
    ("a_buyer_who_broadcasts_is_served_and_charged_once", served),
    ("a_landed_payment_that_is_refused_goes_back", refused),
    ("money_whose_request_never_came_goes_back", orphan),
    ("a_database_restored_to_before_a_refund_pays_nothing_twice", restored),
];

/// A block takes a moment.
const COUNTED_WITHIN: Duration = Duration::from_secs(30);

fn served(world: &World) {
    let desk = Desk::open(world, &[BOTH_RAILS]);
    let (url, payer) = (desk.memo_url(), world.payer("broadcasts"));
    let terms = Terms::ask(world, &url);
    let send = |tx: &str| world.web.get(&url, &[("payment-signature", &terms.header(tx))]);
    // before it is there, it is neither taken nor refused
    let early = send(&format!("{:#x}", B256::repeat_byte(1)));
    assert_eq!((early.status, early.json()["code"].as_str()), (503, Some("settlement_pending")));

    let tx = terms.broadcast(world, &payer);
    let first = wait_for("the transfer to count", COUNTED_WITHIN, || {
        let answer = send(&tx);
        (answer.status != 503).then_some(answer)
    });
    assert_eq!(first.status, 200, "{}", text(&first));
    assert_eq!(first.json()["sourcing"]["passed"], true);
    let receipt = STANDARD.decode(first.header("payment-response").expect("a receipt")).expect("base64");
    let receipt: Value = serde_json::from_slice(&receipt).expect("JSON");
    assert_eq!((&receipt["success"], &receipt["transaction"]), (&json!(true), &json!(tx)));
    let again = send(&tx);
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(again.header("idempotent-replay"), Some("true"));

    let price = world.price(&url);
    assert_eq!(world.moved(&payer), [Transfer { from: payer.address, to: pay_to(), amount: price }]);
    assert_eq!(world.facilitator.calls(&world.web, "settle", &payer.address.to_string()), 0);
    assert_eq!(world.facilitator.calls(&world.web, "verify", &payer.address.to_string()), 0);
}

/// A landed payment for what is not sold: refused, with a refund that is on chain soon.
fn refused(world: &World) {
    let desk = Desk::open(world, &[BOTH_RAILS]);
    let payer = world.payer("broadcasts for nothing");
    let (refusal, amount) = pay_for_nothing(world, &desk, &payer);
    assert_eq!((refusal["code"].as_str(), &refusal["charged"]), (Some("insufficient_subject"), &json!(false)));
    assert_eq!(refusal["payment"]["state"], "landed");
    assert_eq!(refusal["refund"]["amount"], amount.to_string(), "{refusal}");
    desk.assert_returned(world, &payer, amount);
    let order = refusal["instance"].as_str().expect("an order").rsplit('/').next().expect("an id").to_owned();
    let shown = desk.wait_for_order(world, &order, |order| order["refund"]["status"] == "sent");
    assert_eq!((&shown["state"], &shown["charged"]), (&json!("refunded"), &json!(false)), "{shown}");
    let want = Transfer { from: desk.treasury, to: payer.address, amount };
    assert_eq!(world.devnet.transfers(&world.web, shown["refund"]["tx"].as_str().expect("a transaction")), [want]);
}

/// Broadcast under an offer that ended, and never asked for: the sweep finds it.
fn orphan(world: &World) {
    let desk = Desk::open(world, &[BOTH_RAILS]);
    let payer = world.payer("never asks");
    // an offer of a while ago, made with the secret of this deployment
    let secret = fs::read_to_string(desk.data().join("keys/offer.key")).expect("the secret");
    let secret: B256 = format!("0x{}", secret.trim().trim_start_matches("0x")).parse().expect("32 bytes");
    let terms = Terms::ask(world, &desk.memo_url());
    let offer = Offer {
        network: Network::new(CHAIN_ID),
        asset: TOKEN.parse().expect("an address"),
        amount: Atomic(terms.amount().to()),
        pay_to: pay_to(),
        max_timeout_s: 180,
        token_name: "USDC".into(),
        token_version: "2".into(),
        resource_url: String::new(),
        description: String::new(),
        mime_type: String::new(),
        service_name: None,
        tags: Vec::new(),
        output_schema: None,
        permit2: Default::default(),
    };
    let issued = OfferSecret::from_bytes(secret.0).issue("research:fundamentals", &offer, now_s() - 3_600, [7; 8]);
    broadcast(world, &payer, issued.expect("a nonce"), terms.amount());
    desk.assert_returned(world, &payer, terms.amount());
}

/// The backup is from before the refund; the chain is not.
fn restored(world: &World) {
    let mut desk = Desk::open(world, &[BOTH_RAILS, ("JIM_REFUNDS__AUTO", "false")]);
    let payer = world.payer("is paid back once");
    let (_, amount) = pay_for_nothing(world, &desk, &payer);
    assert_eq!(desk.returned(world, &payer), []);
    desk.stop();
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let _ = fs::remove_dir_all(to);
        output("a copy", Command::new("cp").arg("-a").args([from, to]));
    };
    copy(&desk.data(), &desk.backup());
    desk.start(world, &[("JIM_REFUNDS__AUTO", "true")]);
    desk.assert_returned(world, &payer, amount);
    desk.stop();
    copy(&desk.backup(), &desk.data());
    desk.start(world, &[("JIM_REFUNDS__AUTO", "true")]);
    let confirmed = || desk_refunds(world, &mut desk)["summary"]["confirmed"].as_i64().filter(|n| *n == 1);
    wait_for("the refund to be known again", Duration::from_secs(60), confirmed);
    desk.assert_returned(world, &payer, amount);
}

/// Pays for a ticker that nobody has; the refusal, and what was paid.
fn pay_for_nothing(world: &World, desk: &Desk, payer: &crate::devnet::Payer) -> (Value, alloy_primitives::U256) {
    let terms = Terms::ask(world, &desk.memo_url());
    let tx = terms.broadcast(world, payer);
    let url = desk.url("/research/fundamentals?ticker=ZZZZZ");
    let refusal = wait_for("the transfer to count", COUNTED_WITHIN, || {
        let answer = world.web.get(&url, &[("payment-signature", &terms.header(&tx))]);
        (answer.status != 503).then_some(answer)
    });
    assert_eq!(refusal.status, 422, "{}", text(&refusal));
    (refusal.json(), terms.amount())
}

fn desk_refunds(world: &World, desk: &mut Desk) -> Value {
    let token = fs::read_to_string(desk.data().join("operator.token")).expect("a token");
    let bearer = format!("Bearer {}", token.trim());
    world.web.get(&desk.jim().operator_url("/api/refunds"), &[("authorization", &bearer)]).json()
}
