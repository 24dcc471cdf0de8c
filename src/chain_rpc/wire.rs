//! What a node answers, as values: quantities, blocks, logs and receipts (Ethereum JSON-RPC execution API).
//!
//! A member that is missing or malformed is a fault and never a default: from a wrong number follows a wrong verdict about money.

use alloy_primitives::hex;
use serde_json::Value;

use crate::evm::{Address, B256, U256, parse_address, parse_word};
use crate::paywall::port::chain::{Block, ChainFault};

/// A block, by what is needed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) block: Block,
    pub(super) hash: B256,
    /// None: a chain without EIP-1559.
    pub(super) base_fee_wei: Option<u128>,
}

/// A log of a mined transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) address: Address,
    pub(super) topics: Vec<B256>,
    pub(super) data: Vec<u8>,
    pub(super) tx: B256,
    pub(super) block: u64,
    pub(super) block_hash: B256,
    /// In the block.
    pub(super) index: u64,
}

/// The receipt of a mined transaction, with the logs of one contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) tx: B256,
    pub(super) block: u64,
    pub(super) block_hash: B256,
    /// EIP-658 status: false when the transaction failed.
    pub(super) succeeded: bool,
    pub(super) logs: Vec<Log>,
}

/// Reads a quantity of at most 64 bits.
pub(super) fn read_quantity(value: &Value) -> Option<u64> {
    u64::from_str_radix(hex_digits(value, 16)?, 16).ok()
}

/// Reads a quantity of at most 128 bits.
pub(super) fn read_wei(value: &Value) -> Option<u128> {
    u128::from_str_radix(hex_digits(value, 32)?, 16).ok()
}

/// Reads bytes.
pub(super) fn read_bytes(value: &Value) -> Option<Vec<u8>> {
    let digits = value.as_str()?.strip_prefix("0x")?;
    // the decoder would take a second prefix
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| hex::decode(digits).ok())?
}

/// Writes a quantity.
pub(super) fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

/// An address as a topic.
pub(super) fn topic_of(address: &Address) -> B256 {
    address.into_word()
}

/// The address in a topic; None when other bits are set.
pub(super) fn address_in(topic: &B256) -> Option<Address> {
    let address = Address::from_word(*topic);
    (address.into_word() == *topic).then_some(address)
}

/// Reads a block.
pub(super) fn read_header(value: &Value) -> Result<Header, ChainFault> {
    let of = Members { what: "block", value };
    let base_fee_wei = value.get("baseFeePerGas").map(|_| of.read("baseFeePerGas", read_wei)).transpose()?;
    let block = Block { number: of.read("number", read_quantity)?, time_s: of.read("timestamp", read_quantity)? };
    Ok(Header { block, hash: of.read("hash", read_hash)?, base_fee_wei })
}

/// Reads a list of logs; those of other contracts and those that a reorganisation took back are left out.
pub(super) fn read_logs(value: &Value, contract: &Address) -> Result<Vec<Log>, ChainFault> {
    let entries = value.as_array().ok_or_else(|| ChainFault("the node gives no list of logs".to_owned()))?;
    let mut logs = Vec::new();
    for value in entries {
        let of = Members { what: "log", value };
        let removed = match value.get("removed") {
            None => false,
            Some(_) => of.read("removed", Value::as_bool)?,
        };
        if removed || of.read("address", read_address)? != *contract {
            continue;
        }
        logs.push(Log {
            address: *contract,
            topics: of.read("topics", |topics| topics.as_array()?.iter().map(read_hash).collect())?,
            data: of.read("data", read_bytes)?,
            tx: of.read("transactionHash", read_hash)?,
            block: of.read("blockNumber", read_quantity)?,
            block_hash: of.read("blockHash", read_hash)?,
            index: of.read("logIndex", read_quantity)?,
        });
    }
    Ok(logs)
}

/// Reads a receipt with the logs of one contract; None for `null`.
pub(super) fn read_receipt(value: &Value, tx: &B256, contract: &Address) -> Result<Option<Receipt>, ChainFault> {
    if value.is_null() {
        return Ok(None);
    }
    let of = Members { what: "receipt", value };
    let receipt = Receipt {
        tx: of.read("transactionHash", read_hash)?,
        block: of.read("blockNumber", read_quantity)?,
        block_hash: of.read("blockHash", read_hash)?,
        succeeded: of.read("status", |status| read_quantity(status).filter(|status| *status <= 1))? == 1,
        logs: read_logs(of.member("logs")?, contract)?,
    };
    if receipt.tx != *tx {
        return Err(ChainFault(format!("the receipt of another transaction than {tx}")));
    }
    let strange = |log: &Log| log.tx != *tx || log.block != receipt.block || log.block_hash != receipt.block_hash;
    if receipt.logs.iter().any(strange) {
        return Err(ChainFault(format!("a log of another transaction in the receipt of {tx}")));
    }
    Ok(Some(receipt))
}

/// Reads a value that one word holds.
pub(super) fn read_uint(word: &[u8]) -> Option<U256> {
    <[u8; 32]>::try_from(word).ok().map(U256::from_be_bytes)
}

/// Reads 32 bytes.
pub(super) fn read_hash(value: &Value) -> Option<B256> {
    parse_word(value.as_str()?).ok()
}

fn read_address(value: &Value) -> Option<Address> {
    parse_address(value.as_str()?).ok()
}

fn hex_digits(value: &Value, digits_max: usize) -> Option<&str> {
    let digits = value.as_str()?.strip_prefix("0x")?;
    let plain = (1..=digits_max).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then_some(digits)
}

struct Members<'a> {
    what: &'static str,
    value: &'a Value,
}

impl<'a> Members<'a> {
    fn member(&self, key: &str) -> Result<&'a Value, ChainFault> {
        self.value.get(key).ok_or_else(|| ChainFault(format!("the node's {} has no {key}", self.what)))
    }

    fn read<T>(&self, key: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<T, ChainFault> {
        let unusable = || ChainFault(format!("the node's {} has no usable {key}", self.what));
        read(self.member(key)?).ok_or_else(unusable)
    }
}
