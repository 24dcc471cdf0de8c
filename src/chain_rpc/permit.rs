//! Which transfer a permit moved: a `Transfer` from its owner to its payee, in a transaction whose calldata calls an x402 proxy with that
//! permit (Permit2 signature transfers; the proxies of coinbase/x402).
//!
//! A bit of Permit2's bitmap is a hint only: `invalidateUnorderedNonces` sets bits and moves nothing. Proxies write no event that names
//! a nonce, so the call itself is read: as the transaction's own, or within another one, as batches and wallets send it.

use alloy_primitives::hex;
use alloy_sol_types::{SolCall, SolEvent, sol};
use serde_json::json;

use super::evidence::{TRANSFER, USED, transfer};
use super::wire::{Log, address_in, quantity, read_bytes, read_uint, topic_of};
use super::{ChainRpc, Pair};
use crate::evm::{Address, B256, PERMIT2, U256, UPTO_PROXY, lower};
use crate::limits::CHAIN_TIME_MARGIN_S;
use crate::paywall::port::chain::{AuthorizationKey, Chain, ChainFault, PermitKey, Use};

sol! {
    event UnorderedNonceInvalidation(address indexed owner, uint256 word, uint256 mask);
    function nonceBitmap(address owner, uint256 word) external view returns (uint256);

    struct Permitted { address token; uint256 amount; }
    struct Permit { Permitted permitted; uint256 nonce; uint256 deadline; }
    struct Sponsored { uint256 value; uint256 deadline; bytes32 r; bytes32 s; uint8 v; }

    struct ExactWitness { address to; uint256 validAfter; }
    interface Exact {
        function settle(Permit permit, address owner, ExactWitness witness, bytes signature) external;
        function settleWithPermit(Sponsored sponsored, Permit permit, address owner, ExactWitness witness, bytes signature) external;
    }

    struct UptoWitness { address to; address facilitator; uint256 validAfter; }
    interface Upto {
        function settle(Permit permit, uint256 amount, address owner, UptoWitness witness, bytes signature) external;
        function settleWithPermit(Sponsored sponsored, Permit permit, uint256 amount, address owner, UptoWitness witness, bytes signature) external;
    }
}

/// Bytes of a word of calldata.
const WORD: usize = 32;

/// One call of a proxy, by what its calldata says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Called {
    token: Address,
    nonce: U256,
    owner: Address,
    to: Address,
    amount: U256,
}

impl ChainRpc {
    /// Which of these contracts have no code on the chain.
    pub async fn find_missing(&self, contracts: &[Address]) -> Result<Vec<Address>, ChainFault> {
        let mut missing = Vec::new();
        for contract in contracts {
            let code = self.rpc.call("eth_getCode", json!([lower(contract), "latest"])).await?;
            let code = read_bytes(&code).ok_or_else(|| ChainFault("the node answers no code".to_owned()))?;
            missing.extend(code.is_empty().then_some(*contract));
        }
        Ok(missing)
    }

    /// The transfer of a permit, or its invalidation, in the blocks from a time to the head.
    pub(super) async fn search_permit(&self, key: &PermitKey, since_s: u64) -> Result<Option<Use>, ChainFault> {
        let head = self.load_head().await?;
        let from = self.search_start(head, since_s.saturating_sub(CHAIN_TIME_MARGIN_S)).await?;
        let (owner, payee) = (topic_of(&key.owner), topic_of(&key.payee));
        let logs = self.load_logs(key.asset, json!([TRANSFER, owner, payee]), from, head.number).await?;
        let wanted = |log: &&Log| matches!(log.topics[..], [TRANSFER, a, b] if a == owner && b == payee);
        let (mut found, mut unread, mut seen) = (None, None, Vec::new());
        for log in logs.iter().filter(wanted) {
            if seen.contains(&log.tx) {
                continue;
            }
            seen.push(log.tx);
            match self.read_permit_transfer(key, log).await? {
                Reading::Ours(this) if found.is_none() => found = Some(*this),
                Reading::Ours(_) => return Err(ChainFault(format!("permit {} was used twice", key.nonce))),
                Reading::Unclear => unread = Some(log.tx),
                Reading::Another => {}
            }
        }
        if found.is_some() || !self.is_bit_set(key, head.number).await? {
            return Ok(found);
        }
        // a bit can be set again after it was used: the owner's word counts only where no transfer is left unexplained
        match unread {
            Some(tx) => Err(ChainFault(format!(
                "{tx} moved money that the permit may have allowed, and its call cannot be read"
            ))),
            None => self.search_invalidation(key, from, head.number).await,
        }
    }

    /// What one transaction with a transfer from the owner to the payee says about the permit.
    async fn read_permit_transfer(&self, key: &PermitKey, log: &Log) -> Result<Reading, ChainFault> {
        let Some(receipt) = self.load_receipt_of(log).await? else { return Ok(Reading::Another) };
        let calls = proxy_calls(&self.load_input(log.tx).await?, key.proxy);
        let of_pair = |call: &&Called| call.owner == key.owner && call.to == key.payee && call.token == key.asset;
        let calls: Vec<&Called> = calls.iter().filter(of_pair).collect();
        let mut moved = Vec::new();
        for log in receipt.logs.iter().filter(|log| log.topics.first() == Some(&TRANSFER)) {
            let (from, to, value) = transfer(log)?;
            if (from, to) == (key.owner, key.payee) {
                moved.push((value, log.index));
            }
        }
        moved.sort_by_key(|(_, index)| *index);
        let Some(at) = calls.iter().position(|call| call.nonce == key.nonce) else {
            // another authorization of the token itself, or a call of another permit, explains it
            let explained = !calls.is_empty() || receipt.logs.iter().any(|log| log.topics.first() == Some(&USED));
            // of a cap any part may have been moved
            let fits = |value: &U256| *value == key.value || key.proxy == UPTO_PROXY;
            let may_be = !explained && moved.iter().any(|(value, _)| fits(value));
            return Ok(if may_be { Reading::Unclear } else { Reading::Another });
        };
        // of several calls in one transaction each has its transfer, in their order; a call that failed inside has none
        let (value, log_index) = match (moved.as_slice(), calls.len()) {
            (all, count) if all.len() == count => all[at],
            _ => return Ok(Reading::Unclear),
        };
        if value != calls[at].amount {
            return Ok(Reading::Unclear);
        }
        let authorization = AuthorizationKey { asset: key.asset, authorizer: key.owner, nonce: B256::from(key.nonce) };
        let pair = Pair { key: authorization, to: key.payee, value, log_index };
        let landing = self.landings(&receipt, vec![pair]).await?.pop();
        Ok(landing.map_or(Reading::Another, |landing| Reading::Ours(Box::new(Use::Transferred(landing)))))
    }

    async fn load_input(&self, tx: B256) -> Result<Input, ChainFault> {
        let value = self.rpc.call("eth_getTransactionByHash", json!([tx])).await?;
        let unusable = || ChainFault(format!("the node has no usable transaction {tx}"));
        let named = value.get("hash").and_then(|hash| hash.as_str()).and_then(|hash| hash.parse::<B256>().ok());
        let to = value.get("to").and_then(|to| to.as_str()).and_then(|to| to.parse().ok());
        let data = value.get("input").and_then(read_bytes).filter(|_| named == Some(tx)).ok_or_else(unusable)?;
        Ok(Input { to, data })
    }

    async fn is_bit_set(&self, key: &PermitKey, head: u64) -> Result<bool, ChainFault> {
        let (word, bit) = place(key.nonce);
        let data = nonceBitmapCall { owner: key.owner, word }.abi_encode();
        let call = json!({"to": lower(&PERMIT2), "data": hex::encode_prefixed(data)});
        let answer = self.rpc.call("eth_call", json!([call, quantity(head)])).await?;
        let bits = read_bytes(&answer).and_then(|bytes| read_uint(&bytes));
        bits.map(|bits| bits.bit(bit)).ok_or_else(|| ChainFault("Permit2 answers no bitmap".to_owned()))
    }

    /// The owner's own word that his permit is void.
    async fn search_invalidation(&self, key: &PermitKey, from: u64, to: u64) -> Result<Option<Use>, ChainFault> {
        let (word, bit) = place(key.nonce);
        let topics = json!([UnorderedNonceInvalidation::SIGNATURE_HASH, topic_of(&key.owner)]);
        for log in self.load_logs(PERMIT2, topics, from, to).await? {
            let [signature, owner] = log.topics[..] else { continue };
            if signature != UnorderedNonceInvalidation::SIGNATURE_HASH || owner != topic_of(&key.owner) {
                continue;
            }
            let of = |range: std::ops::Range<usize>| log.data.get(range).and_then(read_uint);
            let (Some(logged), Some(mask)) = (of(0..WORD), of(WORD..2 * WORD)) else {
                return Err(ChainFault(format!("log {} of {} is none of Permit2", log.index, log.tx)));
            };
            if logged == word && mask.bit(bit) {
                return Ok(Some(Use::Cancelled { tx: log.tx, block: log.block, log_index: log.index }));
            }
        }
        Ok(None)
    }
}

/// What a transfer from the owner to the payee is.
enum Reading {
    /// That of the permit.
    Ours(Box<Use>),
    /// Of something else.
    Another,
    /// It could be that of the permit.
    Unclear,
}

/// To whom a transaction goes, and with what.
struct Input {
    to: Option<Address>,
    data: Vec<u8>,
}

/// Word and bit of a nonce in its owner's bitmap.
fn place(nonce: U256) -> (U256, usize) {
    (nonce >> 8, usize::from(nonce.to_be_bytes::<WORD>()[WORD - 1]))
}

/// The calls of a proxy in a transaction, in their order: its own call, or those within it where the proxy is named before them.
fn proxy_calls(input: &Input, proxy: Address) -> Vec<Called> {
    if input.to == Some(proxy) {
        return read_call(&input.data, proxy).into_iter().collect();
    }
    let is_named = |before: &[u8]| before.windows(proxy.len()).any(|part| part == proxy.as_slice());
    let at = (0..input.data.len()).filter(|at| is_selector(&input.data[*at..], proxy));
    at.filter(|at| is_named(&input.data[..*at])).filter_map(|at| read_call(&input.data[at..], proxy)).collect()
}

fn selectors(proxy: Address) -> [[u8; 4]; 2] {
    match proxy == UPTO_PROXY {
        true => [Upto::settleCall::SELECTOR, Upto::settleWithPermitCall::SELECTOR],
        false => [Exact::settleCall::SELECTOR, Exact::settleWithPermitCall::SELECTOR],
    }
}

fn is_selector(data: &[u8], proxy: Address) -> bool {
    selectors(proxy).iter().any(|selector| data.starts_with(selector))
}

/// What a call of the proxy says. Its members are static, so that they stand at known places; what follows is not looked at.
fn read_call(data: &[u8], proxy: Address) -> Option<Called> {
    let (selector, words) = data.split_at_checked(4)?;
    let [plain, sponsored] = selectors(proxy);
    // value, deadline, r, s and v of the approval stand before the permit
    let skip = match selector {
        s if s == plain => 0,
        s if s == sponsored => 5,
        _ => return None,
    };
    let word = |at: usize| words.get((skip + at) * WORD..(skip + at + 1) * WORD);
    let number = |at| word(at).and_then(read_uint);
    let address = |at| address_in(&B256::from_slice(word(at)?));
    // an upto call names what it moves between the permit and the owner
    let (amount, owner) = if proxy == UPTO_PROXY { (number(4)?, 5) } else { (number(1)?, 4) };
    Some(Called { token: address(0)?, nonce: number(2)?, owner: address(owner)?, to: address(owner + 1)?, amount })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evm::EXACT_PROXY;
    use alloy_primitives::Bytes;

    fn permit(nonce: u64) -> Permit {
        let permitted = Permitted { token: Address::repeat_byte(0xa5), amount: U256::from(50_000) };
        Permit { permitted, nonce: U256::from(nonce), deadline: U256::from(9) }
    }

    fn exact(nonce: u64) -> Vec<u8> {
        let witness = ExactWitness { to: Address::repeat_byte(2), validAfter: U256::ZERO };
        let owner = Address::repeat_byte(1);
        Exact::settleCall { permit: permit(nonce), owner, witness, signature: Bytes::from(vec![7; 65]) }.abi_encode()
    }

    fn called(nonce: u64, amount: u64) -> Called {
        Called {
            token: Address::repeat_byte(0xa5),
            nonce: U256::from(nonce),
            owner: Address::repeat_byte(1),
            to: Address::repeat_byte(2),
            amount: U256::from(amount),
        }
    }

    #[test]
    fn a_call_is_read_as_the_compiler_lays_it_out() {
        let owner = Address::repeat_byte(1);
        let witness =
            UptoWitness { to: Address::repeat_byte(2), facilitator: Address::repeat_byte(3), validAfter: U256::ZERO };
        let sponsored = Sponsored { value: U256::ZERO, deadline: U256::ZERO, r: B256::ZERO, s: B256::ZERO, v: 27 };
        let (amount, signature) = (U256::from(42), Bytes::from(vec![7; 65]));
        let upto = Upto::settleWithPermitCall { sponsored, permit: permit(8), amount, owner, witness, signature };
        assert_eq!(read_call(&exact(7), EXACT_PROXY), Some(called(7, 50_000)));
        assert_eq!(read_call(&upto.abi_encode(), UPTO_PROXY), Some(called(8, 42)));
        assert_eq!(read_call(&exact(7), UPTO_PROXY), None);
        assert_eq!(read_call(&exact(7)[..100], EXACT_PROXY), None);
        assert_eq!(read_call(&[], EXACT_PROXY), None);
    }

    #[test]
    fn calls_within_another_are_found_in_their_order_and_only_of_the_named_proxy() {
        let data = [&[1, 2, 3][..], EXACT_PROXY.as_slice(), &exact(7), &[0; 5], &exact(8)].concat();
        let input = Input { to: Some(Address::repeat_byte(9)), data };
        assert_eq!(proxy_calls(&input, EXACT_PROXY), [called(7, 50_000), called(8, 50_000)]);
        let nobody = Input { to: Some(Address::repeat_byte(9)), data: exact(7) };
        assert_eq!(proxy_calls(&nobody, EXACT_PROXY), []);
        let direct = Input { to: Some(EXACT_PROXY), data: exact(7) };
        assert_eq!(proxy_calls(&direct, EXACT_PROXY), [called(7, 50_000)]);
    }

    #[test]
    fn a_nonce_has_its_place_in_the_bitmap() {
        assert_eq!(place(U256::from(0x1ff)), (U256::ONE, 255));
        assert_eq!(place(U256::MAX), (U256::MAX >> 8, 255));
    }
}
