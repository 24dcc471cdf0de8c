//! The treasury: signs refunds as EIP-3009 authorizations and broadcasts them from its own account.
//!
//! The token refuses a second payout under one nonce, so that a broadcast may be repeated. What it must not do: judge whether a refund
//! is owed, or take a hash for a proof.

use std::sync::Arc;

use alloy_primitives::hex;
use alloy_sol_types::{SolCall, sol};
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Mutex;

use super::rpc::{BadNodeUrl, NodeError, Rpc, RpcFault};
use super::transaction::{Signed, Transaction};
use super::wire::{read_bytes, read_hash, read_header, read_quantity, read_uint, read_wei};
use crate::evm::{self, Address, B256, SecretKey, Signature, TokenDomain, TransferAuthorization, U256, lower};
use crate::limits::{CHAIN_CALL_BUDGET, CHAIN_FEE_PER_GAS_WEI_MAX, CHAIN_GAS_MAX, CHAIN_SEND_ATTEMPTS_MAX};
use crate::paywall::port::chain::{ChainFault, Treasury};

sol! {
    function transferWithAuthorization(
        address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce,
        uint8 v, bytes32 r, bytes32 s
    ) external;

    function balanceOf(address owner) external view returns (uint256);
}

/// The account that pays refunds, and the node that it sends through.
#[derive(Debug)]
pub struct TreasuryRpc {
    rpc: Arc<Rpc>,
    key: SecretKey,
    domain: TokenDomain,
    // two broadcasts at a time would be given the same count of the account
    sending: Mutex<()>,
}

/// What a treasury has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balances {
    /// Atomic units of the token: what refunds are paid from.
    pub token: U256,
    /// Wei: what their gas is paid from.
    pub gas_wei: u128,
}

/// How sending ended.
enum Sent {
    /// The node has it, now or since before.
    Taken(B256),
    /// The account's count was taken meanwhile.
    NonceTaken(NodeError),
}

impl TreasuryRpc {
    /// The treasury of `key` for the token of `domain`, through the node at `url`. No call is made.
    pub fn new(url: &str, key: SecretKey, domain: TokenDomain) -> Result<Self, BadNodeUrl> {
        Ok(Self::with_rpc(Arc::new(Rpc::new(url, CHAIN_CALL_BUDGET)?), key, domain))
    }

    /// The same over a client that others use too.
    pub fn with_rpc(rpc: Arc<Rpc>, key: SecretKey, domain: TokenDomain) -> Self {
        Self { rpc, key, domain, sending: Mutex::new(()) }
    }

    /// What the account has at this moment.
    pub async fn load_balances(&self) -> Result<Balances, ChainFault> {
        let own = self.key.address();
        let data = hex::encode_prefixed(balanceOfCall { owner: own }.abi_encode());
        let call = json!([{"to": lower(&self.domain.contract), "data": data}, "latest"]);
        let token = self.rpc.call("eth_call", call).await?;
        let token = read_bytes(&token).and_then(|bytes| read_uint(&bytes));
        let gas = self.rpc.call("eth_getBalance", json!([lower(&own), "latest"])).await?;
        Ok(Balances {
            token: token.ok_or_else(|| unusable("balance of the token"))?,
            gas_wei: read_wei(&gas).ok_or_else(|| unusable("balance"))?,
        })
    }

    fn check_own(&self, authorization: &TransferAuthorization, signature: &[u8; 65]) -> Result<Signature, ChainFault> {
        let digest = evm::digest(authorization, &self.domain);
        let own = self.key.address();
        let checked = Signature::from_bytes(signature).and_then(|sig| sig.verify(&digest, &own).map(|()| sig));
        if authorization.from != own {
            return Err(ChainFault(format!("{} is not the treasury", authorization.from)));
        }
        checked.map_err(|error| ChainFault(format!("the treasury did not sign this: {error}")))
    }

    async fn make(&self, data: &[u8]) -> Result<Transaction, ChainFault> {
        let gas = self.estimate(data).await?;
        let (tip_wei, fee_wei_max) = self.load_fees().await?;
        let count = self.rpc.call("eth_getTransactionCount", json!([lower(&self.key.address()), "pending"])).await?;
        let nonce = read_quantity(&count).ok_or_else(|| unusable("count of transactions"))?;
        let chain_id = self.domain.chain_id;
        Ok(Transaction { chain_id, nonce, tip_wei, fee_wei_max, gas, to: self.domain.contract, data: data.to_vec() })
    }

    /// Gas with a fifth on top. A call that would revert fails here, before it costs anything; transactions that wait count already.
    async fn estimate(&self, data: &[u8]) -> Result<u64, ChainFault> {
        let call = json!({
            "from": lower(&self.key.address()), "to": lower(&self.domain.contract), "data": hex::encode_prefixed(data),
        });
        let answer = self.rpc.call("eth_estimateGas", json!([call, "pending"])).await?;
        let estimate = read_quantity(&answer).ok_or_else(|| unusable("estimate of gas"))?;
        let gas = estimate.saturating_add(estimate / 5);
        if gas > CHAIN_GAS_MAX {
            return Err(ChainFault(format!("{gas} gas for a refund, more than {CHAIN_GAS_MAX}")));
        }
        Ok(gas)
    }

    /// The tip, and twice the base fee with the tip on top: good for about six full blocks in a row (EIP-1559 raises by an eighth).
    async fn load_fees(&self) -> Result<(u128, u128), ChainFault> {
        let block = self.rpc.call("eth_getBlockByNumber", json!(["latest", false])).await?;
        let none = || ChainFault("the chain has no base fee (EIP-1559)".to_owned());
        let base = read_header(&block)?.base_fee_wei.ok_or_else(none)?;
        let tip = match self.rpc.call("eth_maxPriorityFeePerGas", json!([])).await {
            Ok(tip) => read_wei(&tip).ok_or_else(|| unusable("tip"))?,
            // not every node has that method; the gas price holds base fee and tip
            Err(RpcFault::Node(_)) => {
                let price = self.rpc.call("eth_gasPrice", json!([])).await?;
                read_wei(&price).ok_or_else(|| unusable("gas price"))?.saturating_sub(base)
            }
            Err(fault) => return Err(fault.into()),
        };
        let most = base.saturating_mul(2).saturating_add(tip);
        if most > CHAIN_FEE_PER_GAS_WEI_MAX {
            return Err(ChainFault(format!("{most} wei per gas, more than {CHAIN_FEE_PER_GAS_WEI_MAX}")));
        }
        Ok((tip, most))
    }

    async fn send(&self, signed: &Signed) -> Result<Sent, ChainFault> {
        let raw = hex::encode_prefixed(&signed.raw);
        match self.rpc.call("eth_sendRawTransaction", json!([raw])).await {
            Ok(hash) if read_hash(&hash) == Some(signed.hash) => Ok(Sent::Taken(signed.hash)),
            Ok(_) => Err(ChainFault(format!("the node gives another hash for {}", signed.hash))),
            Err(RpcFault::Node(error)) if is_known(&error.message) => Ok(Sent::Taken(signed.hash)),
            Err(RpcFault::Node(error)) if is_nonce_taken(&error.message) => Ok(Sent::NonceTaken(error)),
            Err(fault) => Err(fault.into()),
        }
    }
}

#[async_trait]
impl Treasury for TreasuryRpc {
    fn address(&self) -> Address {
        self.key.address()
    }

    fn sign(&self, authorization: &TransferAuthorization) -> [u8; 65] {
        self.key.sign(&evm::digest(authorization, &self.domain)).to_bytes()
    }

    async fn broadcast(&self, authorization: &TransferAuthorization, signature: &[u8; 65]) -> Result<B256, ChainFault> {
        let signature = self.check_own(authorization, signature)?;
        let data = calldata(authorization, signature);
        let _one_at_a_time = self.sending.lock().await;
        let mut taken = None;
        for _ in 0..CHAIN_SEND_ATTEMPTS_MAX {
            let transaction = self.make(&data).await?;
            match self.send(&transaction.sign(&self.key)).await? {
                Sent::Taken(tx) => {
                    tracing::info!(%tx, nonce = transaction.nonce, "refund broadcast");
                    return Ok(tx);
                }
                Sent::NonceTaken(error) => taken = Some(error),
            }
        }
        Err(ChainFault(taken.map_or_else(String::new, |error| error.to_string())))
    }
}

fn calldata(authorization: &TransferAuthorization, signature: Signature) -> Vec<u8> {
    let bytes = signature.to_bytes();
    transferWithAuthorizationCall {
        from: authorization.from,
        to: authorization.to,
        value: authorization.value,
        validAfter: authorization.valid_after,
        validBefore: authorization.valid_before,
        nonce: authorization.nonce,
        v: bytes[64],
        r: B256::from_slice(&bytes[..32]),
        s: B256::from_slice(&bytes[32..64]),
    }
    .abi_encode()
}

fn unusable(what: &str) -> ChainFault {
    ChainFault(format!("the node gives no usable {what}"))
}

/// Geth, Erigon; Nethermind; Besu; Anvil.
fn is_known(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["already known", "alreadyknown", "known transaction", "already imported"].iter().any(|text| message.contains(text))
}

/// Geth, Reth, Erigon, Besu, Anvil; Nethermind.
fn is_nonce_taken(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("nonce too low") || message.contains("oldnonce")
}

#[cfg(test)]
mod tests;
