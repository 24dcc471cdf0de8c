//! Money that came in for no answer goes back, by jim's own desk, over a real node and a real token.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use alloy_primitives::{Address, B256, U256, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jim::chain_rpc::{Balances, TreasuryRpc};
use jim::evm::{SecretKey, TokenDomain, TransferAuthorization, digest};
use serde_json::Value;
use tempfile::TempDir;

use crate::Case;
use crate::buyers::{Signed, Version, sign_once};
use crate::devnet::{PURSE, Payer, TOKEN, Transfer};
use crate::process::wait_for;
use crate::service::Jim;
use crate::web::Answer;
use crate::world::{PAY_TO, World, pay_to};

/// All tests, in the order in which they run.
pub(crate) const CASES: [Case; 3] = [
    ("a_treasury_tells_what_it_can_pay", balances),
    ("another_amount_under_the_nonce_of_a_payment_goes_back", other_amount),
    ("a_denied_payment_that_a_third_party_submits_goes_back", denied),
];

/// A look after the broadcast, a round of the desk, and a round of what looks for late transfers.
const RETURNED_WITHIN: Duration = Duration::from_secs(120);

/// A jim that reads the node and pays refunds from an account of the kit, and who that is.
struct Desk {
    jim: Jim,
    treasury: Address,
    _folder: TempDir,
}

impl Desk {
    fn open(world: &World) -> Self {
        let folder = TempDir::new().expect("a folder");
        let accounts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chain/kit/accounts.json");
        let accounts: Value = serde_json::from_slice(&fs::read(accounts).expect("the accounts")).expect("JSON");
        let key = accounts["buyer2"]["key"].as_str().expect("a key");
        let path = folder.path().join("treasury.key");
        let mut file: File =
            File::options().write(true).create_new(true).mode(0o600).open(&path).expect("the key's file");
        file.write_all(key.as_bytes()).expect("written");
        let settings = [
            ("JIM_PAYMENTS__RPC_URL", world.devnet.url()),
            ("JIM_PAYMENTS__TREASURY_KEY_FILE", path.to_str().expect("text")),
        ];
        let jim = Jim::start_with(&world.web, &world.facilitator, PAY_TO, folder.path(), &settings);
        let treasury = SecretKey::from_hex(key).expect("a test key").address();
        Self { jim, treasury, _folder: folder }
    }

    /// Waits until the money has moved back, and asserts that it is that amount, once.
    fn assert_returned(&self, world: &World, payer: &Payer, amount: U256) {
        let back = || world.devnet.transfers_between(&world.web, self.treasury, payer.address);
        wait_for("the refund", RETURNED_WITHIN, || Some(back()).filter(|moved| !moved.is_empty()));
        assert_eq!(back(), [Transfer { from: self.treasury, to: payer.address, amount }], "{}", self.jim.tail());
        assert_eq!(world.moved(payer), [Transfer { from: payer.address, to: pay_to(), amount }]);
    }
}

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
    let (desk, payer) = (Desk::open(world), world.payer("another amount"));
    let url = desk.jim.memo_url();
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
    let sent = wait_for("the word that it was sent", RETURNED_WITHIN, || {
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
    let (desk, payer) = (Desk::open(world), world.payer("denied, then submitted"));
    let url = desk.jim.memo_url();
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

/// Sends what the payer has signed, or the same with another amount, in a transaction of a stranger.
fn submit(world: &World, payer: &Payer, signed: &Signed, amount: Option<U256>) {
    let payment: Value = serde_json::from_slice(&STANDARD.decode(&signed.value).expect("base64")).expect("JSON");
    let member = |name: &str| payment["payload"]["authorization"][name].as_str().expect("text").to_owned();
    let number = |name: &str| member(name).parse::<U256>().expect("a number");
    let authorization = TransferAuthorization {
        from: payer.address,
        to: pay_to(),
        value: amount.unwrap_or_else(|| number("value")),
        valid_after: number("validAfter"),
        valid_before: number("validBefore"),
        nonce: member("nonce").parse::<B256>().expect("a word"),
    };
    let key = SecretKey::from_hex(&payer.key).expect("a test key");
    let signature = key.sign(&digest(&authorization, &domain())).to_bytes();
    let words = [
        authorization.from.into_word(),
        authorization.to.into_word(),
        authorization.value.into(),
        authorization.valid_after.into(),
        authorization.valid_before.into(),
        authorization.nonce,
        B256::with_last_byte(signature[64]),
        B256::from_slice(&signature[..32]),
        B256::from_slice(&signature[32..64]),
    ];
    let function = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)";
    world.devnet.send(&world.web, function, &hex::encode(words.concat()));
}

fn domain() -> TokenDomain {
    let contract = TOKEN.parse().expect("an address");
    TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id: 84_532, contract }
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}
