//! The kit (npm packages, Python packages) and the EVM node with its planted token.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use alloy_primitives::{Address, U256, hex, keccak256};
use secp256k1::{PublicKey, Secp256k1, SecretKey};
use serde_json::{Value, json};

use crate::process::{Running, free_port, output, wait_for};
use crate::web::Web;

/// The Python buyer's packages; a changed line is installed anew.
const PYTHON_PACKAGES: &str = "x402[evm,httpx,requests]==2.25.0";

/// The token that the kit plants: the address of the real test token, so that every buyer's defaults fit.
pub(crate) const TOKEN: &str = "0x036cbd53842c5426634e7929541ec2318f3dcf7e";

/// An account that the node holds the key of, and that nobody else here sends from: who shared an account with the
/// facilitator would disturb its count of transactions.
const MINTER: &str = "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720";

/// What a fresh payer gets: 1,000 units of a token with 6 decimals.
pub(crate) const PURSE: u64 = 1_000_000_000;

/// Folders of the kit.
pub(crate) struct Kit {
    here: PathBuf,
    cache: PathBuf,
}

/// A running node.
pub(crate) struct Devnet {
    url: String,
    process: Running,
}

/// Who pays: a key made for one test, with an address that holds tokens.
pub(crate) struct Payer {
    pub(crate) key: String,
    pub(crate) address: Address,
}

/// One Transfer event of the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) amount: U256,
}

impl Kit {
    /// Installs what is missing. The packages stay in `X402_KIT_CACHE`, or in the build folder.
    pub(crate) fn install() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chain");
        let cache = std::env::var_os("X402_KIT_CACHE")
            .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("x402-kit"), PathBuf::from);
        fs::create_dir_all(&cache).expect("the cache folder");
        let kit = Self { here, cache };
        let script = kit.here.join("kit/devnet.sh");
        output("npm packages", Command::new("bash").arg(script).arg("install").env("X402_KIT_CACHE", &kit.cache));
        kit.install_python();
        kit
    }

    /// A command that runs a script of the kit, or one of ours beside it.
    pub(crate) fn node(&self, script: &str) -> Command {
        let mut command = Command::new("node");
        command.arg(self.here.join(script)).env("NODE_PATH", self.cache.join("node_modules"));
        command
    }

    /// A command that runs a Python script of the kit.
    pub(crate) fn python(&self, script: &str) -> Command {
        let mut command = Command::new(self.cache.join("venv/bin/python"));
        command.arg(self.here.join(script));
        command
    }

    fn install_python(&self) {
        let (venv, mark) = (self.cache.join("venv"), self.cache.join("venv/installed"));
        if fs::read_to_string(&mark).is_ok_and(|text| text == PYTHON_PACKAGES) {
            return;
        }
        output("a Python environment", Command::new("python3").args(["-m", "venv"]).arg(&venv));
        output("Python packages", Command::new(venv.join("bin/pip")).args(["install", "--quiet", PYTHON_PACKAGES]));
        fs::write(&mark, PYTHON_PACKAGES).expect("the mark");
    }

    /// The node's own program, not its launcher: the child that we end must be the node.
    fn anvil(&self) -> PathBuf {
        let scope = self.cache.join("node_modules/@foundry-rs");
        let platforms = fs::read_dir(&scope).expect("the node's packages");
        let programs = platforms.map(|entry| entry.expect("an entry").path().join("bin/anvil"));
        let native =
            programs.filter(|program| program.to_string_lossy().contains("/anvil-")).find(|program| program.is_file());
        native.expect("a node for this platform")
    }
}

impl Devnet {
    /// Starts a node on a free port, plants the contracts and mints.
    pub(crate) fn start(kit: &Kit, web: &Web, logs: &Path) -> Self {
        Self::start_with(kit, web, logs, &[])
    }

    /// A node that forgets old states, though no block and no log: with them, a thousand empty blocks take it ten seconds.
    pub(crate) fn start_for_many_blocks(kit: &Kit, web: &Web, logs: &Path) -> Self {
        Self::start_with(kit, web, logs, &["--prune-history", "100"])
    }

    fn start_with(kit: &Kit, web: &Web, logs: &Path, options: &[&str]) -> Self {
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let mut command = Command::new(kit.anvil());
        command
            .args(["--host", "127.0.0.1", "--chain-id", "84532", "--silent", "--port", &port.to_string()])
            .args(options);
        let mut process = Running::start("anvil", logs, &mut command);
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
        wait_for("the node", Duration::from_secs(30), || {
            process.assert_alive();
            std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(|_| web.post(&url, &ask))
        });
        output("contracts", kit.node("kit/plant.cjs").env("RPC_URL", &url).env("TOKEN", TOKEN));
        Self { url, process }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn tail(&self) -> String {
        self.process.tail()
    }

    /// A fresh payer with a full purse. The same name gives the same key.
    pub(crate) fn payer(&self, web: &Web, name: &str) -> Payer {
        let secret = keccak256(format!("jim chain test payer: {name}"));
        let key = SecretKey::from_byte_array(secret.0).expect("a hash below the order");
        let public = PublicKey::from_secret_key(&Secp256k1::new(), &key).serialize_uncompressed();
        let address = Address::from_slice(&keccak256(&public[1..])[12..]);
        self.mint(web, address, PURSE);
        Payer { key: format!("0x{}", hex::encode(secret)), address }
    }

    /// Makes tokens for an account: a transfer that nobody authorized.
    pub(crate) fn mint(&self, web: &Web, to: Address, units: u64) {
        self.send(web, "mint(address,uint256)", &format!("{}{}", word(to), amount(units)));
    }

    /// Calls a function of the token in a transaction of an account that has no other part in the tests; its hash.
    pub(crate) fn send(&self, web: &Web, function: &str, arguments: &str) -> String {
        let data = format!("0x{}{arguments}", &hex::encode(keccak256(function))[..8]);
        let sent = self.call(web, "eth_sendTransaction", json!([{"from": MINTER, "to": TOKEN, "data": data}]));
        let hash = sent.as_str().expect("a hash").to_owned();
        assert_eq!(self.receipt(web, &hash)["status"], "0x1", "{function}");
        hash
    }

    /// Calls a contract in a transaction of an account that the node signs for, whosever it is.
    pub(crate) fn send_as(&self, web: &Web, from: Address, to: Address, function: &str, arguments: &str) {
        let (from, to) = (format!("{from:#x}"), format!("{to:#x}"));
        self.call(web, "anvil_setBalance", json!([from, "0xde0b6b3a7640000"]));
        self.call(web, "anvil_impersonateAccount", json!([from]));
        let data = format!("0x{}{arguments}", &hex::encode(keccak256(function))[..8]);
        let sent = self.call(web, "eth_sendTransaction", json!([{"from": from, "to": to, "data": data}]));
        let hash = sent.as_str().expect("a hash").to_owned();
        assert_eq!(self.receipt(web, &hash)["status"], "0x1", "{function}");
    }

    /// Adds empty blocks, a second apart.
    pub(crate) fn mine(&self, web: &Web, blocks: u64) {
        // in pieces that end within the client's time
        for left in (0..blocks).step_by(500).map(|done| blocks - done) {
            self.call(web, "anvil_mine", json!([format!("{:#x}", left.min(500)), "0x1"]));
        }
    }

    /// The token's Transfer events of one transaction.
    pub(crate) fn transfers(&self, web: &Web, transaction: &str) -> Vec<Transfer> {
        let receipt = self.receipt(web, transaction);
        assert_eq!(receipt["status"], "0x1", "transaction {transaction}");
        read_transfers(&receipt["logs"])
    }

    /// Every Transfer from one account to another since the chain began.
    pub(crate) fn transfers_between(&self, web: &Web, from: Address, to: Address) -> Vec<Transfer> {
        self.logs(web, json!([topic(), format!("0x{}", word(from)), format!("0x{}", word(to))]))
    }

    /// How many Transfers an account has received since the chain began.
    pub(crate) fn transfer_count_to(&self, web: &Web, to: Address) -> usize {
        self.logs(web, json!([topic(), null, format!("0x{}", word(to))])).len()
    }

    fn logs(&self, web: &Web, topics: Value) -> Vec<Transfer> {
        let filter = json!([{"fromBlock": "0x0", "toBlock": "latest", "address": TOKEN, "topics": topics}]);
        read_transfers(&self.call(web, "eth_getLogs", filter))
    }

    fn receipt(&self, web: &Web, transaction: &str) -> Value {
        wait_for("a receipt", Duration::from_secs(10), || {
            Some(self.call(web, "eth_getTransactionReceipt", json!([transaction]))).filter(|receipt| !receipt.is_null())
        })
    }

    fn call(&self, web: &Web, method: &str, params: Value) -> Value {
        let answer = web.post(&self.url, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }
}

fn read_transfers(logs: &Value) -> Vec<Transfer> {
    let logs = logs.as_array().expect("a list of logs");
    let token: Address = TOKEN.parse().expect("an address");
    let is_transfer = |log: &&Value| log["topics"][0] == topic() && parse_address(&log["address"]) == token;
    logs.iter()
        .filter(is_transfer)
        .map(|log| Transfer {
            from: parse_address(&log["topics"][1]),
            to: parse_address(&log["topics"][2]),
            amount: log["data"].as_str().expect("data").parse().expect("an amount"),
        })
        .collect()
}

/// An address, plain or as a topic of 32 bytes.
fn parse_address(text: &Value) -> Address {
    let bytes = hex::decode(text.as_str().expect("hex")).expect("hex");
    Address::from_slice(&bytes[bytes.len() - 20..])
}

fn topic() -> String {
    format!("0x{}", hex::encode(keccak256("Transfer(address,address,uint256)")))
}

fn word(address: Address) -> String {
    format!("{:0>64}", hex::encode(address))
}

fn amount(units: u64) -> String {
    format!("{units:064x}")
}
