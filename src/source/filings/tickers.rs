//! The SEC's list of tickers, in memory: ticker to filer.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::text;
use crate::limits;
use crate::memo::Subject;

/// Ticker to filer. One filer may have many tickers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tickers {
    by_ticker: HashMap<String, (u64, String)>,
}

/// Why a document is no ticker list.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Not JSON, or not of this shape.
    #[error("not a ticker list: {0}")]
    Shape(#[from] serde_json::Error),
    /// A list without rows would refuse every buyer.
    #[error("the ticker list is empty")]
    Empty,
}

#[derive(Deserialize)]
struct Row<'a> {
    cik_str: u64,
    #[serde(borrow)]
    ticker: Cow<'a, str>,
    #[serde(borrow)]
    title: Cow<'a, str>,
}

impl Tickers {
    /// Reads `company_tickers.json`: an object keyed "0", "1", ... of rows. Rows that are no ticker are left out.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Error> {
        let rows: HashMap<Cow<'_, str>, Row<'_>> = serde_json::from_slice(body)?;
        let mut list = Self::default();
        for row in rows.into_values() {
            list.insert(&row.ticker, row.cik_str, &row.title);
        }
        if list.by_ticker.is_empty() { Err(Error::Empty) } else { Ok(list) }
    }

    /// Adds a ticker. One that is there already keeps the lower number, so that the order of rows does not matter.
    pub(crate) fn insert(&mut self, ticker: &str, cik: u64, name: &str) {
        if let Some(ticker) = normal(ticker)
            && self.by_ticker.get(&ticker).is_none_or(|(known, _)| cik < *known)
        {
            self.by_ticker.insert(ticker, (cik, text::plain_name(name)));
        }
    }

    /// Looks a ticker up. `brk.b` finds `BRK-B`.
    pub(crate) fn get(&self, ticker: &str) -> Option<Subject> {
        let ticker = normal(ticker)?;
        let (cik, name) = self.by_ticker.get(&ticker)?.clone();
        Some(Subject { ticker, cik, name })
    }

    /// Leaves only filers that `keep` lets through.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.by_ticker.retain(|_, (cik, _)| keep(*cik));
    }

    /// How many tickers there are.
    pub(crate) fn len(&self) -> usize {
        self.by_ticker.len()
    }
}

/// Upper case, class shares by dash; none when it is not written like a ticker.
fn normal(ticker: &str) -> Option<String> {
    let ticker = ticker.trim();
    let written = (1..=limits::TICKER_CHARS_MAX).contains(&ticker.len())
        && ticker.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
        && ticker.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    written.then(|| ticker.to_ascii_uppercase().replace('.', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = br#"{
        "0":{"cik_str":1067983,"ticker":"BRK-B","title":"BERKSHIRE HATHAWAY INC"},
        "1":{"cik_str":1067983,"ticker":"BRK-A","title":"BERKSHIRE HATHAWAY INC"},
        "2":{"cik_str":19617,"ticker":"jpm","title":"JPMORGAN <b>CHASE</b> & CO\n# x"},
        "3":{"cik_str":5,"ticker":"../X","title":"none"}}"#;

    #[test]
    fn class_shares_are_found_by_dot_or_dash_in_any_case() {
        let list = Tickers::parse(LIST).expect("reads");
        for asked in ["BRK-B", "BRK.B", "brk.b", " brk-b "] {
            let found = list.get(asked).expect(asked);
            assert_eq!((found.ticker.as_str(), found.cik), ("BRK-B", 1_067_983));
        }
        assert_eq!(list.get("BRK.A").expect("two tickers of one filer").cik, 1_067_983);
        assert_eq!(list.len(), 3);
    }

    #[test]
    fn names_are_plain_and_odd_tickers_are_none() {
        let list = Tickers::parse(LIST).expect("reads");
        assert_eq!(list.get("JPM").expect("listed").name, "JPMORGAN bCHASE/b & CO x");
        for asked in ["../X", "", "NOPE", "A B", "ABCDEFGHIJKLMN", "-A", "Å"] {
            assert_eq!(list.get(asked), None, "{asked}");
        }
    }

    #[test]
    fn no_list_is_an_error() {
        assert!(matches!(Tickers::parse(b"{}"), Err(Error::Empty)));
        assert!(matches!(Tickers::parse(b"<html>Forbidden</html>"), Err(Error::Shape(_))));
        assert!(matches!(Tickers::parse(br#"{"0":{"cik_str":"x"}}"#), Err(Error::Shape(_))));
    }
}
