use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect};
use futures_util::stream;
use tokio::time::Instant;

use super::*;
use crate::chain_rpc::tests::node::{Node, Reply};

async fn call(script: impl Fn() -> Reply + Send + Sync + 'static) -> Result<Value, RpcFault> {
    let node = Node::start(move |_, _| script()).await;
    node.rpc_within(Duration::from_secs(1)).call("eth_x", json!([])).await
}

async fn body(text: &'static str) -> Result<Value, RpcFault> {
    call(move || Reply::Body(text.to_owned())).await
}

#[tokio::test]
async fn a_result_is_given_and_null_is_one() {
    assert_eq!(body(r#"{"jsonrpc":"2.0","id":$ID,"result":"0x1"}"#).await, Ok(json!("0x1")));
    assert_eq!(body(r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#).await, Ok(Value::Null));
    assert_eq!(body(r#"{"jsonrpc":"2.0","id":$ID,"error":null,"result":false}"#).await, Ok(json!(false)));
    assert!(
        matches!(body(r#"{"jsonrpc":"2.0","id":$ID}"#).await, Err(RpcFault::NoAnswer(why)) if why.contains("neither"))
    );
}

#[tokio::test]
async fn ids_rise_and_belong_to_their_calls() {
    let node = Node::start(|_, _| Reply::Body(r#"{"jsonrpc":"2.0","id":$ID,"result":$ID}"#.to_owned())).await;
    let rpc = node.rpc();
    for want in 1..=3 {
        assert_eq!(rpc.call("eth_x", json!([])).await, Ok(json!(want)));
    }
    assert_eq!(rpc.calls_made(), 3);
}

#[tokio::test]
async fn answers_that_are_none_are_faults() {
    for (text, why) in [
        (r#"{"jsonrpc":"2.0","id":7,"result":"0x1"}"#, "another call"),
        (r#"{"jsonrpc":"2.0","id":"1","result":"0x1"}"#, "another call"),
        (r#"{"jsonrpc":"2.0","id":null,"result":"0x1"}"#, "another call"),
        (r#"{"jsonrpc":"2.0","result":"0x1"}"#, "another call"),
        (r#"{"jsonrpc":"1.0","id":$ID,"result":"0x1"}"#, "not JSON-RPC 2.0"),
        (r#"{"id":$ID,"result":"0x1"}"#, "not JSON-RPC 2.0"),
        (r#"[{"jsonrpc":"2.0","id":$ID,"result":"0x1"}]"#, "not one answer"),
        (r#"{"jsonrpc":"2.0","id":$ID,"result":"0x1","result":"0x2"}"#, "twice"),
        (r#"{"jsonrpc":"2.0","id":$ID,"result":[{"a":1,"a":2}]}"#, "twice"),
        (r#"{"jsonrpc":"2.0","id":$ID,"result":"0x1","error":{"code":1,"message":"x"}}"#, "an error with a result"),
        (r#"{"jsonrpc":"2.0","id":$ID,"result":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}"#, "too deep"),
        (r#"{"jsonrpc":"2.0","id":$ID,"result":"0x1"} {}"#, "not JSON"),
        (r#"{"jsonrpc":"2.0","id":$ID,"result""#, "not JSON"),
        ("", "not JSON"),
    ] {
        let got = body(text).await;
        assert!(matches!(&got, Err(RpcFault::NoAnswer(text)) if text.contains(why)), "{text}: {got:?}");
    }
}

#[tokio::test]
async fn an_error_keeps_its_code_and_a_clean_message() {
    let limit = || Reply::Error(json!({"code": -32005, "message": "limit exceeded"}));
    let got = ChainFault::from(call(limit).await.expect_err("an error"));
    assert_eq!(got.0, "the node answers -32005: limit exceeded");
    let dirty = "see https://node.example/v2/SECRET\u{1b}[1m or v2/SECRET with token=HIDDEN\n";
    let leaky = move || Reply::Error(json!({"code": -32000, "message": dirty}));
    let got = ChainFault::from(call(leaky).await.expect_err("an error"));
    assert_eq!(got.0, "the node answers -32000: see (URL) or ... with ...");
    let long = || Reply::Error(json!({"code": 3, "message": "x".repeat(5_000)}));
    assert!(ChainFault::from(call(long).await.expect_err("an error")).0.len() < 200);
    // a node that could not read the call knows no id
    let unread = body(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#).await;
    assert!(matches!(unread, Err(RpcFault::Node(NodeError { code: -32700, .. }))), "{unread:?}");
    let odd = call(|| Reply::Error(json!("busy"))).await;
    assert!(matches!(odd, Err(RpcFault::Node(NodeError { code: 0, .. }))), "{odd:?}");
}

#[tokio::test]
async fn an_error_with_another_status_is_still_the_nodes_word() {
    let text = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"slow down"}}"#;
    let got = call(move || Reply::Whole((StatusCode::TOO_MANY_REQUESTS, text).into_response())).await;
    assert!(matches!(got, Err(RpcFault::Node(NodeError { code: -32005, .. }))), "{got:?}");
    let text = r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#;
    let got = call(move || Reply::Whole((StatusCode::BAD_GATEWAY, text).into_response())).await;
    assert!(matches!(got, Err(RpcFault::NoAnswer(_))), "{got:?}");
}

#[tokio::test]
async fn the_text_of_a_revert_is_read() {
    let data = format!("0x08c379a0{:064x}{:064x}6e6f21{}", 32, 3, "0".repeat(58));
    for error in [
        json!({"code": 3, "message": "execution reverted: no!", "data": data}),
        json!({"code": -32000, "message": "execution reverted", "data": {"data": data}}),
    ] {
        let got = call(move || Reply::Error(error.clone())).await.expect_err("an error");
        let RpcFault::Node(got) = got else { panic!("{got:?}") };
        assert_eq!(got.revert.as_deref(), Some("no!"), "{got:?}");
        assert!(got.to_string().ends_with("reverted: no!"), "{got}");
    }
    let panic = json!({"code": 3, "message": "execution reverted", "data": "0x4e487b71"});
    let got = call(move || Reply::Error(panic.clone())).await.expect_err("an error");
    assert!(matches!(got, RpcFault::Node(NodeError { revert: None, .. })), "{got:?}");
}

#[tokio::test]
async fn a_bad_connection_ends_in_time_and_in_bounds() {
    let endless = || {
        let chunks = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b' '; 64 * 1024])));
        Reply::Whole(Body::from_stream(chunks).into_response())
    };
    type Script = fn() -> Reply;
    let scripts: [(&str, Script); 4] = [
        ("endless", endless),
        ("hang", || Reply::Hang),
        ("html", || Reply::Whole((StatusCode::BAD_GATEWAY, Html("<html>502</html>")).into_response())),
        ("redirect", || Reply::Whole(Redirect::temporary("/elsewhere").into_response())),
    ];
    for (name, script) in scripts {
        let start = Instant::now();
        let got = call(script).await;
        assert!(matches!(got, Err(RpcFault::NoAnswer(_) | RpcFault::TooLong)), "{name}: {got:?}");
        assert!(start.elapsed() < Duration::from_secs(3), "{name}");
    }
    let node = Node::start(|_, _| Reply::Whole(Redirect::temporary("/elsewhere").into_response())).await;
    assert!(node.rpc().call("eth_x", json!([])).await.is_err());
    assert_eq!(node.call_count(), 1, "no redirect is followed and nothing is sent twice");
}

#[tokio::test]
async fn more_than_the_bound_is_left_unread() {
    let long = || Reply::Whole(vec![b' '; CHAIN_ANSWER_BYTES_MAX + 1].into_response());
    let node = Node::start(move |_, _| long()).await;
    let rpc = Rpc::new(&node.url, Duration::from_secs(30)).expect("a URL");
    assert_eq!(rpc.call("eth_x", json!([])).await, Err(RpcFault::TooLong));
}

#[tokio::test]
async fn the_chain_must_be_the_configured_one() {
    let node = Node::start(|method, _| match method {
        "eth_chainId" => Reply::Result(json!("0x14a34")),
        _ => Reply::Hang,
    })
    .await;
    let rpc = node.rpc();
    assert_eq!(rpc.check_network(Network::new(84_532)).await, Ok(()));
    let other = rpc.check_network(Network::new(8_453)).await.expect_err("another chain");
    assert_eq!(other.0, "the node serves eip155:84532, not eip155:8453");
    for bad in [json!(null), json!(84_532), json!("84532"), json!("0x")] {
        let node = Node::start(move |_, _| Reply::Result(bad.clone())).await;
        assert!(node.rpc().check_network(Network::new(84_532)).await.is_err());
    }
}

#[tokio::test]
async fn neither_faults_nor_debug_show_the_key_in_a_url() {
    let url = "http://127.0.0.1:9/v2/SECRET?token=HIDDEN";
    let rpc = Rpc::new(url, Duration::from_secs(2)).expect("a URL");
    let fault = ChainFault::from(rpc.call("eth_x", json!([])).await.expect_err("nobody listens"));
    let shown = format!("{rpc:?} {fault}");
    assert!(shown.contains("http://127.0.0.1:9") && !shown.contains("SECRET") && !shown.contains("HIDDEN"), "{shown}");
    for bad in ["", "node", "ftp://x", "http://user:SECRET@x", "http://SECRET@x", "http://x/#SECRET"] {
        let error = Rpc::new(bad, Duration::from_secs(2)).expect_err(bad);
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }
}
