//! The load: a number of kept connections, each of which sends its next request when it has its answer.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::wire::{self, Inbox};

/// What is sent.
#[derive(Clone)]
pub(crate) enum Requests {
    /// One request again and again.
    Same(Arc<Vec<u8>>),
    /// Each of these once.
    Each(Arc<Vec<Vec<u8>>>),
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// How many of each status.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// Latencies in microseconds, in order.
    pub(crate) latencies_us: Vec<u32>,
}

impl Answers {
    /// How many there were.
    pub(crate) fn count(&self) -> usize {
        self.latencies_us.len()
    }

    /// The latency below which that share of the answers came, in milliseconds.
    pub(crate) fn percentile_ms(&self, share: f64) -> f64 {
        let last = self.count().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.latencies_us.get(at).map_or(f64::NAN, |us| f64::from(*us) / 1_000.0)
    }
}

/// Sends for that long, or until all requests are used; a request that was sent is always waited for.
pub(crate) fn run(address: SocketAddr, connections: usize, requests: &Requests, length: Duration) -> Answers {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await.expect("a connection");
            stream.set_nodelay(true).expect("nodelay");
            streams.push(stream);
        }
        let (begun, next) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
        let until = begun + length;
        let tasks: Vec<_> = streams
            .into_iter()
            .map(|stream| tokio::spawn(send(stream, requests.clone(), Arc::clone(&next), until)))
            .collect();
        let mut all = Answers::default();
        for task in tasks {
            let answers = task.await.expect("a connection that ends").expect("answers on every connection");
            all.latencies_us.extend(&answers.latencies_us);
            for (status, count) in answers.statuses {
                *all.statuses.entry(status).or_default() += count;
            }
        }
        all.elapsed = begun.elapsed();
        all.latencies_us.sort_unstable();
        all
    })
}

async fn send(
    mut stream: TcpStream,
    requests: Requests,
    next: Arc<AtomicUsize>,
    until: Instant,
) -> io::Result<Answers> {
    let (mut answers, mut inbox) = (Answers::default(), Inbox::default());
    while Instant::now() < until {
        let request = match &requests {
            Requests::Same(request) => request,
            Requests::Each(each) => match each.get(next.fetch_add(1, Ordering::Relaxed)) {
                Some(request) => request,
                None => break,
            },
        };
        let begun = Instant::now();
        stream.write_all(request).await?;
        let message = inbox.next(&mut stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        answers.latencies_us.push(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX));
        *answers.statuses.entry(wire::status(inbox.head(&message))).or_default() += 1;
        inbox.done(&message);
    }
    Ok(answers)
}
