//! Strings of JSON text as JavaScript has them: UTF-16, in which a surrogate may stand alone.

use std::borrow::Cow;
use std::cmp::Ordering;

/// A string of a text that was read.
#[derive(Clone, Copy, Debug)]
pub struct Text<'t> {
    pub(super) raw: &'t str,
    pub(super) escaped: bool,
}

impl<'t> Text<'t> {
    /// Whether the string is exactly this.
    pub fn is(self, other: &str) -> bool {
        if self.escaped { *self.bytes() == *other.as_bytes() } else { self.raw == other }
    }

    /// UTF-8, in which a lone surrogate stands as three bytes.
    pub fn bytes(self) -> Cow<'t, [u8]> {
        if self.escaped { Cow::Owned(unescape(self.raw.as_bytes())) } else { Cow::Borrowed(self.raw.as_bytes()) }
    }

    /// The string, with U+FFFD where a lone surrogate stands.
    pub fn to_str(self) -> Cow<'t, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        Cow::Owned(String::from_utf16_lossy(&units(&self.bytes())))
    }

    /// The order of UTF-16 code units.
    pub(super) fn cmp_utf16(self, other: Self) -> Ordering {
        let (a, b) = (self.bytes(), other.bytes());
        let at = a.iter().zip(b.iter()).take_while(|(x, y)| x == y).count();
        match (a.get(at), b.get(at)) {
            // below the surrogates UTF-8 has the order of UTF-16
            (Some(x), Some(y)) if *x < 0xed && *y < 0xed => x.cmp(y),
            (Some(_), Some(_)) => units(&a).cmp(&units(&b)),
            (x, y) => x.is_some().cmp(&y.is_some()),
        }
    }
}

/// What a string with escapes says. A surrogate pair becomes its character, a lone surrogate three bytes.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        if byte != b'\\' {
            out.push(byte);
            at += 1;
            continue;
        }
        let escape = raw.get(at + 1).copied().unwrap_or(b'\\');
        at += 2;
        match escape {
            b'b' => out.push(0x8),
            b'f' => out.push(0xc),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let high = unit(&raw[at..]);
                at += 4;
                let low = raw[at..].strip_prefix(b"\\u").map(unit);
                let pair = low.and_then(|low| char::decode_utf16([high, low]).next()?.ok().filter(|c| *c > '\u{ffff}'));
                at += if pair.is_some() { 6 } else { 0 };
                push_unit(pair.map_or(u32::from(high), u32::from), &mut out);
            }
            other => out.push(other),
        }
    }
    out
}

/// The four hex digits at the start.
fn unit(hex: &[u8]) -> u16 {
    hex.iter().take(4).fold(0, |unit, digit| unit << 4 | char::from(*digit).to_digit(16).unwrap_or(0) as u16)
}

/// Writes a character or a lone surrogate.
fn push_unit(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend([0xe0 | (code >> 12) as u8, 0x80 | (code >> 6 & 63) as u8, 0x80 | (code & 63) as u8]),
    }
}

/// The UTF-16 code units of a text in which lone surrogates may stand.
fn units(bytes: &[u8]) -> Vec<u16> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        let (len, bits) = match first {
            0..0x80 => (1, u32::from(first)),
            0x80..0xe0 => (2, u32::from(first & 0x1f)),
            0xe0..0xf0 => (3, u32::from(first & 0xf)),
            0xf0.. => (4, u32::from(first & 7)),
        };
        let code = bytes.iter().skip(at + 1).take(len - 1).fold(bits, |code, byte| code << 6 | u32::from(byte & 63));
        match char::from_u32(code) {
            Some(c) => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
            None => units.push(code as u16),
        }
        at += len;
    }
    units
}
