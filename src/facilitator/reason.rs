//! Reason codes of facilitators, in the dialects that are met: the specification, the TypeScript and Go packages, the
//! Python package, and x402-rs. A code in no list is opaque, and an opaque code never means that no money moved.

/// The longest code of the lists below has 54 characters.
const CODE_BYTES_MAX: usize = 80;

/// Codes that can only be given before anything was sent to a chain.
const PRE_BROADCAST: [&str; 38] = [
    // the signature
    "invalid_exact_evm_payload_signature",
    "invalid_exact_evm_signature",
    "invalid_signature",
    "invalid_format",
    // the payee
    "invalid_exact_evm_payload_recipient_mismatch",
    "invalid_exact_evm_recipient_mismatch",
    "recipient_mismatch",
    // the value
    "invalid_exact_evm_payload_authorization_value",
    "invalid_exact_evm_payload_authorization_value_mismatch",
    "invalid_payment_amount",
    // the window
    "invalid_exact_evm_payload_authorization_valid_before",
    "invalid_exact_evm_payload_authorization_valid_after",
    "invalid_payment_expired",
    "invalid_payment_early",
    // the balance
    "insufficient_funds",
    "invalid_exact_evm_insufficient_balance",
    // the network
    "invalid_network",
    "invalid_exact_evm_network_mismatch",
    "network_mismatch",
    "chain_id_mismatch",
    // the scheme and the terms
    "invalid_scheme",
    "unsupported_scheme",
    "accepted_requirements_mismatch",
    "invalid_exact_evm_missing_eip712_domain",
    "missing_eip712_domain",
    // permits, exact and upto
    "invalid_permit2_signature",
    "invalid_permit2_spender",
    "invalid_permit2_recipient_mismatch",
    "permit2_token_mismatch",
    "permit2_amount_mismatch",
    "permit2_deadline_expired",
    "permit2_not_yet_valid",
    "permit2_insufficient_balance",
    "permit2_allowance_required",
    "upto_facilitator_mismatch",
    "invalid_upto_evm_scheme",
    "invalid_upto_evm_network_mismatch",
    "invalid_upto_evm_payload_settlement_exceeds_amount",
];

/// Codes that say that the nonce is used (or cancelled: a token cannot tell).
const NONCE_USED: [&str; 4] = [
    "invalid_exact_evm_nonce_already_used",
    "nonce_already_used",
    "invalid_exact_evm_payload_authorization_nonce_used",
    "permit2_invalid_nonce",
];

/// Codes of a verify that speak about the payment, besides those above.
const VERIFY_ONLY: [&str; 11] = [
    "invalid_payment_requirements",
    "invalid_payload",
    "invalid_x402_version",
    "invalid_exact_evm_transaction_simulation_failed",
    "transaction_simulation",
    "asset_not_deployed_contract",
    "invalid_exact_evm_token_name_mismatch",
    "invalid_exact_evm_token_version_mismatch",
    "invalid_exact_evm_eip3009_not_supported",
    "permit2_simulation_failed",
    "permit2_proxy_not_deployed",
];

/// Whether no money can have moved when a settle ends with this code and no transaction.
pub(super) fn is_pre_broadcast(reason: &str) -> bool {
    PRE_BROADCAST.contains(&reason)
}

/// Whether the code, or the revert text of the usual token, says that the nonce is used.
pub(super) fn is_nonce_used(reason: &str) -> bool {
    NONCE_USED.contains(&reason) || reason.to_ascii_lowercase().contains("authorization is used")
}

/// Whether a verify that ends with this code has judged the payment.
pub(super) fn is_verdict(reason: &str) -> bool {
    is_pre_broadcast(reason) || is_nonce_used(reason) || VERIFY_ONLY.contains(&reason)
}

/// Whether the code says that the facilitator itself failed.
pub(super) fn is_own_failure(reason: &str) -> bool {
    reason.starts_with("unexpected_")
}

/// What may be shown to a buyer: the code itself, or one of ours for a text that is no code. Facilitators put stack traces
/// and internal addresses where a code belongs.
pub(super) fn code(reason: &str) -> &str {
    let is_code = reason.len() <= CODE_BYTES_MAX && reason.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match (is_nonce_used(reason), is_code) {
        (_, true) => reason,
        (true, false) => NONCE_USED[0],
        (false, false) => "verification_failed",
    }
}
