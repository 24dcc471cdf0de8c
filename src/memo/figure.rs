//! Extraction: every figure of a text, with what it shows and where, and every citation.
//!
//! Implements sections 1 (decisions 1, 2, 3, 5, 6, 12) and 2 of the gate's specification. It knows no facts: which fact a
//! figure states is decided in [`super::gate`]. Hand-written and linear in the text.

pub(crate) mod clean;
pub(crate) mod currency;
pub(crate) mod inert;
mod lead;
pub(crate) mod lexicon;
mod numeral;
mod part;
mod range;
mod read;
pub(crate) mod segment;
mod spelled;
mod suffix;
pub(crate) mod token;
mod view;
mod words;

use rust_decimal::Decimal;

use self::clean::Clean;
use self::lexicon::class;
use self::numeral::Numeral;
use self::segment::Segment;
use self::token::{Kind, Token};
use self::view::View;
use super::fact::Currency;
use crate::limits;

/// Which currency a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A currency that its sign, code or name tells.
    Of(Currency),
    /// The sign that yen and yuan share.
    YenOrYuan,
    /// Hundredths, of a currency with cents.
    Cents,
    /// A currency sign that is not known here.
    Unknown,
}

/// What a figure counts, as far as the text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A number with nothing after it.
    Bare,
    /// Money.
    Money(Mark),
    /// Percent.
    Percent,
    /// Percentage points.
    Points,
    /// Hundredths of a percentage point.
    BasisPoints,
    /// A multiple or a ratio to one.
    Multiple,
    /// A share of a whole, in words: a third.
    Fraction,
    /// A multiple in a verb: doubled.
    Growth,
}

/// The sign that the text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// None.
    Bare,
    /// A plus.
    Plus,
    /// A minus, the word, or brackets that mean one.
    Minus,
    /// Brackets that may be an apposition.
    Brackets,
}

/// How exactly the text means the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hedge {
    /// As shown.
    Exact,
    /// About.
    About,
    /// Nearly: about, and the fact lies below.
    Nearly,
    /// The fact lies above.
    Over,
    /// The fact lies below.
    Under,
}

/// What a noun after the figure says that it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Nothing.
    Unsaid,
    /// Shares of stock.
    Shares,
    /// Physical units.
    Units,
    /// Points, of an index or of percentages.
    Points,
}

/// One figure of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Where it begins in the text as given.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The magnitude; none when the figure cannot be read or is beyond the arithmetic.
    pub magnitude: Option<Decimal>,
    /// One unit of the last digit shown, after the scale.
    pub quantum: Decimal,
    /// One unit of the last digit that is not zero.
    pub coarse_quantum: Decimal,
    /// Digits shown without the zeros at either end.
    pub significant: u32,
    /// What it counts.
    pub measure: Measure,
    /// Its sign.
    pub sign: Sign,
    /// How exactly it is meant.
    pub hedge: Hedge,
    /// Whether it is said to be for one share.
    pub per_share: bool,
    /// What it counts by its noun.
    pub counted: Counted,
    /// Whether it says to be a ratio.
    pub ratio: bool,
    /// Whether a scale word or letter belongs to it.
    pub scaled: bool,
    /// The power of ten of those words.
    pub scale: i32,
    /// The power of ten that a header gives to figures without a scale.
    pub header_exponent: i32,
    /// First token, and the token after the last.
    pub(crate) tokens: (usize, usize),
}

/// A citation bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) token: usize,
}

/// The figures and citations of one segment.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) segment: Segment,
    pub(crate) figures: Vec<Figure>,
    pub(crate) citations: Vec<Citation>,
}

/// A text taken apart.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) text: &'a str,
    pub(crate) clean: Clean,
    pub(crate) tokens: Vec<Token>,
    /// Whether any mark reorders the text.
    reorders: bool,
}

impl<'a> Scan<'a> {
    /// Normalises and cuts a text.
    pub(crate) fn new(text: &'a str) -> Self {
        let clean = clean::clean(text);
        let tokens = token::tokens(&clean.bytes);
        let reorders = clean.bytes.contains(&clean::code::REORDER);
        Self { text, clean, tokens, reorders }
    }

    /// The figures and citations, segment by segment.
    pub(crate) fn found(&self) -> impl Iterator<Item = Found> {
        let mut header = Header::default();
        segment::segments(&self.clean.bytes, &self.tokens)
            .into_iter()
            .map(move |segment| self.scan(segment, &mut header))
    }

    fn scan(&self, segment: Segment, header: &mut Header) -> Found {
        let view = View { bytes: &self.clean.bytes, tokens: &self.tokens, segment };
        let mut found = Found { segment, figures: Vec::new(), citations: Vec::new() };
        let reordered =
            self.reorders && self.tokens[segment.first..segment.last].iter().any(|t| t.sign(clean::code::REORDER));
        let own = header.enter(&view);
        let mut at = segment.first;
        while at < segment.last {
            let token = &self.tokens[at];
            if token.kind == Kind::Citation {
                found.citations.push(Citation { token: at });
                at += 1;
                continue;
            }
            if !may_begin(&view, at, token) {
                at += 1;
                continue;
            }
            if let Some(end) = inert::skip(&view, at) {
                at = end.max(at + 1);
                continue;
            }
            match read::figure(&view, at, own) {
                Some(raw) => {
                    at = raw.last.max(at + 1);
                    let mut figure = self.figure(&raw);
                    let full = found.figures.len() + 1 >= limits::SEGMENT_FIGURES_MAX;
                    if reordered || full {
                        figure.magnitude = None;
                    }
                    found.figures.push(figure);
                    if full {
                        return found;
                    }
                }
                None => at += 1,
            }
        }
        range::share_units(&view, &mut found.figures);
        found
    }

    fn figure(&self, raw: &read::Raw) -> Figure {
        let first = self.tokens.get(raw.first).map_or(0, |t| t.start as usize);
        let last = raw.last.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(0, |t| t.end as usize);
        let value = raw.numeral.and_then(decimal);
        let mantissa = raw.numeral.map_or(0, |n| n.mantissa);
        let zeros = trailing_zeros(mantissa);
        let exponent = raw.numeral.map_or(0, |n| n.exponent);
        Figure {
            start: self.clean.start(first),
            end: self.clean.end(last, self.text),
            magnitude: value,
            quantum: power(exponent),
            coarse_quantum: power(exponent.saturating_add(zeros as i32)),
            significant: digits(mantissa) - zeros,
            measure: raw.measure,
            sign: raw.sign,
            hedge: raw.hedge,
            per_share: raw.per_share,
            counted: raw.counted,
            ratio: raw.ratio,
            scaled: raw.scaled,
            scale: raw.scale,
            header_exponent: raw.header_exponent,
            tokens: (raw.first, raw.last),
        }
    }
}

/// Words that can begin a figure by themselves.
const BEGINNERS: u64 = class::UNIT
    | class::TENS
    | class::SCALE
    | class::DOZEN
    | class::NIL
    | class::NO
    | class::FRACTION
    | class::MULTIPLE
    | class::BARE_MULTIPLE
    | class::HALVED;

/// Whether a figure, or digits that are none, may begin at a token. Most words and signs begin nothing, and are passed by.
fn may_begin(view: &View<'_>, at: usize, token: &Token) -> bool {
    match token.kind {
        Kind::Number => true,
        Kind::Sign(sign) => matches!(sign, b'$' | b'+' | b'[' | 0x80..=0x89 | 0x91 | 0xa0..=0xb4),
        Kind::Word => {
            if token.is(BEGINNERS) {
                return true;
            }
            view.get(at + 1).is_some_and(|next| match next.kind {
                Kind::Number => true,
                Kind::Sign(b'.' | b',' | b')' | b'\'' | b'|') => next.sign(b'.') && token.is(class::REF | class::MONTH),
                Kind::Sign(sign) => next.glued() || matches!(sign, b'$' | b'#'),
                Kind::Word => {
                    next.glued()
                        || next.is(class::SCALE)
                        || token.is(class::A) && next.is(class::FRACTION | class::DOZEN)
                }
                Kind::Citation => false,
            })
        }
        Kind::Citation => false,
    }
}

/// Every figure of a text, in order.
pub fn extract(text: &str) -> Vec<Figure> {
    Scan::new(text).found().flat_map(|found| found.figures).collect()
}

/// The scale of a table: "($ in millions)".
#[derive(Clone, Copy, Debug, Default)]
struct Header {
    exponent: i32,
    in_rows: bool,
}

impl Header {
    /// The exponent that holds in this segment.
    fn enter(&mut self, view: &View<'_>) -> i32 {
        let Segment { first, last, row } = view.segment;
        let said = (first..last).find(|&i| {
            let token = &view.tokens[i];
            let plural = token.is(class::SCALE) && view.text(i).last() == Some(&b's') && view.text(i).len() > 5;
            plural
                && (matches!(view.text(i - usize::from(i > first)), b"in" | b"In" | b"$")
                    || view.before_is(i, class::SHARE_ADJECTIVE))
        });
        match said {
            Some(i) => {
                self.exponent = i32::from(view.tokens[i].word.value);
                self.in_rows = row;
            }
            None if row => self.in_rows = true,
            None if self.in_rows || !is_heading(view) => *self = Self::default(),
            None => {}
        }
        self.exponent
    }
}

fn is_heading(view: &View<'_>) -> bool {
    !view.tokens[view.segment.first..view.segment.last].iter().any(|t| t.sign(b'.') || t.kind == Kind::Citation)
}

/// The decimal of a numeral, when it fits.
fn decimal(numeral: Numeral) -> Option<Decimal> {
    let mantissa = i128::try_from(numeral.mantissa).ok()?;
    if mantissa == 0 {
        return Some(Decimal::ZERO);
    }
    match u32::try_from(-numeral.exponent) {
        Ok(scale) if scale <= 28 => Decimal::try_from_i128_with_scale(mantissa, scale).ok(),
        Ok(_) => None,
        Err(_) => {
            let power = 10i128.checked_pow(u32::try_from(numeral.exponent).ok()?)?;
            Decimal::try_from_i128_with_scale(mantissa.checked_mul(power)?, 0).ok()
        }
    }
}

/// Ten to a power, kept within what a decimal holds.
pub(crate) fn power(exponent: i32) -> Decimal {
    match u32::try_from(-exponent) {
        Ok(scale) => Decimal::new(1, scale.min(28)),
        Err(_) => 10i128
            .checked_pow(exponent.unsigned_abs())
            .and_then(|n| Decimal::try_from_i128_with_scale(n, 0).ok())
            .unwrap_or(Decimal::MAX),
    }
}

fn trailing_zeros(mut n: u128) -> u32 {
    let mut zeros = 0;
    // nearly all fit 64 bits, which divide many times faster
    if let Ok(mut small) = u64::try_from(n) {
        while small != 0 && small.is_multiple_of(10) {
            small /= 10;
            zeros += 1;
        }
        return zeros;
    }
    while n != 0 && n.is_multiple_of(10) {
        n /= 10;
        zeros += 1;
    }
    zeros
}

fn digits(n: u128) -> u32 {
    match u64::try_from(n) {
        Ok(small) => small.checked_ilog10().map_or(1, |d| d + 1),
        Err(_) => n.ilog10() + 1,
    }
}
