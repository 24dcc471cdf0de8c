//! What is sold: the products, their prices and their inputs. One list behind the 402, the catalogue, OpenAPI and llms.txt.

pub mod input;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::money::{Atomic, UsdMicros};
use crate::refusal::RefusalCode;

/// The list as it is compiled in.
pub const BUILT_IN: &str = include_str!("../config/catalog.toml");

/// The research that answers a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A company's latest annual filing.
    Fundamentals,
}

/// One product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// `surface:name`.
    pub id: String,
    /// What answers it.
    pub kind: Kind,
    /// Path of its route.
    pub path: String,
    /// Short name.
    pub name: String,
    /// What the buyer gets.
    pub description: String,
    /// Price in dollar micros.
    pub price: UsdMicros,
    /// Price in atomic units of the token.
    pub price_atomic: Atomic,
    /// Words that it is found by.
    pub tags: Vec<String>,
}

/// Why the list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not parse.
    #[error("catalogue: {0}")]
    Parse(#[from] toml::de::Error),
    /// A price cannot be charged exactly.
    #[error("catalogue: price of {product}: {source}")]
    Price {
        /// The product.
        product: String,
        /// Why.
        source: crate::money::Error,
    },
    /// A price that is zero or above the ceiling.
    #[error("catalogue: price of {product} is {price} USD; it must be above 0 and at most 0.10")]
    OutOfRange {
        /// The product.
        product: String,
        /// The price.
        price: UsdMicros,
    },
    /// Two products share a path or an id.
    #[error("catalogue: {0} stands twice")]
    Twice(String),
}

/// Highest price: version 1 buyers refuse more by default.
const PRICE_MAX: UsdMicros = UsdMicros(100_000);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    product: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    kind: Kind,
    path: String,
    name: String,
    description: String,
    price_usd: String,
    tags: Vec<String>,
}

/// Reads a list; prices are converted exactly for a token with `decimals` decimals.
pub fn parse(text: &str, decimals: u8) -> Result<Vec<Product>, Error> {
    let mut products: Vec<Product> = Vec::new();
    for row in toml::from_str::<File>(text)?.product {
        let price_error = |source| Error::Price { product: row.id.clone(), source };
        let price: UsdMicros = row.price_usd.parse().map_err(price_error)?;
        if price <= UsdMicros(0) || price > PRICE_MAX {
            return Err(Error::OutOfRange { product: row.id, price });
        }
        let price_atomic = Atomic::from_usd_micros(price, decimals).map_err(price_error)?;
        if let Some(twin) = products.iter().find(|p| p.id == row.id || p.path == row.path) {
            return Err(Error::Twice(twin.id.clone()));
        }
        products.push(Product {
            id: row.id,
            kind: row.kind,
            path: row.path,
            name: row.name,
            description: row.description,
            price,
            price_atomic,
            tags: row.tags,
        });
    }
    Ok(products)
}

impl Kind {
    /// JSON Schema of the input, for query parameters and JSON body alike.
    pub fn input_schema(self) -> Value {
        match self {
            Self::Fundamentals => json!({
                "type": "object",
                "required": ["ticker"],
                "additionalProperties": false,
                "properties": {
                    "ticker": {
                        "type": "string",
                        "pattern": input::TICKER_PATTERN,
                        "description": "Ticker as listed by the SEC, any case; class shares by dash, as BRK-B.",
                        "examples": ["COIN"]
                    },
                    "mode": {
                        "type": "string", "enum": ["agent", "human"], "default": "agent",
                        "description": "agent: terse, facts first; human: sentences."
                    },
                    "format": {
                        "type": "string", "enum": ["json", "md", "html"], "default": "json",
                        "description": "json: the whole answer; md and html: the memo with its sources."
                    }
                }
            }),
        }
    }

    /// JSON Schema of a delivered answer in its json form.
    pub fn output_schema(self) -> Value {
        match self {
            Self::Fundamentals => memo_schema(),
        }
    }

    /// A request that works, as query parameters.
    pub fn example(self) -> Value {
        match self {
            Self::Fundamentals => json!({"ticker": "COIN"}),
        }
    }

    /// Codes that this product's route can answer with.
    pub fn refusal_codes(self) -> &'static [RefusalCode] {
        match self {
            Self::Fundamentals => &RefusalCode::ALL,
        }
    }
}

/// The answer of every memo product.
fn memo_schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "required": ["order_id", "product", "subject", "as_of", "mode", "status", "memo", "facts", "citations", "sourcing",
            "coverage_status", "limits", "proof", "disclaimer"],
        "properties": {
            "order_id": text, "product": text, "as_of": {"type": "string", "format": "date-time"},
            "subject": {"type": "object", "properties": {"ticker": text, "cik": {"type": "integer"}, "name": text}},
            "mode": {"type": "string", "enum": ["agent", "human"]},
            "status": {"type": "string", "enum": ["ok"]},
            "memo": {"type": "object", "required": ["title", "summary", "sections", "markdown"], "properties": {
                "title": text, "summary": text, "markdown": text,
                "sections": {"type": "array", "items": {"type": "object", "properties": {"heading": text, "markdown": text}}}
            }},
            "facts": {"type": "array", "items": {"type": "object", "required": ["id", "label", "value", "unit", "source", "origin"],
                "properties": {
                    "id": text, "label": text, "value": {"type": "string", "description": "decimal"}, "unit": text,
                    "currency": text, "entity": text, "period_start": text, "period_end": text,
                    "fiscal_year": {"type": "integer"}, "fiscal_period": text, "form": text, "accession": text,
                    "filing_url": text, "filed": text, "concept": text, "source": text, "origin": text,
                    "derived_from": {"type": "array", "items": text}, "formula": text, "restated": {"type": "object"}
                }}},
            "citations": {"type": "array", "items": text},
            "sourcing": {"type": "object", "properties": {
                "passed": {"type": "boolean"}, "figures_checked": {"type": "integer"},
                "figures_covered": {"type": "integer"}, "attempts": {"type": "integer"}
            }},
            "coverage_status": {"type": "string", "enum": ["complete", "partial", "narrow"]},
            "limits": {"type": "array", "items": text},
            "proof": {"type": "object", "properties": {"order_id": text, "contract_id": text}},
            "disclaimer": text
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(price: &str) -> String {
        format!(
            "[[product]]\nid='a:b'\nkind='fundamentals'\npath='/a'\nname='n'\ndescription='d'\nprice_usd='{price}'\ntags=[]\n"
        )
    }

    #[test]
    fn the_built_in_list_is_sold_at_exact_prices() {
        let products = parse(BUILT_IN, 6).expect("the built-in list");
        assert!(products.iter().all(|p| p.price_atomic.to_usd_micros(6) == Ok(p.price)));
    }

    #[test]
    fn a_price_that_cannot_be_charged_exactly_stops_the_start() {
        assert!(matches!(parse(&one("0.055"), 2), Err(Error::Price { .. })));
        assert!(matches!(parse(&one("0.0000001"), 18), Err(Error::Price { .. })));
        assert!(matches!(parse(&one("0.11"), 6), Err(Error::OutOfRange { .. })));
        assert!(matches!(parse(&one("0"), 6), Err(Error::OutOfRange { .. })));
        assert!(matches!(parse(&(one("0.01") + &one("0.02")), 6), Err(Error::Twice(_))));
    }
}
