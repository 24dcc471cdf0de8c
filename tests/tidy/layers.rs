//! The direction of dependency: a module may use its own layer and the ones below.

use super::tree::{File, in_name};

/// The layers, lowest first. A module that stands in no list fails the test: place it here first.
const LAYERS: [(&str, &[&str]); 6] = [
    ("vocabulary", &["canonical", "clock", "evm", "limits", "money", "strict_json"]),
    ("domain", &["call_chain", "machine", "refusal", "trust", "x402", "memo", "proof", "catalog"]),
    ("adapters", &["fault", "postgres", "store", "source", "synth", "facilitator", "chain_rpc", "signer"]),
    ("application", &["paywall", "pipeline", "procure", "ledger", "engine"]),
    ("faces", &["http", "mcp", "cli"]),
    ("composition", &["config", "telemetry", "app"]),
];

/// What an adapter implements: traits that stand above it because their user owns them.
const PORTS: [(&str, &str); 2] = [("pipeline", "port"), ("paywall", "port")];

/// Upward edges that are meant. `http` is not here: its handlers get their state from a struct of their own.
const MEANT: [(&str, &str, &str); 3] = [
    ("cli", "app", "a command starts the service"),
    ("cli", "config", "a command loads the settings"),
    ("cli", "telemetry", "a command that serves installs the log"),
];

/// The layer of a top-level module, from 0.
pub(crate) fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, modules)| modules.contains(&module))
}

/// Uses of a higher layer in the code of one file.
pub(crate) fn upward_edges(file: &File) -> Vec<String> {
    let Some((from, own)) = place(file) else { return Vec::new() };
    let mut found: Vec<String> = paths(file)
        .into_iter()
        .filter_map(|path| complaint(from, own, &path))
        .map(|what| format!("{}: {what}", file.path))
        .collect();
    found.dedup();
    found
}

/// A source file whose module stands in no list.
pub(crate) fn unplaced(file: &File) -> Vec<String> {
    match file.module() {
        Some("lib" | "main") | None => Vec::new(),
        Some(module) if layer(module).is_some() => Vec::new(),
        Some(module) => vec![format!("{}: `{module}` has no place in tests/tidy/layers.rs", file.path)],
    }
}

fn place(file: &File) -> Option<(&str, usize)> {
    let module = file.module()?;
    Some((module, layer(module)?))
}

fn complaint(from: &str, own: usize, path: &[String]) -> Option<String> {
    let to = path.first()?;
    let Some(other) = layer(to) else { return Some(format!("uses crate::{to}, which has no place")) };
    let through_port = own == 2 && path.get(1).is_some_and(|second| PORTS.contains(&(to, second)));
    let meant = MEANT.iter().any(|(user, used, _)| *user == from && used == to);
    (other > own && !through_port && !meant)
        .then(|| format!("{} ({}) uses crate::{} ({})", from, LAYERS[own].0, path.join("::"), LAYERS[other].0))
}

/// Every path from the root of the crate that the file names: `crate::a::b`, `use crate::{a, b::c}`, and `super::`
/// chains long enough to leave the top-level module.
fn paths(file: &File) -> Vec<Vec<String>> {
    let text: Vec<char> = file.code().chars().collect();
    let depth = file.path.matches('/').count();
    let mut found = Vec::new();
    for at in starts(&text) {
        let mut rest = &text[at..];
        let mut supers = 0;
        while let Some(after) = strip(rest, "super::") {
            (supers, rest) = (supers + 1, after);
        }
        if supers >= depth && supers > 0 {
            expand(rest, Vec::new(), &mut found);
        } else if let Some(rest) = strip(rest, "crate::") {
            expand(rest, Vec::new(), &mut found);
        }
    }
    found
}

fn starts(text: &[char]) -> Vec<usize> {
    (0..text.len())
        .filter(|&at| at == 0 || !in_name(text[at - 1]) && text[at - 1] != ':')
        .filter(|&at| strip(&text[at..], "crate::").is_some() || strip(&text[at..], "super::").is_some())
        .collect()
}

fn strip<'a>(text: &'a [char], word: &str) -> Option<&'a [char]> {
    let word: Vec<char> = word.chars().collect();
    text.strip_prefix(word.as_slice())
}

/// Reads one tree of a path, and gives what follows it.
fn expand<'a>(text: &'a [char], mut prefix: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a [char] {
    let mut rest = text;
    loop {
        rest = skip_space(rest);
        if let Some(mut inner) = strip(rest, "{") {
            loop {
                inner = skip_space(expand(inner, prefix.clone(), found));
                match inner.first() {
                    Some(',') => inner = &inner[1..],
                    Some(_) => return &inner[1..],
                    None => return inner,
                }
            }
        }
        let name: String = rest.iter().take_while(|c| in_name(**c)).collect();
        rest = &rest[name.chars().count()..];
        if !name.is_empty() && name != "self" {
            prefix.push(name);
        }
        match strip(rest, "::") {
            Some(after) => rest = after,
            None => break,
        }
    }
    if !prefix.is_empty() {
        found.push(prefix);
    }
    match strip(skip_space(rest), "as ") {
        Some(alias) => skip_name(skip_space(alias)),
        None => rest,
    }
}

fn skip_space(text: &[char]) -> &[char] {
    &text[text.iter().take_while(|c| c.is_whitespace()).count()..]
}

fn skip_name(text: &[char]) -> &[char] {
    &text[text.iter().take_while(|c| in_name(**c)).count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(path: &str, text: &str) -> Vec<String> {
        upward_edges(&File::new(path, text))
    }

    #[test]
    fn an_upward_edge_is_found_in_every_spelling() {
        for text in [
            "use crate::paywall::Verified;",
            "use crate::{limits, paywall::Verified as Paid};",
            "use crate::{\n    limits::{self, A},\n    money as m,\n    paywall,\n};",
            "fn f() -> crate::paywall::Verified { todo() }",
            "use super::super::paywall::Verified;",
            "pub use crate::pipeline::{run, port::Source};",
            "use crate::{pipeline::{port, run}};",
        ] {
            assert_eq!(edges("src/store/orders.rs", text).len(), 1, "{text}");
        }
        assert_eq!(edges("src/memo.rs", "use super::http::Router;").len(), 1);
        assert_eq!(edges("src/http/research.rs", "use crate::app::App;").len(), 1);
        assert_eq!(edges("src/limits.rs", "use crate::nowhere::X;").len(), 1);
    }

    #[test]
    fn ports_neighbours_and_lower_layers_are_allowed() {
        for text in [
            "use crate::pipeline::port::{Source, SourceError};",
            "use crate::{limits, memo::Fact, paywall::port};",
            "use super::row::Row;",
            "// use crate::http::Router;",
            "#[cfg(test)]\nmod tests {\n    use crate::http::Router;\n}",
        ] {
            assert_eq!(edges("src/store/orders.rs", text), Vec::<String>::new(), "{text}");
        }
        assert!(edges("src/cli/serve.rs", "use crate::{app::App, config::Config};").is_empty());
        assert!(edges("src/app.rs", "use crate::{http, store, config};").is_empty());
    }

    #[test]
    fn a_port_is_no_door_for_the_domain() {
        assert_eq!(edges("src/memo/gate.rs", "use crate::pipeline::port::Source;").len(), 1);
    }

    #[test]
    fn a_module_without_a_place_is_found() {
        assert_eq!(unplaced(&File::new("src/astrology/mars.rs", "")).len(), 1);
        assert!(unplaced(&File::new("src/store/orders.rs", "")).is_empty());
    }
}
