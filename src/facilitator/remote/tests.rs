use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::*;
use crate::paywall::port::Verdict;
use crate::x402::{Version, decode, facilitator_request, fixture};

const SHORT: Budgets = Budgets { verify: Duration::from_millis(300), settle: Duration::from_millis(300) };

fn request() -> FacilitatorRequest {
    let payment = decode(Version::V2, &fixture::payment(Version::V2, 1).header_value).expect("a payment");
    let call = facilitator_request(&payment, &fixture::offer()).expect("a call");
    FacilitatorRequest::from(call)
}

/// Serves `app` on loopback and returns a client for it. The path ends in slashes that are to be stripped.
async fn remote(app: Router) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, Router::new().nest("/v", app)).await });
    Remote::new(&format!("http://{address}/v//"), SHORT).expect("a URL")
}

/// A facilitator that answers every call alike.
async fn answering<F>(answer: F) -> Remote
where
    F: Fn() -> Response + Clone + Send + Sync + 'static,
{
    let handler = move || {
        let response = answer();
        async move { response }
    };
    remote(Router::new().route("/verify", post(handler.clone())).route("/settle", post(handler))).await
}

fn stream_of(chunk: &'static [u8], pause: Duration) -> Response {
    let chunks = stream::unfold((), move |()| async move {
        tokio::time::sleep(pause).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(chunk)), ()))
    });
    Body::from_stream(chunks).into_response()
}

fn hash() -> String {
    format!("0x{}", "ab".repeat(32))
}

fn success() -> Value {
    json!({"success": true, "transaction": hash(), "network": "eip155:84532", "payer": fixture::buyer().address()})
}

#[tokio::test]
async fn the_body_of_a_call_is_what_the_interface_says() {
    let echo = |headers: HeaderMap, body: Bytes| async move {
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let fits = headers.get("content-type").is_some_and(|kind| kind == "application/json")
            && body["x402Version"] == 2
            && body["paymentRequirements"] == fixture::offer().requirements_v2()
            && body["paymentPayload"]["accepted"] == fixture::offer().requirements_v2()
            && body["paymentPayload"]["payload"]["signature"].is_string();
        axum::Json(json!({"isValid": fits, "invalidReason": "invalid_payload", "payer": "0x1"}))
    };
    let supported =
        || async { axum::Json(json!({"kinds": [{"x402Version": 1, "scheme": "exact", "network": "base"}]})) };
    let remote = remote(Router::new().route("/verify", post(echo)).route("/supported", get(supported))).await;
    let judged = remote.verify(&request()).await.expect("a verdict");
    assert_eq!(judged.verdict, Verdict::Valid { payer: Some("0x1".to_owned()) });
    assert_eq!(judged.facilitator, remote.name());
    assert_eq!(remote.fetch_supported().await.map(|kinds| kinds.len()), Ok(1));
    assert!(remote.name().starts_with("http://127.0.0.1:") && remote.name().ends_with("/v"));
}

#[tokio::test]
async fn a_good_answer_settles() {
    let remote = answering(|| axum::Json(success()).into_response()).await;
    let settled = remote.settle_request(&request()).await;
    assert!(matches!(settled, Settlement::Settled { transaction, .. } if transaction == hash()));
}

#[tokio::test]
async fn answers_that_end_badly_are_unknown_and_in_time() {
    type Fault = fn() -> Response;
    let faults: [(&str, Fault); 10] = [
        ("drip", || stream_of(b" ", Duration::from_millis(20))),
        ("endless", || stream_of(&[b' '; 16 * 1024], Duration::ZERO)),
        ("long", || vec![b' '; FACILITATOR_BODY_BYTES_MAX + 1].into_response()),
        ("html", || axum::response::Html("<html>").into_response()),
        ("empty", || StatusCode::OK.into_response()),
        ("twice", || format!("{{\"success\":false,{}", &success().to_string()[1..]).into_response()),
        ("500 after moving money", || (StatusCode::INTERNAL_SERVER_ERROR, axum::Json(success())).into_response()),
        ("no transaction", || axum::Json(json!({"success": true, "transaction": ""})).into_response()),
        ("pending", || {
            let body = json!({"success": false, "errorReason": "settlement_pending", "transaction": hash()});
            axum::Json(body).into_response()
        }),
        ("redirect", || Redirect::temporary("/v/verify").into_response()),
    ];
    for (name, fault) in faults {
        let remote = answering(fault).await;
        let start = Instant::now();
        let got = remote.settle_request(&request()).await;
        assert!(matches!(got, Settlement::Unknown { .. }), "{name}: {got:?}");
        assert!(remote.verify(&request()).await.is_err(), "{name}");
        assert!(start.elapsed() < Duration::from_secs(3), "{name}");
    }
}

#[tokio::test]
async fn a_hanging_facilitator_is_left_at_the_deadline() {
    let hang = || async { tokio::time::sleep(Duration::from_secs(60)).await };
    let remote = remote(Router::new().route("/verify", post(hang)).route("/settle", post(hang))).await;
    let got = remote.settle_request(&request()).await;
    assert_eq!(got, Settlement::Unknown { reason: "no answer within 300 ms".to_owned(), transaction: None });
    assert!(remote.verify(&request()).await.is_err());
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_nothing_is_sent_twice() {
    let hits = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&hits);
    let settle = move || {
        seen.fetch_add(1, Ordering::SeqCst);
        async { Redirect::temporary("/v/elsewhere") }
    };
    let elsewhere = Arc::clone(&hits);
    let other = move || {
        elsewhere.fetch_add(100, Ordering::SeqCst);
        async { axum::Json(success()) }
    };
    let remote = remote(Router::new().route("/settle", post(settle)).route("/elsewhere", post(other))).await;
    assert!(matches!(remote.settle_request(&request()).await, Settlement::Unknown { .. }));
    assert_eq!(hits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn only_a_refused_connection_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    // accepts, reads, and closes without an answer: the money may have moved
    let closing = tokio::spawn(async move {
        for _ in 0..2 {
            let (stream, _) = listener.accept().await.expect("a connection");
            let mut some = [0; 16];
            stream.readable().await.expect("readable");
            let _ = stream.try_read(&mut some);
            drop(stream);
        }
    });
    let remote = Remote::new(&url, SHORT).expect("a URL");
    assert!(matches!(remote.settle_request(&request()).await, Settlement::Unknown { .. }));
    assert!(remote.verify(&request()).await.is_err());
    closing.await.expect("both were answered");
    assert!(matches!(remote.settle_request(&request()).await, Settlement::NotSent { .. }));
    assert!(remote.verify(&request()).await.is_err());
    let unresolved = Remote::new("http://facilitator.invalid", SHORT).expect("a URL");
    assert!(matches!(unresolved.settle_request(&request()).await, Settlement::Unknown { .. }));
}

#[tokio::test]
async fn a_no_with_another_status_is_still_a_no() {
    let no = || {
        (StatusCode::PRECONDITION_FAILED, axum::Json(json!({"isValid": false, "invalidReason": "invalid_signature"})))
    };
    let remote = answering(move || no().into_response()).await;
    let want = Verdict::Invalid { reason: "invalid_signature".to_owned() };
    assert_eq!(remote.verify(&request()).await.map(|judged| judged.verdict), Ok(want));
}

#[test]
fn urls_that_leak_or_cannot_be_extended_are_refused() {
    for bad in ["", "facilitator", "ftp://x", "http://user:pass@x", "http://x?y=1", "http://x#y"] {
        assert!(Remote::new(bad, SHORT).is_err(), "{bad:?}");
    }
}
