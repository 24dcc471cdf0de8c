//! A jim that reads the node and pays refunds, and what wallets and strangers do to the token beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alloy_primitives::{Address, B256, U256, hex, keccak256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jim::evm::{SecretKey, TokenDomain, TransferAuthorization, digest};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::buyers::Signed;
use crate::devnet::{Payer, TOKEN, Transfer};
use crate::process::wait_for;
use crate::service::Jim;
use crate::web::Answer;
use crate::world::{PAY_TO, World, pay_to};

/// Chain of the kit's node.
pub(crate) const CHAIN_ID: u64 = 84_532;

/// A look after the broadcast, a round of the desk, and a round of what looks for late transfers.
const RETURNED_WITHIN: Duration = Duration::from_secs(120);

/// Both rails.
pub(crate) const BOTH_RAILS: (&str, &str) = ("JIM_PAYMENTS__RAILS", "exact,client-broadcast");

/// A jim that reads the node and pays refunds from an account of the kit, and who that is.
pub(crate) struct Desk {
    // the process ends before its folder goes
    jim: Option<Jim>,
    pub(crate) treasury: Address,
    settings: Vec<(&'static str, String)>,
    facilitator_url: String,
    folder: TempDir,
}

impl Desk {
    /// With more settings, at the facilitator of the world.
    pub(crate) fn open(world: &World, settings: &[(&'static str, &str)]) -> Self {
        Self::open_at(world, world.facilitator.url(), settings)
    }

    /// At a facilitator of the test's own.
    pub(crate) fn open_at(world: &World, facilitator_url: &str, settings: &[(&'static str, &str)]) -> Self {
        let folder = TempDir::new().expect("a folder");
        // a root's jim runs Postgres as another user, who must be able to walk in
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let key = treasury_key();
        let key_file = folder.path().join("treasury.key");
        fs::write(&key_file, &key).expect("a key file");
        fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).expect("permissions");
        let mut all = vec![
            ("JIM_PAYMENTS__RPC_URL", world.devnet.url().to_owned()),
            ("JIM_PAYMENTS__TREASURY_KEY_FILE", key_file.to_str().expect("text").to_owned()),
        ];
        all.extend(settings.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let treasury = SecretKey::from_hex(&key).expect("a test key").address();
        let facilitator_url = facilitator_url.to_owned();
        let mut desk = Self { jim: None, treasury, settings: all, facilitator_url, folder };
        desk.start(world, &[]);
        desk
    }

    /// Starts it again on its data, with more settings for this life of it.
    pub(crate) fn start(&mut self, world: &World, settings: &[(&'static str, &str)]) {
        self.stop();
        let mut all: Vec<(&str, &str)> = self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.extend(settings);
        let (data, logs) = (self.data(), self.folder.path());
        self.jim = Some(Jim::start_in(&data, &world.web, &self.facilitator_url, PAY_TO, logs, &all));
    }

    /// Starts it with settings that kill it, and waits until it is dead.
    pub(crate) fn start_doomed(&mut self, settings: &[(&'static str, &str)]) {
        self.stop();
        let mut all: Vec<(&str, &str)> = self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.extend(settings);
        let mut doomed = Jim::spawn(&self.data(), &self.facilitator_url, PAY_TO, self.folder.path(), &all);
        doomed.wait_for_death(RETURNED_WITHIN);
    }

    /// Ends it in an orderly way.
    pub(crate) fn stop(&mut self) {
        self.jim = None;
    }

    /// The running one.
    pub(crate) fn jim(&mut self) -> &mut Jim {
        self.jim.as_mut().expect("a running jim")
    }

    pub(crate) fn memo_url(&self) -> String {
        self.jim.as_ref().expect("a running jim").memo_url()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.jim.as_ref().expect("a running jim").url(path)
    }

    /// Its data folder: database, keys.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Where the backup of its data folder is put.
    pub(crate) fn backup(&self) -> PathBuf {
        self.folder.path().join("backup")
    }

    /// What has moved back to a payer so far.
    pub(crate) fn returned(&self, world: &World, payer: &Payer) -> Vec<Transfer> {
        world.devnet.transfers_between(&world.web, self.treasury, payer.address)
    }

    /// Waits until money has moved back, and asserts that it is that amount, once.
    pub(crate) fn assert_returned(&self, world: &World, payer: &Payer, amount: U256) {
        wait_for("the refund", RETURNED_WITHIN, || Some(self.returned(world, payer)).filter(|moved| !moved.is_empty()));
        assert_eq!(self.returned(world, payer), [Transfer { from: self.treasury, to: payer.address, amount }]);
        assert_eq!(world.moved(payer), [Transfer { from: payer.address, to: pay_to(), amount }]);
    }

    /// Waits until an order says what it is to say.
    pub(crate) fn wait_for_order(&self, world: &World, order: &str, told: impl Fn(&Value) -> bool) -> Value {
        let url = self.url(&format!("/api/orders/{order}"));
        wait_for("the order's state", RETURNED_WITHIN, || {
            Some(world.web.get(&url, &[]).json()).filter(|order| told(order))
        })
    }
}

/// The second entry of a 402, and the resource that it is for.
pub(crate) struct Terms {
    accepted: Value,
    resource: Value,
}

impl Terms {
    pub(crate) fn ask(world: &World, url: &str) -> Self {
        let reply = world.web.get(url, &[]);
        assert_eq!(reply.status, 402);
        let header = STANDARD.decode(reply.header("payment-required").expect("terms")).expect("base64");
        let terms: Value = serde_json::from_slice(&header).expect("JSON");
        Self { accepted: terms["accepts"][1].clone(), resource: terms["resource"].clone() }
    }

    /// The nonce that the offer was made under.
    pub(crate) fn nonce(&self) -> B256 {
        self.accepted["extra"]["nonce"].as_str().expect("text").parse().expect("a word")
    }

    /// The price.
    pub(crate) fn amount(&self) -> U256 {
        self.accepted["amount"].as_str().expect("text").parse().expect("digits")
    }

    /// Signs what the terms say and sends it to the token, as a wallet does; the transaction.
    pub(crate) fn broadcast(&self, world: &World, payer: &Payer) -> String {
        broadcast(world, payer, self.nonce(), self.amount())
    }

    /// The payment header that names the transaction.
    pub(crate) fn header(&self, tx: &str) -> String {
        let document = json!({
            "x402Version": 2, "resource": self.resource, "accepted": self.accepted, "payload": {"txHash": tx},
        });
        STANDARD.encode(document.to_string())
    }
}

/// A transfer to the seller that the payer signs and a stranger submits; the transaction.
pub(crate) fn broadcast(world: &World, payer: &Payer, nonce: B256, value: U256) -> String {
    let valid_before = U256::from(now_s() + 3_600);
    let (from, to) = (payer.address, pay_to());
    transfer(world, payer, &TransferAuthorization { from, to, value, valid_after: U256::ZERO, valid_before, nonce })
}

/// Sends what the payer has signed for jim, or the same with another amount, in a transaction of a stranger.
pub(crate) fn submit(world: &World, payer: &Payer, signed: &Signed, amount: Option<U256>) {
    let authorization = authorization_of(payer, signed);
    let value = amount.unwrap_or(authorization.value);
    transfer(world, payer, &TransferAuthorization { value, ..authorization });
}

/// The payer takes back what he has signed for jim.
pub(crate) fn cancel(world: &World, payer: &Payer, signed: &Signed) {
    let key = SecretKey::from_hex(&payer.key).expect("a key");
    cancel_nonce(world, &key, authorization_of(payer, signed).nonce);
}

/// The holder of a key cancels a nonce of his; the transaction.
pub(crate) fn cancel_nonce(world: &World, key: &SecretKey, nonce: B256) -> B256 {
    let authorizer = key.address();
    let typehash = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");
    let message = keccak256([typehash.0, authorizer.into_word().0, nonce.0].concat());
    let domain_type = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
    let token: Address = TOKEN.parse().expect("an address");
    let separator = keccak256(
        [
            keccak256(domain_type).0,
            keccak256("USDC").0,
            keccak256("2").0,
            U256::from(CHAIN_ID).to_be_bytes(),
            token.into_word().0,
        ]
        .concat(),
    );
    let hash = keccak256([&[0x19, 0x01], separator.as_slice(), message.as_slice()].concat());
    let signature = key.sign(&hash).to_bytes();
    let words = [authorizer.into_word(), nonce, B256::with_last_byte(signature[64])];
    let arguments = format!("{}{}", hex::encode(words.concat()), hex::encode(&signature[..64]));
    let function = "cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)";
    world.devnet.send(&world.web, function, &arguments).parse().expect("a hash")
}

fn transfer(world: &World, payer: &Payer, authorization: &TransferAuthorization) -> String {
    let key = SecretKey::from_hex(&payer.key).expect("a test key");
    let signature = key.sign(&digest(authorization, &domain())).to_bytes();
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
    world.devnet.send(&world.web, function, &hex::encode(words.concat()))
}

fn authorization_of(payer: &Payer, signed: &Signed) -> TransferAuthorization {
    let payment: Value = serde_json::from_slice(&STANDARD.decode(&signed.value).expect("base64")).expect("JSON");
    let member = |name: &str| payment["payload"]["authorization"][name].as_str().expect("text").to_owned();
    let number = |name: &str| member(name).parse::<U256>().expect("a number");
    TransferAuthorization {
        from: payer.address,
        to: pay_to(),
        value: number("value"),
        valid_after: number("validAfter"),
        valid_before: number("validBefore"),
        nonce: member("nonce").parse().expect("a word"),
    }
}

/// The token's EIP-712 domain.
pub(crate) fn domain() -> TokenDomain {
    let contract = TOKEN.parse().expect("an address");
    TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id: CHAIN_ID, contract }
}

/// A public test key of the kit, of an account that nothing else is sent from.
pub(crate) fn treasury_key() -> String {
    let accounts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chain/kit/accounts.json");
    let accounts: Value = serde_json::from_slice(&fs::read(accounts).expect("the accounts")).expect("JSON");
    accounts["buyer2"]["key"].as_str().expect("a key").to_owned()
}

pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}
