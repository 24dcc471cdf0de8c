//! HTTP itself: methods, sizes, types, cross-origin rules, and senders who take for ever.

use std::time::{Duration, Instant};

use http::Method;
use jim::x402::Version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::buyer::{Ask, Buyer};
use crate::support::refusal::assert_free;
use crate::support::rows::Rows;
use crate::support::service::{MEMO, Service};

fn with_method(method: Method, path: &str) -> Ask {
    Ask { method, ..Ask::get(path) }
}

#[tokio::test]
async fn head_shows_the_terms_and_never_works_or_settles() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    for paid in [None, Some(&payment)] {
        let reply = buyer.send(&with_method(Method::HEAD, MEMO), paid).await;
        assert_eq!((reply.status, reply.body.len()), (402, 0));
        assert!(reply.header("payment-required").is_some());
    }
    assert_eq!((service.rows().await, service.settle_calls()), (Rows::default(), 0));
    assert_eq!(service.world.scribe.drafts(), 0);
    let document = buyer.send(&with_method(Method::HEAD, "/llms.txt"), None).await;
    assert_eq!((document.status, document.body.len()), (200, 0));
}

#[tokio::test]
async fn other_methods_are_named_in_allow() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    for (method, path, allowed) in [
        (Method::DELETE, MEMO, "GET,HEAD,POST"),
        (Method::PUT, MEMO, "GET,HEAD,POST"),
        (Method::POST, "/llms.txt", "GET,HEAD"),
        (Method::POST, "/health", "GET,HEAD"),
    ] {
        let reply = buyer.send(&with_method(method, path), None).await;
        assert_free(&reply, 405);
        assert_eq!(reply.header("allow"), Some(allowed), "{path}");
    }
    assert_free(&buyer.send(&Ask::get("/no/such/route"), None).await, 404);
    assert_free(&buyer.send(&Ask::get("/research/fundamentals/"), None).await, 404);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_for_its_size_type_or_form() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let bare = |body: &str| Ask { headers: http::HeaderMap::new(), ..Ask::post(body) };
    let good = r#"{"ticker":"ACME"}"#;
    for (ask, status) in [
        (Ask::post(&"x".repeat(16 * 1024 + 1)), 413),
        (bare(good), 415),
        (bare(good).header("content-type", "text/plain"), 415),
        (Ask::post(good).header("content-encoding", "gzip"), 415),
        (Ask::post("{"), 400),
        (Ask::post("[]"), 422),
        (Ask::post(r#"{"ticker":7}"#), 422),
        (Ask::post(r#"{"ticker":"ACME","ticker":"BETA"}"#), 400),
        (Ask::post(r#"{"ticker":[[[[[["ACME"]]]]]]}"#), 400),
        (Ask::memo().header("x-noise", &"n".repeat(17 * 1024)), 431),
    ] {
        assert_free(&buyer.send(&ask, None).await, status);
    }
    let typed = bare(good).header("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(buyer.send(&typed, None).await.status, 402);
    assert_eq!(service.rows().await, Rows::default());
}

#[tokio::test]
async fn a_header_block_beyond_the_buffer_ends_the_connection_with_431() {
    let service = Service::start().await;
    let mut stream = TcpStream::connect(service.app.public_addr).await.expect("a connection");
    let request = format!("GET {MEMO} HTTP/1.1\r\nhost: x\r\nx-noise: {}\r\n\r\n", "n".repeat(100 * 1024));
    // the service may close before it has read all of it
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(service.get("/health").await.status, 200);
}

#[tokio::test]
async fn a_page_in_a_browser_may_buy_and_may_not_operate() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let preflight = with_method(Method::OPTIONS, MEMO)
        .header("origin", "https://page.example")
        .header("access-control-request-method", "GET")
        .header("access-control-request-headers", "payment-signature");
    let reply = buyer.send(&preflight, None).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some("*")));
    let allowed = reply.header("access-control-allow-headers").expect("a list");
    for name in ["payment-signature", "x-payment", "content-type", "x-jim-call-chain"] {
        assert!(allowed.contains(name), "{name} in {allowed}");
    }
    let reply = buyer.send(&Ask::memo().header("origin", "https://page.example"), None).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (402, Some("*")));
    let exposed = reply.header("access-control-expose-headers").expect("a list");
    for name in
        ["payment-required", "payment-response", "x-payment-response", "retry-after", "x-order-id", "x-request-id"]
    {
        assert!(exposed.contains(name), "{name} in {exposed}");
    }
    let ledger = format!("http://{}/api/ledger/margin", service.app.operator_addr);
    for ask in [preflight.clone(), Ask::get("").header("origin", "https://page.example")] {
        let reply = buyer.send_to(&ledger, &ask, None).await;
        assert_eq!(reply.header("access-control-allow-origin"), None);
        assert_ne!(reply.status, 200);
    }
}

#[tokio::test]
async fn every_response_has_an_id_of_ours() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let mut seen = std::collections::HashSet::new();
    for path in [MEMO, "/llms.txt", "/health", "/none"] {
        let reply = buyer.send(&Ask::get(path).header("x-request-id", "forged"), None).await;
        let id = reply.header("x-request-id").expect("an id").to_owned();
        assert!(id.len() == 32 && seen.insert(id), "{path}");
    }
}

#[tokio::test]
async fn a_sender_of_one_byte_a_second_does_not_hold_a_connection_for_ever() {
    let service = Service::start().await;
    let stream = TcpStream::connect(service.app.public_addr).await.expect("a connection");
    let (mut reading, mut writing) = stream.into_split();
    let begun = Instant::now();
    let trickle = tokio::spawn(async move {
        for byte in b"GET /health HTTP/1.1\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".chunks(1) {
            if writing.write_all(byte).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let mut answer = Vec::new();
    let _ =
        tokio::time::timeout(Duration::from_secs(19), reading.read_to_end(&mut answer)).await.expect("closed in time");
    let held = begun.elapsed();
    assert!(held >= Duration::from_secs(10) && held < Duration::from_secs(19), "{held:?}");
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    trickle.abort();
}
