//! A node that errs, contradicts itself, or is overtaken by a reorganisation: never "nothing", always a fault.

use super::*;

/// The reader over a script whose answers to one method are replaced.
async fn spoiled(
    script: Script,
    method: &'static str,
    spoil: impl Fn(Reply) -> Reply + Send + Sync + 'static,
) -> ChainRpc {
    let node = Node::start(move |called, params| {
        let reply = script.answer(called, params);
        if called == method { spoil(reply) } else { reply }
    })
    .await;
    ChainRpc::with_rpc(node.rpc(), Network::new(84_532), 1)
}

fn edit(reply: Reply, edit: impl Fn(&mut Value)) -> Reply {
    let Reply::Result(mut value) = reply else { panic!("a result") };
    edit(&mut value);
    Reply::Result(value)
}

fn one_payment() -> Script {
    let mut script = Script::with_tip(50);
    paid(&mut script, 40, tx(1), 7);
    script
}

#[tokio::test]
async fn a_failed_transaction_moved_nothing() {
    let script = Script { failed: vec![tx(1)], ..one_payment() };
    let (_node, reader) = script.reader(1).await;
    assert_eq!(reader.load_landings(token(), tx(1)).await, Ok(Some(vec![])));
    assert_eq!(reader.find_use(&key(7), time_s(30)).await, Ok(None));
    assert_eq!(reader.find_landings(token(), payee(), 0, 50).await, Ok(vec![]));
}

#[tokio::test]
async fn logs_that_were_taken_back_never_count() {
    let take_back = |reply| {
        edit(reply, |logs| logs.as_array_mut().expect("logs").iter_mut().for_each(|log| log["removed"] = json!(true)))
    };
    let reader = spoiled(one_payment(), "eth_getLogs", take_back).await;
    assert_eq!(reader.find_use(&key(7), time_s(30)).await, Ok(None));
    assert_eq!(reader.find_landings(token(), payee(), 0, 50).await, Ok(vec![]));
}

#[tokio::test]
async fn a_use_without_its_transfer_is_a_fault() {
    let mut script = Script::with_tip(50);
    used(&mut script, 40, tx(1), payer(), 7);
    moved(&mut script, 40, tx(1), payee(), payer(), 5);
    let (_node, reader) = script.reader(1).await;
    assert!(reader.find_use(&key(7), time_s(30)).await.is_err());
    assert!(reader.load_landings(token(), tx(1)).await.is_err());
    // the transfer came first: it was not allowed by this authorization
    let mut script = Script::with_tip(50);
    moved(&mut script, 40, tx(1), payer(), payee(), 5);
    used(&mut script, 40, tx(1), payer(), 7);
    let (_node, reader) = script.reader(1).await;
    assert!(reader.find_use(&key(7), time_s(30)).await.is_err());
    // whose is the transfer?
    let mut script = Script::with_tip(50);
    used(&mut script, 40, tx(1), payer(), 7);
    used(&mut script, 40, tx(1), payer(), 8);
    moved(&mut script, 40, tx(1), payer(), payee(), 5);
    let (_node, reader) = script.reader(1).await;
    assert!(reader.load_landings(token(), tx(1)).await.is_err());
}

#[tokio::test]
async fn a_reorganisation_between_two_calls_is_a_fault() {
    let gone = spoiled(one_payment(), "eth_getTransactionReceipt", |_| Reply::Result(Value::Null)).await;
    assert!(gone.find_use(&key(7), time_s(30)).await.is_err());
    assert!(gone.find_landings(token(), payee(), 0, 50).await.is_err());
    assert_eq!(gone.load_landings(token(), tx(1)).await, Ok(None));
    let moved_on = |reply| {
        edit(reply, |receipt| {
            receipt["blockHash"] = json!(hash(41));
            receipt["logs"].as_array_mut().expect("logs").iter_mut().for_each(|log| log["blockHash"] = json!(hash(41)));
        })
    };
    let other = spoiled(one_payment(), "eth_getTransactionReceipt", moved_on).await;
    assert!(other.find_use(&key(7), time_s(30)).await.is_err());
    let no_block = spoiled(one_payment(), "eth_getBlockByHash", |_| Reply::Result(Value::Null)).await;
    assert!(no_block.find_use(&key(7), time_s(30)).await.is_err());
}

#[tokio::test]
async fn members_that_are_missing_or_odd_are_faults() {
    for (path, value) in [
        ("/status", json!("0x2")),
        ("/status", json!(null)),
        ("/transactionHash", json!(tx(2))),
        ("/blockNumber", json!("40")),
        ("/blockHash", json!("0x12")),
        ("/logs", json!(null)),
        ("/logs/0/topics/0", json!("0x12")),
        ("/logs/0/topics", json!([USED, topic_of(&payer())])),
        ("/logs/0/topics/1", json!(B256::repeat_byte(0x11))),
        ("/logs/0/blockHash", json!(hash(3))),
        ("/logs/0/removed", json!("no")),
        ("/logs/1/data", json!("0x01")),
        ("/logs/1/data", json!("0xzz")),
        ("/logs/1/data", json!("0x0x")),
        ("/logs/1/logIndex", json!("0x11112222333344445")),
        ("/logs/1/transactionHash", json!(tx(2))),
    ] {
        let shown = format!("{path} {value}");
        let replace = move |reply| edit(reply, |receipt| *receipt.pointer_mut(path).expect("a member") = value.clone());
        let reader = spoiled(one_payment(), "eth_getTransactionReceipt", replace).await;
        let got = reader.load_landings(token(), tx(1)).await;
        assert!(got.is_err(), "{shown}: {got:?}");
    }
    let untold = |reply| edit(reply, |receipt| drop(receipt.as_object_mut().expect("members").remove("status")));
    let reader = spoiled(one_payment(), "eth_getTransactionReceipt", untold).await;
    assert!(reader.load_landings(token(), tx(1)).await.is_err());
}

#[tokio::test]
async fn no_answer_is_never_nothing() {
    for method in ["eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionReceipt", "eth_getBlockByHash"] {
        let error = |_| Reply::Error(json!({"code": -32000, "message": "header not found"}));
        let reader = spoiled(one_payment(), method, error).await;
        assert!(reader.find_use(&key(7), time_s(30)).await.is_err(), "{method} errs");
        let reader = spoiled(one_payment(), method, |_| Reply::Result(Value::Null)).await;
        assert!(reader.find_use(&key(7), time_s(30)).await.is_err(), "{method} null");
        let script = one_payment();
        let node = Node::start(
            move |called, params| {
                if called == method { Reply::Hang } else { script.answer(called, params) }
            },
        )
        .await;
        let reader = ChainRpc::with_rpc(node.rpc_within(Duration::from_secs(1)), Network::new(84_532), 1);
        assert!(reader.find_use(&key(7), time_s(30)).await.is_err(), "{method} hangs");
    }
    for bad in ["0x", "0x01", &format!("{:#066x}", 2), &format!("{:#068x}", 1), "true"] {
        let answer = bad.to_owned();
        let reader = spoiled(one_payment(), "eth_call", move |_| Reply::Result(json!(answer))).await;
        assert!(reader.is_nonce_used(&key(7)).await.is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_node_that_answers_another_question_is_not_believed() {
    // a log from outside the range that was asked for
    let outside = |reply| edit(reply, |logs| logs[0]["blockNumber"] = json!("0x33"));
    let reader = spoiled(one_payment(), "eth_getLogs", outside).await;
    assert!(reader.find_use(&key(7), time_s(30)).await.is_err());
    // all logs of all contracts, unfiltered
    let mut script = one_payment();
    paid(&mut script, 41, tx(2), 8);
    log(&mut script, 42, tx(3), Address::repeat_byte(9), &[USED, topic_of(&payer()), nonce(7)], "0x");
    let all = json!(script.logs);
    let reader = spoiled(script, "eth_getLogs", move |_| Reply::Result(all.clone())).await;
    let found = reader.find_use(&key(7), time_s(30)).await;
    assert!(matches!(&found, Ok(Some(Use::Transferred(landing))) if landing.tx == tx(1)), "{found:?}");
    assert_eq!(reader.find_landings(token(), payee(), 0, 50).await.map(|found| found.len()), Ok(2));
    // another block than the one asked for
    let other = spoiled(Script::with_tip(9_000), "eth_getBlockByNumber", |_| Reply::Result(block(9_000))).await;
    assert!(other.find_use(&key(7), time_s(30)).await.is_err());
    let mut twice = one_payment();
    paid(&mut twice, 41, tx(2), 7);
    let (_node, reader) = twice.reader(1).await;
    assert!(reader.find_use(&key(7), time_s(30)).await.is_err(), "one nonce, two uses");
}
