//! A slow gate for one figure, written so that it can be seen to be right: strings and big integers, one notation after another.
//!
//! It knows the figure before it is written, so it reads nothing: [`Shown`] is written out by [`Shown::write`] in one of
//! [`NOTATIONS`], and [`Shown::states`] says by long multiplication whether it states a fact at the precision it shows.

/// A decimal as digits and the number of them behind the point.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) digits: u64,
    pub(crate) decimals: u32,
    pub(crate) scale: Scale,
    pub(crate) negative: bool,
}

/// A scale word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    One,
    Thousand,
    Million,
    Billion,
    Trillion,
}

impl Scale {
    pub(crate) const ALL: [Self; 5] = [Self::One, Self::Thousand, Self::Million, Self::Billion, Self::Trillion];

    fn exponent(self) -> u32 {
        match self {
            Self::One => 0,
            Self::Thousand => 3,
            Self::Million => 6,
            Self::Billion => 9,
            Self::Trillion => 12,
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::One => &[""],
            Self::Thousand => &[" thousand", "k", "K", "-thousand"],
            Self::Million => &[" million", "M", " mln", "mn", "-million", " MM", "mm", " Million"],
            Self::Billion => &[" billion", "B", "bn", " bln", "-billion", "b", " BILLION"],
            Self::Trillion => &[" trillion", "T", "tn", "-trillion", " trn"],
        }
    }
}

/// How many ways [`Shown::write`] knows.
pub(crate) const NOTATIONS: usize = 19;

impl Shown {
    /// The digits with their point.
    fn plain(&self) -> String {
        let digits = format!("{:0>width$}", self.digits, width = self.decimals as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - self.decimals as usize);
        if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
    }

    fn grouped(&self, mark: &str) -> String {
        let plain = self.plain();
        let (whole, fraction) =
            plain.split_once('.').map_or((plain.as_str(), String::new()), |(w, f)| (w, format!(".{f}")));
        let mut out = String::new();
        for (i, digit) in whole.chars().enumerate() {
            if i > 0 && (whole.len() - i).is_multiple_of(3) {
                out.push_str(mark);
            }
            out.push(digit);
        }
        out + &fraction
    }

    fn other_digits(&self, zero: u32) -> String {
        let digit = |c: char| c.to_digit(10).and_then(|d| char::from_u32(zero + d)).unwrap_or(c);
        self.plain().chars().map(digit).collect()
    }

    /// The figure in US dollars, in one of [`NOTATIONS`]; `word` chooses among the spellings of its scale.
    pub(crate) fn write(&self, notation: usize, word: usize) -> String {
        let words = self.scale.words();
        let scale = words[word % words.len()];
        let minus = if self.negative { "-" } else { "" };
        let exponent = self.scale.exponent();
        match notation % NOTATIONS {
            0 => format!("{minus}${}{scale}", self.plain()),
            1 => format!("{minus}${}{scale}", self.grouped(",")),
            2 => format!("{minus}{}{scale} dollars", self.grouped(",")),
            3 => format!("USD {minus}{}{scale}", self.grouped(",")),
            4 => format!("US${minus}{}{scale}", self.plain()),
            5 => format!("{minus}{}{scale} USD", self.grouped("\u{202f}")),
            6 => format!("{minus}${}{scale}", self.grouped("'")),
            7 => format!("{minus}${}e{exponent}", self.plain()),
            8 => format!("{minus}${} x 10^{exponent}", self.plain()),
            9 => format!("{minus}**${}**{scale}", self.plain()),
            10 => format!("{minus}${}{scale}", self.other_digits(0xff10)),
            11 => format!("{minus}${}{scale}", self.other_digits(0x1d7ce)),
            12 => format!("{minus}{}{scale} U.S. dollars", self.plain()),
            13 => format!("\u{2212}${}{scale}", self.plain())
                .replace('\u{2212}', if self.negative { "\u{2212}" } else { "" }),
            14 => format!("{minus}&#36;{}{scale}", self.plain()),
            15 => format!("{minus}${}\u{200b}{scale}", self.plain()),
            16 => format!("{minus}{}{scale} US dollars", self.grouped("_")),
            17 => format!("{minus}$\u{a0}{}{scale}", self.plain()),
            _ => {
                if self.negative {
                    format!("$({}){scale}", self.plain())
                } else {
                    format!("${}{scale}", self.plain())
                }
            }
        }
    }

    /// Whether the figure states a value of so many hundredths: within half of its last digit, and within a tenth.
    pub(crate) fn states(&self, hundredths: i128) -> bool {
        // everything in units of 10^-12, so that half a unit of the last digit is whole
        let unit = 10i128.pow(self.scale.exponent() + 12 - self.decimals);
        let shown = i128::from(self.digits) * unit;
        let fact = hundredths.abs() * 10i128.pow(10);
        if shown == 0 || fact == 0 {
            return shown == 0 && fact == 0;
        }
        let off = (shown - fact).abs();
        self.negative == (hundredths < 0) && 2 * off <= unit && 10 * off <= fact
    }
}
