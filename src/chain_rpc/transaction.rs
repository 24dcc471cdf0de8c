//! One transaction of an account: type 2 (EIP-1559 in the envelope of EIP-2718), signed. No access list, no value.

use alloy_primitives::keccak256;

use super::rlp::List;
use crate::evm::{Address, B256, SecretKey};

/// First byte of the envelope (EIP-1559).
const TYPE: u8 = 2;

/// A call of a contract that is to be paid and signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transaction {
    pub(super) chain_id: u64,
    /// The account's count.
    pub(super) nonce: u64,
    pub(super) tip_wei: u128,
    /// Tip included.
    pub(super) fee_wei_max: u128,
    pub(super) gas: u64,
    pub(super) to: Address,
    pub(super) data: Vec<u8>,
}

/// The bytes that are broadcast, and their name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) raw: Vec<u8>,
    pub(super) hash: B256,
}

impl Transaction {
    /// Signs it with the key of the account.
    pub(super) fn sign(&self, key: &SecretKey) -> Signed {
        let signature = key.sign(&keccak256(envelope(self.fields()))).to_bytes();
        let parity = signature[64] - 27;
        let fields = self.fields().integer(&[parity]).integer(&signature[..32]).integer(&signature[32..64]);
        let raw = envelope(fields);
        Signed { hash: keccak256(&raw), raw }
    }

    fn fields(&self) -> List {
        List::default()
            .integer(&self.chain_id.to_be_bytes())
            .integer(&self.nonce.to_be_bytes())
            .integer(&self.tip_wei.to_be_bytes())
            .integer(&self.fee_wei_max.to_be_bytes())
            .integer(&self.gas.to_be_bytes())
            .bytes(self.to.as_slice())
            .integer(&[])
            .bytes(&self.data)
            .list(List::default())
    }
}

fn envelope(fields: List) -> Vec<u8> {
    let mut raw = vec![TYPE];
    raw.extend(fields.encode());
    raw
}
