//! A facilitator that says yes at once, on a thread of its own: what it costs is left to the sellers under test.

use std::net::SocketAddr;
use std::thread;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::wire::Inbox;

/// The kinds that are settled, in both versions.
const SUPPORTED: &str = r#"{"kinds":[{"x402Version":2,"scheme":"exact","network":"eip155:84532"},{"x402Version":1,"scheme":"exact","network":"base-sepolia"}],"extensions":[],"signers":{}}"#;

/// Starts it; it lives as long as the process.
pub(crate) fn start() -> SocketAddr {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.set_nonblocking(true).expect("a non-blocking listener");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(attend(stream));
            }
        });
    });
    address
}

async fn attend(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut inbox = Inbox::default();
    while let Ok(Some(message)) = inbox.next(&mut stream).await {
        let body = answer(inbox.head(&message), inbox.body(&message));
        inbox.done(&message);
        let length = body.len();
        let whole =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(whole.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(head: &[u8], body: &[u8]) -> String {
    let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let payer = payer(body);
    if target.ends_with(b"/verify") {
        format!(r#"{{"isValid":true,"payer":"{payer}"}}"#)
    } else if target.ends_with(b"/settle") {
        let mut hash = [0; 32];
        getrandom::fill(&mut hash).expect("random bytes");
        let hash = jim::canonical::hex(&hash);
        format!(r#"{{"success":true,"transaction":"0x{hash}","network":"eip155:84532","payer":"{payer}"}}"#)
    } else {
        SUPPORTED.to_owned()
    }
}

/// The address behind `"from":`; every client writes it without spaces.
fn payer(body: &[u8]) -> &str {
    const KEY: &[u8] = br#""from":""#;
    let at = body.windows(KEY.len()).position(|window| window == KEY).map(|at| at + KEY.len());
    at.and_then(|at| std::str::from_utf8(body.get(at..at + 42)?).ok()).unwrap_or_default()
}
