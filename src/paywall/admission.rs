//! From a decoded payment to work that may be done for it, in the published order of checks.
//!
//! The claim is on disk before verify is called. A payment that was presented before, or whose
//! purchase another one holds, is answered by [`super::repeat`].

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::Paywall;
use super::contract::Circumstances;
use super::outcome::{Outcome, Refused};
use super::port::{FacilitatorRequest, Judged, Verdict};
use super::settle::SettleCall;
use super::verified::{Home, Money, Presence, Signed, UNAPPROVED, Verified, Work};
use crate::canonical::{self, hex};
use crate::catalog::Product;
use crate::evm::{Address, PERMIT2, checksummed, lower};
use crate::fault;
use crate::ledger::Customer;
use crate::limits;
use crate::machine::{Rail, State};
use crate::memo::Mode;
use crate::refusal::{Refusal, RefusalCode};
use crate::store::journal::{Claim, Held, NewPayment};
use crate::store::{self};
use crate::x402::{
    Authorization, Mismatch, Offer, Payment, SignatureCheck, check_window, facilitator_request, match_offer,
    verify_signature,
};
use uuid::Uuid;

/// What facilitators call a payer who has not let Permit2 move his tokens.
const NO_ALLOWANCE: &str = "permit2_allowance_required";

/// A request with a payment, as the face has read it.
#[derive(Clone, Debug)]
pub struct Purchase {
    /// What is bought.
    pub product: Product,
    /// Our terms for it.
    pub offer: Offer,
    /// The decoded payment.
    pub payment: Payment,
    /// Digest of the request ([`request_fp`]).
    pub request_fp: String,
    /// Id of the request.
    pub request_id: String,
    /// What it is about, as asked.
    pub subject: String,
    /// Who the memo is for.
    pub mode: Mode,
    /// Hops of the inbound call chain.
    pub call_chain_depth: usize,
    /// Who writes drafts, for the ledger.
    pub synthesizer: &'static str,
}

/// What becomes of a purchase.
#[derive(Debug)]
pub enum Admission {
    /// The payment is good and claimed: work, then commit or refuse.
    Proceed(Verified),
    /// No work is needed.
    Answer(Outcome),
}

/// Digest of a request: method, path, sorted query, body digest and product.
pub fn request_fp(method: &str, path: &str, query: &[(String, String)], body: &[u8], product: &str) -> String {
    let mut query = query.to_vec();
    query.sort();
    canonical::address(&json!({
        "method": method,
        "path": path,
        "query": query,
        "body_sha256": canonical::sha256_hex(body),
        "sku": product,
    }))
}

impl Paywall {
    /// Checks, claims and verifies a payment. A database that fails before anything moved is a refusal that gives nothing away.
    pub async fn admit(self: &Arc<Self>, purchase: Purchase, home: &Home, presence: &Presence) -> Admission {
        match self.try_admit(&purchase, home, presence).await {
            Ok(admission) => admission,
            Err(error) => {
                tracing::error!(%error, "the journal failed while a payment was admitted");
                let detail = "The payment could not be recorded; nothing was done with it.";
                let refusal = Refusal::new(RefusalCode::Overloaded, detail);
                Admission::Answer(self.refuse_unless(&purchase, refusal, State::may_be_charged).await)
            }
        }
    }

    async fn try_admit(
        self: &Arc<Self>,
        purchase: &Purchase,
        home: &Home,
        presence: &Presence,
    ) -> Result<Admission, store::Error> {
        let key = purchase.auth_key();
        if let Some(error) = self.local_objection(purchase) {
            // a payment that was taken before its window closed or the price moved is still answered from its rows
            let known = self.journal.find(&key, &purchase.request_fp, &purchase.payload_sha256()).await?;
            return Ok(Admission::Answer(match known {
                // nobody works on it, and it can no longer be taken: waiting would never end
                None | Some(Claim::Existing { state: State::Abandoned, .. }) => Outcome::Unpaid { error },
                Some(claim) => self.answer_repeat(purchase, claim).await?,
            }));
        }
        let Some(request) = facilitator_call(purchase) else {
            return Ok(Admission::Answer(Outcome::Unpaid { error: Mismatch::Network.to_string() }));
        };
        if let Some(refusal) = self.payer_objection(&purchase.payment.authorization.from()) {
            return Ok(Admission::Answer(self.refuse_unless(purchase, refusal, State::is_open).await));
        }
        let permit = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) if self.is_supported() => permit,
            Ok(_) => {
                let detail = "No facilitator that settles this kind of payment is reachable yet.";
                return Ok(self.shed_unclaimed(purchase, detail).await);
            }
            Err(_) => {
                let detail = "As many paid requests as the operator allows are being served.";
                return Ok(self.shed_unclaimed(purchase, detail).await);
            }
        };
        let mut claim = self.journal.claim(&self.new_payment(purchase)).await?;
        if let Claim::PurchaseLive { payment_id, state } = claim
            && self.resolve_holder(payment_id, state, purchase).await?
        {
            // whoever held the purchase holds it no longer: ask again, once
            claim = self.journal.claim(&self.new_payment(purchase)).await?;
        }
        match claim {
            Claim::Won { held, takes_over } => {
                let checking = self.verify(purchase, held, takes_over, request, permit, home, presence);
                match AssertUnwindSafe(checking).catch_unwind().await {
                    Ok(admission) => admission,
                    Err(_) => self.let_go(purchase, held).await,
                }
            }
            other => Ok(Admission::Answer(self.answer_repeat(purchase, other).await?)),
        }
    }

    /// Asks the facilitator. The claim is ours; each way out of here decides it or gives it back.
    #[expect(clippy::too_many_arguments, reason = "what a claim was won with, once, on its way into the work")]
    async fn verify(
        self: &Arc<Self>,
        purchase: &Purchase,
        held: Held,
        takes_over: Option<Uuid>,
        request: FacilitatorRequest,
        permit: OwnedSemaphorePermit,
        home: &Home,
        presence: &Presence,
    ) -> Result<Admission, store::Error> {
        fault::point("before-verify");
        // a cap is verified as what was signed; what is settled is the price
        let judged = self.facilitator.verify(&request.for_verify(&purchase.payment.authorization.value())).await;
        fault::point("after-verify");
        let Judged { verdict, facilitator } = match judged {
            Ok(judged) => judged,
            Err(error) => {
                tracing::warn!(%error, facilitator = self.facilitator.name(), "verify could not be reached");
                self.journal.give_back(held, &error.to_string()).await?;
                return Ok(self.shed(purchase, "The facilitator could not be reached to verify the payment."));
            }
        };
        let valid_before = purchase.payment.authorization.valid_before();
        let mut work = Work {
            paywall: Arc::clone(self),
            held,
            circumstances: purchase.circumstances(None),
            customer: self.customer(purchase),
            amount: purchase.offer.amount,
            money: Money::Signed(Signed { request, facilitator, valid_before }),
            synthesizer: purchase.synthesizer,
            presence: presence.clone(),
            permit: Some(permit),
        };
        let from = lower(&purchase.payment.authorization.from());
        match verdict {
            Verdict::Invalid { reason } if reason == NO_ALLOWANCE => {
                let (token, amount) = (checksummed(&purchase.offer.asset), purchase.payment.authorization.value());
                let text = format!(
                    "{NO_ALLOWANCE}: approve {} to move at least {amount} units of {token}, then sign a new payment",
                    checksummed(&PERMIT2)
                );
                Ok(Admission::Answer(work.verify_failed(&text, UNAPPROVED).await?))
            }
            Verdict::Invalid { reason } => Ok(Admission::Answer(work.verify_failed(&reason, 402).await?)),
            Verdict::Valid { payer: Some(payer) } if payer.to_lowercase() != from => {
                tracing::error!(facilitator = work.facilitator(), "verify named another payer than the signer");
                let refusal = Refusal::new(RefusalCode::ExecutionFailed, "The facilitator vouched for another payer.");
                Ok(Admission::Answer(Box::new(work).refuse(refusal, None).await))
            }
            Verdict::Valid { .. } if takes_over.is_some() => {
                let other = takes_over.unwrap_or_default();
                Ok(Admission::Answer(self.take_over(purchase, work, other).await?))
            }
            Verdict::Valid { .. } => {
                work.circumstances.order_id = Some(new_order_id());
                Ok(Admission::Proceed(Verified::new(work, home.clone())))
            }
        }
    }

    /// The check panicked. Its claim is free at once, unless something was decided before: then the rows know, and the same payment
    /// brings it.
    async fn let_go(&self, purchase: &Purchase, held: Held) -> Result<Admission, store::Error> {
        tracing::error!(payment_id = %held.payment_id, "the check of a payment panicked");
        if self.journal.give_back(held, "the check panicked").await? {
            return Ok(self.shed(purchase, "The payment could not be checked."));
        }
        Ok(Admission::Answer(Outcome::Pending { payment_id: held.payment_id, transaction: None }))
    }

    /// Settles the stored answer of another authorization of this purchase, which nobody ever tried to settle, under this one.
    async fn take_over(
        self: &Arc<Self>,
        purchase: &Purchase,
        work: Work,
        other: Uuid,
    ) -> Result<Outcome, store::Error> {
        let Work { held, money, presence, circumstances, .. } = work;
        if let Money::Signed(Signed { request, facilitator, .. }) = money
            && !presence.is_gone()
            && self.journal.take_over(held, other, &request.body(), &facilitator).await?
        {
            let call = SettleCall { payment_id: held.payment_id, attempt: 1, facilitator, request };
            return Ok(self.settle(call, circumstances, None).await);
        }
        self.journal.give_back(held, "the answer that was to be taken over moved on").await?;
        // the other one is being settled, or was: what is said of it holds for the purchase
        let state = self.journal.load_state(other).await?;
        self.answer_repeat(purchase, Claim::PurchaseLive { payment_id: other, state }).await
    }

    /// Terms, window and signature: what needs nobody but us.
    fn local_objection(&self, purchase: &Purchase) -> Option<String> {
        let Purchase { payment, offer, .. } = purchase;
        if let Err(mismatch) = match_offer(payment, offer) {
            return Some(mismatch.to_string());
        }
        if let Err(error) = check_window(&payment.authorization, self.clock.unix_s(), limits::AUTHORIZATION_LEFT_S_MIN)
        {
            return Some(error.said_of(&payment.authorization));
        }
        let bad = match payment.authorization {
            Authorization::Eip3009(_) => "invalid_exact_evm_payload_signature",
            Authorization::Permit2(_) => "invalid_permit2_signature",
        };
        match verify_signature(payment, offer) {
            SignatureCheck::Eoa => None,
            SignatureCheck::NotSixtyFiveBytes if self.policy.contract_wallets => None,
            SignatureCheck::NotSixtyFiveBytes => Some(format!("{bad}: only 65-byte signatures are taken")),
            SignatureCheck::Bad(_) => Some(bad.into()),
        }
    }

    pub(super) fn payer_objection(&self, payer: &Address) -> Option<Refusal> {
        if self.policy.denied_payers.contains(payer) {
            return Some(Refusal::new(RefusalCode::PayerDeclined, "This payer is on the operator's screening list."));
        }
        match self.payer_rate.as_ref().map(|limiter| limiter.check_key(payer)) {
            Some(Err(_)) => Some(Refusal::new(
                RefusalCode::RateLimited,
                format!("More than {} paid requests of this payer in a minute.", self.policy.rate_per_minute),
            )),
            Some(Ok(())) | None => None,
        }
    }

    fn shed(&self, purchase: &Purchase, detail: &str) -> Admission {
        Admission::Answer(self.refuse_unclaimed(purchase, Refusal::new(RefusalCode::Overloaded, detail)))
    }

    async fn shed_unclaimed(&self, purchase: &Purchase, detail: &str) -> Admission {
        let refusal = Refusal::new(RefusalCode::Overloaded, detail);
        Admission::Answer(self.refuse_unless(purchase, refusal, State::is_open).await)
    }

    /// A refusal for a reason that has nothing to do with the payment, which may have been presented before: that it is not charged
    /// is said only when the rows say nothing else. `speaks_against` names the states that do; without rows its outcome is open.
    async fn refuse_unless(&self, purchase: &Purchase, refusal: Refusal, speaks_against: fn(State) -> bool) -> Outcome {
        let (key, payload) = (purchase.auth_key(), purchase.payload_sha256());
        let finding = self.journal.find(&key, &purchase.request_fp, &payload);
        let open = match timeout(limits::JOURNAL_SECOND_LOOK, finding).await {
            Ok(Ok(claim)) => claim.and_then(|claim| claim.known()).filter(|(_, state)| speaks_against(*state)),
            Ok(Err(_)) | Err(_) => Some((Uuid::nil(), State::Unknown)),
        };
        match open {
            None => self.refuse_unclaimed(purchase, refusal),
            Some((payment_id, _)) => Outcome::Pending { payment_id, transaction: None },
        }
    }

    /// A refusal of a payment that is not claimed: nothing is stored, and the payment stays as it was.
    pub(super) fn refuse_unclaimed(&self, purchase: &Purchase, refusal: Refusal) -> Outcome {
        let body = self.contract.refusal_body(&refusal, &purchase.circumstances(None), self.clock.now());
        Outcome::Refused(Refused::new(&refusal, body))
    }

    fn new_payment(&self, purchase: &Purchase) -> NewPayment {
        let (auth, offer) = (&purchase.payment.authorization, &purchase.offer);
        NewPayment {
            auth_key: purchase.auth_key(),
            rail: rail_of(&purchase.payment),
            x402_version: if purchase.payment.version.number() == 1 { 1 } else { 2 },
            network: offer.network.to_string(),
            asset: lower(&offer.asset),
            payer: lower(&auth.from()),
            pay_to: lower(&offer.pay_to),
            auth_nonce: format!("{:#x}", auth.nonce()),
            payload_sha256: purchase.payload_sha256(),
            request_fp: purchase.request_fp.clone(),
            product: purchase.product.id.clone(),
            contract_id: self.contract.id().to_owned(),
            amount: offer.amount.to_string(),
            amount_micros: purchase.product.price,
            valid_after: auth.valid_after().to_string(),
            valid_before: auth.valid_before().to_string(),
        }
    }

    fn customer(&self, purchase: &Purchase) -> Customer {
        let payer = purchase.payment.authorization.from();
        Customer {
            request_id: purchase.request_id.clone(),
            product: purchase.product.id.clone(),
            subject: purchase.subject.clone(),
            mode: purchase.mode,
            payer,
            payer_class: self.payer_class(&payer),
            call_chain_depth: purchase.call_chain_depth,
        }
    }
}

impl Purchase {
    /// Key of its authorization.
    pub fn auth_key(&self) -> String {
        self.payment.auth_key(&self.offer.network, &self.offer.asset)
    }

    fn payload_sha256(&self) -> String {
        hex(&self.payment.payload_sha256())
    }

    pub(super) fn circumstances(&self, order_id: Option<String>) -> Circumstances {
        Circumstances { order_id, payment_key: Some(self.auth_key()), request_fp: self.request_fp.clone() }
    }
}

/// The payment with our own terms, never the buyer's copy of them.
pub(super) fn facilitator_call(purchase: &Purchase) -> Option<FacilitatorRequest> {
    facilitator_request(&purchase.payment, &purchase.offer).map(|call| FacilitatorRequest {
        x402_version: call.x402_version,
        payment_payload: call.payment_payload,
        payment_requirements: call.payment_requirements,
    })
}

/// The rail of a payment that matched its offer: of the permits, those whose witness names a facilitator are for `upto`.
fn rail_of(payment: &Payment) -> Rail {
    match &payment.authorization {
        Authorization::Eip3009(_) => Rail::Exact,
        Authorization::Permit2(permit) if permit.facilitator.is_some() => Rail::Upto,
        Authorization::Permit2(_) => Rail::ExactPermit2,
    }
}

/// 128 random bits: the id is the capability to read an order.
pub(super) fn new_order_id() -> String {
    hex(Uuid::new_v4().as_bytes())
}
