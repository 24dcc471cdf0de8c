//! What must hold between a buyer, jim and the chain. "No money moved" is read from the chain, never from an answer.

use std::time::Duration;

use serde_json::Value;

use crate::Case;
use crate::buyers::{Purchase, Version, buy_python, buy_ts_v1, buy_ts_v2, sign_once};
use crate::devnet::{Payer, Transfer};
use crate::process::wait_for;
use crate::web::Answer;
use crate::world::{World, pay_to};

/// All tests, in the order in which they run.
pub(crate) const CASES: [Case; 11] = [
    ("control_the_reference_seller_sells_to_both_clients_of_version_2", control),
    ("one_402_serves_both_versions", one_402_serves_both_versions),
    ("the_typescript_client_of_version_2_buys", |world| {
        buys(world, "ts-v2", |url, payer| buy_ts_v2(&world.kit, url, payer))
    }),
    ("the_typescript_client_of_version_1_buys", |world| {
        buys(world, "ts-v1", |url, payer| buy_ts_v1(&world.kit, url, payer))
    }),
    ("the_python_client_buys", |world| buys(world, "python", |url, payer| buy_python(&world.kit, url, payer, "httpx"))),
    ("the_same_payment_again_moves_nothing_v2", |world| same_again(world, Version::V2)),
    ("the_same_payment_again_moves_nothing_v1", |world| same_again(world, Version::V1)),
    ("copies_of_one_payment_side_by_side_are_charged_once", side_by_side),
    ("a_lost_settle_answer_is_found_again", lost_answer),
    ("a_settle_that_never_ran_is_run_by_the_same_payment", settle_that_failed),
    ("who_cannot_pay_is_not_served_and_nothing_moves", poor_payer),
];

/// How long the same payment may be answered with "send it again" once its settle call is over.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

fn control(world: &World) {
    let url = world.reference_url();
    let payer = world.payer("control");
    let before = world.devnet.transfer_count_to(&world.web, pay_to());
    assert_paid(world, &url, &payer, &buy_ts_v2(&world.kit, &url, &payer));
    assert_paid(world, &url, &payer, &buy_python(&world.kit, &url, &payer, "requests"));
    assert_eq!(world.devnet.transfer_count_to(&world.web, pay_to()), before + 2);

    // the tests' own tools: a payment signed apart, and the facilitator's log
    let payer = world.payer("control, signed apart");
    let signed = sign_once(&world.kit, &url, &payer, Version::V2);
    assert_eq!(world.moved(&payer), [], "signing sends nothing");
    assert_eq!(world.web.get(&url, &[(&signed.header, &signed.value)]).status, 200);
    world.assert_charged_once(&url, &payer);
    assert_eq!(world.facilitator.calls(&world.web, "settle", &payer.address.to_string()), 1);
}

fn one_402_serves_both_versions(world: &World) {
    let url = world.memo_url();
    let before = world.facilitator.log(&world.web).len();
    let body = world.web.get(&url, &[]).json();
    assert_eq!(body["x402Version"], 1);
    let amount = body["accepts"][0]["maxAmountRequired"].as_str().expect("an amount");
    assert_eq!(amount, world.price(&url).to_string(), "both versions name one price");
    assert_eq!(world.facilitator.log(&world.web).len(), before, "who only looks at terms costs no call");
}

fn buys(world: &World, name: &str, buy: impl Fn(&str, &Payer) -> Purchase) {
    let (url, payer) = (world.memo_url(), world.payer(name));
    let bought = buy(&url, &payer);
    assert_paid(world, &url, &payer, &bought);
    world.assert_charged_once(&url, &payer);
    let memo: Value = serde_json::from_str(&bought.body).expect("a memo in JSON");
    assert_eq!(memo["subject"]["ticker"], "COIN");
    assert_eq!(memo["sourcing"]["passed"], true);
    assert!(memo["facts"].as_array().is_some_and(|facts| !facts.is_empty()), "{memo}");
    assert_eq!(world.facilitator.calls(&world.web, "settle", &payer.address.to_string()), 1);
}

fn same_again(world: &World, version: Version) {
    let (url, payer) = (world.memo_url(), world.payer(&format!("again {version:?}")));
    let signed = sign_once(&world.kit, &url, &payer, version);
    let header = [(signed.header.as_str(), signed.value.as_str())];
    let first = world.web.get(&url, &header);
    assert_eq!(first.status, 200, "{}", text(&first));
    for _ in 0..3 {
        let again = world.web.get(&url, &header);
        assert_eq!((again.status, &again.body), (200, &first.body), "{}", text(&again));
    }
    world.assert_charged_once(&url, &payer);
    assert_eq!(world.facilitator.calls(&world.web, "settle", &payer.address.to_string()), 1);
}

fn side_by_side(world: &World) {
    let (url, payer) = (world.memo_url(), world.payer("side by side"));
    let signed = sign_once(&world.kit, &url, &payer, Version::V2);
    let answers = world.web.get_at_once(10, &url, (&signed.header, &signed.value));
    for answer in &answers {
        assert!(matches!(answer.status, 200 | 409 | 503), "{}: {}", answer.status, text(answer));
    }
    let kept = until_served(world, &url, &signed.header, &signed.value);
    for served in answers.iter().filter(|answer| answer.status == 200) {
        assert_eq!(served.body, kept.body);
    }
    world.assert_charged_once(&url, &payer);
}

fn lost_answer(world: &World) {
    let (url, payer) = (world.memo_url(), world.payer("lost answer"));
    let signed = sign_once(&world.kit, &url, &payer, Version::V2);
    world.facilitator.spoil_next(&world.web, "settle", "drop-after");
    assert_pending(&world.web.get(&url, &[(&signed.header, &signed.value)]));
    world.assert_charged_once(&url, &payer);
    let served = until_served(world, &url, &signed.header, &signed.value);
    let again = world.web.get(&url, &[(&signed.header, &signed.value)]);
    assert_eq!((again.status, again.body), (200, served.body));
    world.assert_charged_once(&url, &payer);
}

fn settle_that_failed(world: &World) {
    let (url, payer) = (world.memo_url(), world.payer("settle that failed"));
    let signed = sign_once(&world.kit, &url, &payer, Version::V2);
    world.facilitator.spoil_next(&world.web, "settle", "500");
    assert_pending(&world.web.get(&url, &[(&signed.header, &signed.value)]));
    assert_eq!(world.moved(&payer), []);
    until_served(world, &url, &signed.header, &signed.value);
    world.assert_charged_once(&url, &payer);
}

fn poor_payer(world: &World) {
    let url = world.memo_url();
    let key = "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6".to_owned();
    let address = "0x90F79bf6EB2c4f870365E785982E1f101E93b906".parse().expect("an address");
    let payer = Payer { key, address };
    let signed = sign_once(&world.kit, &url, &payer, Version::V2);
    let refused = world.web.get(&url, &[(&signed.header, &signed.value)]);
    assert_eq!(refused.status, 402, "{}", text(&refused));
    assert_eq!(world.moved(&payer), []);
    assert_eq!(world.facilitator.calls(&world.web, "settle", &payer.address.to_string()), 0);
}

/// The client was served, and its receipt names a transaction that moved exactly the price.
fn assert_paid(world: &World, url: &str, payer: &Payer, bought: &Purchase) {
    assert_eq!(bought.status, 200, "{}", bought.body);
    assert_eq!(bought.settlement["success"], true, "{}", bought.settlement);
    let transaction = bought.settlement["transaction"].as_str().expect("a transaction");
    let want = Transfer { from: payer.address, to: pay_to(), amount: world.price(url) };
    assert_eq!(world.devnet.transfers(&world.web, transaction), [want]);
}

/// "Send the same payment again": never a 402, never new terms, and no word that nothing was charged.
fn assert_pending(answer: &Answer) {
    assert_eq!(answer.status, 503, "{}", text(answer));
    let body = answer.json();
    assert_eq!((&body["code"], &body["charged"]), (&"settlement_pending".into(), &"unknown".into()), "{body}");
    assert_eq!(answer.header("payment-required"), None);
}

/// Sends the same payment until it is served; in between only "again" may be answered.
fn until_served(world: &World, url: &str, header: &str, value: &str) -> Answer {
    wait_for("the same payment to be served", SETTLED_WITHIN, || {
        let answer = world.web.get(url, &[(header, value)]);
        assert!(matches!(answer.status, 200 | 409 | 503), "{}: {}", answer.status, text(&answer));
        (answer.status == 200).then_some(answer)
    })
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}
