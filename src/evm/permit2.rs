//! What a payer signs under Permit2 for x402: a signature transfer whose witness names the payee (and, for `upto`, who may settle).
//!
//! Permit2 `PermitWitnessTransferFrom` with the witness types of the two x402 proxies (coinbase/x402 `specs/schemes`). The domain of
//! Permit2 has no version. Pure: no chain is read.

use alloy_primitives::{B256, U256, address};
use alloy_sol_types::{Eip712Domain, SolStruct};

use super::Address;

/// The Permit2 contract, the same on every chain.
pub const PERMIT2: Address = address!("000000000022D473030F116dDEE9F6B43aC78BA3");

/// The x402 proxy that moves exactly what was permitted.
pub const EXACT_PROXY: Address = address!("402085c248EeA27D92E8b30b2C58ed07f9E20001");

/// The x402 proxy that moves at most what was permitted, for the facilitator that the witness names.
pub const UPTO_PROXY: Address = address!("4020A4f3b7b90ccA423B9fabCc0CE57C6C240002");

/// What a payer signs under Permit2: up to this much of a token through that proxy to that address, until a deadline, once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermitTransfer {
    /// Who pays.
    pub from: Address,
    /// The token.
    pub token: Address,
    /// Atomic units of the token: the price, or for `upto` the most that may be charged.
    pub amount: U256,
    /// The one contract that may use the permit.
    pub spender: Address,
    /// A bit in the payer's bitmap, shared by all his tokens and spenders.
    pub nonce: U256,
    /// Unix seconds; Permit2 takes no later block time.
    pub deadline: U256,
    /// Who is paid (witness).
    pub to: Address,
    /// Who may settle (witness of `upto`; the witness of `exact` has no such member).
    pub facilitator: Option<Address>,
    /// Unix seconds; the proxy takes no earlier block time (witness).
    pub valid_after: U256,
}

mod exact {
    alloy_sol_types::sol! {
        struct TokenPermissions { address token; uint256 amount; }
        struct Witness { address to; uint256 validAfter; }
        struct PermitWitnessTransferFrom {
            TokenPermissions permitted; address spender; uint256 nonce; uint256 deadline; Witness witness;
        }
    }
}

mod upto {
    alloy_sol_types::sol! {
        struct TokenPermissions { address token; uint256 amount; }
        struct Witness { address to; address facilitator; uint256 validAfter; }
        struct PermitWitnessTransferFrom {
            TokenPermissions permitted; address spender; uint256 nonce; uint256 deadline; Witness witness;
        }
    }
}

impl PermitTransfer {
    /// The EIP-712 digest that the payer signs on a chain.
    pub fn digest(&self, chain_id: u64) -> B256 {
        let domain = Eip712Domain {
            name: Some("Permit2".into()),
            version: None,
            chain_id: Some(U256::from(chain_id)),
            verifying_contract: Some(PERMIT2),
            salt: None,
        };
        match self.facilitator {
            None => exact::PermitWitnessTransferFrom {
                permitted: exact::TokenPermissions { token: self.token, amount: self.amount },
                spender: self.spender,
                nonce: self.nonce,
                deadline: self.deadline,
                witness: exact::Witness { to: self.to, validAfter: self.valid_after },
            }
            .eip712_signing_hash(&domain),
            Some(facilitator) => upto::PermitWitnessTransferFrom {
                permitted: upto::TokenPermissions { token: self.token, amount: self.amount },
                spender: self.spender,
                nonce: self.nonce,
                deadline: self.deadline,
                witness: upto::Witness { to: self.to, facilitator, validAfter: self.valid_after },
            }
            .eip712_signing_hash(&domain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{hex, keccak256};
    use proptest::prelude::*;

    fn permit(facilitator: Option<Address>) -> PermitTransfer {
        PermitTransfer {
            from: Address::repeat_byte(0x11),
            token: address!("036CbD53842c5426634e7929541eC2318f3dCF7e"),
            amount: U256::from(50_000),
            spender: if facilitator.is_some() { UPTO_PROXY } else { EXACT_PROXY },
            nonce: U256::from(7),
            deadline: U256::from(1_800_000_000u64),
            to: Address::repeat_byte(0x22),
            facilitator,
            valid_after: U256::from(1),
        }
    }

    /// The digest once more, by hand from the text of EIP-712 and the type strings that the proxies publish.
    fn digest_by_hand(permit: &PermitTransfer, chain_id: u64) -> B256 {
        let word = |address: &Address| address.into_word().0;
        let number = |value: U256| value.to_be_bytes::<32>();
        let domain = keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
        let separator =
            keccak256([domain.0, keccak256("Permit2").0, number(U256::from(chain_id)), word(&PERMIT2)].concat());
        let (witness_type, witness) = match permit.facilitator {
            None => ("Witness(address to,uint256 validAfter)", vec![word(&permit.to)]),
            Some(facilitator) => (
                "Witness(address to,address facilitator,uint256 validAfter)",
                vec![word(&permit.to), word(&facilitator)],
            ),
        };
        let tokens = "TokenPermissions(address token,uint256 amount)";
        let members = [vec![keccak256(witness_type).0], witness, vec![number(permit.valid_after)]].concat();
        let outer = format!(
            "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness){tokens}{witness_type}"
        );
        let permitted = keccak256([keccak256(tokens).0, word(&permit.token), number(permit.amount)].concat());
        let message = keccak256(
            [
                keccak256(outer).0,
                permitted.0,
                word(&permit.spender),
                number(permit.nonce),
                number(permit.deadline),
                keccak256(members.concat()).0,
            ]
            .concat(),
        );
        keccak256([&[0x19, 0x01], separator.as_slice(), message.as_slice()].concat())
    }

    #[test]
    fn the_digests_are_those_that_viem_makes() {
        // hashTypedData of viem 2.57 over the same members
        let facilitator = Some(Address::repeat_byte(0x33));
        for (facilitator, hash) in [
            (None, "6cf6ea9ef3c214800e184ba6cc94b96d1101d47a70d00802fc1ab686cfead153"),
            (facilitator, "dce3842510e1ab24854e545c1c79b4fb0bd0040691979dba5ebfd0b6668ebdae"),
        ] {
            assert_eq!(hex::encode(permit(facilitator).digest(84_532)), hash);
        }
    }

    proptest! {
        #[test]
        fn the_digest_is_that_of_eip_712(
            addresses in any::<[[u8; 20]; 5]>(), numbers in any::<[[u8; 32]; 4]>(), chain_id in 1u64.., upto in any::<bool>(),
        ) {
            let [from, token, spender, to, facilitator] = addresses.map(Address::from);
            let [amount, nonce, deadline, valid_after] = numbers.map(U256::from_be_bytes);
            let facilitator = upto.then_some(facilitator);
            let permit = PermitTransfer { from, token, amount, spender, nonce, deadline, to, facilitator, valid_after };
            prop_assert_eq!(permit.digest(chain_id), digest_by_hand(&permit, chain_id));
        }
    }
}
