//! Which money moved under which authorization: `AuthorizationUsed` and `Transfer` of one transaction, paired (EIP-3009).
//!
//! A token of EIP-3009 writes the use and then the transfer that it allows. The pair is the proof; one without the other is none.

use std::collections::HashMap;

use alloy_sol_types::{SolEvent, sol};

use super::wire::{Log, address_in, read_uint};
use crate::evm::{Address, B256, U256};
use crate::paywall::port::chain::{AuthorizationKey, ChainFault};

sol! {
    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);
}

/// First topic of a transfer.
pub(super) const TRANSFER: B256 = Transfer::SIGNATURE_HASH;

/// First topic of the use of an authorization.
pub(super) const USED: B256 = AuthorizationUsed::SIGNATURE_HASH;

/// First topic of a cancellation.
pub(super) const CANCELED: B256 = AuthorizationCanceled::SIGNATURE_HASH;

/// A transfer and the authorization that allowed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) key: AuthorizationKey,
    pub(super) to: Address,
    pub(super) value: U256,
    /// Of the transfer.
    pub(super) log_index: u64,
}

/// Pairs each use with the payer's next transfer. The logs are those of one token in one transaction, in any order.
pub(super) fn pair(asset: Address, logs: &[Log]) -> Result<Vec<Pair>, ChainFault> {
    let mut logs: Vec<&Log> = logs.iter().filter(|log| log.address == asset).collect();
    logs.sort_by_key(|log| log.index);
    let mut open: HashMap<Address, B256> = HashMap::new();
    let mut pairs = Vec::new();
    for log in logs {
        match log.topics.first() {
            Some(&USED) => {
                let [_, authorizer, nonce] = log.topics[..] else { return Err(malformed(log)) };
                let authorizer = address_in(&authorizer).ok_or_else(|| malformed(log))?;
                if open.insert(authorizer, nonce).is_some() {
                    return Err(unpaired(log, authorizer));
                }
            }
            Some(&TRANSFER) => {
                let (from, to, value) = transfer(log)?;
                if let Some(nonce) = open.remove(&from) {
                    let key = AuthorizationKey { asset, authorizer: from, nonce };
                    pairs.push(Pair { key, to, value, log_index: log.index });
                }
            }
            _ => {}
        }
    }
    match open.into_keys().next() {
        Some(authorizer) => Err(ChainFault(format!("an authorization of {authorizer} was used and moved nothing"))),
        None => Ok(pairs),
    }
}

pub(super) fn transfer(log: &Log) -> Result<(Address, Address, U256), ChainFault> {
    let [_, from, to] = log.topics[..] else { return Err(malformed(log)) };
    let parts = address_in(&from).zip(address_in(&to)).zip(read_uint(&log.data));
    parts.map(|((from, to), value)| (from, to, value)).ok_or_else(|| malformed(log))
}

fn malformed(log: &Log) -> ChainFault {
    ChainFault(format!("log {} of {} is none of an EIP-3009 token", log.index, log.tx))
}

fn unpaired(log: &Log, authorizer: Address) -> ChainFault {
    ChainFault(format!("two authorizations of {authorizer} before a transfer in {}", log.tx))
}
