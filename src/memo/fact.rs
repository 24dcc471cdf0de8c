//! A fact: one number with its unit, its period and the place it was read from.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::Date;

/// Three upper-case letters of ISO 4217.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency([u8; 3]);

/// What a fact's value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// An amount of money.
    Money(Currency),
    /// Money per share.
    PerShare(Currency),
    /// Shares.
    Shares,
    /// Percent, as 12.3 for 12.3 %.
    Percent,
    /// A difference of percentages, in percentage points.
    Points,
    /// A multiple, as 1.5 for 1.5x.
    Multiple,
    /// A plain ratio, as 0.153.
    Ratio,
    /// A count of things.
    Count,
    /// Points of an index.
    Index,
}

/// Where a fact was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The system that published it: `sec-edgar`, or `derived` for our own arithmetic.
    pub source: String,
    /// Who vouches for it: `primary` for an issuer's own filing, a peer's name otherwise.
    pub origin: String,
    /// Filing form, as `10-K`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub form: Option<String>,
    /// Accession number of the filing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accession: Option<String>,
    /// Page of the filing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub filing_url: Option<String>,
    /// Day on which the filing was made.
    #[serde(skip_serializing_if = "Option::is_none", default, with = "iso_date::option")]
    pub filed: Option<Date>,
    /// Concept of the taxonomy, as `us-gaap:Revenues`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub concept: Option<String>,
}

/// One cited number. Serialised as a member of `facts` of a memo answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The citation id: `C1`, `C2`, ...
    pub id: String,
    /// What it is, as `Revenue`.
    pub label: String,
    /// The value in base units; percent as 12.3.
    #[serde(with = "rust_decimal::serde::str")]
    pub value: Decimal,
    /// Unit of the value.
    pub unit: Unit,
    /// ISO code, when the unit is money or money per share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// The company or thing that the fact is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// First day of the period; absent for a value at a moment.
    #[serde(skip_serializing_if = "Option::is_none", with = "iso_date::option")]
    pub period_start: Option<Date>,
    /// Last day of the period, or the moment.
    #[serde(skip_serializing_if = "Option::is_none", with = "iso_date::option")]
    pub period_end: Option<Date>,
    /// Fiscal year that the value belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fiscal_year: Option<i32>,
    /// `FY`, `Q1`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fiscal_period: Option<String>,
    /// Where it was read.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Ids of the facts that a derived fact was computed from, in the order of the formula.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub derived_from: Vec<String>,
    /// The arithmetic of a derived fact, over ids: `C2 / C1 * 100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// Set when a later filing changed the value by more than rounding: the earlier value and its accession.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restated: Option<Restated>,
}

/// The value that a restated fact had before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restated {
    /// The earlier value.
    #[serde(with = "rust_decimal::serde::str")]
    pub value: Decimal,
    /// The filing that gave it.
    pub accession: String,
}

/// A unit or currency that is none of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a unit")]
pub struct UnknownUnit(pub String);

impl Currency {
    /// The US dollar.
    pub const USD: Self = Self(*b"USD");

    /// The three letters.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Currency {
    type Err = UnknownUnit;

    fn from_str(text: &str) -> Result<Self, UnknownUnit> {
        match text.as_bytes() {
            &[a, b, c] if [a, b, c].iter().all(u8::is_ascii_uppercase) => Ok(Self([a, b, c])),
            _ => Err(UnknownUnit(text.to_owned())),
        }
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Unit {
    /// The currency of money and of money per share.
    pub fn currency(self) -> Option<Currency> {
        match self {
            Self::Money(currency) | Self::PerShare(currency) => Some(currency),
            Self::Shares | Self::Percent | Self::Points | Self::Multiple | Self::Ratio | Self::Count | Self::Index => {
                None
            }
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Money(currency) => write!(f, "{currency}"),
            Self::PerShare(currency) => write!(f, "{currency}/shares"),
            Self::Shares => f.write_str("shares"),
            Self::Percent => f.write_str("%"),
            Self::Points => f.write_str("pp"),
            Self::Multiple => f.write_str("x"),
            Self::Ratio => f.write_str("ratio"),
            Self::Count => f.write_str("count"),
            Self::Index => f.write_str("index"),
        }
    }
}

impl FromStr for Unit {
    type Err = UnknownUnit;

    fn from_str(text: &str) -> Result<Self, UnknownUnit> {
        Ok(match text {
            "shares" => Self::Shares,
            "%" => Self::Percent,
            "pp" => Self::Points,
            "x" => Self::Multiple,
            "ratio" | "pure" => Self::Ratio,
            "count" => Self::Count,
            "index" => Self::Index,
            other => match other.strip_suffix("/shares") {
                Some(currency) => Self::PerShare(currency.parse()?),
                None => Self::Money(other.parse()?),
            },
        })
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

time::serde::format_description!(pub(crate) iso_date, Date, "[year]-[month]-[day]");
