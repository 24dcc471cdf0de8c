//! A chain over JSON-RPC: evidence of payments, and the treasury's refunds.
//!
//! It implements the ports `Chain` and `Treasury` of the paywall over plain JSON-RPC calls. What a node says is checked against what was
//! asked; what does not fit is a fault and never an answer. What it must not do: decide what an outcome means for a payment.

mod evidence;
mod permit;
mod recent;
mod rlp;
mod rpc;
mod transaction;
mod treasury;
mod wire;

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::hex;
use alloy_sol_types::{SolCall, sol};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::evm::{Address, B256, Network, lower};
use crate::limits::{CHAIN_CALL_BUDGET, CHAIN_LOG_BLOCKS, CHAIN_LOG_CALLS_MAX, CHAIN_TIME_MARGIN_S};
use crate::paywall::port::chain::{AuthorizationKey, Block, Chain, ChainFault, Landing, PermitKey, Use};

pub use rpc::{BadNodeUrl, Rpc};
pub use treasury::{Balances, TreasuryRpc};

use evidence::{CANCELED, Pair, TRANSFER, USED, pair};
use recent::Recent;
use rpc::RpcFault;
use wire::{Header, Log, Receipt, quantity, read_bytes, read_header, read_logs, read_receipt, read_uint, topic_of};

/// Chunks that must pass before one of twice the width is tried: at a node with a narrow bound one query in five fails.
const CHUNKS_BEFORE_WIDER: u32 = 4;

sol! {
    function authorizationState(address authorizer, bytes32 nonce) external view returns (bool);
}

/// Reads one chain through one node.
#[derive(Debug)]
pub struct ChainRpc {
    rpc: Arc<Rpc>,
    network: Network,
    confirmations: u64,
    recent: Recent,
}

impl ChainRpc {
    /// A reader of `network` through the node at `url`. With 1 confirmation the newest block counts, with 2 the one below it; 0 is
    /// taken as 1. No call is made; see [`Self::check_network`].
    pub fn new(url: &str, network: Network, confirmations: u64) -> Result<Self, BadNodeUrl> {
        Ok(Self::with_rpc(Arc::new(Rpc::new(url, CHAIN_CALL_BUDGET)?), network, confirmations))
    }

    /// The same over a client that others use too.
    pub fn with_rpc(rpc: Arc<Rpc>, network: Network, confirmations: u64) -> Self {
        Self { rpc, network, confirmations, recent: Recent::default() }
    }

    /// Checks that the node serves the configured chain. Evidence of another chain proves nothing, so this comes first.
    pub async fn check_network(&self) -> Result<(), ChainFault> {
        self.rpc.check_network(self.network).await
    }

    async fn head_number(&self) -> Result<(u64, Header), ChainFault> {
        let tip = self.load_header("eth_getBlockByNumber", "latest").await?;
        Ok((tip.block.number.saturating_sub(self.confirmations.saturating_sub(1)), tip))
    }

    async fn load_header(&self, method: &str, which: &str) -> Result<Header, ChainFault> {
        let value = self.rpc.call(method, json!([which, false])).await?;
        if value.is_null() {
            return Err(ChainFault(format!("the node has no block {which}")));
        }
        read_header(&value)
    }

    async fn load_numbered(&self, number: u64) -> Result<Block, ChainFault> {
        let block = self.load_header("eth_getBlockByNumber", &quantity(number)).await?.block;
        if block.number != number {
            return Err(ChainFault(format!("the node gives block {} for {number}", block.number)));
        }
        self.recent.note_time(block);
        Ok(block)
    }

    async fn load_hashed(&self, hash: B256) -> Result<Block, ChainFault> {
        if let Some(block) = self.recent.get(&hash) {
            return Ok(block);
        }
        let header = self.load_header("eth_getBlockByHash", &hash.to_string()).await?;
        if header.hash != hash {
            return Err(ChainFault(format!("the node gives another block for {hash}")));
        }
        self.recent.keep(hash, header.block);
        Ok(header.block)
    }

    /// A block that no block of `target_s` or later stands before. It is near the first such block, but not always its neighbour: what
    /// one log query covers anyway is not searched.
    ///
    /// Hints only say where to look. The block that is returned was loaded now, so that a chain that was reorganised, or a devnet that
    /// began anew, cannot hide a block.
    async fn search_start(&self, head: Block, target_s: u64) -> Result<u64, ChainFault> {
        if head.time_s < target_s {
            return Ok(head.number);
        }
        let (mut low, mut high) = (None, head.number);
        let hint = self.recent.around(target_s, head.number);
        if let Some(number) = hint.before
            && self.load_numbered(number).await?.time_s < target_s
        {
            (low, high) = (Some(number), hint.after.unwrap_or(high));
        }
        let mut distance = CHAIN_LOG_BLOCKS - 1;
        let mut low = loop {
            if let Some(low) = low {
                break low;
            }
            let number = head.number.saturating_sub(distance);
            if number == 0 || self.load_numbered(number).await?.time_s < target_s {
                low = Some(number);
            } else {
                (high, distance) = (number, distance.saturating_mul(2));
            }
        };
        while high - low >= CHAIN_LOG_BLOCKS {
            let middle = low + (high - low) / 2;
            if self.load_numbered(middle).await?.time_s < target_s { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// The logs of a contract with these topics in a closed range, in chunks. A chunk that a node refuses is halved, and wider ones
    /// are tried again later: nodes bound the blocks of a query, its results, or both.
    async fn load_logs(&self, asset: Address, topics: Value, from: u64, to: u64) -> Result<Vec<Log>, ChainFault> {
        let (mut at, mut span, mut in_a_row, mut found) = (from, CHAIN_LOG_BLOCKS, 0, Vec::new());
        for _ in 0..CHAIN_LOG_CALLS_MAX {
            if at > to {
                return Ok(found);
            }
            let end = to.min(at.saturating_add(span - 1));
            let filter = json!([{
                "address": lower(&asset), "topics": topics, "fromBlock": quantity(at), "toBlock": quantity(end),
            }]);
            match self.rpc.call("eth_getLogs", filter).await {
                Ok(value) => {
                    let logs = read_logs(&value, &asset)?;
                    if logs.iter().any(|log| !(at..=end).contains(&log.block)) {
                        return Err(ChainFault(format!("a log from outside the blocks {at} to {end}")));
                    }
                    found.extend(logs);
                    (at, in_a_row) = (end.saturating_add(1), in_a_row + 1);
                    if in_a_row % CHUNKS_BEFORE_WIDER == 0 {
                        span = (2 * span).min(CHAIN_LOG_BLOCKS);
                    }
                }
                Err(RpcFault::Node(_) | RpcFault::TooLong) if end > at => {
                    (span, in_a_row) = ((end - at).div_ceil(2), 0);
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        if at > to { Ok(found) } else { Err(ChainFault(format!("more than {CHAIN_LOG_CALLS_MAX} log queries"))) }
    }

    async fn load_receipt(&self, asset: Address, tx: B256) -> Result<Option<Receipt>, ChainFault> {
        let value = self.rpc.call("eth_getTransactionReceipt", json!([tx])).await?;
        read_receipt(&value, &tx, &asset)
    }

    /// The receipt that a log belongs to; None when the transaction failed. Another block than the log's: the chain was reorganised
    /// between two calls.
    async fn load_receipt_of(&self, log: &Log) -> Result<Option<Receipt>, ChainFault> {
        let receipt = self.load_receipt(log.address, log.tx).await?;
        let receipt = receipt.filter(|receipt| receipt.block_hash == log.block_hash);
        let receipt = receipt.ok_or_else(|| ChainFault(format!("the block of {} has changed", log.tx)))?;
        Ok(Some(receipt).filter(|receipt| receipt.succeeded))
    }

    async fn landings(&self, receipt: &Receipt, pairs: Vec<Pair>) -> Result<Vec<Landing>, ChainFault> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let block = self.load_hashed(receipt.block_hash).await?;
        if block.number != receipt.block {
            return Err(ChainFault(format!("block {} of {} has another number", receipt.block_hash, receipt.tx)));
        }
        let landing = |Pair { key, to, value, log_index }| Landing {
            key,
            to,
            value,
            tx: receipt.tx,
            block: receipt.block,
            block_hash: receipt.block_hash,
            time_s: block.time_s,
            log_index,
        };
        Ok(pairs.into_iter().map(landing).collect())
    }

    async fn read_use(&self, key: &AuthorizationKey, log: &Log) -> Result<Option<Use>, ChainFault> {
        let Some(receipt) = self.load_receipt_of(log).await? else { return Ok(None) };
        if log.topics.first() == Some(&CANCELED) {
            return Ok(Some(Use::Cancelled { tx: log.tx, block: log.block, log_index: log.index }));
        }
        let mut pairs = pair(key.asset, &receipt.logs)?;
        pairs.retain(|pair| pair.key == *key);
        let mut landings = self.landings(&receipt, pairs).await?;
        match (landings.pop(), landings.len()) {
            (Some(landing), 0) => Ok(Some(Use::Transferred(landing))),
            _ => Err(ChainFault(format!("{} has not one transfer of the authorization", log.tx))),
        }
    }
}

#[async_trait]
impl Chain for ChainRpc {
    async fn load_head(&self) -> Result<Block, ChainFault> {
        let (number, tip) = self.head_number().await?;
        if number == tip.block.number { Ok(tip.block) } else { self.load_numbered(number).await }
    }

    /// Looks a little earlier than `since_s` too ([`CHAIN_TIME_MARGIN_S`], and to the edge of a log query).
    async fn find_use(&self, key: &AuthorizationKey, since_s: u64) -> Result<Option<Use>, ChainFault> {
        let head = self.load_head().await?;
        let from = self.search_start(head, since_s.saturating_sub(CHAIN_TIME_MARGIN_S)).await?;
        let topics = json!([[USED, CANCELED], topic_of(&key.authorizer), key.nonce]);
        let logs = self.load_logs(key.asset, topics, from, head.number).await?;
        let wanted = |log: &&Log| {
            matches!(log.topics[..], [first, authorizer, nonce]
                if (first == USED || first == CANCELED) && authorizer == topic_of(&key.authorizer) && nonce == key.nonce)
        };
        let mut found = None;
        for log in logs.iter().filter(wanted) {
            let this = self.read_use(key, log).await?;
            if found.is_some() && this.is_some() {
                return Err(ChainFault(format!("nonce {} was used twice", key.nonce)));
            }
            found = found.or(this);
        }
        Ok(found)
    }

    async fn find_permit(&self, key: &PermitKey, since_s: u64) -> Result<Option<Use>, ChainFault> {
        self.search_permit(key, since_s).await
    }

    async fn is_nonce_used(&self, key: &AuthorizationKey) -> Result<bool, ChainFault> {
        let (head, _) = self.head_number().await?;
        let data = authorizationStateCall { authorizer: key.authorizer, nonce: key.nonce }.abi_encode();
        let call = json!({"to": lower(&key.asset), "data": hex::encode_prefixed(data)});
        let answer = self.rpc.call("eth_call", json!([call, quantity(head)])).await?;
        let word = read_bytes(&answer).and_then(|bytes| read_uint(&bytes));
        match word.and_then(|word| u8::try_from(word).ok()) {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(_) | None => Err(ChainFault("the token answers no state of an authorization".to_owned())),
        }
    }

    async fn load_landings(&self, asset: Address, tx: B256) -> Result<Option<Vec<Landing>>, ChainFault> {
        let Some(receipt) = self.load_receipt(asset, tx).await? else { return Ok(None) };
        let (head, _) = self.head_number().await?;
        if receipt.block > head {
            return Ok(None);
        }
        if !receipt.succeeded {
            return Ok(Some(Vec::new()));
        }
        self.landings(&receipt, pair(asset, &receipt.logs)?).await.map(Some)
    }

    /// A range that ends above the head is a fault: a reader that goes on from its end would pass over blocks that do not count yet.
    async fn find_landings(
        &self,
        asset: Address,
        payee: Address,
        from: u64,
        to: u64,
    ) -> Result<Vec<Landing>, ChainFault> {
        let (head, _) = self.head_number().await?;
        if to > head {
            return Err(ChainFault(format!("blocks up to {to} are asked for, and {head} is the newest that counts")));
        }
        let logs = self.load_logs(asset, json!([TRANSFER, Value::Null, topic_of(&payee)]), from, to).await?;
        let wanted =
            |log: &&Log| matches!(log.topics[..], [TRANSFER, _, payee_topic] if payee_topic == topic_of(&payee));
        let (mut landings, mut seen, mut transfers) = (Vec::new(), BTreeSet::new(), 0);
        for log in logs.iter().filter(wanted) {
            transfers += 1;
            if !seen.insert(log.tx) {
                continue;
            }
            let Some(receipt) = self.load_receipt_of(log).await? else { continue };
            let mut pairs = pair(asset, &receipt.logs)?;
            pairs.retain(|pair| pair.to == payee);
            landings.extend(self.landings(&receipt, pairs).await?);
        }
        let plain = transfers - landings.len().min(transfers);
        tracing::debug!(plain, landings = landings.len(), from, to, "transfers without an authorization passed over");
        Ok(landings)
    }
}

#[cfg(test)]
mod tests;
