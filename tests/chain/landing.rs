//! The client-broadcast rail on a real node: the buyer moves the money himself, then asks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alloy_primitives::{B256, U256, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jim::evm::{SecretKey, TokenDomain, TransferAuthorization, digest};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Case;
use crate::devnet::{Payer, TOKEN, Transfer};
use crate::process::wait_for;
use crate::service::Jim;
use crate::web::Answer;
use crate::world::{PAY_TO, World, pay_to};

/// All tests.
pub(crate) const CASES: [Case; 1] = [("a_buyer_who_broadcasts_is_served_and_charged_once", served)];

const CHAIN_ID: u64 = 84_532;

/// A jim with both rails, and its folders.
struct Desk {
    jim: Jim,
    _folder: TempDir,
}

impl Desk {
    fn open(world: &World) -> Self {
        let folder = TempDir::new().expect("a folder");
        let key_file = folder.path().join("treasury.key");
        fs::write(&key_file, treasury_key()).expect("a key file");
        fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).expect("permissions");
        let settings = [
            ("JIM_PAYMENTS__RAILS", "exact,client-broadcast"),
            ("JIM_PAYMENTS__RPC_URL", world.devnet.url()),
            ("JIM_PAYMENTS__TREASURY_KEY_FILE", key_file.to_str().expect("text")),
        ];
        let jim = Jim::start_with(&world.web, &world.facilitator, PAY_TO, folder.path(), &settings);
        Self { jim, _folder: folder }
    }
}

/// The second entry of a 402, and the resource that it is for.
struct Terms {
    accepted: Value,
    resource: Value,
}

impl Terms {
    fn ask(world: &World, url: &str) -> Self {
        let reply = world.web.get(url, &[]);
        assert_eq!(reply.status, 402);
        let header = STANDARD.decode(reply.header("payment-required").expect("terms")).expect("base64");
        let terms: Value = serde_json::from_slice(&header).expect("JSON");
        Self { accepted: terms["accepts"][1].clone(), resource: terms["resource"].clone() }
    }

    /// Signs what the terms say and sends it to the token, as a wallet does; the transaction.
    fn broadcast(&self, world: &World, payer: &Payer) -> String {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let nonce: B256 = text(&self.accepted["extra"]["nonce"]).parse().expect("a word");
        let authorization = TransferAuthorization {
            from: payer.address,
            to: text(&self.accepted["payTo"]).parse().expect("an address"),
            value: text(&self.accepted["amount"]).parse().expect("digits"),
            valid_after: U256::ZERO,
            valid_before: U256::from(now_s() + 3_600),
            nonce,
        };
        let contract = TOKEN.parse().expect("an address");
        let domain = TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id: CHAIN_ID, contract };
        let key = SecretKey::from_hex(&payer.key).expect("a key");
        let signature = key.sign(&digest(&authorization, &domain)).to_bytes();
        let number = |value: U256| value.to_be_bytes::<32>();
        let words = [
            authorization.from.into_word().0,
            authorization.to.into_word().0,
            number(authorization.value),
            number(authorization.valid_after),
            number(authorization.valid_before),
            nonce.0,
            number(U256::from(signature[64])),
        ]
        .concat();
        let arguments = format!("{}{}", hex::encode(words), hex::encode(&signature[..64]));
        let function =
            "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)";
        world.devnet.send(&world.web, function, &arguments)
    }

    fn header(&self, tx: &str) -> String {
        let document = json!({
            "x402Version": 2, "resource": self.resource, "accepted": self.accepted, "payload": {"txHash": tx},
        });
        STANDARD.encode(document.to_string())
    }
}

fn served(world: &World) {
    let desk = Desk::open(world);
    let (url, payer) = (desk.jim.memo_url(), world.payer("broadcasts"));
    let terms = Terms::ask(world, &url);
    let send = |tx: &str| world.web.get(&url, &[("payment-signature", &terms.header(tx))]);
    // before it is there, it is neither taken nor refused
    let early = send(&format!("{:#x}", B256::repeat_byte(1)));
    assert_eq!((early.status, early.json()["code"].as_str()), (503, Some("settlement_pending")));

    let tx = terms.broadcast(world, &payer);
    let first = wait_for("the transfer to count", Duration::from_secs(30), || {
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

/// A public test key of the kit.
fn treasury_key() -> String {
    let accounts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chain/kit/accounts.json");
    let accounts: Value = serde_json::from_slice(&fs::read(accounts).expect("the accounts")).expect("JSON");
    accounts["buyer"]["key"].as_str().expect("a key").to_owned()
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}
