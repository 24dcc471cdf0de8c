//! Money that came in for no answer goes back, by jim's own desk, over a real node and a real token.

use std::time::Duration;

use alloy_primitives::U256;
use jim::chain_rpc::{Balances, TreasuryRpc};
use jim::evm::SecretKey;

use crate::Case;
use crate::buyers::{Version, sign_once};
use crate::devnet::{PURSE, Transfer};
use crate::money::{Desk, domain, submit, text};
use crate::process::wait_for;
use crate::world::World;

/// All tests, in the order in which they run.
pub(crate) const CASES: [Case; 3] = [
    ("a_treasury_tells_what_it_can_pay", balances),
    ("another_amount_under_the_nonce_of_a_payment_goes_back", other_amount),
    ("a_denied_payment_that_a_third_party_submits_goes_back", denied),
];

/// A round of the desk and of recovery.
const TOLD_WITHIN: Duration = Duration::from_secs(120);

fn balances(world: &World) {
    let payer = world.payer("a treasury");
    let key = SecretKey::from_hex(&payer.key).expect("a test key");
    let treasury = TreasuryRpc::new(world.devnet.url(), key, domain()).expect("a URL");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let balances = runtime.block_on(treasury.load_balances()).expect("an answer");
    assert_eq!(balances, Balances { token: U256::from(PURSE), gas_wei: 0 });
}

/// The payer has spent the nonce of his payment on another transfer to us: that is no purchase.
fn other_amount(world: &World) {
    let (desk, payer) = (Desk::open(world, &[]), world.payer("another amount"));
    let url = desk.memo_url();
    let signed = sign_once(&world.kit, &url, &payer, Version::V2);
    world.facilitator.spoil_next(&world.web, "settle", "500");
    let header = [(signed.header.as_str(), signed.value.as_str())];
    assert_eq!(world.web.get(&url, &header).status, 503);
    let amount = world.price(&url) + U256::from(12_345);
    submit(world, &payer, &signed, Some(amount));

    let told = wait_for("a refusal with a refund", Duration::from_secs(30), || {
        let answer = world.web.get(&url, &header);
        assert!(matches!(answer.status, 502 | 503), "{}: {}", answer.status, text(&answer));
        (answer.status == 502).then_some(answer)
    });
    let refund = told.json()["refund"].clone();
    assert_eq!(refund["amount"], amount.to_string(), "{refund}");
    desk.assert_returned(world, &payer, amount);
    let sent = wait_for("the word that it was sent", TOLD_WITHIN, || {
        let body = world.web.get(&url, &header).json();
        assert_eq!((&body["code"], &body["charged"]), (&"execution_failed".into(), &false.into()), "{body}");
        (body["refund"]["status"] == "sent").then(|| body["refund"].clone())
    });
    let want = Transfer { from: desk.treasury, to: payer.address, amount };
    assert_eq!(world.devnet.transfers(&world.web, sent["tx"].as_str().expect("a transaction")), [want]);
    desk.assert_returned(world, &payer, amount);
}

/// Denied at the first settle call, and then submitted by somebody else who had seen the signature: recovery finds it.
fn denied(world: &World) {
    let (desk, payer) = (Desk::open(world, &[]), world.payer("denied, then submitted"));
    let url = desk.memo_url();
    let signed = sign_once(&world.kit, &url, &payer, Version::V2);
    world.facilitator.spoil_next(&world.web, "settle", "reject");
    let header = [(signed.header.as_str(), signed.value.as_str())];
    let answer = world.web.get(&url, &header);
    assert_eq!(answer.status, 402, "{}", text(&answer));
    submit(world, &payer, &signed, None);
    desk.assert_returned(world, &payer, world.price(&url));
    assert_eq!(world.facilitator.calls(&world.web, "settle", &payer.address.to_string()), 1);
    let body = world.web.get(&url, &header).json();
    assert_eq!((&body["code"], &body["charged"]), (&"execution_failed".into(), &false.into()), "{body}");
}
