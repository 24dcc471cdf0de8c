//! A token on a chain of this process, and a treasury whose broadcasts go wrong as scripted. The token behaves as EIP-3009 says:
//! a nonce moves money once, before its end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use jim::evm::{Address, B256, Network, SecretKey, TokenDomain, TransferAuthorization, U256, digest};
use jim::paywall::port::chain::{AuthorizationKey, Block, Chain, ChainFault, Landing, PermitKey, Treasury, Use};
use tokio::sync::Notify;

use crate::support::buyer::now_s;

/// The network of all refunds here.
pub(crate) const NETWORK: Network = Network::new(84_532);

/// What becomes of the next broadcast.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Taken, and in a block at once.
    Mine,
    /// Taken; it waits for [`Node::mine`].
    Wait,
    /// Taken, and never heard of again.
    Lose,
    /// Refused.
    Refuse,
    /// Taken, waits for a block, and the answer is an error.
    TakeAndFail,
    /// The process dies before the node hears of it.
    DieBefore,
    /// The process dies after it was mined.
    DieAfter,
    /// It is mined once the test says so.
    Hold(Arc<Notify>),
}

/// The node.
pub(crate) struct Node(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    height: u64,
    ahead_s: u64,
    uses: HashMap<AuthorizationKey, (u64, Use)>,
    waiting: Vec<TransferAuthorization>,
    script: VecDeque<Act>,
    heard: Vec<(TransferAuthorization, [u8; 65])>,
    is_down: bool,
    is_blind: bool,
}

impl Inner {
    fn time_s(&self) -> u64 {
        now_s() + self.ahead_s
    }

    /// Moves the money, if the token lets it.
    fn apply(&mut self, authorization: &TransferAuthorization) {
        let key = key_of(authorization);
        let time_s = self.time_s();
        if self.uses.contains_key(&key) || authorization.valid_before <= U256::from(time_s) {
            return;
        }
        self.height += 1;
        let landing = Landing {
            key,
            to: authorization.to,
            value: authorization.value,
            tx: hash_of(authorization),
            block: self.height,
            block_hash: B256::with_last_byte(1),
            time_s,
            log_index: 1,
        };
        self.uses.insert(key, (time_s, Use::Transferred(landing)));
    }
}

impl Node {
    /// An empty chain.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner { height: 1, ..Inner::default() })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no panic while it is held")
    }

    /// Scripts the next broadcasts; what is not scripted is mined.
    pub(crate) fn script(&self, acts: impl IntoIterator<Item = Act>) {
        self.inner().script = acts.into_iter().collect();
    }

    /// What waits gets into a block.
    pub(crate) fn mine(&self) {
        let mut inner = self.inner();
        for authorization in std::mem::take(&mut inner.waiting) {
            inner.apply(&authorization);
        }
    }

    /// Time passes on the chain.
    pub(crate) fn advance(&self, seconds: u64) {
        self.inner().ahead_s += seconds;
    }

    /// Nothing answers any more, or again.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.inner().is_down = is_down;
    }

    /// The head answers and logs do not.
    pub(crate) fn set_blind(&self, is_blind: bool) {
        self.inner().is_blind = is_blind;
    }

    /// Money that somebody moves, or an authorization that somebody cancels.
    pub(crate) fn put(&self, key: AuthorizationKey, to: Address, value: u64, age_s: u64) {
        let mut inner = self.inner();
        inner.height += 1;
        let (block, time_s) = (inner.height, inner.time_s() - age_s);
        let (tx, block_hash) = (key.nonce, B256::with_last_byte(1));
        let landing = Landing { key, to, value: U256::from(value), tx, block, block_hash, time_s, log_index: 1 };
        inner.uses.insert(key, (time_s, Use::Transferred(landing)));
    }

    /// Cancels an authorization.
    pub(crate) fn cancel(&self, key: AuthorizationKey) {
        let mut inner = self.inner();
        let (time_s, block) = (inner.time_s(), inner.height);
        inner.uses.insert(key, (time_s, Use::Cancelled { tx: key.nonce, block, log_index: 1 }));
    }

    /// What moved to somebody, one amount each.
    pub(crate) fn paid_to(&self, to: Address) -> Vec<U256> {
        let inner = self.inner();
        let landing = |(_, used): &(u64, Use)| match used {
            Use::Transferred(landing) if landing.to == to => Some(landing.value),
            Use::Transferred(_) | Use::Cancelled { .. } => None,
        };
        inner.uses.values().filter_map(landing).collect()
    }

    /// Every broadcast that was asked for.
    pub(crate) fn heard(&self) -> Vec<(TransferAuthorization, [u8; 65])> {
        self.inner().heard.clone()
    }

    fn read(&self) -> Result<MutexGuard<'_, Inner>, ChainFault> {
        let inner = self.inner();
        if inner.is_down { Err(ChainFault("the node is down".to_owned())) } else { Ok(inner) }
    }
}

#[async_trait]
impl Chain for Node {
    async fn load_head(&self) -> Result<Block, ChainFault> {
        let inner = self.read()?;
        Ok(Block { number: inner.height, time_s: inner.time_s() })
    }

    async fn find_use(&self, key: &AuthorizationKey, since_s: u64) -> Result<Option<Use>, ChainFault> {
        let inner = self.read()?;
        if inner.is_blind {
            return Err(ChainFault("no logs".to_owned()));
        }
        Ok(inner.uses.get(key).filter(|(time_s, _)| *time_s >= since_s).map(|(_, used)| used.clone()))
    }

    async fn find_permit(&self, _key: &PermitKey, _since_s: u64) -> Result<Option<Use>, ChainFault> {
        unreachable!("no permit is looked for here")
    }

    async fn is_nonce_used(&self, key: &AuthorizationKey) -> Result<bool, ChainFault> {
        Ok(self.read()?.uses.contains_key(key))
    }

    async fn load_landings(&self, asset: Address, tx: B256) -> Result<Option<Vec<Landing>>, ChainFault> {
        let inner = self.read()?;
        let landing = |(_, used): &(u64, Use)| match used {
            Use::Transferred(landing) if landing.tx == tx && landing.key.asset == asset => Some(landing.clone()),
            Use::Transferred(_) | Use::Cancelled { .. } => None,
        };
        Ok(Some(inner.uses.values().filter_map(landing).collect()))
    }

    async fn find_landings(&self, _: Address, _: Address, _: u64, _: u64) -> Result<Vec<Landing>, ChainFault> {
        Err(ChainFault("no part of these tests".to_owned()))
    }
}

/// A treasury that sends to a node.
pub(crate) struct Cashier {
    node: Arc<Node>,
    key: SecretKey,
}

impl Cashier {
    /// The one whose key is that byte, 32 times.
    pub(crate) fn new(node: &Arc<Node>, key: u8) -> Arc<Self> {
        Arc::new(Self { node: Arc::clone(node), key: SecretKey::from_bytes([key; 32]).expect("a test key") })
    }
}

#[async_trait]
impl Treasury for Cashier {
    fn address(&self) -> Address {
        self.key.address()
    }

    fn sign(&self, authorization: &TransferAuthorization) -> [u8; 65] {
        self.key.sign(&digest(authorization, &domain())).to_bytes()
    }

    async fn broadcast(&self, authorization: &TransferAuthorization, signature: &[u8; 65]) -> Result<B256, ChainFault> {
        assert_eq!(*signature, self.sign(authorization), "what the token would refuse is never sent");
        let act = {
            let mut inner = self.node.read()?;
            inner.heard.push((authorization.clone(), *signature));
            inner.script.pop_front().unwrap_or(Act::Mine)
        };
        if let Act::Hold(until) = &act {
            until.notified().await;
        }
        let mut inner = self.node.inner();
        let refused = inner.uses.contains_key(&key_of(authorization))
            || authorization.valid_before <= U256::from(inner.time_s())
            || inner.waiting.iter().any(|other| key_of(other) == key_of(authorization));
        if refused && !matches!(act, Act::DieBefore) {
            return Err(ChainFault("reverted: authorization is used, waits, or is over".to_owned()));
        }
        match act {
            Act::Mine | Act::Hold(_) => inner.apply(authorization),
            Act::Wait => inner.waiting.push(authorization.clone()),
            Act::Lose => {}
            Act::Refuse => return Err(ChainFault("insufficient funds for gas".to_owned())),
            Act::TakeAndFail => {
                inner.waiting.push(authorization.clone());
                return Err(ChainFault("time-out".to_owned()));
            }
            Act::DieBefore => {
                drop(inner);
                panic!("a crash before the broadcast");
            }
            Act::DieAfter => {
                inner.apply(authorization);
                drop(inner);
                panic!("a crash after the broadcast");
            }
        }
        Ok(hash_of(authorization))
    }
}

/// The token.
pub(crate) fn token() -> Address {
    "0x036cbd53842c5426634e7929541ec2318f3dcf7e".parse().expect("an address")
}

fn domain() -> TokenDomain {
    TokenDomain { name: "USDC".into(), version: "2".into(), chain_id: NETWORK.chain_id(), contract: token() }
}

fn key_of(authorization: &TransferAuthorization) -> AuthorizationKey {
    AuthorizationKey { asset: token(), authorizer: authorization.from, nonce: authorization.nonce }
}

fn hash_of(authorization: &TransferAuthorization) -> B256 {
    digest(authorization, &domain())
}
