//! JSON text as JavaScript's `JSON.parse` reads it, without building a tree.
//!
//! Evidence is addressed by what JavaScript makes of its text (Agent Proof Protocol 1.4, section 3): every number is a double and
//! may overflow to infinity, lone surrogates are text, and of two equal members the last one counts. A [`Tape`] notes where each
//! value stands; canonical text is copied from there. It is used again for the next text, so that a walk over a million lines
//! allocates nothing.

use std::cmp::Ordering;

use super::text::Text;
use super::{plain_len, write_number, write_string};
use crate::limits;

/// The text is not one JSON value, or is nested deeper than [`limits::PROOF_DEPTH_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not JSON from byte {byte} on")]
pub struct NotJson {
    /// Where reading stopped.
    pub byte: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    True,
    False,
    Number,
    /// No escape stands in it: the text is what it says, and canonical.
    Plain,
    /// Escapes stand in it, each of them the canonical one.
    Canonical,
    /// An escape stands in it that canonical text writes otherwise.
    Escaped,
    Array,
    Object,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    kind: Kind,
    start: u32,
    end: u32,
    /// The item after this one and all that is in it.
    next: u32,
}

/// Places of the values of one text.
#[derive(Debug, Default)]
pub struct Tape {
    items: Vec<Item>,
}

/// Memory for canonical text, used again and again.
#[derive(Debug, Default)]
pub struct Scratch {
    out: Vec<u8>,
    members: Vec<(u32, u32)>,
}

/// One value of a text that was read.
#[derive(Clone, Copy, Debug)]
pub struct View<'t> {
    tape: &'t Tape,
    text: &'t str,
    at: u32,
}

impl Tape {
    /// Reads one value. What was read before is forgotten.
    pub fn read<'t>(&'t mut self, text: &'t str) -> Result<View<'t>, NotJson> {
        self.items.clear();
        if u32::try_from(text.len()).is_err() {
            return Err(NotJson { byte: 0 });
        }
        let mut reader = Reader { items: &mut self.items, bytes: text.as_bytes(), at: 0 };
        let read = reader.value(limits::PROOF_DEPTH_MAX).and_then(|()| {
            reader.space();
            if reader.at == reader.bytes.len() { Some(()) } else { None }
        });
        match read {
            Some(()) => Ok(View { tape: self, text, at: 0 }),
            None => Err(NotJson { byte: reader.at }),
        }
    }
}

struct Reader<'a> {
    items: &'a mut Vec<Item>,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.bytes.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        // the length of the text fits, so every place in it does
        let next = self.items.len() as u32 + 1;
        self.items.push(Item { kind, start: start as u32, end: end as u32, next });
    }

    fn value(&mut self, depth_left: usize) -> Option<()> {
        self.space();
        match self.bytes.get(self.at)? {
            b'"' => self.string(),
            b'{' => self.nested(depth_left.checked_sub(1)?, true),
            b'[' => self.nested(depth_left.checked_sub(1)?, false),
            b't' => self.word(b"true", Kind::True),
            b'f' => self.word(b"false", Kind::False),
            b'n' => self.word(b"null", Kind::Null),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<()> {
        let end = self.at + word.len();
        (self.bytes.get(self.at..end)? == word).then(|| {
            self.push(kind, self.at, end);
            self.at = end;
        })
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.push(Kind::Number, start, self.at);
        Some(())
    }

    /// The string whose opening quote stands here.
    fn string(&mut self) -> Option<()> {
        let start = self.at + 1;
        let mut kind = Kind::Plain;
        self.at = start;
        loop {
            self.at += plain_len(&self.bytes[self.at..]);
            match *self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => {
                    let escape = *self.bytes.get(self.at + 1)?;
                    kind = match kind {
                        Kind::Plain | Kind::Canonical if !matches!(escape, b'u' | b'/') => Kind::Canonical,
                        _ => Kind::Escaped,
                    };
                    self.at += escape_len(&self.bytes[self.at..])?;
                }
                _ => return None,
            }
        }
        self.push(kind, start, self.at);
        self.at += 1;
        Some(())
    }

    fn nested(&mut self, depth_left: usize, is_object: bool) -> Option<()> {
        let (kind, close) = if is_object { (Kind::Object, b'}') } else { (Kind::Array, b']') };
        let me = self.items.len();
        self.push(kind, self.at, self.at);
        self.at += 1;
        if self.take(close).is_none() {
            loop {
                if is_object {
                    self.space();
                    if self.bytes.get(self.at) != Some(&b'"') {
                        return None;
                    }
                    self.string()?;
                    self.take(b':')?;
                }
                self.value(depth_left)?;
                if self.take(b',').is_none() {
                    self.take(close)?;
                    break;
                }
            }
        }
        let next = self.items.len() as u32;
        self.items[me].next = next;
        self.items[me].end = self.at as u32;
        Some(())
    }
}

/// Bytes of the escape that stands at the start, when it is one.
fn escape_len(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

impl<'t> View<'t> {
    fn item(self) -> Item {
        self.tape.items[self.at as usize]
    }

    /// The text of the value as it stands.
    pub fn raw(self) -> &'t str {
        let item = self.item();
        let quote = usize::from(matches!(item.kind, Kind::Plain | Kind::Canonical | Kind::Escaped));
        &self.text[item.start as usize - quote..item.end as usize + quote]
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.item().kind == Kind::Object
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.item().kind == Kind::Null
    }

    /// The string, when it is one.
    pub fn text(self) -> Option<Text<'t>> {
        let item = self.item();
        let escaped = match item.kind {
            Kind::Plain => false,
            Kind::Canonical | Kind::Escaped => true,
            _ => return None,
        };
        Some(Text { raw: &self.text[item.start as usize..item.end as usize], escaped })
    }

    /// The number, when it is one; infinite when the text says more than a double holds.
    pub fn number(self) -> Option<f64> {
        (self.item().kind == Kind::Number).then(|| self.raw().parse().unwrap_or(f64::NAN))
    }

    /// The number, when it is a whole one that JavaScript holds exactly and is not negative.
    pub fn count(self) -> Option<u64> {
        let number = self.number()?;
        (number >= 0.0 && number <= limits::SAFE_INTEGER_MAX as f64 && number.fract() == 0.0).then_some(number as u64)
    }

    /// The items, when it is an array.
    pub fn items(self) -> Option<impl Iterator<Item = View<'t>>> {
        (self.item().kind == Kind::Array).then(|| self.children())
    }

    /// The members, when it is an object, in the order of the text.
    pub fn members(self) -> Option<impl Iterator<Item = (Text<'t>, View<'t>)>> {
        if !self.is_object() {
            return None;
        }
        let mut children = self.children();
        Some(std::iter::from_fn(move || Some((children.next()?.text()?, children.next()?))))
    }

    /// A member of an object; the last one when it stands there several times.
    pub fn get(self, key: &str) -> Option<View<'t>> {
        self.members()?.filter(|(name, _)| name.is(key)).last().map(|(_, value)| value)
    }

    /// A member that is a string.
    pub fn get_text(self, key: &str) -> Option<Text<'t>> {
        self.get(key)?.text()
    }

    fn children(self) -> impl Iterator<Item = View<'t>> {
        let mut at = self.at + 1;
        let end = self.item().next;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let child = View { at, ..self };
                at = child.item().next;
                child
            })
        })
    }

    /// The canonical text.
    pub fn canonical(self, scratch: &mut Scratch) -> &[u8] {
        self.canonical_without(scratch, None)
    }

    /// The canonical text without one member of the outermost object.
    pub fn canonical_without<'s>(self, scratch: &'s mut Scratch, member: Option<&str>) -> &'s [u8] {
        scratch.out.clear();
        scratch.members.clear();
        self.append_canonical(scratch, member);
        &scratch.out
    }

    fn append_canonical(self, scratch: &mut Scratch, without: Option<&str>) {
        let out = &mut scratch.out;
        match self.item().kind {
            Kind::Null => out.extend_from_slice(b"null"),
            Kind::True => out.extend_from_slice(b"true"),
            Kind::False => out.extend_from_slice(b"false"),
            Kind::Plain | Kind::Canonical => out.extend_from_slice(self.raw().as_bytes()),
            Kind::Escaped => write_string(&self.text().expect("a string").bytes(), out),
            Kind::Number => {
                let raw = self.raw();
                if is_plain_integer(raw.as_bytes()) {
                    out.extend_from_slice(raw.as_bytes());
                } else {
                    write_number(raw.parse().unwrap_or(f64::NAN), out);
                }
            }
            Kind::Array => {
                out.push(b'[');
                for (i, item) in self.children().enumerate() {
                    if i > 0 {
                        scratch.out.push(b',');
                    }
                    item.append_canonical(scratch, None);
                }
                scratch.out.push(b']');
            }
            Kind::Object => self.append_object(scratch, without),
        }
    }

    fn append_object(self, scratch: &mut Scratch, without: Option<&str>) {
        let base = scratch.members.len();
        let mut children = self.children();
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            if without.is_none_or(|name| !key.text().is_some_and(|text| text.is(name))) {
                scratch.members.push((key.at, value.at));
            }
        }
        let key = |at: u32| View { at, ..self }.text().expect("a key is a string");
        // stable: of equal keys the last one stays last, and counts
        scratch.members[base..].sort_by(|a, b| key(a.0).cmp_utf16(key(b.0)));
        scratch.out.push(b'{');
        let mut first = true;
        for i in base..scratch.members.len() {
            let (name, value) = scratch.members[i];
            let next = scratch.members.get(i + 1).map(|next| key(next.0));
            if next.is_some_and(|next| next.cmp_utf16(key(name)) == Ordering::Equal) {
                continue;
            }
            if !std::mem::take(&mut first) {
                scratch.out.push(b',');
            }
            View { at: name, ..self }.append_canonical(scratch, None);
            scratch.out.push(b':');
            View { at: value, ..self }.append_canonical(scratch, None);
        }
        scratch.members.truncate(base);
        scratch.out.push(b'}');
    }
}

/// Digits that a double holds exactly and JavaScript prints as they stand.
fn is_plain_integer(raw: &[u8]) -> bool {
    raw.len() <= 15 && raw[0] != b'-' && raw.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests;
