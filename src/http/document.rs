//! The two documents in prose: llms.txt for agents, verification.md for whoever wants to check.

use super::Shop;
use crate::refusal::document::{ORDER_OF_CHECKS, markdown_section};

/// The second rail, where it is switched on.
const LANDING: &str = "## If you broadcast the transfer yourself\n\nTake the entry of `accepts` whose `assetTransferMethod` is \
     `eip3009-client-broadcast`, send `transferWithAuthorization` under its `nonce`, then send the request with `accepted` as it was \
     and `payload` `{\"txHash\": ..}`. A request that is refused after that owes all of the money back to whoever paid: see `refund` \
     in its body.\n\n";

/// The rails by Permit2, where they are switched on.
const PERMIT2: &str = "## If you pay by Permit2\n\nTake an entry of `accepts` whose `assetTransferMethod` is `permit2` and sign \
     `PermitWitnessTransferFrom` for it. Of scheme `upto` the amount is a cap: no more is charged than the price, and the receipt says \
     how much. A 412 `permit2_allowance_required` was not charged: approve the Permit2 contract for the token, then sign a new payment.\n\n";

/// What an agent needs to buy, in under 4,000 characters of prose.
pub(super) fn llms(shop: &Shop) -> String {
    let url = &shop.public_url;
    let mut out = String::from(
        "# jim\n\n> Cited financial research for software agents, paid per request over x402. \
         Every figure is a fact with a source; a refusal is never charged.\n\n## What is sold\n\n",
    );
    for shelf in &shop.shelves {
        out.push_str(&format!(
            "- [{}]({url}{}): {} USD per call, GET with query parameters or POST with JSON. {}\n",
            shelf.product.name, shelf.product.path, shelf.product.price, shelf.product.description
        ));
    }
    out.push_str(&format!(
        "\n## How to buy\n\nAsk without a payment: the 402 carries the terms, in the PAYMENT-REQUIRED header (x402 version 2) and in the \
         body (version 1). Sign one authorization for exactly that amount and send the request again. After a 503 send the \
         same payment again: it cannot be charged twice.\n\n## Documents\n\n\
         - [OpenAPI]({url}/openapi.json)\n- [Catalogue with prices]({url}/api/v1/services)\n\
         - [Refusal contract]({url}/api/meta/refusal-contract)\n- [How to verify]({url}/verification.md)\n\n"
    ));
    if shop.shelves.iter().any(|shelf| shelf.offer.permit2.any()) {
        out.push_str(PERMIT2);
    }
    if shop.paywall.takes_landings() {
        out.push_str(LANDING);
    }
    out.push_str(&markdown_section());
    out
}

/// How a stranger checks what is promised here.
pub(super) fn verification(shop: &Shop) -> String {
    let url = &shop.public_url;
    let mut out = format!(
        "# How to verify\n\n## Price\n\nThe amount in `accepts` of the 402 is what is charged. It equals `price_atomic` in \
         [{url}/api/v1/services]({url}/api/v1/services) and `x-payment-info` in [{url}/openapi.json]({url}/openapi.json).\n\n\
         ## Figures\n\nEach fact of an answer names its form, accession number, filing page and concept: open the filing and \
         compare. A derived fact names the facts it was computed from and its formula.\n\n\
         ## Contract\n\n`contract_id` is the SHA-256 of the canonical JSON (RFC 8785) of the manifest without `contract_id` and \
         `signature`; `signature` is Ed25519 by `public_key` over the canonical JSON without `signature`. Each refusal carries \
         a `receipt` signed by the same key over its `payload`.\n\n## Order of checks\n\nThe first check that fails answers.\n\n"
    );
    for (i, check) in ORDER_OF_CHECKS.iter().enumerate() {
        out.push_str(&format!("{}. {check}\n", i + 1));
    }
    out.push('\n');
    out.push_str(&markdown_section());
    out
}
