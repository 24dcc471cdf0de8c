//! A chain in memory, behind the ports of the paywall: blocks, EIP-3009 transfers and cancellations, blocks that go away, a node
//! that is down; and a treasury that sends to it.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use jim::evm::{Address, B256, SecretKey, TokenDomain, TransferAuthorization, U256, digest};
use jim::paywall::port::chain::{AuthorizationKey, Block, Chain, ChainFault, Landing, PermitKey, Treasury, Use};

use super::buyer::now_s;

/// The chain.
#[derive(Default)]
pub(crate) struct FakeChain {
    state: Mutex<State>,
}

/// A treasury whose transactions wait for the next block like any other.
pub(crate) struct FakeTreasury {
    chain: Arc<FakeChain>,
    key: SecretKey,
    domain: TokenDomain,
}

#[derive(Default)]
struct State {
    blocks: Vec<Sealed>,
    waiting: Vec<Transaction>,
    is_down: bool,
    is_deaf: bool,
    confirmations: u64,
    next: u64,
    reads: u64,
}

struct Sealed {
    hash: B256,
    time_s: u64,
    transactions: Vec<Transaction>,
}

#[derive(Clone)]
struct Transaction {
    hash: B256,
    parts: Vec<Part>,
}

#[derive(Clone)]
enum Part {
    Transfer { key: AuthorizationKey, to: Address, value: U256 },
    Cancel(AuthorizationKey),
}

impl Part {
    fn key(&self) -> &AuthorizationKey {
        match self {
            Self::Transfer { key, .. } | Self::Cancel(key) => key,
        }
    }
}

impl State {
    fn fresh(&mut self) -> B256 {
        self.next += 1;
        let mut bytes = [0xc4; 32];
        bytes[24..].copy_from_slice(&self.next.to_be_bytes());
        B256::from(bytes)
    }

    /// The blocks that count.
    fn counted(&self) -> impl Iterator<Item = (u64, &Sealed)> {
        let count = self.blocks.len().saturating_sub(usize::try_from(self.confirmations).expect("few"));
        (1..).zip(self.blocks.iter().take(count))
    }

    fn is_used(&self, key: &AuthorizationKey) -> bool {
        self.blocks.iter().flat_map(|b| &b.transactions).flat_map(|t| &t.parts).any(|part| part.key() == key)
    }

    /// Everything that happened in counted blocks, in order, with where it stands.
    fn parts(&self) -> Vec<(u64, &Sealed, B256, u64, &Part)> {
        let mut all = Vec::new();
        for (number, block) in self.counted() {
            // a use and its transfer are two logs
            let mut log_index = 1;
            for transaction in &block.transactions {
                for part in &transaction.parts {
                    all.push((number, block, transaction.hash, log_index, part));
                    log_index += 2;
                }
            }
        }
        all
    }

    fn landings(&self) -> Vec<Landing> {
        let landing = |(number, block, tx, log_index, part): (u64, &Sealed, B256, u64, &Part)| match part {
            Part::Cancel(_) => None,
            Part::Transfer { key, to, value } => Some(Landing {
                key: *key,
                to: *to,
                value: *value,
                tx,
                block: number,
                block_hash: block.hash,
                time_s: block.time_s,
                log_index,
            }),
        };
        self.parts().into_iter().filter_map(landing).collect()
    }
}

impl FakeChain {
    /// A chain with one empty block.
    pub(crate) fn new() -> Arc<Self> {
        let chain = Arc::new(Self::default());
        chain.mine();
        chain
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    /// Seals what waits into a block of this moment; its height.
    pub(crate) fn mine(&self) -> u64 {
        self.mine_at(now_s())
    }

    /// Seals what waits into a block of that time. An authorization that is used already moves nothing, as a chain would have it.
    pub(crate) fn mine_at(&self, time_s: u64) -> u64 {
        let mut state = self.state();
        let hash = state.fresh();
        let waiting = std::mem::take(&mut state.waiting);
        state.blocks.push(Sealed { hash, time_s, transactions: Vec::new() });
        for mut transaction in waiting {
            if transaction.parts.iter().any(|part| state.is_used(part.key())) {
                transaction.parts.clear();
            }
            state.blocks.last_mut().expect("one").transactions.push(transaction);
        }
        u64::try_from(state.blocks.len()).expect("few")
    }

    /// A transfer under an authorization, waiting for a block.
    pub(crate) fn transfer(&self, key: AuthorizationKey, to: Address, value: u128) -> B256 {
        self.transfers([(key, to, value)])
    }

    /// One transaction with several transfers, or with none.
    pub(crate) fn transfers(&self, all: impl IntoIterator<Item = (AuthorizationKey, Address, u128)>) -> B256 {
        let part = |(key, to, value)| Part::Transfer { key, to, value: U256::from(value) };
        self.send(all.into_iter().map(part).collect())
    }

    /// A cancellation, waiting for a block.
    pub(crate) fn cancel(&self, key: AuthorizationKey) -> B256 {
        self.send(vec![Part::Cancel(key)])
    }

    fn send(&self, parts: Vec<Part>) -> B256 {
        let mut state = self.state();
        let hash = state.fresh();
        state.waiting.push(Transaction { hash, parts });
        hash
    }

    /// The newest block goes away, and its transactions with it.
    pub(crate) fn drop_last_block(&self) {
        self.state().blocks.pop();
    }

    /// The newest block goes away; its transactions wait again.
    pub(crate) fn reorganise(&self) {
        let mut state = self.state();
        let dropped = state.blocks.pop().map(|block| block.transactions).unwrap_or_default();
        state.waiting.splice(0..0, dropped);
    }

    /// What waits for a block is forgotten.
    pub(crate) fn drop_waiting(&self) {
        self.state().waiting.clear();
    }

    /// Reads fail from now on, or no longer.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// Broadcasts fail from now on, or no longer.
    pub(crate) fn set_deaf(&self, is_deaf: bool) {
        self.state().is_deaf = is_deaf;
    }

    /// So many blocks below the tip count.
    pub(crate) fn set_confirmations(&self, confirmations: u64) {
        self.state().confirmations = confirmations;
    }

    /// Calls that read it.
    pub(crate) fn reads(&self) -> u64 {
        self.state().reads
    }

    /// What moved from one address to another in all blocks.
    pub(crate) fn moved(&self, from: Address, to: Address) -> u128 {
        let state = self.state();
        let parts = state.blocks.iter().flat_map(|b| &b.transactions).flat_map(|t| &t.parts);
        let values = parts.filter_map(|part| match part {
            Part::Transfer { key, to: payee, value } if key.authorizer == from && *payee == to => Some(*value),
            Part::Transfer { .. } | Part::Cancel(_) => None,
        });
        values.map(|value| u128::try_from(value).expect("small")).sum()
    }

    fn read(&self) -> Result<MutexGuard<'_, State>, ChainFault> {
        let mut state = self.state();
        state.reads += 1;
        if state.is_down { Err(ChainFault("the node is down".into())) } else { Ok(state) }
    }
}

#[async_trait]
impl Chain for FakeChain {
    async fn load_head(&self) -> Result<Block, ChainFault> {
        let state = self.read()?;
        let head = state.counted().last().map(|(number, block)| Block { number, time_s: block.time_s });
        head.ok_or_else(|| ChainFault("no block counts yet".into()))
    }

    async fn find_use(&self, key: &AuthorizationKey, since_s: u64) -> Result<Option<Use>, ChainFault> {
        let state = self.read()?;
        let transferred = state.landings().into_iter().find(|l| l.key == *key && l.time_s >= since_s);
        let cancelled = state.parts().into_iter().find_map(|(block, sealed, tx, log_index, part)| match part {
            Part::Cancel(it) if it == key && sealed.time_s >= since_s => Some(Use::Cancelled { tx, block, log_index }),
            Part::Cancel(_) | Part::Transfer { .. } => None,
        });
        Ok(transferred.map(Use::Transferred).or(cancelled))
    }

    /// A permit is a transfer under its owner's nonce of Permit2, which this chain keeps beside the others.
    async fn find_permit(&self, key: &PermitKey, since_s: u64) -> Result<Option<Use>, ChainFault> {
        let key = AuthorizationKey { asset: key.asset, authorizer: key.owner, nonce: key.nonce.into() };
        self.find_use(&key, since_s).await
    }

    async fn is_nonce_used(&self, key: &AuthorizationKey) -> Result<bool, ChainFault> {
        let state = self.read()?;
        Ok(state.parts().iter().any(|(.., part)| part.key() == key))
    }

    async fn load_landings(&self, asset: Address, tx: B256) -> Result<Option<Vec<Landing>>, ChainFault> {
        let state = self.read()?;
        let is_known = state.counted().any(|(_, block)| block.transactions.iter().any(|t| t.hash == tx));
        let landings = state.landings().into_iter().filter(|l| l.tx == tx && l.key.asset == asset);
        Ok(is_known.then(|| landings.collect()))
    }

    async fn find_landings(
        &self,
        asset: Address,
        payee: Address,
        from: u64,
        to: u64,
    ) -> Result<Vec<Landing>, ChainFault> {
        let state = self.read()?;
        let is_asked = |l: &Landing| l.key.asset == asset && l.to == payee && (from..=to).contains(&l.block);
        Ok(state.landings().into_iter().filter(is_asked).collect())
    }
}

impl FakeTreasury {
    /// A treasury of a key on a chain.
    pub(crate) fn new(chain: &Arc<FakeChain>, key: SecretKey, domain: TokenDomain) -> Arc<Self> {
        Arc::new(Self { chain: Arc::clone(chain), key, domain })
    }
}

#[async_trait]
impl Treasury for FakeTreasury {
    fn address(&self) -> Address {
        self.key.address()
    }

    fn sign(&self, authorization: &TransferAuthorization) -> [u8; 65] {
        self.key.sign(&digest(authorization, &self.domain)).to_bytes()
    }

    async fn broadcast(&self, authorization: &TransferAuthorization, signature: &[u8; 65]) -> Result<B256, ChainFault> {
        assert_eq!(*signature, self.sign(authorization), "a signature that the token would refuse");
        if self.chain.state().is_deaf {
            return Err(ChainFault("the node takes nothing".into()));
        }
        let key = AuthorizationKey {
            asset: self.domain.contract,
            authorizer: authorization.from,
            nonce: authorization.nonce,
        };
        let value = authorization.value;
        Ok(self.chain.send(vec![Part::Transfer { key, to: authorization.to, value }]))
    }
}

mod tests {
    use super::*;

    fn key(nonce: u8) -> AuthorizationKey {
        let (asset, nonce) = (Address::repeat_byte(0xa5), B256::repeat_byte(nonce));
        AuthorizationKey { asset, authorizer: treasury_key().address(), nonce }
    }

    fn treasury_key() -> SecretKey {
        SecretKey::from_bytes([0x77; 32]).expect("a test key")
    }

    #[tokio::test]
    async fn an_authorization_moves_money_once_and_a_cancelled_one_never() {
        let (chain, payee) = (FakeChain::new(), Address::repeat_byte(1));
        let payer = key(1).authorizer;
        chain.transfer(key(1), payee, 5);
        assert_eq!(chain.moved(payer, payee), 0, "it waits for a block");
        chain.mine();
        chain.transfer(key(1), payee, 5);
        chain.cancel(key(2));
        chain.transfer(key(2), payee, 5);
        chain.mine();
        assert_eq!(chain.moved(payer, payee), 5);
        assert!(matches!(chain.find_use(&key(1), 0).await, Ok(Some(Use::Transferred(_)))));
        assert!(matches!(chain.find_use(&key(2), 0).await, Ok(Some(Use::Cancelled { .. }))));
        assert_eq!(chain.is_nonce_used(&key(3)).await, Ok(false));
    }

    #[tokio::test]
    async fn blocks_go_away_with_or_without_what_was_in_them() {
        let (chain, payee) = (FakeChain::new(), Address::repeat_byte(1));
        let tx = chain.transfer(key(1), payee, 5);
        let height = chain.mine();
        let first = chain.load_landings(key(1).asset, tx).await.expect("up").expect("mined");
        chain.reorganise();
        assert_eq!(chain.load_landings(key(1).asset, tx).await, Ok(None));
        chain.mine();
        let second = chain.load_landings(key(1).asset, tx).await.expect("up").expect("mined again");
        assert_eq!((second[0].block, first[0].block), (height, height));
        assert_ne!(second[0].block_hash, first[0].block_hash);
        chain.drop_last_block();
        chain.mine();
        assert_eq!(chain.find_landings(key(1).asset, payee, 0, 9).await, Ok(vec![]));
        chain.transfer(key(1), payee, 5);
        chain.drop_waiting();
        chain.mine();
        assert_eq!(chain.moved(key(1).authorizer, payee), 0);
    }

    #[tokio::test]
    async fn a_treasury_sends_to_the_chain_or_is_not_heard() {
        let (chain, payee) = (FakeChain::new(), Address::repeat_byte(1));
        let domain = TokenDomain { name: "USDC".into(), version: "2".into(), chain_id: 1, contract: key(1).asset };
        let treasury = FakeTreasury::new(&chain, treasury_key(), domain);
        let authorization = TransferAuthorization {
            from: treasury.address(),
            to: payee,
            value: U256::from(5),
            valid_after: U256::ZERO,
            valid_before: U256::from(now_s() + 60),
            nonce: key(1).nonce,
        };
        let signature = treasury.sign(&authorization);
        chain.set_deaf(true);
        assert!(treasury.broadcast(&authorization, &signature).await.is_err());
        chain.set_deaf(false);
        treasury.broadcast(&authorization, &signature).await.expect("sent");
        chain.mine();
        assert_eq!(chain.moved(treasury.address(), payee), 5);
    }
}
