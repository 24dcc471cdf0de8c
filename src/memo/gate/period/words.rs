//! The words around a time that tell its role, from `periods.txt`.

use std::sync::LazyLock;

/// The word lists of `periods.txt`.
pub(super) struct Words {
    pub(super) aside: List,
    pub(super) place: List,
    pub(super) inside: List,
    pub(super) owner: List,
    pub(super) name: List,
}

/// Words by their first letter.
pub(super) struct List(Vec<Vec<&'static str>>);

impl List {
    fn of(words: &'static str) -> Self {
        let mut out = vec![Vec::new(); 128];
        for word in words.split(' ') {
            out[first_letter(word.as_bytes())].push(word);
        }
        Self(out)
    }

    pub(super) fn has(&self, text: &[u8]) -> bool {
        self.0[first_letter(text)].iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
    }
}

fn first_letter(word: &[u8]) -> usize {
    usize::from(word.first().map_or(0, |b| b.to_ascii_lowercase() & 0x7f))
}

pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let of = |name: &str| {
        let lines = include_str!("../periods.txt").lines().filter(|line| !line.starts_with('#'));
        let words = lines.filter_map(|line| line.split_once(": ")).find(|(class, _)| *class == name);
        List::of(words.map_or("", |(_, words)| words))
    };
    Words { aside: of("aside"), place: of("place"), inside: of("inside"), owner: of("owner"), name: of("name") }
});
