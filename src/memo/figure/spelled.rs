//! Numbers in words: "forty-eight point two billion", "three hundred and two", "a million".

use super::lexicon::class;
use super::numeral::Numeral;
use super::token::{Gap, Kind, Token};

/// A number in words, and the token after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelled {
    /// A number.
    Number(Numeral, usize),
    /// Number words in an order that is no number, as digits spoken one at a time.
    Unreadable(usize),
    /// The words end in an ordinal: a rank, no amount.
    Ordinal(usize),
}

/// Longest number in words that is read; real ones stay under twenty.
const TOKENS_MAX: usize = 40;

#[derive(Default)]
struct Sum {
    /// Finished groups, in units.
    total: u128,
    /// The group being read, below the next scale word.
    group: u128,
    /// What the group may still take: below 10 after tens, below 100 after a hundred.
    room: u128,
    started: bool,
    bad: bool,
    /// The smallest power of ten shown.
    least: i32,
    last_scale: u8,
    decimals: i32,
}

/// Reads the number words that begin at `at`.
pub(crate) fn read(tokens: &[Token], at: usize, last: usize) -> Option<Spelled> {
    let mut sum = Sum { room: u128::MAX, ..Sum::default() };
    let mut i = at;
    let mut end = at;
    let mut pointed = false;
    while i < last && i - at < TOKENS_MAX {
        let token = &tokens[i];
        let apart = i > at && token.gap >= Gap::Paragraph;
        if apart {
            break;
        }
        if i > at
            && token.sign(b'-')
            && token.glued()
            && (number_word(tokens, i + 1, last) || i + 1 < last && tokens[i + 1].is(class::ORDINAL))
        {
            i += 1;
            continue;
        }
        if token.kind != Kind::Word {
            break;
        }
        if token.is(class::ORDINAL)
            && sum.started
            && !(token.is(class::FRACTION) && tokens[i - 1].gap != Gap::None && i - at == 1)
        {
            let hyphen = tokens[i - 1].sign(b'-');
            if hyphen || sum.room < 100 {
                return Some(Spelled::Ordinal(i + 1));
            }
        }
        if pointed && token.is(class::UNIT) && token.word.value < 10 {
            sum.group = sum.group.saturating_mul(10).saturating_add(u128::from(token.word.value));
            sum.decimals += 1;
        } else if token.is(class::UNIT | class::TENS) {
            sum.small(token);
        } else if token.is(class::SCALE) && token.end - token.start > 2 && (sum.started || i == at) {
            sum.scale(token.word.value);
            pointed = false;
        } else if sum.started && token.is(class::POINT) && tokens.get(i + 1).is_some_and(|t| t.is(class::UNIT)) {
            pointed = true;
        } else if sum.started && is_and(token) && number_word(tokens, i + 1, last) && sum.takes_and(&tokens[i + 1]) {
            // the word "and" inside a number
        } else {
            break;
        }
        i += 1;
        end = i;
    }
    if !sum.started {
        return None;
    }
    Some(if sum.bad { Spelled::Unreadable(end) } else { Spelled::Number(sum.numeral(), end) })
}

fn is_and(token: &Token) -> bool {
    token.end - token.start == 3 && token.is(class::DET) && token.is(class::YEAR_PREV)
}

fn number_word(tokens: &[Token], at: usize, last: usize) -> bool {
    at < last && tokens[at].is(class::UNIT | class::TENS | class::SCALE) && tokens[at].end - tokens[at].start > 2
}

impl Sum {
    fn small(&mut self, token: &Token) {
        let value = u128::from(token.word.value);
        let size = if value >= 10 { 100 } else { 10 };
        if self.started && self.room < size {
            self.bad = true;
        }
        self.group = self.group.saturating_add(value);
        self.room = if token.is(class::TENS) { 10 } else { 1 };
        self.least = 0;
        self.started = true;
    }

    fn scale(&mut self, exponent: u8) {
        let power = 10u128.checked_pow(u32::from(exponent)).unwrap_or(u128::MAX);
        if exponent == 2 {
            self.group = self.group.max(u128::from(!self.started)).saturating_mul(100);
            self.room = 100;
            self.least = self.least.max(if self.decimals > 0 { 2 - self.decimals } else { 0 });
            self.started = true;
            return;
        }
        let group = if self.group == 0 && !self.started { 1 } else { self.group };
        let chained = self.group == 0 && self.started;
        if chained {
            // "thousand million": scales multiply
            self.total = self.total.saturating_mul(power);
            self.least = self.least.saturating_add(i32::from(exponent));
        } else {
            if self.last_scale != 0 && exponent >= self.last_scale {
                self.total = self.total.saturating_add(group).saturating_mul(power);
            } else {
                self.total = self.total.saturating_add(group.saturating_mul(power));
            }
            self.least = i32::from(exponent);
        }
        self.last_scale = exponent;
        self.group = 0;
        self.room = 1000;
        self.started = true;
    }

    fn takes_and(&self, next: &Token) -> bool {
        // "one hundred and two", "one thousand and two hundred"; not "five and six"
        self.room >= 100 && next.is(class::UNIT | class::TENS)
    }

    fn numeral(&self) -> Numeral {
        if self.decimals > 0 {
            let scale = if self.last_scale == 0 { 0 } else { self.least };
            let mantissa =
                if self.last_scale == 0 { self.group } else { self.total / 10u128.pow(scale.clamp(0, 38) as u32) };
            return Numeral { mantissa, exponent: scale - self.decimals };
        }
        let least = if self.group > 0 { 0 } else { self.least };
        let total = self.total.saturating_add(self.group);
        Numeral { mantissa: total / 10u128.pow(least.clamp(0, 38) as u32), exponent: least }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{clean::clean, token::tokens};
    use super::*;

    fn value(text: &str) -> Option<(u128, i32)> {
        let clean = clean(text);
        let tokens = tokens(&clean.bytes);
        match read(&tokens, 0, tokens.len()) {
            Some(Spelled::Number(n, _)) => Some((n.mantissa, n.exponent)),
            _ => None,
        }
    }

    #[test]
    fn words_of_any_size_are_read() {
        assert_eq!(value("five billion"), Some((5, 9)));
        assert_eq!(value("twenty five percent"), Some((25, 0)));
        assert_eq!(value("forty-eight point two billion"), Some((482, 8)));
        assert_eq!(value("eight hundred forty-three million"), Some((843, 6)));
        assert_eq!(value("one hundred and sixteen"), Some((116, 0)));
        assert_eq!(value("two thousand and two hundred"), Some((2200, 0)));
        assert_eq!(value("sixty-one thousand million"), Some((61, 9)));
        assert_eq!(
            value("thirty-one million two hundred fifty-six thousand seven hundred twenty-one"),
            Some((31_256_721, 0))
        );
        assert_eq!(value("six one billion"), None);
        assert_eq!(value("twenty-first"), None);
    }
}
