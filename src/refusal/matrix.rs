//! The rows of the refusal matrix, one per code.

use super::{Recovery, RefusalCode, Row};

/// The row of a code. Matched without a wildcard, so that a new code does not build without its row.
pub(super) fn row(code: RefusalCode) -> &'static Row {
    match code {
        RefusalCode::PolicyRefusal => &POLICY_REFUSAL,
        RefusalCode::InsufficientSubject => &INSUFFICIENT_SUBJECT,
        RefusalCode::ExecutionFailed => &EXECUTION_FAILED,
        RefusalCode::DataUnavailable => &DATA_UNAVAILABLE,
        RefusalCode::ResearchRejected => &RESEARCH_REJECTED,
        RefusalCode::CallChainLoop => &CALL_CHAIN_LOOP,
        RefusalCode::CallChainDepth => &CALL_CHAIN_DEPTH,
        RefusalCode::CallChainInvalid => &CALL_CHAIN_INVALID,
        RefusalCode::PaymentMalformed => &PAYMENT_MALFORMED,
        RefusalCode::PaymentReused => &PAYMENT_REUSED,
        RefusalCode::PaymentInProgress => &PAYMENT_IN_PROGRESS,
        RefusalCode::RateLimited => &RATE_LIMITED,
        RefusalCode::PayerDeclined => &PAYER_DECLINED,
        RefusalCode::Overloaded => &OVERLOADED,
    }
}

/// A final refusal that a changed request may avoid; the other rows say where they differ.
const FINAL: Row = Row {
    code: RefusalCode::PolicyRefusal,
    name: "",
    status: 409,
    title: "",
    reason: "",
    hint: "",
    recovery: Recovery::ChangeRequest,
    retry_safe: false,
    same_payment: false,
    after_s: None,
};

static POLICY_REFUSAL: Row = Row {
    code: RefusalCode::PolicyRefusal,
    name: "policy_refusal",
    status: 409,
    title: "Declined by policy",
    reason: "The operator does not sell this subject or product, or personal advice was asked for.",
    hint: "Ask for another subject or product.",
    recovery: Recovery::ChooseAlternative,
    ..FINAL
};

static INSUFFICIENT_SUBJECT: Row = Row {
    code: RefusalCode::InsufficientSubject,
    name: "insufficient_subject",
    status: 422,
    title: "The subject does not support a memo",
    reason: "The input is present but invalid, the subject is unknown, or too little is on file about it.",
    hint: "Correct the input or choose another subject; the input schema is in the catalogue.",
    ..FINAL
};

static EXECUTION_FAILED: Row = Row {
    code: RefusalCode::ExecutionFailed,
    name: "execution_failed",
    status: 502,
    title: "The run failed",
    reason: "Our fault or an upstream's, after the payment was verified and before anything was settled.",
    hint: "Ask again with a new payment; this one will never be charged.",
    recovery: Recovery::RetryImmediately,
    retry_safe: true,
    ..FINAL
};

static DATA_UNAVAILABLE: Row = Row {
    code: RefusalCode::DataUnavailable,
    name: "data_unavailable",
    status: 503,
    title: "The data is not available fresh",
    reason: "A live source is down or what is kept of it is too old; stale data is never sold as fresh.",
    hint: "Ask again later with a new payment; this one will never be charged.",
    recovery: Recovery::RetryImmediately,
    retry_safe: true,
    after_s: Some(60),
    ..FINAL
};

static RESEARCH_REJECTED: Row = Row {
    code: RefusalCode::ResearchRejected,
    name: "research_rejected",
    status: 502,
    title: "No draft of the memo passed the checks",
    reason: "No attempt was a memo whose every figure is a cited fact and that advises nobody, so nothing was delivered.",
    hint: "Ask again with a new payment; this one will never be charged.",
    recovery: Recovery::RetryImmediately,
    retry_safe: true,
    ..FINAL
};

static CALL_CHAIN_LOOP: Row = Row {
    code: RefusalCode::CallChainLoop,
    name: "call_chain_loop",
    status: 409,
    title: "The call chain would loop",
    reason: "The call chain already holds this seller's own address.",
    hint: "Answer from what this seller delivered earlier in the chain.",
    recovery: Recovery::ChooseAlternative,
    ..FINAL
};

static CALL_CHAIN_DEPTH: Row = Row {
    code: RefusalCode::CallChainDepth,
    name: "call_chain_depth",
    status: 409,
    title: "The call chain is too deep",
    reason: "The number of hops is at or above the ceiling.",
    hint: "Ask from nearer to the start of the chain.",
    recovery: Recovery::ChooseAlternative,
    ..FINAL
};

static CALL_CHAIN_INVALID: Row = Row {
    code: RefusalCode::CallChainInvalid,
    name: "call_chain_invalid",
    status: 409,
    title: "The call chain does not parse",
    reason: "An item of X-Jim-Call-Chain is empty or no address.",
    hint: "Send a comma list of 0x or CAIP-10 addresses, oldest first, or no header.",
    ..FINAL
};

static PAYMENT_MALFORMED: Row = Row {
    code: RefusalCode::PaymentMalformed,
    name: "payment_malformed",
    status: 400,
    title: "The payment header does not decode",
    reason: "The header is not one strict base64 form of one strict JSON object of its version, or there are two of them.",
    hint: "Build the header with an x402 client of version 1 or 2 and send it once.",
    ..FINAL
};

static PAYMENT_REUSED: Row = Row {
    code: RefusalCode::PaymentReused,
    name: "payment_reused",
    status: 409,
    title: "The payment does not pay for this request",
    reason: "It was already used for another request, or with another signature; or it is a broadcast transfer for another product, \
             of too little, or under an offer that has ended.",
    hint: "Ask for terms and sign a new authorization for this request.",
    ..FINAL
};

static PAYMENT_IN_PROGRESS: Row = Row {
    code: RefusalCode::PaymentInProgress,
    name: "payment_in_progress",
    status: 409,
    title: "The same purchase is being served now",
    reason: "A copy of this payment, or another payment of this payer for the same request, is being worked on.",
    hint: "Send the same payment again after the wait; it brings the same answer and is charged once.",
    recovery: Recovery::RetrySamePayment,
    retry_safe: true,
    same_payment: true,
    after_s: Some(2),
};

static RATE_LIMITED: Row = Row {
    code: RefusalCode::RateLimited,
    name: "rate_limited",
    status: 429,
    title: "Too many requests",
    reason: "The address or the payer asked more often than the operator allows; the payment was not used.",
    hint: "Wait as long as Retry-After says.",
    recovery: Recovery::RetryLater,
    retry_safe: true,
    after_s: Some(1),
    ..FINAL
};

static PAYER_DECLINED: Row = Row {
    code: RefusalCode::PayerDeclined,
    name: "payer_declined",
    status: 403,
    title: "The payer is declined",
    reason: "The payer's address is on the operator's screening list.",
    hint: "Nothing was verified or settled; another payer may ask.",
    recovery: Recovery::ChooseAlternative,
    ..FINAL
};

static OVERLOADED: Row = Row {
    code: RefusalCode::Overloaded,
    name: "overloaded",
    status: 503,
    title: "Too busy, or the facilitator cannot be reached",
    reason: "The request was shed before verify, or no facilitator answered verify; the claim on the payment is given back.",
    hint: "Send the same payment again after the wait.",
    recovery: Recovery::RetrySamePayment,
    retry_safe: true,
    same_payment: true,
    after_s: Some(5),
};
