//! The facts of one snapshot as the gate looks them up: by id, and by the name of what they measure.

use std::collections::HashMap;

use super::conflict::conflicts;
use super::label;
use crate::memo::fact::Fact;

/// Ids `C1` to this number are found without hashing; a snapshot never holds more facts.
const NUMBERED_MAX: usize = 1024;

/// A fact with what is known of it before any text is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) fact: &'a Fact,
    /// Whether a primary fact contradicts it.
    pub(super) conflicting: bool,
    /// The measure of the lexicon that its label names.
    pub(super) metric: Option<usize>,
    /// Its label without what stands in brackets or after a comma.
    pub(super) head: &'a str,
}

/// Facts by id and by name.
pub(super) struct Index<'a> {
    known: Vec<Known<'a>>,
    /// Position of `C<n>` in `known`, one more; zero when there is none.
    numbered: Vec<u16>,
    /// Ids of any other shape.
    others: HashMap<&'a str, usize>,
    /// Heads of labels by their last letter, the longest first.
    heads: Vec<Vec<&'a str>>,
    /// Entities by the first word of their names; none when all facts are of one.
    entities: Vec<(&'a str, &'a str)>,
    /// Whether any fact has an entity.
    owned: bool,
}

impl<'a> Index<'a> {
    pub(super) fn new(facts: &'a [Fact]) -> Self {
        let mut out = Self {
            known: Vec::with_capacity(facts.len()),
            numbered: Vec::new(),
            others: HashMap::new(),
            heads: vec![Vec::new(); label::LETTERS],
            entities: entities(facts),
            owned: facts.iter().any(|fact| fact.entity.is_some()),
        };
        for (at, fact) in facts.iter().enumerate() {
            let head = label::head(&fact.label);
            out.known.push(Known { fact, conflicting: false, metric: label::metric(head), head });
            match number(&fact.id) {
                Some(n) => {
                    if out.numbered.len() <= n {
                        out.numbered.resize(n + 1, 0);
                    }
                    out.numbered[n] = u16::try_from(at + 1).unwrap_or(0);
                }
                None => {
                    out.others.insert(&fact.id, at);
                }
            }
            let heads = &mut out.heads[label::last_letter(head.as_bytes())];
            if !head.is_empty() && !heads.contains(&head) {
                heads.push(head);
            }
        }
        for heads in &mut out.heads {
            heads.sort_by_key(|head| std::cmp::Reverse(head.len()));
        }
        for conflict in conflicts(facts) {
            if let Some(at) = out.position(&conflict.peer) {
                out.known[at].conflicting = true;
            }
        }
        out
    }

    /// The place of a fact among the facts.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        match number(id) {
            Some(n) => usize::from(self.numbered.get(n).copied()?).checked_sub(1),
            None => self.others.get(id).copied(),
        }
    }

    /// The fact with this id.
    pub(super) fn get(&self, id: &str) -> Option<&Known<'a>> {
        self.known.get(self.position(id)?)
    }

    /// How many facts there are.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether any fact tells whose it is.
    pub(super) fn has_entities(&self) -> bool {
        self.owned
    }

    /// The entity whose name begins with a word, where the facts are of several.
    pub(super) fn entity(&self, word: &[u8]) -> Option<&'a str> {
        self.entities.iter().find(|(first, _)| first.as_bytes() == word).map(|&(_, entity)| entity)
    }

    /// Heads of labels that end in the letter that the text ends in.
    pub(super) fn heads(&self, text: &[u8]) -> &[&'a str] {
        &self.heads[label::last_letter(text)]
    }
}

/// The entities of the facts by the first word of their names, when there are several that those words tell apart.
fn entities(facts: &[Fact]) -> Vec<(&str, &str)> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for entity in facts.iter().filter_map(|fact| fact.entity.as_deref()) {
        if out.iter().all(|(_, known)| *known != entity) {
            let first = entity.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            out.push((first, entity));
        }
    }
    let apart = |(word, entity): &(&str, &str)| !out.iter().any(|(w, e)| w == word && e != entity);
    if out.len() > 1 && out.iter().all(apart) { out } else { Vec::new() }
}

/// The number of a plain id: `C12`, not `C012`, which is another id.
fn number(id: &str) -> Option<usize> {
    let digits = id.strip_prefix('C')?.as_bytes();
    if digits.is_empty() || digits.len() > 4 || digits[0] == b'0' || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let n = digits.iter().fold(0, |n, b| n * 10 + usize::from(b - b'0'));
    (n <= NUMBERED_MAX).then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_without_leading_zeros_are_numbers() {
        assert_eq!((number("C1"), number("C1024")), (Some(1), Some(1024)));
        assert_eq!([number("C0"), number("C01"), number("C"), number("1"), number("C1025"), number("C1x")], [None; 6]);
    }
}
