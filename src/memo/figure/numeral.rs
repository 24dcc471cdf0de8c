//! The value of a numeral in digits: grouping, decimal marks, and how precisely it is shown.

use super::clean::code;

/// A number as shown: `mantissa * 10^exponent`, the last digit of the mantissa being the last one shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numeral {
    pub(crate) mantissa: u128,
    pub(crate) exponent: i32,
}

/// What a run of digits and marks is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A number, and whether marks group its digits.
    Number(Numeral, bool),
    /// Dotted parts that are no number: a version or a section.
    Dotted,
    /// Digits that fit no grammar, or more than the arithmetic holds.
    Unreadable,
}

/// Digits that the arithmetic of a decimal holds for sure.
const DIGITS_MAX: u32 = 28;

impl Numeral {
    /// The number times a power of ten; the shown precision moves along.
    pub(crate) fn scaled(self, exponent: i32) -> Self {
        Self { exponent: self.exponent.saturating_add(exponent), ..self }
    }
}

/// Reads the digits and marks of one number token.
pub(crate) fn read(bytes: &[u8]) -> Reading {
    let mut shape = Shape::default();
    let mut mantissa: u128 = 0;
    let mut digits = 0;
    for &byte in bytes {
        if byte.is_ascii_digit() {
            digits += u32::from(digits > 0 || byte != b'0');
            if digits > DIGITS_MAX {
                return Reading::Unreadable;
            }
            mantissa = mantissa * 10 + u128::from(byte - b'0');
            shape.group += 1;
        } else {
            shape.mark(byte);
        }
    }
    shape.mark(0);
    match shape.decimals() {
        Ok(decimals) => Reading::Number(
            Numeral { mantissa, exponent: -(decimals as i32) },
            shape.groups > 0 && decimals == 0 || shape.marks > 1,
        ),
        Err(reading) => reading,
    }
}

/// How marks divide the digits, gathered in one pass.
#[derive(Default)]
struct Shape {
    /// Digits since the last mark.
    group: u32,
    first: Option<u32>,
    last: u32,
    marks: u32,
    groups: u32,
    dots: u32,
    commas: u32,
    others: u32,
    last_mark: u8,
    previous_mark: u8,
    /// Every group but the first and the last has three digits.
    threes: bool,
    /// Every group but the first and the last has two digits.
    twos: bool,
    middle: bool,
}

impl Shape {
    /// Ends a group; 0 is the end of the text.
    fn mark(&mut self, byte: u8) {
        match self.first {
            None => {
                self.first = Some(self.group);
                self.threes = true;
                self.twos = true;
            }
            Some(_) if byte != 0 => {
                self.middle = true;
                self.threes &= self.group == 3;
                self.twos &= self.group == 2;
            }
            Some(_) => {}
        }
        if byte == 0 {
            self.last = self.group;
            return;
        }
        self.group = 0;
        self.marks += 1;
        self.groups = self.marks;
        self.previous_mark = self.last_mark;
        self.last_mark = byte;
        match byte {
            b'.' => self.dots += 1,
            b',' => self.commas += 1,
            b' ' | code::NARROW | b'_' | b'\'' => self.others += 1,
            _ => self.others += 100,
        }
    }

    /// Digits after the decimal mark.
    fn decimals(&self) -> Result<u32, Reading> {
        let first = self.first.unwrap_or(0);
        let grouped = (1..=3).contains(&first) && self.threes;
        let indian = self.twos && self.middle && first <= 2 && first > 0;
        match (self.commas, self.dots, self.others) {
            (0, 0, 0) => Ok(0),
            (0, 1, 0) => Ok(self.last),
            (0, _, 0) if grouped && self.last == 3 => Ok(0),
            (0, _, 0) => Err(Reading::Dotted),
            (1, 0, 0) if self.last == 3 && grouped => Ok(0),
            (1, 0, 0) if self.last <= 2 => Ok(self.last),
            (_, 0, 0) if (grouped || indian) && self.last == 3 => Ok(0),
            // the decimal mark comes last and differs from the grouping mark
            (_, 1, 0) if self.last_mark == b'.' && (grouped || self.indian_before_dot(first)) => Ok(self.last),
            (1, 1.., 0) if self.last_mark == b',' && grouped && self.last != 3 => Ok(self.last),
            (0, 0, _) if self.others < 100 && grouped && self.last == 3 => Ok(0),
            (0, 1, _) if self.others < 100 && self.last_mark == b'.' && grouped => Ok(self.last),
            (1, 0, 1..) if self.others < 100 && self.last_mark == b',' && grouped && self.last != 3 => Ok(self.last),
            _ => Err(Reading::Unreadable),
        }
    }

    fn indian_before_dot(&self, first: u32) -> bool {
        // 12,34,567.89: two-digit groups, then one of three before the dot
        first <= 2 && first > 0 && self.commas >= 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(text: &str, mantissa: u128, exponent: i32) {
        match read(text.as_bytes()) {
            Reading::Number(n, _) => assert_eq!((n.mantissa, n.exponent), (mantissa, exponent), "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn groupings_of_many_places_are_read() {
        is("48.20", 4820, -2);
        is("48,217,000,000", 48_217_000_000, 0);
        is("48 217 000", 48_217_000, 0);
        is("59'000'000.5", 590_000_005, -1);
        is("59_000_000", 59_000_000, 0);
        is("12,75,000", 1_275_000, 0);
        is("12,34,567.89", 123_456_789, -2);
        is("1.234,56", 123_456, -2);
        is("1.234.567", 1_234_567, 0);
        is("1,3", 13, -1);
        is(".5", 5, -1);
        assert_eq!(read(b"2.1.0"), Reading::Dotted);
        assert_eq!(read(b"12,3456"), Reading::Unreadable);
        assert_eq!(read(&[b'9'; 400]), Reading::Unreadable);
    }
}
