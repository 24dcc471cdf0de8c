//! What we sell one answer for, in the shapes of both versions.

use serde_json::{Map, Value, json};

use super::{Method, SCHEME};
use crate::evm::{Address, Network, TokenDomain, checksummed};
use crate::money::Atomic;

/// Terms of one route: what is paid to whom, and what is bought.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Chain of the token.
    pub network: Network,
    /// The token.
    pub asset: Address,
    /// Price in atomic units of the token.
    pub amount: Atomic,
    /// Who is paid.
    pub pay_to: Address,
    /// Seconds within which an answer and its settlement are done.
    pub max_timeout_s: u32,
    /// Name in the token's EIP-712 domain.
    pub token_name: String,
    /// Version in the token's EIP-712 domain.
    pub token_version: String,
    /// URL of what is sold, without a query.
    pub resource_url: String,
    /// What is sold, for people and indexes.
    pub description: String,
    /// Type of the answer.
    pub mime_type: String,
    /// Name of the seller, 1 to 32 printable ASCII characters; left out when `None`.
    pub service_name: Option<String>,
    /// At most five tags of 1 to 32 characters; left out when empty.
    pub tags: Vec<String>,
    /// Version 1's description of input and output; version 2 has extensions for it. Left out when `None`.
    pub output_schema: Option<Value>,
    /// What may be paid by Permit2; version 2 only.
    pub permit2: Permit2Rails,
}

/// The rails by Permit2 that are switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permit2Rails {
    /// `exact`.
    pub exact: bool,
    /// `upto`, with the facilitator that may settle.
    pub upto: Option<Address>,
}

impl Permit2Rails {
    /// True when one of them is.
    pub fn any(&self) -> bool {
        self.exact || self.upto.is_some()
    }
}

impl Offer {
    /// The token's EIP-712 domain.
    pub fn domain(&self) -> TokenDomain {
        TokenDomain {
            name: self.token_name.clone(),
            version: self.token_version.clone(),
            chain_id: self.network.chain_id(),
            contract: self.asset,
        }
    }

    /// `PaymentRequirements` of version 2, by EIP-3009.
    pub fn requirements_v2(&self) -> Value {
        self.requirements_by(Method::Eip3009)
    }

    /// All ways to pay that are settled by us, the ordinary one first, for clients that take the first one that they know.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        let exact = self.permit2.exact.then_some(Method::Permit2);
        std::iter::once(Method::Eip3009).chain(exact).chain(self.permit2.upto.map(Method::Upto))
    }

    /// `PaymentRequirements` of version 2 by one of the methods. Of `upto` the amount is the cap.
    pub fn requirements_by(&self, method: Method) -> Value {
        json!({
            "scheme": method.scheme(),
            "network": self.network.to_string(),
            "amount": self.amount.to_string(),
            "asset": checksummed(&self.asset),
            "payTo": checksummed(&self.pay_to),
            "maxTimeoutSeconds": self.max_timeout_s,
            "extra": self.extra_by(method),
        })
    }

    /// `PaymentRequirements` of version 1; `None` on a chain that has no name there. Optional members without a value are
    /// left out, since the usual version 1 client cannot read `null`.
    pub fn requirements_v1(&self) -> Option<Value> {
        let mut requirements = json!({
            "scheme": SCHEME,
            "network": self.network.v1_name()?,
            "maxAmountRequired": self.amount.to_string(),
            "asset": checksummed(&self.asset),
            "payTo": checksummed(&self.pay_to),
            "resource": self.resource_url,
            "description": self.description,
            "mimeType": self.mime_type,
            "maxTimeoutSeconds": self.max_timeout_s,
            "extra": self.extra(),
        });
        if let Some(schema) = &self.output_schema {
            requirements["outputSchema"] = schema.clone();
        }
        Some(requirements)
    }

    /// `resource` of version 2.
    pub(super) fn resource(&self) -> Value {
        let mut resource = json!({
            "url": self.resource_url,
            "description": self.description,
            "mimeType": self.mime_type,
        });
        if let Some(name) = &self.service_name {
            resource["serviceName"] = json!(name);
        }
        if !self.tags.is_empty() {
            resource["tags"] = json!(self.tags);
        }
        resource
    }

    /// The scheme's own members: the token's domain, and how the money moves where that is not EIP-3009.
    pub(super) fn extra_by(&self, method: Method) -> Map<String, Value> {
        let mut members = self.extra();
        members.extend(method.extra().into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))));
        members
    }

    /// The token's domain.
    pub(super) fn extra(&self) -> Map<String, Value> {
        [("name", &self.token_name), ("version", &self.token_version)]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), Value::from(value.as_str())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x402::fixture;

    #[test]
    fn both_shapes_carry_the_same_terms() {
        let offer = fixture::offer();
        assert_eq!(
            offer.requirements_v2(),
            json!({
                "scheme": "exact", "network": "eip155:84532", "amount": "50000",
                "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
                "payTo": "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
                "maxTimeoutSeconds": 240, "extra": {"name": "USDC", "version": "2"},
            })
        );
        let v1 = offer.requirements_v1().expect("a named chain");
        assert_eq!((&v1["network"], &v1["maxAmountRequired"]), (&json!("base-sepolia"), &json!("50000")));
        assert_eq!(v1["mimeType"], "application/json");
    }

    #[test]
    fn what_is_absent_is_left_out_and_never_null() {
        let offer = Offer { output_schema: None, ..fixture::offer() };
        assert!(!offer.requirements_v1().expect("a named chain").to_string().contains("null"));
        assert!(!offer.resource().to_string().contains("null"));
        let local = Offer { network: Network::new(31_337), ..offer };
        assert_eq!(local.requirements_v1(), None);
    }
}
