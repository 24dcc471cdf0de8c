//! A facilitator that keeps its connections and writes scripted bytes as answers to settle calls: what no HTTP library lets
//! a server do.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Requests that arrived: the connection's number and the path.
type Log = Arc<Mutex<Vec<(usize, String)>>>;

/// The facilitator.
pub(crate) struct WireFacilitator {
    addr: SocketAddr,
    settles: Arc<Mutex<VecDeque<Vec<u8>>>>,
    log: Log,
}

impl WireFacilitator {
    /// One that says yes to every verify, and to a settle call what it is told.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let this =
            Self { addr: listener.local_addr().expect("an address"), settles: Arc::default(), log: Arc::default() };
        let (settles, log) = (Arc::clone(&this.settles), Arc::clone(&this.log));
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(talk(stream, number, Arc::clone(&settles), Arc::clone(&log)));
            }
        });
        this
    }

    /// Its base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The bytes that answer the next settle call.
    pub(crate) fn on_settle(&self, bytes: Vec<u8>) {
        self.settles.lock().expect("no panic").push_back(bytes);
    }

    /// Connections on which calls of one path came, in their order.
    pub(crate) fn connections(&self, path: &str) -> Vec<usize> {
        let log = self.log.lock().expect("no panic");
        log.iter().filter(|(_, called)| called == path).map(|(number, _)| *number).collect()
    }
}

/// A whole HTTP response that leaves the connection open.
pub(crate) fn response(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into()
}

async fn talk(stream: TcpStream, number: usize, settles: Arc<Mutex<VecDeque<Vec<u8>>>>, log: Log) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some(path) = read_request(&mut read).await {
        log.lock().expect("no panic").push((number, path.clone()));
        let answer = match path.as_str() {
            "/supported" => {
                response(&json!({"kinds": [{"x402Version": 2, "scheme": "exact", "network": "eip155:84532"}]}))
            }
            "/verify" => response(&json!({"isValid": true})),
            _ => settles.lock().expect("no panic").pop_front().expect("a scripted answer"),
        };
        if write.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// Reads one request and returns its path; None at the end of the connection.
async fn read_request(read: &mut BufReader<tokio::net::tcp::OwnedReadHalf>) -> Option<String> {
    let mut line = String::new();
    read.read_line(&mut line).await.ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        read.read_line(&mut header).await.ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    Some(path)
}
