//! A world in memory: one token on one chain, a facilitator on it that answers in every way that is known,
//! and a clock that the test moves. Both ports of the paywall are implemented here, so that a call can be held, cut or counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jim::clock::Clock;
use jim::evm::{Address, B256, TransferAuthorization, U256, parse_address, parse_uint, parse_word};
use jim::paywall::port::chain::{AuthorizationKey, Block, Chain, ChainFault, Landing, PermitKey, Use};
use jim::paywall::port::{
    Facilitator, FacilitatorRequest, Judged, Kind, Member, SettleIntent, Settlement, Unreachable, Verdict,
};
use time::OffsetDateTime;
use tokio::sync::Notify;

/// The facilitator's name.
const NAME: &str = "world";

/// What a settle call does and answers, as far as the chain allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Mined, and said so.
    Success,
    /// Mined, and said so after a while.
    Slow,
    /// Mined; the answer is lost.
    Lost,
    /// Mined; the answer is a 5xx.
    MovedAndErred,
    /// Mined; it says that the nonce is used.
    MovedAndNonceUsed,
    /// Sent, not mined; `success: false` without a transaction, or `settlement_pending`, or nothing at all.
    Sent,
    /// Sent, not mined; `success: false` with the transaction.
    SentWithTransaction,
    /// Nothing done; a 5xx.
    Erred,
    /// Nothing done; a reason from before the broadcast.
    Refused,
    /// The connection was refused.
    NotSent,
}

/// What a verify call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Honest,
    Slow,
    Unreachable,
}

/// What became of a nonce on chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Moved { by_us: bool, value: u128 },
    Cancelled,
}

/// A clock that runs with the machine's, some seconds ahead.
#[derive(Debug, Default)]
pub(crate) struct AheadClock(AtomicI64);

impl AheadClock {
    pub(crate) fn advance(&self, seconds: i64) -> i64 {
        self.0.fetch_add(seconds, Ordering::SeqCst) + seconds
    }
}

impl Clock for AheadClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc() + time::Duration::seconds(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Debug, Default)]
struct Nonce {
    fate: Option<Fate>,
    pending: bool,
    running: u32,
    exposed_since: Option<Instant>,
    exposed: Vec<(Instant, Instant)>,
    block: u64,
}

impl Nonce {
    /// A settle call of ours runs, or has sent a transfer that may be or is on chain.
    fn is_exposed(&self) -> bool {
        self.running > 0 || self.pending || matches!(self.fate, Some(Fate::Moved { by_us: true, .. }))
    }
}

#[derive(Debug, Default)]
struct State {
    nonces: HashMap<B256, Nonce>,
    blocks: u64,
    balance: u128,
    answers: Vec<Answer>,
    looks: Vec<Look>,
    settles: u32,
}

/// The world.
#[derive(Debug, Default)]
pub(crate) struct FakeWorld {
    pub(crate) clock: Arc<AheadClock>,
    /// Told when a call was held for good: the process is to be killed.
    pub(crate) held: Notify,
    hold_in: AtomicU32,
    state: Mutex<State>,
}

/// Counts down when a settle call ends, in whatever way.
struct Running<'a>(&'a FakeWorld, B256);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.change(self.1, |nonce| nonce.running -= 1);
    }
}

impl FakeWorld {
    /// With the answers of the first calls; later ones are honest. The payer starts with that much.
    pub(crate) fn new(answers: &[Answer], looks: &[Look], balance: u128) -> Arc<Self> {
        let reversed = |all: &[Answer]| all.iter().rev().copied().collect();
        let state = State {
            answers: reversed(answers),
            looks: looks.iter().rev().copied().collect(),
            balance,
            ..State::default()
        };
        Arc::new(Self { state: Mutex::new(state), ..Self::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    fn change<T>(&self, nonce: B256, change: impl FnOnce(&mut Nonce) -> T) -> T {
        let mut state = self.state();
        let block = state.blocks;
        let it = state.nonces.entry(nonce).or_default();
        let before = it.fate;
        let out = change(it);
        if it.fate != before {
            it.block = block + 1;
        }
        match (it.exposed_since, it.is_exposed()) {
            (None, true) => it.exposed_since = Some(Instant::now()),
            (Some(since), false) => {
                it.exposed.push((since, Instant::now()));
                it.exposed_since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
        if it.fate != before {
            state.blocks += 1;
            if let Some(Fate::Moved { value, .. }) = state.nonces.get(&nonce).and_then(|it| it.fate) {
                state.balance = state.balance.saturating_sub(value);
            }
        }
        out
    }

    /// From now on every call honest; the calls of a test's program are over.
    pub(crate) fn calm(&self) {
        let mut state = self.state();
        state.answers.clear();
        state.looks.clear();
        self.hold_in.store(0, Ordering::SeqCst);
    }

    /// The n-th call of a port from now (1: the next) never returns.
    pub(crate) fn hold_call(&self, n: u32) {
        self.hold_in.store(n, Ordering::SeqCst);
    }

    /// What waits is mined, or forgotten.
    pub(crate) fn settle_pending(&self, mine: bool, value: u128) {
        let waiting: Vec<B256> = self.state().nonces.iter().filter(|(_, it)| it.pending).map(|(n, _)| *n).collect();
        for nonce in waiting {
            self.change(nonce, |it| {
                it.pending = false;
                if mine && it.fate.is_none() {
                    it.fate = Some(Fate::Moved { by_us: true, value });
                }
            });
        }
    }

    /// Somebody else uses or cancels the nonce, unless it is used already or a transfer under it waits.
    pub(crate) fn use_up(&self, nonce: B256, fate: Fate) {
        self.change(nonce, |it| {
            if it.fate.is_none() && !it.pending {
                it.fate = Some(fate);
            }
        });
    }

    /// What became of a nonce.
    pub(crate) fn fate(&self, nonce: B256) -> Option<Fate> {
        self.state().nonces.get(&nonce).and_then(|it| it.fate)
    }

    /// Settle calls so far.
    pub(crate) fn settles(&self) -> u32 {
        self.state().settles
    }

    /// True when money was or may have been under way during all of that time.
    pub(crate) fn was_exposed(&self, nonce: B256, from: Instant, to: Instant) -> bool {
        let state = self.state();
        state.nonces.get(&nonce).is_some_and(|it| {
            it.exposed_since.is_some_and(|since| since <= from)
                || it.exposed.iter().any(|(since, until)| *since <= from && *until >= to)
        })
    }

    /// Each call of a port passes here, and may be held for good.
    async fn pass(&self) {
        let left = self.hold_in.load(Ordering::SeqCst);
        if left > 0 && self.hold_in.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.held.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// What the token says about an authorization that nobody has used.
    fn objection(&self, auth: &TransferAuthorization) -> Option<&'static str> {
        if auth.valid_before < U256::from(self.clock.unix_s() + 6) {
            return Some("invalid_exact_evm_payload_authorization_valid_before");
        }
        (U256::from(self.state().balance) < auth.value).then_some("insufficient_funds")
    }

    /// The call's effect, at once, and its answer.
    fn act(&self, auth: &TransferAuthorization, answer: Answer) -> Settlement {
        let (nonce, tx) = (auth.nonce, Some(transaction(auth.nonce)));
        let unknown = |reason: &str, transaction| Settlement::Unknown { reason: reason.into(), transaction };
        let used = || Settlement::NonceUsed { reason: "nonce_already_used".into(), transaction: None };
        let (pending, fate) = self.change(nonce, |it| (it.pending, it.fate));
        match answer {
            Answer::NotSent => return Settlement::NotSent { reason: "refused".into() },
            Answer::Erred => return unknown("status 502", None),
            // an empty wallet is a truth only where nothing was sent
            Answer::Refused if fate.is_none() && !pending => {
                return Settlement::Denied { reason: "insufficient_funds".into() };
            }
            _ => {}
        }
        match fate {
            Some(Fate::Moved { by_us: true, .. }) if answer == Answer::Success => return settled(nonce),
            Some(_) => return used(),
            None => {}
        }
        if !pending && let Some(reason) = self.objection(auth) {
            return Settlement::Denied { reason: reason.into() };
        }
        let value = auth.value.to::<u128>();
        let mine = || {
            self.change(nonce, |it| (it.pending, it.fate) = (false, Some(Fate::Moved { by_us: true, value })));
        };
        match answer {
            Answer::Success | Answer::Slow | Answer::Refused => {
                mine();
                settled(nonce)
            }
            Answer::Lost => {
                mine();
                unknown("no answer in time", None)
            }
            Answer::MovedAndErred => {
                mine();
                unknown("status 500", None)
            }
            Answer::MovedAndNonceUsed => {
                mine();
                used()
            }
            Answer::Sent => {
                self.change(nonce, |it| it.pending = true);
                unknown("settlement_pending", None)
            }
            Answer::SentWithTransaction => {
                self.change(nonce, |it| it.pending = true);
                unknown("invalid_transaction_state", tx)
            }
            Answer::Erred | Answer::NotSent => unreachable!("answered above"),
        }
    }
}

fn settled(nonce: B256) -> Settlement {
    Settlement::Settled { transaction: transaction(nonce), payer: None }
}

/// A transaction for each nonce.
fn transaction(nonce: B256) -> String {
    format!("{nonce:#x}")
}

fn authorization_of(request: &FacilitatorRequest) -> TransferAuthorization {
    let auth = &request.payment_payload["payload"]["authorization"];
    let text = |name: &str| auth[name].as_str().expect("a member of an authorization");
    TransferAuthorization {
        from: parse_address(text("from")).expect("an address"),
        to: parse_address(text("to")).expect("an address"),
        value: parse_uint(text("value")).expect("a number"),
        valid_after: parse_uint(text("validAfter")).expect("a number"),
        valid_before: parse_uint(text("validBefore")).expect("a number"),
        nonce: parse_word(text("nonce")).expect("a word"),
    }
}

#[async_trait]
impl Facilitator for FakeWorld {
    fn name(&self) -> &str {
        NAME
    }

    fn sole(&self) -> Option<&str> {
        Some(NAME)
    }

    fn is_simulated(&self) -> bool {
        false
    }

    fn members(&self) -> Vec<Member> {
        vec![Member { name: NAME.into(), supported: true, failing: None }]
    }

    async fn fetch_supported(&self) -> Result<Vec<Kind>, Unreachable> {
        Ok(vec![Kind { x402_version: 2, scheme: "exact".into(), network: "eip155:84532".into() }])
    }

    async fn verify(&self, request: &FacilitatorRequest) -> Result<Judged, Unreachable> {
        self.pass().await;
        let auth = authorization_of(request);
        let look = self.state().looks.pop().unwrap_or(Look::Honest);
        match look {
            Look::Honest => {}
            Look::Slow => tokio::time::sleep(Duration::from_millis(40)).await,
            Look::Unreachable => return Err(Unreachable("refused".into())),
        }
        let used = self.fate(auth.nonce).map(|_| "nonce_already_used");
        let verdict = match used.or_else(|| self.objection(&auth)) {
            Some(reason) => Verdict::Invalid { reason: reason.into() },
            None => Verdict::Valid { payer: None },
        };
        Ok(Judged { verdict, facilitator: NAME.into() })
    }

    async fn settle(&self, intent: &SettleIntent) -> Settlement {
        assert_eq!(intent.facilitator(), NAME);
        let auth = authorization_of(intent.request());
        self.change(auth.nonce, |it| it.running += 1);
        let _running = Running(self, auth.nonce);
        self.pass().await;
        let answer = {
            let mut state = self.state();
            state.settles += 1;
            state.answers.pop().unwrap_or(Answer::Success)
        };
        let settlement = self.act(&auth, answer);
        if answer == Answer::Slow {
            tokio::time::sleep(Duration::from_millis(120)).await;
        }
        self.pass().await;
        settlement
    }
}

/// What the payer signed for, as far as the chain's logs show it.
#[derive(Debug)]
pub(crate) struct ReadWorld {
    pub(crate) world: Arc<FakeWorld>,
    pub(crate) pay_to: Address,
}

impl ReadWorld {
    fn landing(&self, key: &AuthorizationKey, value: u128, block: u64) -> Landing {
        Landing {
            key: *key,
            to: self.pay_to,
            value: U256::from(value),
            tx: key.nonce,
            block,
            block_hash: B256::from(U256::from(block)),
            time_s: self.world.clock.unix_s(),
            log_index: 1,
        }
    }
}

#[async_trait]
impl Chain for ReadWorld {
    async fn load_head(&self) -> Result<Block, ChainFault> {
        self.world.pass().await;
        Ok(Block { number: self.world.state().blocks + 1, time_s: self.world.clock.unix_s() })
    }

    async fn find_use(&self, key: &AuthorizationKey, _: u64) -> Result<Option<Use>, ChainFault> {
        self.world.pass().await;
        let state = self.world.state();
        let Some(it) = state.nonces.get(&key.nonce) else { return Ok(None) };
        Ok(it.fate.map(|fate| match fate {
            Fate::Moved { value, .. } => Use::Transferred(self.landing(key, value, it.block)),
            Fate::Cancelled => Use::Cancelled { tx: key.nonce, block: it.block, log_index: 1 },
        }))
    }

    async fn find_permit(&self, _key: &PermitKey, _since_s: u64) -> Result<Option<Use>, ChainFault> {
        unreachable!("no permit is looked for here")
    }

    async fn is_nonce_used(&self, key: &AuthorizationKey) -> Result<bool, ChainFault> {
        Ok(self.world.fate(key.nonce).is_some())
    }

    async fn load_landings(&self, _: Address, _: B256) -> Result<Option<Vec<Landing>>, ChainFault> {
        Ok(None)
    }

    async fn find_landings(&self, _: Address, _: Address, _: u64, _: u64) -> Result<Vec<Landing>, ChainFault> {
        Ok(Vec::new())
    }
}
