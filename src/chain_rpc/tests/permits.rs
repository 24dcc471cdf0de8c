//! What became of a permit, against the scripted node: a payment is never taken for a void permit, nor a void one for a payment.

use alloy_primitives::Bytes;
use alloy_sol_types::{SolCall, SolEvent};

use super::*;
use crate::chain_rpc::permit::{Exact, ExactWitness, Permit, Permitted, UnorderedNonceInvalidation};
use crate::evm::{EXACT_PROXY, PERMIT2, UPTO_PROXY};
use crate::paywall::port::chain::PermitKey;

/// Bit of the permit that is asked about.
const NONCE: u64 = 7;

fn permit(proxy: Address) -> PermitKey {
    let value = U256::from(50_000);
    PermitKey { asset: token(), owner: payer(), nonce: U256::from(NONCE), payee: payee(), value, proxy }
}

/// The call of the exact proxy that settles a permit for 50,000.
fn call(nonce: u64) -> Vec<u8> {
    let permitted = Permitted { token: token(), amount: U256::from(50_000) };
    let permit = Permit { permitted, nonce: U256::from(nonce), deadline: U256::from(u64::MAX) };
    let witness = ExactWitness { to: payee(), validAfter: U256::ZERO };
    Exact::settleCall { permit, owner: payer(), witness, signature: Bytes::from(vec![7; 65]) }.abi_encode()
}

/// The owner's own word that the permit is void.
fn invalidated(script: &mut Script, block: u64, tx: B256) {
    let data = format!("0x{}{}", hex::encode([0; 32]), hex::encode((U256::ONE << NONCE).to_be_bytes::<32>()));
    let topics = [UnorderedNonceInvalidation::SIGNATURE_HASH, topic_of(&payer())];
    log(script, block, tx, PERMIT2, &topics, &data);
}

/// What a reader finds where every transaction goes to `to` with that input.
async fn found(
    script: Script,
    is_set: bool,
    to: Address,
    input: Vec<u8>,
    proxy: Address,
) -> Result<Option<Use>, ChainFault> {
    let bitmap = if is_set { U256::ONE << NONCE } else { U256::ZERO };
    let node = Node::start(move |method, params| match method {
        "eth_getTransactionByHash" => {
            Reply::Result(json!({"hash": params[0], "to": lower(&to), "input": hex::encode_prefixed(&input)}))
        }
        "eth_call" => Reply::Result(json!(format!("{bitmap:#066x}"))),
        _ => script.answer(method, params),
    });
    let reader = ChainRpc::with_rpc(node.await.rpc(), Network::new(84_532), 1);
    reader.find_permit(&permit(proxy), time_s(30)).await
}

fn with_transfer(value: u64) -> Script {
    let mut script = Script::with_tip(50);
    moved(&mut script, 40, tx(1), payer(), payee(), value);
    script
}

#[tokio::test]
async fn a_transfer_by_the_permits_own_call_is_a_payment_whatever_is_said_after_it() {
    let mut script = with_transfer(50_000);
    invalidated(&mut script, 45, tx(2));
    let paid = found(script.clone(), true, EXACT_PROXY, call(NONCE), EXACT_PROXY).await;
    assert!(matches!(&paid, Ok(Some(Use::Transferred(landing))) if landing.tx == tx(1)), "{paid:?}");
    let other = found(script, true, EXACT_PROXY, call(NONCE + 1), EXACT_PROXY).await;
    assert_eq!(other, Ok(Some(Use::Cancelled { tx: tx(2), block: 45, log_index: 0 })), "another permit's transfer");
}

#[tokio::test]
async fn a_transfer_that_cannot_be_explained_leaves_the_permit_open_even_when_its_owner_calls_it_void() {
    let mut script = with_transfer(50_000);
    invalidated(&mut script, 45, tx(2));
    let wallet = Address::repeat_byte(0x99);
    let open = found(script.clone(), true, wallet, vec![1, 2, 3], EXACT_PROXY).await;
    assert!(open.is_err(), "{open:?}");
    let unused = found(script, false, wallet, vec![1, 2, 3], EXACT_PROXY).await;
    assert_eq!(unused, Ok(None), "a bit that is not set was used by nobody");
}

#[tokio::test]
async fn of_a_cap_any_part_may_have_been_moved() {
    let wallet = Address::repeat_byte(0x99);
    let part = found(with_transfer(20_000), true, wallet, Vec::new(), UPTO_PROXY).await;
    assert!(part.is_err(), "{part:?}");
    let exact = found(with_transfer(20_000), true, wallet, Vec::new(), EXACT_PROXY).await;
    assert_eq!(exact, Ok(None), "exact moves the price or nothing");
}

#[tokio::test]
async fn a_bit_alone_says_nothing_and_its_owners_word_ends_it() {
    let nothing = found(Script::with_tip(50), true, EXACT_PROXY, Vec::new(), EXACT_PROXY).await;
    assert_eq!(nothing, Ok(None));
    let mut script = Script::with_tip(50);
    invalidated(&mut script, 45, tx(2));
    let void = found(script, true, EXACT_PROXY, Vec::new(), EXACT_PROXY).await;
    assert_eq!(void, Ok(Some(Use::Cancelled { tx: tx(2), block: 45, log_index: 0 })));
}
