//! What a payer signs, of any kind that we settle, and its one spelling on the wire: EIP-3009, or Permit2 with a witness.

use alloy_primitives::hex;
use serde_json::{Map, Value, json};

use super::Malformed;
use super::payment::{object, text};
use crate::evm::{
    self, Address, B256, EXACT_PROXY, Network, PermitTransfer, TokenDomain, TransferAuthorization, U256, UPTO_PROXY,
    checksummed, lower, parse_address, parse_uint, parse_word,
};

/// A signed permission to move money once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Authorization {
    /// `TransferWithAuthorization` of the token itself.
    Eip3009(TransferAuthorization),
    /// `PermitWitnessTransferFrom` of Permit2, through an x402 proxy.
    Permit2(Box<PermitTransfer>),
}

/// How the money of an entry of `accepts` moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `exact` by EIP-3009, of both versions.
    Eip3009,
    /// `exact` by Permit2.
    Permit2,
    /// `upto`, which is by Permit2; the facilitator that may settle.
    Upto(Address),
}

impl Method {
    /// `scheme` of the entry.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Eip3009 | Self::Permit2 => super::SCHEME,
            Self::Upto(_) => super::UPTO,
        }
    }

    /// Members of `extra` beside the token's domain.
    pub(super) fn extra(self) -> Vec<(&'static str, String)> {
        let by_permit = ("assetTransferMethod", super::PERMIT2_METHOD.to_owned());
        match self {
            Self::Eip3009 => Vec::new(),
            Self::Permit2 => vec![by_permit],
            Self::Upto(facilitator) => vec![by_permit, ("facilitatorAddress", checksummed(&facilitator))],
        }
    }

    /// The contract that a permit of this kind must name as its spender.
    pub(super) const fn proxy(self) -> Address {
        match self {
            Self::Eip3009 => Address::ZERO,
            Self::Permit2 => EXACT_PROXY,
            Self::Upto(_) => UPTO_PROXY,
        }
    }
}

impl Authorization {
    /// Who pays.
    pub fn from(&self) -> Address {
        match self {
            Self::Eip3009(auth) => auth.from,
            Self::Permit2(permit) => permit.from,
        }
    }

    /// Who is paid.
    pub fn to(&self) -> Address {
        match self {
            Self::Eip3009(auth) => auth.to,
            Self::Permit2(permit) => permit.to,
        }
    }

    /// Atomic units: what moves, or for `upto` the most that may.
    pub fn value(&self) -> U256 {
        match self {
            Self::Eip3009(auth) => auth.value,
            Self::Permit2(permit) => permit.amount,
        }
    }

    /// The nonce as a word of 256 bits.
    pub fn nonce(&self) -> B256 {
        match self {
            Self::Eip3009(auth) => auth.nonce,
            Self::Permit2(permit) => permit.nonce.into(),
        }
    }

    /// Unix seconds; not valid before.
    pub fn valid_after(&self) -> U256 {
        match self {
            Self::Eip3009(auth) => auth.valid_after,
            Self::Permit2(permit) => permit.valid_after,
        }
    }

    /// Unix seconds; the end of its window.
    pub fn valid_before(&self) -> U256 {
        match self {
            Self::Eip3009(auth) => auth.valid_before,
            Self::Permit2(permit) => permit.deadline,
        }
    }

    /// Identity in lower case: `<caip2>/eip3009/<asset>/<from>/<nonce>`, or `<caip2>/permit2/<owner>/<nonce>`: a bit of Permit2 is
    /// shared by all tokens of its owner.
    pub fn key(&self, network: &Network, asset: &Address) -> String {
        match self {
            Self::Eip3009(auth) => super::auth_key(network, asset, &auth.from, &auth.nonce),
            Self::Permit2(permit) => {
                format!("{network}/permit2/{}/{:#x}", lower(&permit.from), B256::from(permit.nonce))
            }
        }
    }

    /// What the payer signed, for the token of that domain.
    pub fn digest(&self, token: &TokenDomain) -> B256 {
        match self {
            Self::Eip3009(auth) => evm::digest(auth, token),
            Self::Permit2(permit) => permit.digest(token.chain_id),
        }
    }

    /// Members whose canonical JSON is hashed, with the signature, as what was signed.
    pub(super) fn identity(&self, signature: &[u8]) -> Value {
        let mut value = match self {
            Self::Eip3009(auth) => json!({
                "from": lower(&auth.from),
                "to": lower(&auth.to),
                "value": auth.value.to_string(),
                "validAfter": auth.valid_after.to_string(),
                "validBefore": auth.valid_before.to_string(),
                "nonce": format!("{:#x}", auth.nonce),
            }),
            Self::Permit2(permit) => permit_value(permit, lower),
        };
        value["signature"] = json!(hex::encode_prefixed(signature));
        value
    }

    /// `payload` of either version in one spelling.
    pub(super) fn payload(&self, signature: &[u8]) -> Value {
        let signature = hex::encode_prefixed(signature);
        match self {
            Self::Eip3009(auth) => json!({
                "signature": signature,
                "authorization": {
                    "from": checksummed(&auth.from),
                    "to": checksummed(&auth.to),
                    "value": auth.value.to_string(),
                    "validAfter": auth.valid_after.to_string(),
                    "validBefore": auth.valid_before.to_string(),
                    "nonce": format!("{:#x}", auth.nonce),
                },
            }),
            Self::Permit2(permit) => {
                json!({ "signature": signature, "permit2Authorization": permit_value(permit, checksummed) })
            }
        }
    }
}

fn permit_value(permit: &PermitTransfer, spelled: fn(&Address) -> String) -> Value {
    let mut value = json!({
        "from": spelled(&permit.from),
        "permitted": {"token": spelled(&permit.token), "amount": permit.amount.to_string()},
        "spender": spelled(&permit.spender),
        "nonce": permit.nonce.to_string(),
        "deadline": permit.deadline.to_string(),
        "witness": {"to": spelled(&permit.to), "validAfter": permit.valid_after.to_string()},
    });
    if let Some(facilitator) = &permit.facilitator {
        value["witness"]["facilitator"] = json!(spelled(facilitator));
    }
    value
}

pub(super) fn read_eip3009(value: Option<&Value>) -> Result<TransferAuthorization, Malformed> {
    let of = object(value, "payload.authorization")?;
    Ok(TransferAuthorization {
        from: address(&of, "from", "payload.authorization.from")?,
        to: address(&of, "to", "payload.authorization.to")?,
        value: uint(&of, "value", "payload.authorization.value")?,
        valid_after: uint(&of, "validAfter", "payload.authorization.validAfter")?,
        valid_before: uint(&of, "validBefore", "payload.authorization.validBefore")?,
        nonce: parse_word(&text(&of, "nonce", "payload.authorization.nonce")?)
            .map_err(|_| Malformed::Member("payload.authorization.nonce"))?,
    })
}

pub(super) fn read_permit2(value: Option<&Value>) -> Result<PermitTransfer, Malformed> {
    const MEMBERS: [&str; 6] = ["from", "permitted", "spender", "nonce", "deadline", "witness"];
    let of = known(object(value, "payload.permit2Authorization")?, &MEMBERS, "payload.permit2Authorization")?;
    let name = "payload.permit2Authorization.permitted";
    let permitted = known(object(of.get("permitted"), name)?, &["token", "amount"], name)?;
    let name = "payload.permit2Authorization.witness";
    // a member more would be another type, which nobody signed
    let witness = known(object(of.get("witness"), name)?, &["to", "facilitator", "validAfter"], name)?;
    let facilitator = match witness.contains_key("facilitator") {
        true => Some(address(&witness, "facilitator", "payload.permit2Authorization.witness.facilitator")?),
        false => None,
    };
    Ok(PermitTransfer {
        from: address(&of, "from", "payload.permit2Authorization.from")?,
        token: address(&permitted, "token", "payload.permit2Authorization.permitted.token")?,
        amount: uint(&permitted, "amount", "payload.permit2Authorization.permitted.amount")?,
        spender: address(&of, "spender", "payload.permit2Authorization.spender")?,
        nonce: uint(&of, "nonce", "payload.permit2Authorization.nonce")?,
        deadline: uint(&of, "deadline", "payload.permit2Authorization.deadline")?,
        to: address(&witness, "to", "payload.permit2Authorization.witness.to")?,
        facilitator,
        valid_after: uint(&witness, "validAfter", "payload.permit2Authorization.witness.validAfter")?,
    })
}

fn known(of: Map<String, Value>, names: &[&str], name: &'static str) -> Result<Map<String, Value>, Malformed> {
    match of.keys().all(|key| names.contains(&key.as_str())) {
        true => Ok(of),
        false => Err(Malformed::Member(name)),
    }
}

fn address(of: &Map<String, Value>, key: &str, name: &'static str) -> Result<Address, Malformed> {
    parse_address(&text(of, key, name)?).map_err(|_| Malformed::Member(name))
}

fn uint(of: &Map<String, Value>, key: &str, name: &'static str) -> Result<U256, Malformed> {
    parse_uint(&text(of, key, name)?).map_err(|_| Malformed::Member(name))
}

#[cfg(test)]
mod tests;
