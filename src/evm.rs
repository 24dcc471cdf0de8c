//! The few EVM values that a payment is made of: addresses, networks, and the digest that a payer signs.
//!
//! Implements EIP-3009 (`TransferWithAuthorization`), Permit2's signature transfers, EIP-712 (typed data), EIP-55 (checksummed addresses) and CAIP-2
//! (network names). Everything here is pure: no chain is read.

use std::fmt;
use std::str::FromStr;

pub use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::{Eip712Domain, SolStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod permit2;
mod signature;

pub use permit2::{EXACT_PROXY, PERMIT2, PermitTransfer, UPTO_PROXY};
pub use signature::{KeyError, SecretKey, Signature, SignatureError};

/// Names that version 1 of x402 gives to chains. Chains without one (31337, for example) cannot be offered in version 1.
const V1_NAMES: [(&str, u64); 23] = [
    ("ethereum", 1),
    ("sepolia", 11_155_111),
    ("base", 8_453),
    ("base-sepolia", 84_532),
    ("avalanche", 43_114),
    ("avalanche-fuji", 43_113),
    ("polygon", 137),
    ("polygon-amoy", 80_002),
    ("sei", 1_329),
    ("sei-testnet", 1_328),
    ("iotex", 4_689),
    ("abstract", 2_741),
    ("abstract-testnet", 11_124),
    ("peaq", 3_338),
    ("story", 1_514),
    ("educhain", 41_923),
    ("skale-base-sepolia", 324_705_682),
    ("megaeth", 4_326),
    ("monad", 143),
    ("stable", 988),
    ("stable-testnet", 2_201),
    ("celo", 42_220),
    ("flare", 14),
];

/// Why a text is not an EVM value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not `0x` and 40 hex digits.
    #[error("not an address: 0x and 40 hex digits are needed")]
    Address,
    /// Not `eip155:` and a chain id.
    #[error("not a network: eip155: and a chain id without leading zeros are needed")]
    Network,
    /// Not `0x` and 64 hex digits.
    #[error("not a 32-byte word: 0x and 64 hex digits are needed")]
    Word,
    /// Not an unsigned decimal integer of at most 256 bits, written without sign, spaces or leading zeros.
    #[error("not a decimal integer of at most 256 bits")]
    Integer,
}

/// An EVM chain, written in CAIP-2 form (`eip155:84532`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    chain_id: u64,
}

/// What a payer signs under EIP-3009: this much to that address, within a window of time, once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransferAuthorization {
    /// Who pays.
    pub from: Address,
    /// Who is paid.
    pub to: Address,
    /// Atomic units of the token.
    pub value: U256,
    /// Unix seconds; the token demands a later block time.
    pub valid_after: U256,
    /// Unix seconds; the token demands an earlier block time.
    pub valid_before: U256,
    /// Chosen by the payer, used once per payer and token.
    pub nonce: B256,
}

/// The EIP-712 domain of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenDomain {
    /// The token's own name in its domain, which may differ from its symbol.
    pub name: String,
    /// The token's version in its domain.
    pub version: String,
    /// Chain of the token.
    pub chain_id: u64,
    /// Address of the token.
    pub contract: Address,
}

mod typed {
    alloy_sol_types::sol! {
        struct TransferWithAuthorization {
            address from;
            address to;
            uint256 value;
            uint256 validAfter;
            uint256 validBefore;
            bytes32 nonce;
        }
    }
}

impl Network {
    /// The network of a chain id.
    pub const fn new(chain_id: u64) -> Self {
        Self { chain_id }
    }

    /// The chain id.
    pub const fn chain_id(self) -> u64 {
        self.chain_id
    }

    /// Its name in version 1 of x402, when it has one.
    pub fn v1_name(self) -> Option<&'static str> {
        V1_NAMES.iter().find(|(_, id)| *id == self.chain_id).map(|(name, _)| *name)
    }

    /// The network behind a version 1 name.
    pub fn from_v1_name(name: &str) -> Option<Self> {
        V1_NAMES.iter().find(|(known, _)| *known == name).map(|(_, id)| Self::new(*id))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "eip155:{}", self.chain_id)
    }
}

impl FromStr for Network {
    type Err = ParseError;

    /// Reads the CAIP-2 form, in lower case and without leading zeros, so that a network has one spelling.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let digits = text.strip_prefix("eip155:").ok_or(ParseError::Network)?;
        let plain = !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        let chain_id = if plain { digits.parse().ok() } else { None };
        chain_id.map(Self::new).ok_or(ParseError::Network)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl TokenDomain {
    fn eip712(&self) -> Eip712Domain {
        Eip712Domain {
            name: Some(self.name.clone().into()),
            version: Some(self.version.clone().into()),
            chain_id: Some(U256::from(self.chain_id)),
            verifying_contract: Some(self.contract),
            salt: None,
        }
    }
}

/// The EIP-712 digest that the payer of `auth` signs for the token of `domain`.
pub fn digest(auth: &TransferAuthorization, domain: &TokenDomain) -> B256 {
    let message = typed::TransferWithAuthorization {
        from: auth.from,
        to: auth.to,
        value: auth.value,
        validAfter: auth.valid_after,
        validBefore: auth.valid_before,
        nonce: auth.nonce,
    };
    message.eip712_signing_hash(&domain.eip712())
}

/// Reads `0x` and 40 hex digits of any case. A mixed-case text with a wrong EIP-55 checksum is accepted by its value:
/// everything that is signed or compared is the 20 bytes, and every path does the same.
pub fn parse_address(text: &str) -> Result<Address, ParseError> {
    let digits = text.strip_prefix("0x").ok_or(ParseError::Address)?;
    decode_hex::<20>(digits).map(Address::from).ok_or(ParseError::Address)
}

/// Reads `0x` and 64 hex digits of any case.
pub fn parse_word(text: &str) -> Result<B256, ParseError> {
    let digits = text.strip_prefix("0x").ok_or(ParseError::Word)?;
    decode_hex::<32>(digits).map(B256::from).ok_or(ParseError::Word)
}

/// Reads an unsigned decimal integer of at most 256 bits: digits only, no leading zeros.
pub fn parse_uint(text: &str) -> Result<U256, ParseError> {
    // 2^256 - 1 has 78 digits
    let plain = (1..=78).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !plain || (text.len() > 1 && text.starts_with('0')) {
        return Err(ParseError::Integer);
    }
    U256::from_str_radix(text, 10).map_err(|_| ParseError::Integer)
}

/// The lower-case form of an address, for keys and comparisons.
pub fn lower(address: &Address) -> String {
    format!("{address:#x}")
}

/// The checksummed form of an address (EIP-55), for the wire.
pub fn checksummed(address: &Address) -> String {
    address.to_checksum(None)
}

fn decode_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    alloy_primitives::hex::decode_to_slice(plain_hex(digits, N * 2)?, &mut out).ok()?;
    Some(out)
}

/// `digits` when they are exactly `len` hex digits. The decoder behind it would also take a second `0x`.
fn plain_hex(digits: &str, len: usize) -> Option<&str> {
    (digits.len() == len && digits.bytes().all(|b| b.is_ascii_hexdigit())).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    fn usdc() -> TokenDomain {
        TokenDomain {
            name: "USDC".to_owned(),
            version: "2".to_owned(),
            chain_id: 84_532,
            contract: parse_address("0x036CbD53842c5426634e7929541eC2318f3dCF7e").expect("an address"),
        }
    }

    fn authorization() -> TransferAuthorization {
        TransferAuthorization {
            from: Address::repeat_byte(0x11),
            to: Address::repeat_byte(0x22),
            value: U256::from(50_000),
            valid_after: U256::ZERO,
            valid_before: U256::from(1_800_000_000u64),
            nonce: B256::repeat_byte(0x33),
        }
    }

    /// The digest once more, by hand from the text of EIP-712.
    fn digest_by_hand(auth: &TransferAuthorization, domain: &TokenDomain) -> B256 {
        let word = |address: &Address| {
            let mut word = [0u8; 32];
            word[12..].copy_from_slice(address.as_slice());
            word
        };
        let domain_type = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
        let separator = keccak256(
            [
                keccak256(domain_type).as_slice(),
                keccak256(&domain.name).as_slice(),
                keccak256(&domain.version).as_slice(),
                &U256::from(domain.chain_id).to_be_bytes::<32>(),
                &word(&domain.contract),
            ]
            .concat(),
        );
        let message_type = "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,\
                            uint256 validBefore,bytes32 nonce)";
        let message = keccak256(
            [
                keccak256(message_type).as_slice(),
                &word(&auth.from),
                &word(&auth.to),
                &auth.value.to_be_bytes::<32>(),
                &auth.valid_after.to_be_bytes::<32>(),
                &auth.valid_before.to_be_bytes::<32>(),
                auth.nonce.as_slice(),
            ]
            .concat(),
        );
        keccak256([&[0x19, 0x01], separator.as_slice(), message.as_slice()].concat())
    }

    #[test]
    fn the_digest_is_that_of_eip_712() {
        assert_eq!(digest(&authorization(), &usdc()), digest_by_hand(&authorization(), &usdc()));
    }

    #[test]
    fn a_network_has_one_spelling() {
        assert_eq!("eip155:84532".parse(), Ok(Network::new(84_532)));
        assert_eq!(Network::new(84_532).v1_name(), Some("base-sepolia"));
        assert_eq!(Network::new(31_337).v1_name(), None);
        for (name, id) in V1_NAMES {
            assert_eq!(Network::from_v1_name(name).map(Network::chain_id), Some(id));
        }
        for bad in ["", "84532", "eip155:", "eip155:084532", "EIP155:1", "eip155:+1", "eip155:18446744073709551616"] {
            assert_eq!(bad.parse::<Network>(), Err(ParseError::Network), "{bad:?}");
        }
    }

    #[test]
    fn addresses_are_taken_by_value() {
        let value = usdc().contract;
        for text in ["0x036cbd53842c5426634e7929541ec2318f3dcf7e", "0x036CBD53842C5426634E7929541EC2318F3DCF7E"] {
            assert_eq!(parse_address(text), Ok(value));
        }
        assert_eq!(parse_address("0x036cBd53842c5426634e7929541eC2318f3dCF7e"), Ok(value), "wrong checksum");
        assert_eq!(checksummed(&value), "0x036CbD53842c5426634e7929541eC2318f3dCF7e");
        assert_eq!(lower(&value), "0x036cbd53842c5426634e7929541ec2318f3dcf7e");
        for bad in ["", "0x", "036cbd53842c5426634e7929541ec2318f3dcf7e", "0X036cbd53842c5426634e7929541ec2318f3dcf7e"]
        {
            assert_eq!(parse_address(bad), Err(ParseError::Address), "{bad:?}");
        }
        assert!(parse_address("0x0x6cbd53842c5426634e7929541ec2318f3dcf7e").is_err());
    }

    #[test]
    fn integers_have_one_spelling() {
        assert_eq!(parse_uint("0"), Ok(U256::ZERO));
        assert_eq!(parse_uint(&U256::MAX.to_string()), Ok(U256::MAX));
        let over = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
        for bad in ["", "00", "01", "+1", "-1", " 1", "1 ", "0x1", "1e3", "1.0", "1_000", "\u{0661}", over] {
            assert_eq!(parse_uint(bad), Err(ParseError::Integer), "{bad:?}");
        }
    }
}
