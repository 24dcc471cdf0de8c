//! The table that a row belongs to: what stands over each column and at the head of each row.

use super::agree::same_currency;
use super::period::{self, Mention};
use crate::memo::fact::Currency;
use crate::memo::figure::token::{Kind, Token};
use crate::memo::figure::{Figure, Found, Mark, Scan, currency, lexicon};

/// Columns that are looked at; a wider table is read without its header.
const COLUMNS_MAX: usize = 64;

/// Tokens of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    first: usize,
    last: usize,
}

impl Cell {
    /// The cell's text as the scanner reads it.
    pub(super) fn text<'a>(&self, scan: &'a Scan<'_>) -> &'a [u8] {
        let bytes = |i: usize| scan.tokens.get(i);
        match (bytes(self.first), self.last.checked_sub(1).and_then(bytes)) {
            (Some(first), Some(last)) if self.first < self.last => {
                scan.clean.bytes.get(first.start as usize..last.end as usize).unwrap_or_default()
            }
            _ => &[],
        }
    }
}

/// The header of the table that is being read, if any.
#[derive(Debug, Default)]
pub(super) struct Table {
    header: Vec<Cell>,
    times: Vec<Mention>,
}

impl Table {
    /// Takes note of a segment: the first row of a table is its header.
    pub(super) fn enter(&mut self, scan: &Scan<'_>, found: &Found) {
        if !found.segment.row {
            self.header.clear();
            self.times.clear();
        } else if self.header.is_empty() && found.figures.is_empty() {
            let columns = scan.tokens[found.segment.first..found.segment.last].iter().filter(|t| t.sign(b'|')).count();
            if columns <= COLUMNS_MAX {
                self.header = cells(scan, found);
                self.times = period::read(scan, found);
            }
        }
    }

    /// The head of a row, and that of one of its columns, counted from one.
    pub(super) fn heads(&self, scan: &Scan<'_>, found: &Found, column: usize) -> [Option<Cell>; 2] {
        let row = (column > 1).then(|| cell(scan, found, found.segment.first + 1));
        [row, column.checked_sub(1).and_then(|i| self.header.get(i).copied())]
    }

    /// Whether the nearest head that names a currency names another than this: the column's, the row's, then the table's corner.
    pub(super) fn foreign(&self, scan: &Scan<'_>, found: &Found, column: usize, currency: Currency) -> bool {
        let [row, over] = self.heads(scan, found, column);
        let corner = self.header.first().copied();
        let named = [over, row, corner].into_iter().flatten().map(|cell| marks(scan, cell)).find(|m| !m.is_empty());
        named.is_some_and(|marks| marks.iter().all(|&mark| same_currency(mark, currency).is_err()))
    }

    /// The only time that stands over a column.
    pub(super) fn time(&self, column: usize) -> Option<&Mention> {
        let over = self.header.get(column.checked_sub(1)?)?;
        let mut within = self.times.iter().filter(|t| t.first >= over.first && t.last <= over.last);
        within.next().filter(|_| within.next().is_none())
    }
}

/// The column of every figure of a row, from one; zero outside tables.
pub(super) fn columns(scan: &Scan<'_>, found: &Found) -> Vec<usize> {
    if !found.segment.row {
        return Vec::new();
    }
    let (mut at, mut column) = (found.segment.first, 0);
    let count = |figure: &Figure| {
        column += scan.tokens[at..figure.tokens.0.max(at)].iter().filter(|t| t.sign(b'|')).count();
        at = at.max(figure.tokens.0);
        column
    };
    found.figures.iter().map(count).collect()
}

/// The currencies that a cell names by a sign, a code in capitals or a name in the plural: "EUR", "in millions of euros".
fn marks(scan: &Scan<'_>, cell: Cell) -> Vec<Mark> {
    let tokens = scan.tokens.get(cell.first..cell.last).unwrap_or_default();
    let named = |text: &[u8]| match text {
        [_, _, _] => text.iter().all(u8::is_ascii_uppercase),
        _ => text.last() == Some(&b's') || text == b"yen",
    };
    let mark = |token: &Token| match token.kind {
        Kind::Sign(sign) => currency::mark_of_sign(sign),
        Kind::Word if named(token.text(&scan.clean.bytes)) => lexicon::currency(token.word).map(Mark::Of),
        Kind::Word | Kind::Number | Kind::Citation => None,
    };
    tokens.iter().filter_map(mark).collect()
}

fn cells(scan: &Scan<'_>, found: &Found) -> Vec<Cell> {
    let mut out = Vec::new();
    let mut at = found.segment.first + 1;
    while at < found.segment.last {
        let next = cell(scan, found, at);
        out.push(next);
        at = next.last + 1;
    }
    out
}

/// The cell that begins at a token.
fn cell(scan: &Scan<'_>, found: &Found, first: usize) -> Cell {
    let last = (first..found.segment.last).find(|&i| scan.tokens[i].sign(b'|')).unwrap_or(found.segment.last);
    Cell { first, last }
}
