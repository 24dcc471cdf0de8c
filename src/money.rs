//! Money as checked integers: atomic token units and millionths of a US dollar. There are no floats here.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount in the smallest unit of a token (USDC: millionths).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Atomic(pub u128);

/// Millionths of a US dollar. Signed, since a margin can be a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UsdMicros(pub i64);

/// Why an amount could not be read or converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a plain decimal number: digits, optionally a point and digits.
    #[error("{0:?} is not a plain decimal amount")]
    NotDecimal(String),
    /// The amount has more decimals than the unit can hold.
    #[error("{amount} is not a whole number of units of a token with {decimals} decimals")]
    NotWhole {
        /// The amount as it was written.
        amount: String,
        /// Decimals of the token.
        decimals: u8,
    },
    /// The amount does not fit the integer that holds it.
    #[error("amount out of range")]
    OutOfRange,
}

impl Atomic {
    /// The exact number of atomic units in `micros` of a token with `decimals` decimals that is worth one dollar.
    /// A price that is not a whole number of units is an error, never rounded.
    pub fn from_usd_micros(micros: UsdMicros, decimals: u8) -> Result<Self, Error> {
        let value = u128::try_from(micros.0).map_err(|_| Error::OutOfRange)?;
        if decimals >= 6 {
            let scale = 10u128.checked_pow(u32::from(decimals - 6)).ok_or(Error::OutOfRange)?;
            return value.checked_mul(scale).map(Self).ok_or(Error::OutOfRange);
        }
        let scale = 10u128.pow(u32::from(6 - decimals));
        if value % scale != 0 {
            return Err(Error::NotWhole { amount: micros.to_string(), decimals });
        }
        Ok(Self(value / scale))
    }

    /// The value in dollar micros of a token with `decimals` decimals that is worth one dollar, rounded down.
    pub fn to_usd_micros(self, decimals: u8) -> Result<UsdMicros, Error> {
        let value = if decimals >= 6 {
            let scale = 10u128.checked_pow(u32::from(decimals - 6)).ok_or(Error::OutOfRange)?;
            self.0 / scale
        } else {
            self.0.checked_mul(10u128.pow(u32::from(6 - decimals))).ok_or(Error::OutOfRange)?
        };
        i64::try_from(value).map(UsdMicros).map_err(|_| Error::OutOfRange)
    }
}

impl fmt::Display for Atomic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl UsdMicros {
    /// Sum, or an error when it does not fit.
    pub fn checked_add(self, other: Self) -> Result<Self, Error> {
        self.0.checked_add(other.0).map(Self).ok_or(Error::OutOfRange)
    }

    /// Difference, or an error when it does not fit.
    pub fn checked_sub(self, other: Self) -> Result<Self, Error> {
        self.0.checked_sub(other.0).map(Self).ok_or(Error::OutOfRange)
    }
}

impl fmt::Display for UsdMicros {
    /// Dollars with as many decimals as needed, at least two: `0.05`, `0.000125`, `-1.50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) = (self.0.unsigned_abs() / 1_000_000, self.0.unsigned_abs() % 1_000_000);
        let mut decimals = format!("{part:06}");
        while decimals.len() > 2 && decimals.ends_with('0') {
            decimals.pop();
        }
        write!(f, "{sign}{whole}.{decimals}")
    }
}

impl FromStr for UsdMicros {
    type Err = Error;

    /// Reads `0.05` and the like: digits, optionally a point and at most six decimals.
    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::NotDecimal(text.to_owned());
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) {
            return Err(bad());
        }
        let part = part.trim_end_matches('0');
        if part.len() > 6 {
            return Err(Error::NotWhole { amount: text.to_owned(), decimals: 6 });
        }
        let micros: i64 = format!("{part:0<6}").parse().map_err(|_| bad())?;
        let whole: i64 = whole.parse().map_err(|_| Error::OutOfRange)?;
        whole.checked_mul(1_000_000).and_then(|w| w.checked_add(micros)).map(Self).ok_or(Error::OutOfRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_price_is_converted_exactly_or_not_at_all() {
        let price: UsdMicros = "0.05".parse().expect("a price");
        assert_eq!(Atomic::from_usd_micros(price, 6), Ok(Atomic(50_000)));
        assert_eq!(Atomic::from_usd_micros(price, 18), Ok(Atomic(50_000_000_000_000_000)));
        assert_eq!(Atomic::from_usd_micros(price, 2), Ok(Atomic(5)));
        assert!(matches!(Atomic::from_usd_micros(UsdMicros(1), 2), Err(Error::NotWhole { .. })));
        assert!(matches!("0.0000001".parse::<UsdMicros>(), Err(Error::NotWhole { .. })));
        for bad in ["", ".", "1.", ".5", "-1", "1e3", "0x10", "1,000", " 1"] {
            assert!(bad.parse::<UsdMicros>().is_err(), "{bad:?} was read as an amount");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(micros in 0i64..i64::MAX) {
            prop_assert_eq!(UsdMicros(micros).to_string().parse::<UsdMicros>(), Ok(UsdMicros(micros)));
        }
    }
}
