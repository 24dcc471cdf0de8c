//! The receipt of a settlement, as a header of either version.

use serde_json::{Value, json};

use super::{Version, codec};
use crate::evm::{Address, Network, checksummed, parse_address};
use crate::limits::{FOREIGN_TEXT_CHARS_MAX, PAYMENT_HEADER_BYTES_MAX, PAYMENT_HEADER_DEPTH_MAX};
use crate::money::Atomic;

/// `SettlementResponse`: what was settled, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Whether money moved.
    pub success: bool,
    /// A code, when it did not.
    pub error_reason: Option<String>,
    /// Who paid.
    pub payer: Address,
    /// Hash of the transaction; empty when nothing moved.
    pub transaction: String,
    /// Chain of the payment.
    pub network: Network,
    /// What moved, in atomic units, where it is said.
    pub amount: Option<Atomic>,
}

/// A header that is no receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a settlement receipt")]
pub struct UnreadableReceipt;

impl Receipt {
    /// The header value. Version 1 names the network its own way; a chain without such a name is named by CAIP-2.
    pub fn encode(&self, version: Version) -> String {
        let network = match version {
            Version::V1 => self.network.v1_name().map_or_else(|| self.network.to_string(), str::to_owned),
            Version::V2 => self.network.to_string(),
        };
        let mut value = json!({
            "success": self.success,
            "payer": checksummed(&self.payer),
            "transaction": self.transaction,
            "network": network,
        });
        // a member that version 1 does not know
        if let (Version::V2, Some(amount)) = (version, &self.amount) {
            value["amount"] = json!(amount.to_string());
        }
        if let Some(reason) = &self.error_reason {
            value["errorReason"] = json!(reason);
        }
        codec::encode(&value)
    }

    /// Reads the receipt of a seller. `payer` stands in where version 2 may leave it out. Both ways to name a network are
    /// read, since sellers mix them.
    pub fn decode(text: &str, payer: Address) -> Result<Self, UnreadableReceipt> {
        if text.len() > PAYMENT_HEADER_BYTES_MAX {
            return Err(UnreadableReceipt);
        }
        let bytes = codec::decode_base64(text).ok_or(UnreadableReceipt)?;
        let members = codec::decode_object(&bytes, PAYMENT_HEADER_DEPTH_MAX).map_err(|_| UnreadableReceipt)?;
        let text = |key: &str| members.get(key).map(|value| value.as_str().ok_or(UnreadableReceipt)).transpose();
        let network = text("network")?.ok_or(UnreadableReceipt)?;
        let network = network.parse().ok().or_else(|| Network::from_v1_name(network)).ok_or(UnreadableReceipt)?;
        let printable = |text| codec::printable(text, FOREIGN_TEXT_CHARS_MAX);
        Ok(Self {
            success: members.get("success").and_then(Value::as_bool).ok_or(UnreadableReceipt)?,
            error_reason: text("errorReason")?.map(printable),
            payer: text("payer")?.map_or(Ok(payer), |named| parse_address(named).map_err(|_| UnreadableReceipt))?,
            transaction: text("transaction")?.map(printable).unwrap_or_default(),
            network,
            amount: text("amount")?.and_then(|digits| digits.parse().ok()).map(Atomic),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x402::fixture;

    fn receipt() -> Receipt {
        Receipt {
            success: true,
            error_reason: None,
            payer: fixture::buyer().address(),
            transaction: format!("0x{}", "ab".repeat(32)),
            network: Network::new(84_532),
            amount: None,
        }
    }

    #[test]
    fn each_version_names_the_network_its_way_and_both_are_read() {
        for (version, name) in [(Version::V1, "base-sepolia"), (Version::V2, "eip155:84532")] {
            let text = receipt().encode(version);
            let value: Value = serde_json::from_slice(&codec::decode_base64(&text).expect("base64")).expect("JSON");
            assert_eq!(value["network"], name);
            assert_eq!(value.get("errorReason"), None, "absent, not null");
            assert_eq!(Receipt::decode(&text, Address::ZERO), Ok(receipt()));
        }
    }

    #[test]
    fn other_texts_are_no_receipt() {
        for bad in [json!({}), json!([]), json!({"success": "true", "network": "base"}), json!({"success": true})] {
            assert!(Receipt::decode(&codec::encode(&bad), Address::ZERO).is_err(), "{bad}");
        }
        assert!(Receipt::decode("!", Address::ZERO).is_err());
    }
}
