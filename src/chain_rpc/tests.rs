//! The reader against a scripted node: what it asks, and what it makes of the answers.

mod faulty;
pub(in crate::chain_rpc) mod node;
mod permits;

use std::time::Duration;

use alloy_primitives::keccak256;

use super::*;
use crate::evm::{U256, parse_address};
use node::{Node, Reply};

const FIRST_S: u64 = 1_700_000_000;
const BLOCK_S: u64 = 2;

/// A chain whose node answers as real ones do: filters, ranges, `null` for what it does not know.
#[derive(Clone, Default)]
struct Script {
    tip: u64,
    logs: Vec<Value>,
    failed: Vec<B256>,
    /// Blocks of one query above which the node refuses, and results above which it does.
    span_max: Option<u64>,
    results_max: Option<usize>,
    used: bool,
}

fn token() -> Address {
    parse_address("0x036CbD53842c5426634e7929541eC2318f3dCF7e").expect("an address")
}

fn payer() -> Address {
    Address::repeat_byte(0x11)
}

fn payee() -> Address {
    Address::repeat_byte(0x22)
}

fn nonce(n: u8) -> B256 {
    B256::repeat_byte(n)
}

fn key(n: u8) -> AuthorizationKey {
    AuthorizationKey { asset: token(), authorizer: payer(), nonce: nonce(n) }
}

fn tx(n: u64) -> B256 {
    keccak256(format!("transaction {n}"))
}

fn hash(block: u64) -> B256 {
    B256::from(U256::from(block) | (U256::from(0xb1) << 248))
}

fn time_s(block: u64) -> u64 {
    FIRST_S + BLOCK_S * block
}

/// A log at the next index of its block.
fn log(script: &mut Script, block: u64, tx: B256, address: Address, topics: &[B256], data: &str) {
    let index = script.logs.iter().filter(|log| log["blockNumber"] == quantity(block)).count();
    script.logs.push(json!({
        "address": lower(&address), "topics": topics, "data": data, "blockNumber": quantity(block), "transactionHash": tx,
        "transactionIndex": "0x0", "blockHash": hash(block), "logIndex": format!("{index:#x}"), "removed": false,
    }));
}

fn used(script: &mut Script, block: u64, tx: B256, authorizer: Address, n: u8) {
    log(script, block, tx, token(), &[USED, topic_of(&authorizer), nonce(n)], "0x");
}

fn moved(script: &mut Script, block: u64, tx: B256, from: Address, to: Address, value: u64) {
    let data = format!("{:#066x}", value);
    log(script, block, tx, token(), &[TRANSFER, topic_of(&from), topic_of(&to)], &data);
}

/// A paid authorization: 50,000 from the payer to the payee.
fn paid(script: &mut Script, block: u64, tx: B256, n: u8) {
    used(script, block, tx, payer(), n);
    moved(script, block, tx, payer(), payee(), 50_000);
}

fn number(value: &Value) -> u64 {
    read_quantity_text(value.as_str().expect("a quantity"))
}

fn read_quantity_text(text: &str) -> u64 {
    u64::from_str_radix(&text[2..], 16).expect("hex")
}

impl Script {
    fn with_tip(tip: u64) -> Self {
        Self { tip, ..Self::default() }
    }

    async fn reader(self, confirmations: u64) -> (Node, ChainRpc) {
        let node = Node::start(move |method, params| self.answer(method, params)).await;
        let reader = ChainRpc::with_rpc(node.rpc(), Network::new(84_532), confirmations);
        (node, reader)
    }

    fn answer(&self, method: &str, params: &Value) -> Reply {
        let first = &params[0];
        Reply::Result(match method {
            "eth_getBlockByNumber" if first == "latest" => block(self.tip),
            "eth_getBlockByNumber" if number(first) <= self.tip => block(number(first)),
            "eth_getBlockByHash" => block(number(&json!(format!("0x{}", &first.as_str().expect("a hash")[50..])))),
            "eth_getTransactionReceipt" => self.receipt(first),
            "eth_getLogs" => return self.find(first),
            "eth_call" => json!(format!("{:#066x}", u8::from(self.used))),
            _ => Value::Null,
        })
    }

    fn receipt(&self, tx: &Value) -> Value {
        let logs: Vec<&Value> = self.logs.iter().filter(|log| log["transactionHash"] == *tx).collect();
        let Some(first) = logs.first() else { return Value::Null };
        let status = if self.failed.iter().any(|failed| json!(failed) == *tx) { "0x0" } else { "0x1" };
        json!({
            "transactionHash": tx, "blockNumber": first["blockNumber"], "blockHash": first["blockHash"], "status": status,
            "logs": logs, "gasUsed": "0x5208", "type": "0x2",
        })
    }

    fn find(&self, filter: &Value) -> Reply {
        let (from, to) = (number(&filter["fromBlock"]), number(&filter["toBlock"]));
        let refused = |message: &str| Reply::Error(json!({"code": -32005, "message": message}));
        if self.span_max.is_some_and(|most| to - from + 1 > most) {
            return refused("block range too large");
        }
        let wanted = |log: &&Value| {
            (from..=to).contains(&number(&log["blockNumber"]))
                && log["address"] == filter["address"]
                && filter["topics"].as_array().expect("topics").iter().enumerate().all(|(at, want)| match want {
                    Value::Null => true,
                    Value::Array(any) => any.contains(&log["topics"][at]),
                    one => *one == log["topics"][at],
                })
        };
        let found: Vec<&Value> = self.logs.iter().filter(wanted).collect();
        if self.results_max.is_some_and(|most| found.len() > most) {
            return refused("query returned more than 10000 results");
        }
        Reply::Result(json!(found))
    }
}

fn block(n: u64) -> Value {
    json!({
        "number": quantity(n), "hash": hash(n), "timestamp": quantity(time_s(n)), "baseFeePerGas": "0x7",
        "transactions": [], "withdrawals": [{"index": "0x0"}],
    })
}

fn ranges(node: &Node) -> Vec<(u64, u64)> {
    let asked = node.asked("eth_getLogs");
    asked.iter().map(|params| (number(&params[0]["fromBlock"]), number(&params[0]["toBlock"]))).collect()
}

#[tokio::test]
async fn the_head_is_as_many_blocks_below_the_tip_as_asked() {
    for (confirmations, want) in [(0, 9), (1, 9), (2, 8), (10, 0), (11, 0), (u64::MAX, 0)] {
        let (_node, reader) = Script::with_tip(9).reader(confirmations).await;
        let head = reader.load_head().await.expect("a head");
        assert_eq!(head, Block { number: want, time_s: time_s(want) }, "{confirmations}");
    }
}

#[tokio::test]
async fn a_use_is_found_with_who_paid_what_to_whom() {
    let mut script = Script::with_tip(50);
    paid(&mut script, 40, tx(1), 7);
    let (node, reader) = script.reader(1).await;
    let want = Landing {
        key: key(7),
        to: payee(),
        value: U256::from(50_000),
        tx: tx(1),
        block: 40,
        block_hash: hash(40),
        time_s: time_s(40),
        log_index: 1,
    };
    assert_eq!(reader.find_use(&key(7), time_s(30)).await, Ok(Some(Use::Transferred(want.clone()))));
    let asked = node.asked("eth_getLogs");
    let topics = json!([[USED, CANCELED], topic_of(&payer()), nonce(7)]);
    assert_eq!((&asked[0][0]["topics"], &asked[0][0]["address"]), (&topics, &json!(lower(&token()))));
    assert_eq!(reader.find_use(&key(8), time_s(30)).await, Ok(None), "another nonce");
    let other = AuthorizationKey { authorizer: payee(), ..key(7) };
    assert_eq!(reader.find_use(&other, time_s(30)).await, Ok(None), "another payer");
    assert_eq!(reader.load_landings(token(), tx(1)).await, Ok(Some(vec![want])));
    assert_eq!(node.asked("eth_getBlockByHash").len(), 1, "a block is loaded once");
}

#[tokio::test]
async fn what_is_above_the_head_does_not_count_yet() {
    let mut script = Script::with_tip(50);
    paid(&mut script, 50, tx(1), 7);
    let (_node, reader) = script.reader(2).await;
    assert_eq!(reader.find_use(&key(7), time_s(30)).await, Ok(None));
    assert_eq!(reader.load_landings(token(), tx(1)).await, Ok(None));
    assert!(reader.find_landings(token(), payee(), 0, 50).await.is_err(), "a cursor would pass over block 50");
    assert_eq!(reader.find_landings(token(), payee(), 0, 49).await, Ok(vec![]));
    assert_eq!(reader.load_landings(token(), tx(99)).await, Ok(None), "unknown");
}

#[tokio::test]
async fn a_cancellation_is_told_from_a_payment() {
    let mut script = Script::with_tip(50);
    log(&mut script, 41, tx(3), token(), &[CANCELED, topic_of(&payer()), nonce(7)], "0x");
    let (_node, reader) = script.reader(1).await;
    let want = Use::Cancelled { tx: tx(3), block: 41, log_index: 0 };
    assert_eq!(reader.find_use(&key(7), time_s(30)).await, Ok(Some(want)));
    assert_eq!(reader.load_landings(token(), tx(3)).await, Ok(Some(vec![])));
}

#[tokio::test]
async fn two_payments_in_one_transaction_stay_apart() {
    let mut script = Script::with_tip(50);
    let stranger = Address::repeat_byte(0x33);
    moved(&mut script, 40, tx(1), payer(), stranger, 1);
    used(&mut script, 40, tx(1), payer(), 7);
    // between them the token moves somebody else's money, and a system contract mirrors the transfer at 18 decimals
    moved(&mut script, 40, tx(1), stranger, payee(), 2);
    let mirror = format!("{:#066x}", 50_000_000_000_000_000_u64);
    let system = Address::repeat_byte(0xfe);
    log(&mut script, 40, tx(1), system, &[TRANSFER, topic_of(&payer()), topic_of(&payee())], &mirror);
    moved(&mut script, 40, tx(1), payer(), payee(), 50_000);
    used(&mut script, 40, tx(1), payer(), 8);
    moved(&mut script, 40, tx(1), payer(), stranger, 60_000);
    used(&mut script, 40, tx(1), stranger, 7);
    moved(&mut script, 40, tx(1), stranger, payee(), 70_000);
    let (_node, reader) = script.reader(1).await;
    let landings = reader.load_landings(token(), tx(1)).await.expect("an answer").expect("mined");
    let shown = |landings: &[Landing]| -> Vec<(Address, B256, Address, U256, u64)> {
        let one = |l: &Landing| (l.key.authorizer, l.key.nonce, l.to, l.value, l.log_index);
        landings.iter().map(one).collect()
    };
    let first = (payer(), nonce(7), payee(), U256::from(50_000), 4);
    let second = (payer(), nonce(8), stranger, U256::from(60_000), 6);
    let third = (stranger, nonce(7), payee(), U256::from(70_000), 8);
    assert_eq!(shown(&landings), [first, second, third]);
    let Ok(Some(Use::Transferred(found))) = reader.find_use(&key(8), time_s(30)).await else { panic!("not found") };
    assert_eq!(shown(&[found]), [second]);
    let found = reader.find_landings(token(), payee(), 0, 50).await.expect("an answer");
    assert_eq!(shown(&found), [first, third]);
    assert_eq!(reader.load_landings(system, tx(1)).await, Ok(Some(vec![])), "a mirror alone is no payment");
}

#[tokio::test]
async fn landings_are_found_by_payee_and_range() {
    let mut script = Script::with_tip(5_000);
    paid(&mut script, 100, tx(1), 1);
    moved(&mut script, 200, tx(2), payer(), payee(), 9);
    paid(&mut script, 2_100, tx(3), 2);
    paid(&mut script, 4_100, tx(4), 3);
    let (node, reader) = script.reader(1).await;
    let found = reader.find_landings(token(), payee(), 100, 4_099).await.expect("an answer");
    let shown: Vec<(u64, B256)> = found.iter().map(|landing| (landing.block, landing.key.nonce)).collect();
    assert_eq!(shown, [(100, nonce(1)), (2_100, nonce(2))], "the plain transfer is passed over");
    assert_eq!(ranges(&node), [(100, 2_099), (2_100, 4_099)]);
    assert_eq!(reader.find_landings(token(), payer(), 0, 5_000).await, Ok(vec![]));
    assert_eq!(reader.find_landings(token(), payee(), 10, 9).await, Ok(vec![]));
}

#[tokio::test]
async fn the_search_begins_near_its_time_and_asks_in_chunks() {
    let mut script = Script::with_tip(10_000);
    paid(&mut script, 3_000, tx(1), 7);
    let (node, reader) = script.reader(1).await;
    assert!(matches!(reader.find_use(&key(7), time_s(3_000)).await, Ok(Some(Use::Transferred(_)))));
    let asked = ranges(&node);
    let margin = CHAIN_TIME_MARGIN_S / BLOCK_S;
    assert!(asked[0].0 <= 3_000 - margin && asked[0].0 + CHAIN_LOG_BLOCKS > 3_000 - margin, "{asked:?}");
    assert!(asked.iter().all(|(from, to)| to - from < CHAIN_LOG_BLOCKS), "{asked:?}");
    assert!(asked.windows(2).all(|pair| pair[1].0 == pair[0].1 + 1), "no gap and no block twice: {asked:?}");
    assert_eq!(asked.last().map(|(_, to)| *to), Some(10_000));
}

/// Calls of one look-up on a chain of 10,000 blocks, by the age of the payment; printed with `--nocapture`.
#[tokio::test]
async fn a_look_up_takes_few_calls() {
    for (at, want_first, want_again) in [(9_900, 5, 4), (9_000, 5, 4), (8_500, 5, 4), (3_000, 11, 7), (5, 13, 12)] {
        let mut script = Script::with_tip(10_000);
        paid(&mut script, at, tx(1), 7);
        let (node, reader) = script.reader(1).await;
        for (turn, want) in [("first", want_first), ("again", want_again)] {
            let before = node.call_count();
            assert!(matches!(reader.find_use(&key(7), time_s(at)).await, Ok(Some(Use::Transferred(_)))), "{at}");
            let calls = node.call_count() - before;
            #[expect(clippy::print_stderr, reason = "a measurement")]
            {
                eprintln!("payment in block {at}, {turn}: {calls} calls");
            }
            assert!(calls <= want, "payment in block {at}, {turn}: {calls} calls");
        }
    }
}

#[tokio::test]
async fn no_block_since_the_time_is_left_out() {
    // a use in the very first block that counts, wherever that is
    for tip in [1_u64, 2, 300, 1_999, 2_000, 2_001, 4_500] {
        for at in [1, tip / 3, tip / 2, tip.saturating_sub(151), tip - 1, tip] {
            let mut script = Script::with_tip(tip);
            paid(&mut script, at, tx(1), 7);
            let (_node, reader) = script.reader(1).await;
            for since_s in [0, time_s(at), time_s(at) + CHAIN_TIME_MARGIN_S, time_s(tip / 2).min(time_s(at))] {
                let found = reader.find_use(&key(7), since_s).await;
                assert!(matches!(found, Ok(Some(_))), "tip {tip}, block {at}, since {since_s}: {found:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_devnet_that_began_anew_hides_nothing() {
    let anew = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut later = Script::with_tip(4_000);
    paid(&mut later, 10, tx(1), 7);
    let (switch, first) = (Arc::clone(&anew), Script::with_tip(9_000));
    let node = Node::start(move |method, params| {
        if !switch.load(std::sync::atomic::Ordering::SeqCst) {
            return first.answer(method, params);
        }
        // the same heights, twenty thousand seconds later
        match later.answer(method, params) {
            Reply::Result(mut block) if block.get("timestamp").is_some() => {
                block["timestamp"] = json!(quantity(number(&block["timestamp"]) + 20_000));
                Reply::Result(block)
            }
            reply => reply,
        }
    })
    .await;
    let reader = ChainRpc::with_rpc(node.rpc(), Network::new(84_532), 1);
    assert_eq!(reader.find_use(&key(7), time_s(5_000)).await, Ok(None));
    anew.store(true, std::sync::atomic::Ordering::SeqCst);
    let found = reader.find_use(&key(7), time_s(5_000)).await;
    assert!(matches!(found, Ok(Some(Use::Transferred(_)))), "{found:?}");
}

#[tokio::test]
async fn the_state_of_a_nonce_is_read_at_the_head() {
    for used in [false, true] {
        let script = Script { used, ..Script::with_tip(50) };
        let (node, reader) = script.reader(3).await;
        assert_eq!(reader.is_nonce_used(&key(7)).await, Ok(used));
        let asked = node.asked("eth_call");
        assert_eq!(asked[0][1], "0x30");
        let data = format!("0xe94a0102{}{}", hex::encode(topic_of(&payer())), hex::encode(nonce(7)));
        assert_eq!(asked[0][0], json!({"to": lower(&token()), "data": data}));
    }
}

#[tokio::test]
async fn a_node_that_bounds_queries_is_asked_for_less() {
    let mut script = Script::with_tip(3_000);
    (1..=9).for_each(|n| paid(&mut script, 1_000 + u64::from(n), tx(n.into()), n));
    let by_span = Script { span_max: Some(600), ..script.clone() };
    let by_results = Script { results_max: Some(4), ..script };
    for script in [by_span, by_results] {
        let (node, reader) = script.reader(1).await;
        let found = reader.find_landings(token(), payee(), 0, 3_000).await.expect("an answer");
        let nonces: Vec<B256> = found.iter().map(|landing| landing.key.nonce).collect();
        assert_eq!(nonces, (1..=9).map(nonce).collect::<Vec<_>>());
        assert!(node.asked("eth_getLogs").len() < 60, "{:?}", ranges(&node));
    }
    let none = Script { results_max: Some(0), ..Script::with_tip(9) };
    let (node, reader) = Script { span_max: Some(0), ..none }.reader(1).await;
    assert!(reader.find_landings(token(), payee(), 0, 9).await.is_err(), "a block alone is refused too");
    assert!(node.asked("eth_getLogs").len() < 10);
}

#[tokio::test]
async fn a_scan_has_an_end() {
    let (node, reader) = Script { span_max: Some(1), ..Script::with_tip(5_000) }.reader(1).await;
    let rpc = Arc::new(Rpc::new(&node.url, Duration::from_secs(10)).expect("a URL"));
    let reader = ChainRpc { rpc, ..reader };
    assert!(reader.find_landings(token(), payee(), 0, 5_000).await.is_err());
    assert_eq!(node.asked("eth_getLogs").len(), usize::try_from(CHAIN_LOG_CALLS_MAX).expect("a small bound"));
}
