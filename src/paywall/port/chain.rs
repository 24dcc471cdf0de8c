//! What the chain itself says about money: evidence of a transfer, of a cancellation, of nothing; and the way to send a refund.
//!
//! A used nonce alone proves nothing (a cancellation sets it too); proof of a payment is the token's
//! `AuthorizationUsed` log with the `Transfer` of the same transaction. An error is never an answer: it says nothing at all.

use async_trait::async_trait;

use crate::evm::{Address, B256, TransferAuthorization, U256};

/// Reads one chain.
#[async_trait]
pub trait Chain: Send + Sync {
    /// The newest block that counts: as many blocks below the tip as the operator asks for.
    async fn load_head(&self) -> Result<Block, ChainFault>;

    /// What became of an authorization in blocks from `since_s` (unix seconds, a lower bound) up to the head.
    /// None: neither used nor cancelled there.
    async fn find_use(&self, key: &AuthorizationKey, since_s: u64) -> Result<Option<Use>, ChainFault>;

    /// What became of a permit for us in blocks from `since_s` up to the head: the transfer of a transaction that calls an x402 proxy
    /// with it, or its owner's invalidation. A bit that is set proves neither. None: there is nothing of it. A transfer that could be
    /// its own and cannot be read is a fault.
    async fn find_permit(&self, key: &PermitKey, since_s: u64) -> Result<Option<Use>, ChainFault>;

    /// `authorizationState` of the token at the head: used **or cancelled**.
    async fn is_nonce_used(&self, key: &AuthorizationKey) -> Result<bool, ChainFault>;

    /// The EIP-3009 transfers of one token in a transaction; None while it is not in a counted block, and
    /// `Some(vec![])` when it failed or moved nothing of that token.
    async fn load_landings(&self, asset: Address, tx: B256) -> Result<Option<Vec<Landing>>, ChainFault>;

    /// All EIP-3009 transfers of a token to a payee in a closed range of blocks.
    async fn find_landings(
        &self,
        asset: Address,
        payee: Address,
        from: u64,
        to: u64,
    ) -> Result<Vec<Landing>, ChainFault>;
}

/// Sends EIP-3009 authorizations that were signed by our own key, paying their gas.
#[async_trait]
pub trait Treasury: Send + Sync {
    /// Who pays refunds.
    fn address(&self) -> Address;

    /// Signs an authorization with the treasury's key for the token of the deployment; 65 bytes.
    fn sign(&self, authorization: &TransferAuthorization) -> [u8; 65];

    /// Wraps it in a transaction of the treasury and broadcasts that; its hash, which proves nothing yet.
    async fn broadcast(&self, authorization: &TransferAuthorization, signature: &[u8; 65]) -> Result<B256, ChainFault>;
}

/// A block by its height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Height.
    pub number: u64,
    /// Its own time, unix seconds.
    pub time_s: u64,
}

/// One authorization of one payer, as the token knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuthorizationKey {
    /// The token.
    pub asset: Address,
    /// Who signed.
    pub authorizer: Address,
    /// His nonce.
    pub nonce: B256,
}

/// One permit of one payer to one payee, as Permit2 and the x402 proxies know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PermitKey {
    /// The token.
    pub asset: Address,
    /// Who signed.
    pub owner: Address,
    /// Bit in his bitmap.
    pub nonce: U256,
    /// Who is paid.
    pub payee: Address,
    /// What is charged.
    pub value: U256,
    /// The one contract that may use it.
    pub proxy: Address,
}

/// How an authorization ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// The money moved.
    Transferred(Landing),
    /// The payer cancelled it.
    Cancelled {
        /// The transaction.
        tx: B256,
        /// Its block.
        block: u64,
        /// Index of the log in the block.
        log_index: u64,
    },
}

/// Money that moved under an authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The authorization that was used.
    pub key: AuthorizationKey,
    /// Who was paid.
    pub to: Address,
    /// Atomic units.
    pub value: U256,
    /// The transaction.
    pub tx: B256,
    /// Its block.
    pub block: u64,
    /// The block's hash: another one at this height means that the evidence is gone.
    pub block_hash: B256,
    /// The block's time, unix seconds.
    pub time_s: u64,
    /// Index of the `Transfer` log in the block.
    pub log_index: u64,
}

/// The node gave no usable answer, or refused what was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("chain: {0}")]
pub struct ChainFault(pub String);
