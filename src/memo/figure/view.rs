//! One segment's tokens with the questions that the rules ask of them. It decides nothing.

use super::lexicon::class;
use super::numeral::{self, Reading};
use super::segment::Segment;
use super::token::{Kind, Token};

/// The segment under the scanner's eye.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) tokens: &'a [Token],
    pub(crate) segment: Segment,
}

impl<'a> View<'a> {
    /// The token at a position of this segment.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&'a Token> {
        if at < self.segment.last { self.tokens.get(at) } else { None }
    }

    /// The token before a position, in this segment.
    #[inline]
    pub(crate) fn before(&self, at: usize) -> Option<&'a Token> {
        if at > self.segment.first { self.tokens.get(at - 1) } else { None }
    }

    /// The clean bytes of a token.
    #[inline]
    pub(crate) fn text(&self, at: usize) -> &'a [u8] {
        self.get(at).map_or(&[], |t| t.text(self.bytes))
    }

    #[inline]
    pub(crate) fn is(&self, at: usize, classes: u64) -> bool {
        self.get(at).is_some_and(|t| t.is(classes))
    }

    #[inline]
    pub(crate) fn before_is(&self, at: usize, classes: u64) -> bool {
        self.before(at).is_some_and(|t| t.is(classes))
    }

    #[inline]
    pub(crate) fn sign(&self, at: usize, byte: u8) -> bool {
        self.get(at).is_some_and(|t| t.sign(byte))
    }

    #[inline]
    pub(crate) fn glued(&self, at: usize, kind: Kind) -> bool {
        self.get(at).is_some_and(|t| t.glued() && t.kind == kind)
    }

    #[inline]
    pub(crate) fn glued_sign(&self, at: usize, byte: u8) -> bool {
        self.glued(at, Kind::Sign(byte))
    }

    #[inline]
    pub(crate) fn cited(&self, at: usize) -> bool {
        self.get(at).is_some_and(|t| t.kind == Kind::Citation)
    }

    /// The value of a plain run of digits.
    pub(crate) fn integer(&self, at: usize) -> Option<u128> {
        let token = self.get(at)?;
        let text = token.text(self.bytes);
        if token.kind != Kind::Number || text.len() > 20 || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(text.iter().fold(0, |n, b| n * 10 + u128::from(b - b'0')))
    }

    /// A run of four digits that can be a year.
    pub(crate) fn year(&self, at: usize) -> Option<u16> {
        let year = self.integer(at)?;
        ((1900..2100).contains(&year) && self.text(at).len() == 4).then_some(year as u16)
    }

    pub(crate) fn capital(&self, at: usize) -> bool {
        self.text(at).first().is_some_and(u8::is_ascii_uppercase)
    }

    /// Whether what follows says that the number before is an amount after all.
    pub(crate) fn amount_follows(&self, at: usize) -> bool {
        match self.get(at) {
            Some(t) => {
                let code = t.end - t.start == 3 && self.text(at).iter().all(u8::is_ascii_uppercase);
                let noun = at + 1 + usize::from(self.sign(at + 1, b'.'));
                // "U.S. dollars", "Swiss francs"
                let adjective =
                    self.capital(at) && self.get(noun).is_some_and(|n| n.word.currency != 0 && n.end - n.start > 3);
                let name = t.word.currency != 0 && (code || t.end - t.start > 3 && self.text(at).last() == Some(&b's'))
                    || adjective;
                t.sign(b'%')
                    || t.sign(b'$')
                    || name
                    || t.is(class::SCALE | class::PERCENT | class::BPS | class::POINTS | class::BASIS)
                        && t.end - t.start > 1
            }
            None => false,
        }
    }

    /// The token after a chain of touching letters and digits.
    pub(crate) fn chain_end(&self, mut at: usize) -> usize {
        at += 1;
        while self.get(at).is_some_and(|t| t.glued() && matches!(t.kind, Kind::Word | Kind::Number)) {
            at += 1;
        }
        at
    }

    /// The number that the digits of a token spell.
    pub(crate) fn reading(&self, at: usize) -> Reading {
        numeral::read(self.text(at))
    }
}
