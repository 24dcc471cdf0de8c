//! What may happen to a payment between the signature and the answer, on a real node: the chain, the rows and what the buyer is
//! told agree in the end, nobody pays twice and nobody pays for nothing.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::Case;
use crate::buyers::{Signed, Version, sign_once};
use crate::devnet::{Payer, Transfer};
use crate::facilitator::Facilitator;
use crate::money::{BOTH_RAILS, Desk, Terms, cancel, submit, text};
use crate::process::wait_for;
use crate::web::Answer;
use crate::world::{World, pay_to};

/// All tests.
pub(crate) const CASES: [Case; 7] = [
    ("a_settle_answer_that_was_lost_is_found_on_chain_without_the_buyer", lost_and_nobody_asks),
    ("a_facilitator_that_dies_after_the_broadcast_leaves_the_chain_to_tell", facilitator_dies),
    ("a_buyer_who_is_gone_is_charged_once_or_not_at_all", buyer_gone),
    ("a_buyer_who_signs_anew_while_nobody_knows_is_charged_once", signs_anew),
    ("who_is_submitted_for_by_a_stranger_gets_his_answer", stranger_submits),
    ("a_cancelled_authorization_is_neither_charged_nor_served", cancels),
    ("a_treasury_that_dies_between_signature_and_broadcast_pays_once", treasury_dies),
];

/// A round of recovery, and a look at the chain.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

fn lost_and_nobody_asks(world: &World) {
    let (desk, payer) = (Desk::open(world, &[]), world.payer("lost, and nobody asks"));
    let (url, signed) = sign(world, &desk, &payer);
    world.facilitator.spoil_next(&world.web, "settle", "drop-after");
    let first = ask(world, &url, &signed);
    // the answer was lost, and the chain was looked at within the request
    assert!(matches!(first.status, 200 | 503), "{}: {}", first.status, text(&first));
    let served = until_served(world, &url, &signed);
    assert_charged_once(world, &url, &payer);
    assert_eq!(settles(world, &payer), 1, "it was not presented a second time");
    assert_eq!(ask(world, &url, &signed).body, served.body);
}

fn facilitator_dies(world: &World) {
    let logs = tempfile::TempDir::new().expect("a folder");
    let facilitator = Facilitator::start(&world.kit, &world.web, &world.devnet, logs.path());
    let (desk, payer) = (Desk::open_at(world, facilitator.url(), &[]), world.payer("its facilitator dies"));
    let (url, signed) = sign(world, &desk, &payer);
    // it moves the money, and jim hears neither of it nor, later, from it
    facilitator.spoil_next(&world.web, "settle", "drop-after");
    let first = ask(world, &url, &signed);
    drop(facilitator);
    assert!(matches!(first.status, 200 | 503), "{}: {}", first.status, text(&first));
    let served = until_served(world, &url, &signed);
    assert_charged_once(world, &url, &payer);
    assert_eq!(ask(world, &url, &signed).body, served.body);
}

fn buyer_gone(world: &World) {
    let (desk, payer) = (Desk::open(world, &[]), world.payer("gone"));
    let (url, signed) = sign(world, &desk, &payer);
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    for _ in 0..3 {
        let mut stream = TcpStream::connect(host).expect("a connection");
        let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n{}: {}\r\n\r\n", signed.header, signed.value);
        stream.write_all(request.as_bytes()).expect("sent");
        drop(stream);
        thread::sleep(Duration::from_millis(30));
    }
    let served = until_served(world, &url, &signed);
    assert_charged_once(world, &url, &payer);
    assert_eq!(ask(world, &url, &signed).body, served.body);
}

fn signs_anew(world: &World) {
    let (desk, payer) = (Desk::open(world, &[]), world.payer("signs anew"));
    let (url, signed) = sign(world, &desk, &payer);
    world.facilitator.spoil_next(&world.web, "settle", "drop-after");
    let first = ask(world, &url, &signed);
    assert!(matches!(first.status, 200 | 503), "{}: {}", first.status, text(&first));
    let mut bodies = Vec::new();
    for _ in 0..3 {
        let (_, anew) = sign(world, &desk, &payer);
        assert_ne!(anew.value, signed.value);
        bodies.push(until_served(world, &url, &anew).body);
    }
    bodies.push(until_served(world, &url, &signed).body);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_charged_once(world, &url, &payer);
    assert_eq!(settles(world, &payer), 1);
}

/// Anybody may submit what the buyer has signed: the facilitator is refused by the token, and the money is here all the same.
fn stranger_submits(world: &World) {
    let (desk, payer) = (Desk::open(world, &[]), world.payer("a stranger submits"));
    let (url, signed) = sign(world, &desk, &payer);
    world.facilitator.spoil_next(&world.web, "settle", "500");
    let first = ask(world, &url, &signed);
    assert_eq!(first.status, 503, "{}", text(&first));
    submit(world, &payer, &signed, None);
    let served = until_served(world, &url, &signed);
    assert_charged_once(world, &url, &payer);
    assert_eq!(ask(world, &url, &signed).body, served.body);
    assert_eq!(desk.returned(world, &payer), [], "nothing is owed back for an answer that was given");
}

fn cancels(world: &World) {
    let (desk, payer) = (Desk::open(world, &[]), world.payer("cancels"));
    let (url, signed) = sign(world, &desk, &payer);
    world.facilitator.spoil_next(&world.web, "settle", "500");
    assert_eq!(ask(world, &url, &signed).status, 503);
    cancel(world, &payer, &signed);
    let told = wait_for("the chain's word", FOUND_WITHIN, || {
        let answer = ask(world, &url, &signed);
        assert!(matches!(answer.status, 402 | 503), "{}: {}", answer.status, text(&answer));
        (answer.status == 402).then_some(answer)
    });
    assert!(told.header("payment-required").is_some());
    assert_eq!(world.moved(&payer), []);
    // and he may buy with a new one
    let (_, anew) = sign(world, &desk, &payer);
    until_served(world, &url, &anew);
    assert_charged_once(world, &url, &payer);
}

fn treasury_dies(world: &World) {
    let mut desk = Desk::open(world, &[BOTH_RAILS, ("JIM_REFUNDS__AUTO", "false")]);
    let payer = world.payer("its treasury dies");
    let terms = Terms::ask(world, &desk.memo_url());
    let tx = terms.broadcast(world, &payer);
    let url = desk.url("/research/fundamentals?ticker=ZZZZZ");
    wait_for("the refusal", FOUND_WITHIN, || {
        let answer = world.web.get(&url, &[("payment-signature", &terms.header(&tx))]);
        (answer.status == 422).then_some(())
    });
    // dies with the signature on disk and nothing sent; then after it was sent, before that was written down
    for point in ["before-refund-broadcast=kill", "after-refund-broadcast=kill"] {
        let doom = [("JIM_REFUNDS__AUTO", "true"), ("JIM_TEST_FAULT", point)];
        desk.start_doomed(&doom);
    }
    desk.start(world, &[("JIM_REFUNDS__AUTO", "true")]);
    desk.assert_returned(world, &payer, terms.amount());
    // once more from the start: what is confirmed stays confirmed
    desk.start(world, &[("JIM_REFUNDS__AUTO", "true")]);
    thread::sleep(Duration::from_secs(3));
    desk.assert_returned(world, &payer, terms.amount());
}

fn sign(world: &World, desk: &Desk, payer: &Payer) -> (String, Signed) {
    let url = desk.memo_url();
    let signed = sign_once(&world.kit, &url, payer, Version::V2);
    (url, signed)
}

fn ask(world: &World, url: &str, signed: &Signed) -> Answer {
    world.web.get(url, &[(signed.header.as_str(), signed.value.as_str())])
}

/// Sends the same payment until it is served. It is told to come again, and never that it was refused.
fn until_served(world: &World, url: &str, signed: &Signed) -> Answer {
    wait_for("the answer", FOUND_WITHIN, || {
        let answer = ask(world, url, signed);
        if answer.status == 200 {
            return Some(answer);
        }
        assert!(matches!(answer.status, 409 | 503), "{}: {}", answer.status, text(&answer));
        let code = answer.json()["code"].clone();
        assert!(
            [json!("settlement_pending"), json!("payment_in_progress"), json!("overloaded")].contains(&code),
            "{code}"
        );
        thread::sleep(Duration::from_millis(200));
        None
    })
}

fn settles(world: &World, payer: &Payer) -> usize {
    world.facilitator.calls(&world.web, "settle", &payer.address.to_string())
}

fn assert_charged_once(world: &World, url: &str, payer: &Payer) {
    let amount = world.price(url);
    assert_eq!(world.moved(payer), [Transfer { from: payer.address, to: pay_to(), amount }]);
}
