//! The word lists of the scanner, read once from `words.txt` and `currencies.txt` into a table of packed words.

use std::sync::LazyLock;

use super::super::fact::Currency;

/// The longest word that can carry a meaning: it is packed into 16 bytes.
const WORD_BYTES_MAX: usize = 16;

/// Slots of the table; a power of two, twice the number of words, so that the table stays in the nearest caches.
const SLOTS: usize = 2048;

/// Words of 64 bits in the sieve before the table: sixteen bits a word that is known.
const SIEVE: usize = 256;

/// The bit of a small letter, in every byte.
const LOWER: u128 = u128::from_le_bytes([0x20; WORD_BYTES_MAX]);

/// What one word may mean. The value belongs to the class that carries numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
// a token holds one: packed it takes 12 bytes of the token's 24
#[repr(Rust, packed(4))]
pub(crate) struct Word {
    /// Bits of [`class`].
    pub(crate) classes: u64,
    /// The number of a numeral, the exponent of a scale, the index of a currency.
    pub(crate) value: u8,
    /// Index into the currency list, one more.
    pub(crate) currency: u8,
}

macro_rules! classes {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// Bits of [`Word::classes`], one a class of `words.txt`.
        pub(crate) mod class {
            classes!(@bits 0u32; $($name,)*);
        }
        const NAMES: &[(&str, u64)] = &[$(($text, class::$name)),*];
    };
    (@bits $n:expr; $name:ident, $($rest:ident,)*) => {
        pub(crate) const $name: u64 = 1 << ($n);
        classes!(@bits $n + 1u32; $($rest,)*);
    };
    (@bits $n:expr;) => {};
}

classes! {
    UNIT = "unit", TENS = "tens", SCALE = "scale", DOZEN = "dozen", NIL = "nil", MONTH = "month", PERCENT = "percent", BPS = "bps",
    POINTS = "points", POINT = "point", BASIS = "basis", TIMES = "times", PER = "per", SHARE = "share", SHARE_WORD = "shareword",
    UNIT_WORD = "unitword", A = "a", SHARE_ADJECTIVE = "shareadj", TIME = "time", NOUN = "noun", ORDINAL = "ordinal",
    ORDINAL_SUFFIX = "ordsuffix", REF = "ref", INDEX = "index", YEAR_PREV = "yearprev", YEAR_STRONG = "yearstrong",
    YEAR_NEXT = "yearnext", APPROX = "approx", NEARLY = "nearly", OVER = "over", UNDER = "under", MORE = "more", LESS = "less",
    NEG = "neg", STRONG_NEG = "strongneg", NEG_WEAK = "negweak", DOWN = "down", UP = "up", POS = "pos", FILLER = "filler",
    VERB = "verb", STREET = "street", ABBREV = "abbrev", DET = "det", FRACTION = "fraction", MULTIPLE = "multiple", HALVED = "halved",
    CENTS = "cents", PENCE = "pence", NO = "no", IDIOM_NEXT = "idiomnext", THAN = "than",
    FORM = "form", MODEL = "model", EXCHANGE = "exchange", DURATION = "duration", DOLLAR_PREFIX = "dollarprefix", RATIO = "ratio",
    INVERSE = "inverse", YEAR_SOFT = "yearsoft", STOP = "stop", PEOPLE = "people", TIME_WORD = "timeword", BARE_MULTIPLE = "baremultiple",
}

struct Table {
    /// One bit a hash of a word that is known: most words of a text are not, and these bits stay in the nearest cache.
    known: Box<[u64; SIEVE]>,
    slots: Vec<(u128, Word)>,
    currencies: Vec<Currency>,
}

static TABLE: LazyLock<Table> = LazyLock::new(load);

/// The meaning of a word of clean bytes; letters of either case.
pub(crate) fn word(bytes: &[u8]) -> Word {
    pack(bytes).map_or_else(Word::default, find)
}

/// The meaning of the word `start..end` of a longer text. It is loaded at once with what follows it, where enough follows.
pub(crate) fn word_at(bytes: &[u8], start: usize, end: usize) -> Word {
    let length = end - start;
    match bytes.get(start..).and_then(|rest| rest.first_chunk::<WORD_BYTES_MAX>()) {
        Some(chunk) if length <= WORD_BYTES_MAX => find(folded(*chunk, length)),
        Some(_) => Word::default(),
        None => word(bytes.get(start..end).unwrap_or_default()),
    }
}

fn find(key: u128) -> Word {
    let table = &*TABLE;
    let hash = hash(key);
    if table.known[hash / 64 % SIEVE] >> (hash % 64) & 1 == 0 {
        return Word::default();
    }
    let mut slot = hash % SLOTS;
    loop {
        let (known, word) = table.slots[slot];
        if known == key {
            return word;
        }
        if known == 0 {
            return Word::default();
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// The currency with an index that a [`Word`] carries.
pub(crate) fn currency(word: Word) -> Option<Currency> {
    usize::from(word.currency).checked_sub(1).and_then(|i| TABLE.currencies.get(i).copied())
}

fn pack(bytes: &[u8]) -> Option<u128> {
    if bytes.is_empty() || bytes.len() > WORD_BYTES_MAX {
        return None;
    }
    let mut key = [0; WORD_BYTES_MAX];
    key[..bytes.len()].copy_from_slice(bytes);
    Some(folded(key, bytes.len()))
}

/// The first bytes of a block, of which there is at least one, with their letters made small. One bit tells letters of either
/// case apart; the other bytes of a word have it set already.
fn folded(block: [u8; WORD_BYTES_MAX], length: usize) -> u128 {
    let used = u128::MAX >> (8 * (WORD_BYTES_MAX - length));
    (u128::from_le_bytes(block) | LOWER) & used
}

fn hash(key: u128) -> usize {
    let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize
}

fn load() -> Table {
    let mut table =
        Table { known: Box::new([0; SIEVE]), slots: vec![(0, Word::default()); SLOTS], currencies: Vec::new() };
    for line in lines(include_str!("words.txt")) {
        let Some((head, words)) = line.split_once(": ") else { continue };
        let (name, value) = match head.split_once('=') {
            Some((name, value)) => (name, value.parse::<u8>().ok()),
            None => (head, None),
        };
        let bit = NAMES.iter().find(|(known, _)| *known == name).map_or(0, |&(_, bit)| bit);
        for text in words.split_whitespace() {
            put(&mut table, text, |word| {
                word.classes |= bit;
                word.value = value.unwrap_or(word.value);
            });
        }
    }
    for line in lines(include_str!("currencies.txt")) {
        let mut words = line.split_whitespace();
        let Some(code) = words.next().and_then(|code| code.parse().ok()) else { continue };
        table.currencies.push(code);
        let index = table.currencies.len() as u8;
        for text in words {
            put(&mut table, text, |word| word.currency = index);
        }
    }
    table
}

fn put(table: &mut Table, text: &str, change: impl FnOnce(&mut Word)) {
    let Some(key) = pack(text.as_bytes()) else { return };
    let hash = hash(key);
    table.known[hash / 64 % SIEVE] |= 1 << (hash % 64);
    let mut slot = hash % SLOTS;
    while table.slots[slot].0 != 0 && table.slots[slot].0 != key {
        slot = (slot + 1) % SLOTS;
    }
    table.slots[slot].0 = key;
    change(&mut table.slots[slot].1);
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_the_file_is_known_and_every_word_fits() {
        for line in lines(include_str!("words.txt")) {
            let (head, words) = line.split_once(": ").expect("a class and words");
            let name = head.split('=').next().unwrap_or_default();
            assert!(NAMES.iter().any(|(known, _)| *known == name), "{name}");
            for text in words.split_whitespace() {
                assert!(word(text.as_bytes()).classes != 0, "{text}");
            }
        }
        assert!(word(b"Billion").classes & class::SCALE != 0 && word(b"Billion").value == 9);
        assert_eq!(word(b"zzzz"), Word::default());
    }
}
