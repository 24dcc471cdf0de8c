//! Recursive length prefix: the byte form of a transaction (Ethereum yellow paper, appendix B). Writing only.

/// The payload of a list that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    payload: Vec<u8>,
}

impl List {
    /// Appends a string of bytes.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        if !matches!(bytes, [single] if *single < 0x80) {
            push_head(&mut self.payload, 0x80, bytes.len());
        }
        self.payload.extend_from_slice(bytes);
        self
    }

    /// Appends an integer, given big-endian: leading zeros are left out, zero is the empty string.
    pub(super) fn integer(self, big_endian: &[u8]) -> Self {
        self.bytes(without_zeros(big_endian))
    }

    /// Appends a list.
    pub(super) fn list(mut self, inner: Self) -> Self {
        self.payload.extend(inner.encode());
        self
    }

    /// The whole list.
    pub(super) fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.payload.len() + 9);
        push_head(&mut out, 0xc0, self.payload.len());
        out.extend(self.payload);
        out
    }
}

/// Up to 55 bytes the length is in the first byte; above that the first byte says how many bytes of length follow.
fn push_head(out: &mut Vec<u8>, base: u8, length: usize) {
    match u8::try_from(length) {
        Ok(short @ ..56) => out.push(base + short),
        _ => {
            let digits = length.to_be_bytes();
            let digits = without_zeros(&digits);
            // at most eight
            out.push(base + 55 + u8::try_from(digits.len()).unwrap_or(8));
            out.extend_from_slice(digits);
        }
    }
}

fn without_zeros(big_endian: &[u8]) -> &[u8] {
    let zeros = big_endian.iter().take_while(|byte| **byte == 0).count();
    &big_endian[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;

    fn item(bytes: &[u8]) -> String {
        let encoded = List::default().bytes(bytes).payload;
        hex::encode(encoded)
    }

    fn number(number: u64) -> String {
        hex::encode(List::default().integer(&number.to_be_bytes()).payload)
    }

    /// The examples of the Ethereum documentation of RLP.
    #[test]
    fn the_known_examples_hold() {
        assert_eq!(item(b"dog"), "83646f67");
        assert_eq!(item(b""), "80");
        assert_eq!(item(b"\x00"), "00");
        assert_eq!(item(b"\x0f"), "0f");
        assert_eq!(item(b"\x7f"), "7f");
        assert_eq!(item(b"\x80"), "8180");
        assert_eq!(item(b"\x04\x00"), "820400");
        assert_eq!(
            item(b"Lorem ipsum dolor sit amet, consectetur adipisicing elit"),
            format!("b838{}", hex::encode("Lorem ipsum dolor sit amet, consectetur adipisicing elit"))
        );
        assert_eq!((number(0), number(15), number(1_024)), ("80".to_owned(), "0f".to_owned(), "820400".to_owned()));
        assert_eq!(hex::encode(List::default().encode()), "c0");
        assert_eq!(hex::encode(List::default().bytes(b"cat").bytes(b"dog").encode()), "c88363617483646f67");
        let one = List::default().list(List::default());
        let two = List::default().list(List::default()).list(one.clone());
        assert_eq!(hex::encode(List::default().list(one.clone()).encode()), "c2c1c0");
        assert_eq!(
            hex::encode(List::default().list(List::default()).list(one).list(two).encode()),
            "c7c0c1c0c3c0c1c0",
            "the set-theoretic three"
        );
    }

    #[test]
    fn lengths_switch_form_at_56_and_at_256() {
        for (length, head) in [(55, "b7"), (56, "b838"), (255, "b8ff"), (256, "b90100"), (65_536, "ba010000")] {
            let text = item(&vec![1; length]);
            assert_eq!(&text[..text.len() - 2 * length], head, "{length}");
            let list = hex::encode(List { payload: vec![1; length] }.encode());
            let byte = u8::from_str_radix(&head[..2], 16).expect("hex") + 0x40;
            assert_eq!(&list[..list.len() - 2 * length], format!("{byte:02x}{}", &head[2..]), "{length}");
        }
    }
}
