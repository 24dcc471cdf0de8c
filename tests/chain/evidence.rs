//! What the adapter of the chain says about money, against a real node and a real token.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use alloy_primitives::{Address, B256, U256, keccak256};
use jim::chain_rpc::{ChainRpc, Rpc, TreasuryRpc};
use jim::evm::{Network, SecretKey, TransferAuthorization};
use jim::paywall::port::chain::{AuthorizationKey, Chain, ChainFault, Landing, Treasury, Use};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::Case;
use crate::buyers::buy_ts_v2;
use crate::devnet::{Devnet, TOKEN, Transfer};
use crate::money::{CHAIN_ID, cancel_nonce, domain, now_s, treasury_key};
use crate::process::wait_for;
use crate::world::{World, pay_to};

/// All tests, in the order in which they run.
pub(crate) const CASES: [Case; 7] = [
    ("the_node_serves_the_chain_that_is_configured", network),
    ("a_refund_that_was_broadcast_is_found_by_its_nonce", refund),
    ("a_cancelled_authorization_moved_nothing", cancelled),
    ("an_expired_authorization_is_refused_and_stays_unused", expired),
    ("payments_are_found_by_payee_and_blocks", by_range),
    ("a_purchase_that_the_facilitator_settled_is_found", settled),
    ("a_look_up_on_a_long_chain_takes_few_calls", long_chain),
];

/// More than one log query covers; the node takes ten seconds for them.
const BLOCKS: u64 = 2_500;

/// Reader and treasury of one node. The treasury is an account of the kit that nobody else sends from.
struct Desk {
    runtime: Runtime,
    rpc: Arc<Rpc>,
    chain: ChainRpc,
    treasury: TreasuryRpc,
    key: SecretKey,
}

impl Desk {
    fn open(devnet: &Devnet) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let rpc = Arc::new(Rpc::new(devnet.url(), Duration::from_secs(30)).expect("a URL"));
        let chain = ChainRpc::with_rpc(Arc::clone(&rpc), Network::new(CHAIN_ID), 1);
        let key = SecretKey::from_hex(&treasury_key()).expect("a test key");
        let treasury = TreasuryRpc::with_rpc(Arc::clone(&rpc), key.clone(), domain());
        Self { runtime, rpc, chain, treasury, key }
    }

    /// 50,000 units from the treasury to somebody, valid for an hour, under a nonce that was not used before.
    fn authorization(&self, to: Address) -> TransferAuthorization {
        static COUNT: AtomicU8 = AtomicU8::new(1);
        TransferAuthorization {
            from: self.treasury.address(),
            to,
            value: U256::from(50_000),
            valid_after: U256::ZERO,
            valid_before: U256::from(now_s() + 3_600),
            nonce: keccak256([COUNT.fetch_add(1, Ordering::SeqCst)]),
        }
    }

    /// Broadcasts, and waits until it is in a block: the node may answer before that.
    fn broadcast(&self, authorization: &TransferAuthorization) -> Result<B256, ChainFault> {
        let signature = self.treasury.sign(authorization);
        let tx = self.runtime.block_on(self.treasury.broadcast(authorization, &signature))?;
        wait_for("a block with the refund", Duration::from_secs(30), || self.landings(tx));
        Ok(tx)
    }

    fn find_use(&self, key: &AuthorizationKey) -> Option<Use> {
        self.runtime.block_on(self.chain.find_use(key, now_s() - 60)).expect("an answer")
    }

    fn is_used(&self, key: &AuthorizationKey) -> bool {
        self.runtime.block_on(self.chain.is_nonce_used(key)).expect("an answer")
    }

    fn landings(&self, tx: B256) -> Option<Vec<Landing>> {
        self.runtime.block_on(self.chain.load_landings(token(), tx)).expect("an answer")
    }

    fn head(&self) -> u64 {
        self.runtime.block_on(self.chain.load_head()).expect("a head").number
    }

    /// The transfer of an authorization, from its nonce alone.
    fn landing(&self, authorization: &TransferAuthorization) -> Landing {
        match self.find_use(&key_of(authorization)) {
            Some(Use::Transferred(landing)) => landing,
            other => panic!("not a transfer: {other:?}"),
        }
    }
}

fn network(world: &World) {
    let desk = Desk::open(&world.devnet);
    desk.runtime.block_on(desk.chain.check_network()).expect("the configured chain");
    let other = ChainRpc::new(world.devnet.url(), Network::new(8_453), 1).expect("a URL");
    let fault = desk.runtime.block_on(other.check_network()).expect_err("another chain");
    assert_eq!(fault.0, "the node serves eip155:84532, not eip155:8453");
}

fn refund(world: &World) {
    let (desk, buyer) = (Desk::open(&world.devnet), somebody("refunded"));
    let authorization = desk.authorization(buyer);
    let key = key_of(&authorization);
    assert_eq!((desk.find_use(&key), desk.is_used(&key)), (None, false));
    let tx = desk.broadcast(&authorization).expect("a broadcast");
    let landing = desk.landing(&authorization);
    assert_eq!((landing.key, landing.to, landing.value, landing.tx), (key, buyer, authorization.value, tx));
    assert!(desk.is_used(&key) && landing.time_s.abs_diff(now_s()) < 60, "{landing:?}");
    assert_eq!(desk.landings(tx), Some(vec![landing]));
    let want = Transfer { from: desk.treasury.address(), to: buyer, amount: authorization.value };
    let moved = || world.devnet.transfers_between(&world.web, desk.treasury.address(), buyer);
    assert_eq!(moved(), std::slice::from_ref(&want));

    // the same refund again: the token's answer comes from the estimate, before gas is spent
    let head = desk.head();
    let fault = desk.broadcast(&authorization).expect_err("a nonce that was used");
    assert!(fault.0.ends_with("reverted: FiatTokenV2: authorization is used or canceled"), "{fault}");
    let longer = TransferAuthorization { valid_before: authorization.valid_before + U256::ONE, ..authorization };
    desk.broadcast(&longer).expect_err("signed anew under the same nonce");
    assert_eq!((moved(), desk.head()), (vec![want], head));
    assert_eq!(desk.landings(B256::repeat_byte(1)), None, "no such transaction");
}

fn cancelled(world: &World) {
    let (desk, buyer) = (Desk::open(&world.devnet), somebody("cancelled"));
    let authorization = desk.authorization(buyer);
    let key = key_of(&authorization);
    let tx = cancel_nonce(world, &desk.key, key.nonce);
    match desk.find_use(&key) {
        Some(Use::Cancelled { tx: found, block, .. }) => assert_eq!((found, block), (tx, desk.head())),
        other => panic!("not a cancellation: {other:?}"),
    }
    assert!(desk.is_used(&key), "the token cannot tell it from a payment");
    assert_eq!(desk.landings(tx), Some(vec![]));
    desk.broadcast(&authorization).expect_err("a cancelled nonce");
    assert_eq!(world.devnet.transfers_between(&world.web, desk.treasury.address(), buyer), []);
}

fn expired(world: &World) {
    let (desk, buyer) = (Desk::open(&world.devnet), somebody("expired"));
    let authorization = TransferAuthorization { valid_before: U256::from(now_s() - 600), ..desk.authorization(buyer) };
    let fault = desk.broadcast(&authorization).expect_err("it has expired");
    assert!(fault.0.ends_with("reverted: FiatTokenV2: authorization is expired"), "{fault}");
    let key = key_of(&authorization);
    assert_eq!((desk.find_use(&key), desk.is_used(&key)), (None, false));
}

fn by_range(world: &World) {
    let (desk, payee) = (Desk::open(&world.devnet), somebody("payee"));
    let from = desk.head() + 1;
    let paid = [desk.authorization(payee), desk.authorization(payee)];
    for authorization in &paid {
        desk.broadcast(authorization).expect("a broadcast");
    }
    world.devnet.mint(&world.web, payee, 7);
    desk.broadcast(&desk.authorization(somebody("not the payee"))).expect("a broadcast");
    let to = desk.head();
    let find = |from, to| desk.runtime.block_on(desk.chain.find_landings(token(), payee, from, to));
    let want: Vec<Landing> = paid.iter().map(|authorization| desk.landing(authorization)).collect();
    assert_eq!(find(from, to), Ok(want.clone()), "not the minted ones, which nobody authorized");
    assert_eq!(find(0, want[0].block), Ok(vec![want[0].clone()]));
    assert_eq!(find(want[1].block + 1, to), Ok(vec![]));
    assert!(find(from, to + 1).is_err(), "above the head");
}

fn settled(world: &World) {
    let (desk, url, payer) = (Desk::open(&world.devnet), world.reference_url(), world.payer("settled"));
    let bought = buy_ts_v2(&world.kit, &url, &payer);
    assert_eq!(bought.status, 200, "{}", bought.body);
    let tx: B256 = bought.settlement["transaction"].as_str().expect("a transaction").parse().expect("a hash");
    let found = desk.landings(tx).expect("mined");
    assert_eq!(found.len(), 1, "{found:?}");
    let Landing { key, to, value, .. } = found[0].clone();
    assert_eq!((key.authorizer, to, value), (payer.address, pay_to(), world.price(&url)));
    assert_eq!(desk.find_use(&key), Some(Use::Transferred(found[0].clone())));
}

/// A chain of its own: so many more seconds would end every payment of the other tests.
fn long_chain(world: &World) {
    let logs = TempDir::new().expect("a folder");
    let devnet = Devnet::start_for_many_blocks(&world.kit, &world.web, logs.path());
    let (desk, buyer) = (Desk::open(&devnet), somebody("long ago"));
    let early = desk.authorization(buyer);
    desk.broadcast(&early).expect("a broadcast");
    devnet.mine(&world.web, BLOCKS);
    let late = TransferAuthorization { valid_before: U256::from(now_s() + 20_000), ..desk.authorization(buyer) };
    desk.broadcast(&late).expect("a broadcast");
    let late_s = desk.landing(&late).time_s;
    for (name, authorization, since_s, most) in
        [("of the last minute", &late, late_s - 60, 5), ("below many blocks", &early, now_s() - 60, 15)]
    {
        let fresh = Desk::open(&devnet);
        for turn in ["first", "again"] {
            let before = fresh.rpc.calls_made();
            let found = fresh.runtime.block_on(fresh.chain.find_use(&key_of(authorization), since_s));
            assert!(matches!(found, Ok(Some(Use::Transferred(_)))), "{name}: {found:?}");
            let calls = fresh.rpc.calls_made() - before;
            println!("    a payment {name}, {turn}: {calls} calls");
            assert!(calls <= most, "{name}: {calls} calls");
        }
    }
}

fn key_of(authorization: &TransferAuthorization) -> AuthorizationKey {
    AuthorizationKey { asset: token(), authorizer: authorization.from, nonce: authorization.nonce }
}

fn token() -> Address {
    TOKEN.parse().expect("an address")
}

fn somebody(name: &str) -> Address {
    Address::from_slice(&keccak256(format!("jim chain test: {name}"))[12..])
}
