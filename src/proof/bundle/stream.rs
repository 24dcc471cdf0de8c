//! Reads a bundle's JSON once, from front to back, and hands out what is in it as it comes.
//!
//! The log never stands in memory: its text is unescaped block by block. Everything else is captured up to a bound and read as
//! JavaScript reads it; of two equal members the later one counts.

use std::io::{self, Read};

use crate::canonical::{Tape, plain_len};
use crate::limits;

/// Bytes that are read, and that are handed out, at once.
const BLOCK: usize = 64 * 1024;

/// Bytes of the name of a member. Longer ones are none of ours.
const NAME_BYTES_MAX: usize = 4096;

/// Why reading stopped.
#[derive(Debug)]
pub(super) enum Fault {
    /// The source failed.
    Io(io::Error),
    /// The bytes are no bundle from here on.
    Json(u64),
}

/// Takes what a bundle holds.
pub(super) trait Sink {
    /// The manifest, whole.
    fn manifest(&mut self, text: &str);
    /// The object of files begins; files seen before do not count.
    fn files(&mut self);
    /// A file begins; an earlier one of this name does not count.
    fn file(&mut self, name: &str);
    /// The next bytes of the file; false when it is longer than it may be.
    fn bytes(&mut self, bytes: &[u8]) -> bool;
    /// The file ends.
    fn end(&mut self);
}

pub(super) struct Stream<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    passed: u64,
}

type Taken<T> = Result<T, Fault>;

impl<R: Read> Stream<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: Vec::with_capacity(BLOCK), at: 0, passed: 0 }
    }

    /// Reads the whole bundle into the sink.
    pub(super) fn read(&mut self, sink: &mut impl Sink) -> Taken<()> {
        self.object(sink, |stream, name, sink| match name {
            "manifest" => {
                let text = stream.capture()?;
                sink.manifest(&text);
                Ok(())
            }
            "files" if stream.next_is(b'{')? => {
                sink.files();
                stream.object(sink, Self::member)
            }
            _ => stream.capture().map(drop),
        })?;
        self.space()?;
        if self.peek()?.is_some() { Err(self.fault()) } else { Ok(()) }
    }

    fn member(&mut self, name: &str, sink: &mut impl Sink) -> Taken<()> {
        if !self.next_is(b'"')? {
            return self.capture().map(drop);
        }
        sink.file(name);
        self.string(&mut |bytes| sink.bytes(bytes))?;
        sink.end();
        Ok(())
    }

    fn fault(&self) -> Fault {
        Fault::Json(self.passed + self.at as u64)
    }

    fn fill(&mut self) -> Taken<bool> {
        self.passed += self.at as u64;
        self.at = 0;
        self.buffer.clear();
        let read = self.source.by_ref().take(BLOCK as u64).read_to_end(&mut self.buffer).map_err(Fault::Io)?;
        Ok(read > 0)
    }

    fn peek(&mut self) -> Taken<Option<u8>> {
        if self.at == self.buffer.len() && !self.fill()? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.at]))
    }

    fn next(&mut self) -> Taken<u8> {
        let byte = self.peek()?.ok_or_else(|| self.fault())?;
        self.at += 1;
        Ok(byte)
    }

    fn space(&mut self) -> Taken<()> {
        while matches!(self.peek()?, Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        Ok(())
    }

    fn next_is(&mut self, byte: u8) -> Taken<bool> {
        self.space()?;
        Ok(self.peek()? == Some(byte))
    }

    fn expect(&mut self, byte: u8) -> Taken<()> {
        if !self.next_is(byte)? {
            return Err(self.fault());
        }
        self.at += 1;
        Ok(())
    }

    /// Reads an object; the value of each member is read by `member`.
    fn object<S>(&mut self, sink: &mut S, member: impl Fn(&mut Self, &str, &mut S) -> Taken<()>) -> Taken<()> {
        self.expect(b'{')?;
        if self.next_is(b'}')? {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space()?;
            let mut name = Vec::new();
            self.string(&mut |bytes| {
                name.extend_from_slice(bytes);
                name.len() <= NAME_BYTES_MAX
            })?;
            let name = String::from_utf8(name).map_err(|_| self.fault())?;
            self.expect(b':')?;
            self.space()?;
            member(self, &name, sink)?;
            if self.next_is(b',')? {
                self.at += 1;
            } else {
                return self.expect(b'}');
            }
        }
    }

    /// Reads a string and hands out what it says, U+FFFD for lone surrogates.
    fn string(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Taken<()> {
        self.expect(b'"')?;
        let mut block = Vec::with_capacity(BLOCK + 8);
        loop {
            if self.at == self.buffer.len() && !self.fill()? {
                return Err(self.fault());
            }
            let rest = &self.buffer[self.at..];
            let run = plain_len(rest);
            block.extend_from_slice(&rest[..run]);
            self.at += run;
            match rest.get(run) {
                None => {}
                Some(b'"') => {
                    self.at += 1;
                    return if take(&block) { Ok(()) } else { Err(self.fault()) };
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut block)?;
                }
                Some(_) => return Err(self.fault()),
            }
            if block.len() >= BLOCK {
                if !take(&block) {
                    return Err(self.fault());
                }
                block.clear();
            }
        }
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Taken<()> {
        let mut escape = self.next()?;
        // a high surrogate that waits for its other half
        let mut high: Option<u16> = None;
        loop {
            let unit = if escape == b'u' { Some(self.unit()?) } else { None };
            if let Some(lead) = high.take() {
                let pair = unit.and_then(|low| char::decode_utf16([lead, low]).next()?.ok());
                if let Some(c) = pair {
                    push(c, out);
                    return Ok(());
                }
                push(char::REPLACEMENT_CHARACTER, out);
            }
            match unit {
                Some(unit @ 0xd800..0xdc00) if self.peek()? == Some(b'\\') => {
                    self.at += 1;
                    high = Some(unit);
                    escape = self.next()?;
                }
                Some(unit) => {
                    push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER), out);
                    return Ok(());
                }
                None => {
                    out.push(match escape {
                        b'"' | b'\\' | b'/' => escape,
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'b' => 0x8,
                        b'f' => 0xc,
                        _ => return Err(self.fault()),
                    });
                    return Ok(());
                }
            }
        }
    }

    fn unit(&mut self) -> Taken<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = char::from(self.next()?).to_digit(16).ok_or_else(|| self.fault())?;
            unit = unit << 4 | digit as u16;
        }
        Ok(unit)
    }

    /// Copies one value of any kind, and checks that it is JSON.
    fn capture(&mut self) -> Taken<String> {
        self.space()?;
        let start = self.passed + self.at as u64;
        let mut text = Vec::new();
        let (mut depth, mut in_string) = (0u64, false);
        loop {
            let Some(byte) = self.peek()? else { return Err(self.fault()) };
            if !in_string
                && depth == 0
                && !text.is_empty()
                && matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
            {
                break;
            }
            self.at += 1;
            text.push(byte);
            match byte {
                b'\\' if in_string => text.push(self.next()?),
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth = depth.checked_sub(1).ok_or_else(|| self.fault())?,
                _ => {}
            }
            if !in_string && depth == 0 && matches!(byte, b'"' | b'}' | b']') {
                break;
            }
            if text.len() > limits::PROOF_DOCUMENT_BYTES_MAX {
                return Err(self.fault());
            }
        }
        let text = String::from_utf8(text).map_err(|_| Fault::Json(start))?;
        match Tape::default().read(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(Fault::Json(start + error.byte as u64)),
        }
    }
}

fn push(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
