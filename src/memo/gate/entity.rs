//! Whether the text names another company or country than the cited fact is of (decision 9: entity).

use std::sync::LazyLock;

use super::index::Index;
use crate::memo::fact::Fact;
use crate::memo::figure::token::Kind;
use crate::memo::figure::{Found, Scan};

/// What `entities.txt` says.
struct Names {
    forms: Vec<&'static str>,
    plain: Vec<&'static str>,
    aside: Vec<&'static str>,
    /// Full names of countries, and their names in prose.
    countries: Vec<(&'static str, &'static str)>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let lines = || include_str!("entities.txt").lines().filter_map(|line| line.split_once(": "));
    let of = |class: &str| lines().filter(|(name, _)| *name == class).flat_map(|(_, rest)| rest.split(' ')).collect();
    Names {
        forms: of("form"),
        plain: of("plain"),
        aside: of("aside"),
        countries: lines()
            .filter(|(name, _)| *name == "country")
            .filter_map(|(_, rest)| rest.split_once(" | "))
            .collect(),
    }
});

fn any(words: &[&str], text: &[u8]) -> bool {
    words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

/// What a segment names.
#[derive(Clone, Debug, Default)]
pub(super) struct Named<'a> {
    /// A company before its legal form.
    company: Option<&'a [u8]>,
    /// A country in the possessive.
    country: Option<&'static str>,
    /// Entities of the snapshot that are spoken of, by their places in the index; more than one contradicts none.
    subjects: Vec<&'a str>,
}

/// Reads what the segment names; one pass over its capitals.
pub(super) fn read<'a>(scan: &'a Scan<'_>, found: &Found, index: &Index<'a>) -> Named<'a> {
    let mut out = Named::default();
    if !index.has_entities() {
        return out;
    }
    let names = &*NAMES;
    let text = |at: usize| scan.tokens[at].text(&scan.clean.bytes);
    for at in found.segment.first..found.segment.last {
        if scan.tokens[at].kind != Kind::Word {
            continue;
        }
        let own = text(at);
        if !own.first().is_some_and(u8::is_ascii_uppercase) {
            continue;
        }
        let before = if at > found.segment.first { text(at - 1) } else { b"" };
        let follows = scan.tokens[at].kind == Kind::Word && before.first().is_some_and(u8::is_ascii_uppercase);
        if follows && names.forms.iter().any(|form| form.as_bytes() == own) {
            out.company = Some(before);
        }
        let owner = at + 2 < found.segment.last && scan.tokens[at + 1].sign(b'\'') && scan.tokens[at + 2].glued();
        if owner
            && let Some(&(full, _)) =
                names.countries.iter().find(|(_, short)| own.eq_ignore_ascii_case(short.as_bytes()))
        {
            out.country = Some(full);
        }
        // of several entities in a snapshot each is known by the first word of its name
        if let Some(entity) = index.entity(own).filter(|_| !any(&names.aside, before))
            && !out.subjects.contains(&entity)
        {
            out.subjects.push(entity);
        }
    }
    out
}

/// Whether a name that owns a measure is no company: "management's", "the Street's".
pub(super) fn plain(name: &[u8]) -> bool {
    let letters = name.iter().all(u8::is_ascii_alphabetic);
    // a run of capitals may be the ticker of the company whose name is told
    let ticker = name.len() <= 5 && name.iter().all(u8::is_ascii_uppercase);
    let country = NAMES.countries.iter().any(|(_, short)| name.eq_ignore_ascii_case(short.as_bytes()));
    !letters || ticker || country || any(&NAMES.plain, name) || !name.first().is_some_and(u8::is_ascii_uppercase)
}

/// Whether an entity's name holds a word.
pub(super) fn holds(entity: &str, name: &[u8]) -> bool {
    let bytes = entity.as_bytes();
    !name.is_empty() && bytes.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name))
}

/// Whether the names contradict the entity of a fact.
pub(super) fn contradicts(fact: &Fact, named: &Named<'_>) -> bool {
    let Some(entity) = fact.entity.as_deref() else { return false };
    let country = NAMES.countries.iter().any(|(full, _)| *full == entity);
    let other_company = named.company.is_some_and(|company| !country && !holds(entity, company));
    let other_subject = matches!(named.subjects.as_slice(), [only] if *only != entity);
    other_company || other_subject || country && named.country.is_some_and(|named| named != entity)
}
