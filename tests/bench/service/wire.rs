//! As much HTTP/1.1 as both ends of a benchmark need: a message at a time, and one blocking request.
//!
//! Written out by hand so that the tool that measures costs little beside what it measures.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes read at once.
const CHUNK: usize = 16 * 1024;

/// How long a blocking request waits for its answer: a first start makes a database cluster.
const ANSWER_WAIT: Duration = Duration::from_secs(180);

/// One message within its buffer.
#[derive(Debug)]
pub(crate) struct Message {
    head: usize,
    end: usize,
}

/// Bytes that have arrived, of this message and perhaps the next.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Reads until a whole message is here; None when the other side closed between two messages.
    pub(crate) async fn next(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = whole(&self.bytes)? {
                return Ok(Some(message));
            }
            self.bytes.reserve(CHUNK);
            match (from.read_buf(&mut self.bytes).await?, self.bytes.is_empty()) {
                (0, true) => return Ok(None),
                (0, false) => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
    }

    /// Status line or request line, and headers.
    pub(crate) fn head(&self, message: &Message) -> &[u8] {
        &self.bytes[..message.head]
    }

    /// The body; chunked ones as they came.
    pub(crate) fn body(&self, message: &Message) -> &[u8] {
        &self.bytes[message.head..message.end]
    }

    /// Forgets a message that was used.
    pub(crate) fn done(&mut self, message: &Message) {
        self.bytes.drain(..message.end);
    }
}

/// Where the first message ends, when it is all there.
fn whole(bytes: &[u8]) -> io::Result<Option<Message>> {
    let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) else { return Ok(None) };
    if let Some(length) = header(&bytes[..head], "content-length") {
        let length: usize = length.parse().map_err(|_| io::Error::other("a content-length that is no number"))?;
        return Ok((bytes.len() >= head + length).then_some(Message { head, end: head + length }));
    }
    if header(&bytes[..head], "transfer-encoding").is_some() {
        let last = bytes[head..].windows(5).position(|five| five == b"0\r\n\r\n");
        return Ok(last.map(|at| Message { head, end: head + at + 5 }));
    }
    Ok(Some(Message { head, end: head }))
}

/// The value of a header, by its name in any case.
pub(crate) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let value = head.split(|byte| *byte == b'\n').find_map(|line| {
        let (found, value) = line.split_at_checked(name.len())?;
        (found.eq_ignore_ascii_case(name.as_bytes())).then_some(value.strip_prefix(b":")?)
    })?;
    std::str::from_utf8(value).ok().map(str::trim)
}

/// The status of an answer; 0 when it is none.
pub(crate) fn status(head: &[u8]) -> u16 {
    head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

/// A request without a body. `extra` are whole header lines.
pub(crate) fn get(target: &str, extra: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n{extra}\r\n").into_bytes()
}

/// One blocking request on a connection of its own: status and head of the answer.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    stream.write_all(request)?;
    let (mut bytes, mut chunk) = (Vec::new(), [0; CHUNK]);
    loop {
        if let Some(message) = whole(&bytes)? {
            bytes.truncate(message.head);
            return Ok((status(&bytes), bytes));
        }
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&chunk[..n]),
        }
    }
}
