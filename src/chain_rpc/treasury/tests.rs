use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alloy_primitives::keccak256;
use serde_json::Value;

use super::*;
use crate::chain_rpc::tests::node::{Node, Reply};
use crate::evm::{U256, parse_address};

/// A public test key of the devnet; never funded on a real chain.
const TEST_KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

fn key() -> SecretKey {
    SecretKey::from_hex(TEST_KEY).expect("a test key")
}

fn domain() -> TokenDomain {
    let contract = parse_address("0x036CbD53842c5426634e7929541eC2318f3dCF7e").expect("an address");
    TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id: 84_532, contract }
}

fn refund() -> TransferAuthorization {
    TransferAuthorization {
        from: key().address(),
        to: Address::repeat_byte(0x22),
        value: U256::from(50_000),
        valid_after: U256::ZERO,
        valid_before: U256::from(1_800_000_000_u64),
        nonce: B256::repeat_byte(7),
    }
}

/// A healthy node: count 127, tip 1,000,000 wei, base fee 1,249,500,000 wei, 100,000 gas.
fn healthy(method: &str, params: &Value) -> Reply {
    Reply::Result(match method {
        "eth_estimateGas" => json!("0x186a0"),
        "eth_getTransactionCount" => json!("0x7f"),
        "eth_maxPriorityFeePerGas" => json!("0xf4240"),
        "eth_getBlockByNumber" => json!({
            "number": "0x1", "hash": B256::repeat_byte(1), "timestamp": "0x1",
            "baseFeePerGas": format!("{:#x}", 1_249_500_000),
        }),
        "eth_sendRawTransaction" => {
            json!(keccak256(hex::decode(params[0].as_str().expect("hex")).expect("hex")))
        }
        _ => Value::Null,
    })
}

async fn treasury(script: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> (Node, TreasuryRpc) {
    let node = Node::start(script).await;
    let treasury = TreasuryRpc::with_rpc(node.rpc(), key(), domain());
    (node, treasury)
}

async fn broadcast(treasury: &TreasuryRpc) -> Result<B256, ChainFault> {
    treasury.broadcast(&refund(), &treasury.sign(&refund())).await
}

/// Signed by eth-account 0.13 with the same key and fields.
#[test]
fn transactions_are_those_of_another_implementation() {
    let token = domain().contract;
    let base =
        Transaction { chain_id: 84_532, nonce: 0, tip_wei: 0, fee_wei_max: 1, gas: 21_000, to: token, data: vec![] };
    let signed = base.sign(&key());
    assert_eq!(
        hex::encode(&signed.raw),
        "02f86583014a3480800182520894036cbd53842c5426634e7929541ec2318f3dcf7e8080c001\
         a0d8a663d3e8d0bc5ac13ddd9ee8e555acc82ca358ef11b1520299a69f4d30e214\
         a004ec1829546bd0c05c3d106511dae66d52b6a5b0658dffabdf522f6fb4fe2450"
    );
    assert_eq!(hex::encode(signed.hash), "f08597ad010d2518412eefd3c16ce27bc2716ce26ba5f43adbb13bbd1f1813ca");
    let data = [hex::decode("e3ee160e").expect("hex"), vec![0; 288]].concat();
    let call = Transaction { nonce: 127, tip_wei: 1_000_000, fee_wei_max: 2_500_000_000, gas: 128_000, data, ..base };
    let hash = "6e974c4421aae4c9d74eb452dbce18f0d2d50c0c4312fb4148f65cf4509bf756";
    assert_eq!(hex::encode(call.sign(&key()).hash), hash);
    let wide = Transaction {
        chain_id: 31_337,
        nonce: 300,
        tip_wei: 1 << 70,
        fee_wei_max: 1 << 80,
        gas: 128,
        to: Address::repeat_byte(0x11),
        data: vec![0x7f],
    };
    let hash = "c0061a17f6c0e3c9e26de956e1e007fe327302b75ffaa4e3067588bb102919a9";
    assert_eq!(hex::encode(wide.sign(&key()).hash), hash);
}

#[tokio::test]
async fn a_refund_is_wrapped_with_the_accounts_count_and_fees() {
    let (node, treasury) = treasury(healthy).await;
    let sent = broadcast(&treasury).await.expect("sent");
    let signature = Signature::from_bytes(&treasury.sign(&refund())).expect("a signature");
    assert_eq!(signature.recover(&evm::digest(&refund(), &domain())), Ok(treasury.address()));
    let data = calldata(&refund(), signature);
    let want = Transaction {
        chain_id: 84_532,
        nonce: 127,
        tip_wei: 1_000_000,
        fee_wei_max: 2 * 1_249_500_000 + 1_000_000,
        gas: 120_000,
        to: domain().contract,
        data: data.clone(),
    };
    let want = want.sign(&key());
    assert_eq!(
        (sent, node.asked("eth_sendRawTransaction")),
        (want.hash, vec![json!([hex::encode_prefixed(&want.raw)])])
    );
    let call = json!({
        "from": lower(&treasury.address()), "to": lower(&domain().contract), "data": hex::encode_prefixed(&data),
    });
    assert_eq!(node.asked("eth_estimateGas"), [json!([call, "pending"])]);
    assert_eq!(node.asked("eth_getTransactionCount"), [json!([lower(&treasury.address()), "pending"])]);
    // the selector, then nine words; v, r, s at the end
    let bytes = signature.to_bytes();
    assert_eq!((data.len(), &data[..4], data[4 + 7 * 32 - 1]), (4 + 9 * 32, &[0xe3, 0xee, 0x16, 0x0e][..], bytes[64]));
    assert_eq!(data[4 + 7 * 32..], bytes[..64]);
}

#[tokio::test]
async fn a_node_without_a_tip_is_asked_for_its_gas_price() {
    let (node, treasury) = treasury(|method, params| match method {
        "eth_maxPriorityFeePerGas" => Reply::Error(json!({"code": -32601, "message": "method not found"})),
        "eth_gasPrice" => Reply::Result(json!(format!("{:#x}", 1_249_500_000_u64 + 77))),
        _ => healthy(method, params),
    })
    .await;
    broadcast(&treasury).await.expect("sent");
    let raw = node.asked("eth_sendRawTransaction")[0][0].as_str().expect("hex").to_owned();
    // chain id, count 127, tip 77
    assert!(raw.contains("83014a347f4d"), "{raw}");
}

#[tokio::test]
async fn a_revert_is_told_before_anything_is_sent() {
    let text = "FiatTokenV2: authorization is used or canceled";
    let length = text.len();
    let data = format!("0x08c379a0{:064x}{length:064x}{:0<128}", 32, hex::encode(text));
    let (node, treasury) = treasury(move |method, params| match method {
        "eth_estimateGas" => Reply::Error(json!({"code": 3, "message": "execution reverted", "data": data})),
        _ => healthy(method, params),
    })
    .await;
    let fault = broadcast(&treasury).await.expect_err("a revert");
    assert_eq!(fault.0, format!("the node answers 3: reverted: {text}"));
    assert_eq!(node.asked("eth_sendRawTransaction"), Vec::<Value>::new());
}

#[tokio::test]
async fn what_a_node_has_already_is_sent() {
    for message in ["already known", "AlreadyKnown", "Known transaction", "transaction already imported"] {
        let (node, treasury) = treasury(move |method, params| match method {
            "eth_sendRawTransaction" => Reply::Error(json!({"code": -32000, "message": message})),
            _ => healthy(method, params),
        })
        .await;
        let sent = broadcast(&treasury).await.expect(message);
        let raw = node.asked("eth_sendRawTransaction")[0][0].clone();
        assert_eq!(sent, keccak256(hex::decode(raw.as_str().expect("hex")).expect("hex")));
    }
}

#[tokio::test]
async fn a_count_that_was_taken_is_asked_for_once_more() {
    let count = AtomicU64::new(5);
    let taken_until = |last: u64| {
        let count = AtomicU64::new(count.load(Ordering::SeqCst));
        move |method: &str, params: &Value| match method {
            "eth_getTransactionCount" => Reply::Result(json!(format!("{:#x}", count.fetch_add(1, Ordering::SeqCst)))),
            "eth_sendRawTransaction" if count.load(Ordering::SeqCst) <= last => {
                Reply::Error(json!({"code": -32000, "message": "nonce too low: next nonce 6, tx nonce 5"}))
            }
            _ => healthy(method, params),
        }
    };
    let (node, once) = treasury(taken_until(6)).await;
    broadcast(&once).await.expect("sent with the next count");
    assert_eq!(node.asked("eth_sendRawTransaction").len(), 2);
    assert_eq!(node.asked("eth_estimateGas").len(), 2, "the first one may have been mined meanwhile");
    let (node, always) = treasury(taken_until(u64::MAX)).await;
    let fault = broadcast(&always).await.expect_err("no count is free");
    assert!(fault.0.contains("nonce too low"), "{fault}");
    assert_eq!(node.asked("eth_sendRawTransaction").len(), 2);
}

#[tokio::test]
async fn two_broadcasts_do_not_share_a_count() {
    let count = Arc::new(AtomicU64::new(1));
    let (node, treasury) = treasury(move |method, params| match method {
        "eth_getTransactionCount" => Reply::Result(json!(format!("{:#x}", count.load(Ordering::SeqCst)))),
        "eth_sendRawTransaction" => {
            count.fetch_add(1, Ordering::SeqCst);
            healthy(method, params)
        }
        _ => healthy(method, params),
    })
    .await;
    let all = futures_util::future::join_all((0..5).map(|_| broadcast(&treasury))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    let mut raw: Vec<String> = node.asked("eth_sendRawTransaction").iter().map(Value::to_string).collect();
    raw.sort();
    raw.dedup();
    assert_eq!(raw.len(), 5, "five transactions, five counts");
}

#[tokio::test]
async fn what_the_treasury_did_not_sign_is_not_sent() {
    let (node, treasury) = treasury(healthy).await;
    let signature = treasury.sign(&refund());
    let dearer = TransferAuthorization { value: U256::from(50_001), ..refund() };
    assert!(treasury.broadcast(&dearer, &signature).await.is_err());
    let other = TransferAuthorization { from: Address::repeat_byte(1), ..refund() };
    assert!(treasury.broadcast(&other, &treasury.sign(&other)).await.is_err());
    assert!(treasury.broadcast(&refund(), &[0; 65]).await.is_err());
    assert_eq!(node.call_count(), 0);
}

#[tokio::test]
async fn fees_and_gas_are_bounded_whatever_the_node_says() {
    type Script = fn(&str, &Value) -> Reply;
    let scripts: [(&str, Script); 8] = [
        ("eth_estimateGas", |_, _| Reply::Result(json!("0xf4240"))),
        ("eth_estimateGas", |_, _| Reply::Result(json!("0xffffffffffffffff"))),
        ("eth_estimateGas", |_, _| Reply::Result(Value::Null)),
        ("eth_maxPriorityFeePerGas", |_, _| Reply::Result(json!("0xe8d4a51001"))),
        ("eth_maxPriorityFeePerGas", |_, _| Reply::Result(json!("0xffffffffffffffffffffffffffffffff"))),
        ("eth_getTransactionCount", |_, _| Reply::Result(json!(5))),
        ("eth_getBlockByNumber", |_, _| {
            Reply::Result(json!({"number": "0x1", "hash": B256::repeat_byte(1), "timestamp": "0x1"}))
        }),
        ("eth_getBlockByNumber", |_, _| Reply::Result(Value::Null)),
    ];
    for (spoiled, script) in scripts {
        let (node, treasury) =
            treasury(
                move |method, params| {
                    if method == spoiled { script(method, params) } else { healthy(method, params) }
                },
            )
            .await;
        assert!(broadcast(&treasury).await.is_err(), "{spoiled}");
        assert!(node.asked("eth_sendRawTransaction").is_empty(), "{spoiled}");
    }
}

#[tokio::test]
async fn a_send_without_a_good_answer_is_a_fault() {
    type Script = fn() -> Reply;
    let scripts: [(&str, Script); 4] = [
        ("refused", || Reply::Error(json!({"code": -32000, "message": "insufficient funds for gas * price + value"}))),
        ("another hash", || Reply::Result(json!(B256::repeat_byte(9)))),
        ("null", || Reply::Result(Value::Null)),
        ("lost", || Reply::Hang),
    ];
    for (name, script) in scripts {
        let (node, treasury) = treasury(move |method, params| match method {
            "eth_sendRawTransaction" => script(),
            _ => healthy(method, params),
        })
        .await;
        let treasury = TreasuryRpc { rpc: node.rpc_within(Duration::from_secs(1)), ..treasury };
        assert!(broadcast(&treasury).await.is_err(), "{name}");
        assert_eq!(node.asked("eth_sendRawTransaction").len(), 1, "{name}: nothing is sent twice");
    }
}
