//! A payment by a transfer that the buyer has broadcast: money first, request second.
//!
//! What has landed under an offer of ours is recorded before anything of its request is refused; each refusal after that owes all
//! of it back. What is not ours, not mined or not readable is not recorded: the same payment can come again, and the sweep over
//! the chain returns what never does. No facilitator is asked. How such a payment ends is in `ending`.

mod ending;
mod pick;
mod repeat;

use std::sync::Arc;

use super::Paywall;
use super::admission::{Admission, new_order_id};
use super::contract::Circumstances;
use super::evidence::transfer_of;
use super::outcome::{Outcome, Refused};
use super::port::chain::Landing;
use super::verified::{Home, Money, Presence, Verified, Work};
use crate::canonical::hex;
use crate::catalog::Product;
use crate::evm::{Address, lower};
use crate::ledger::Customer;
use crate::machine::Rail;
use crate::memo::Mode;
use crate::money::UsdMicros;
use crate::refusal::{Refusal, RefusalCode, unknown_outcome};
use crate::store;
use crate::store::journal::{Held, Land, NewPayment};
use crate::x402::{
    BroadcastPayment, Candidate, IssuedOffer, Landed, NonceError, Offer, OfferSecret, auth_key, match_broadcast,
    match_landing,
};

pub(super) use ending::LandedMoney;

/// Answer to such a payment where the rail is switched off.
pub const NOT_SOLD: &str = "the client-broadcast rail is not switched on";

/// What the rail needs to know.
#[derive(Clone, Debug)]
pub struct Landings {
    /// The secret behind our offers.
    pub secret: Arc<OfferSecret>,
    /// All that is sold, with its terms.
    pub sold: Vec<(Product, Offer)>,
    /// Where orders are shown, with a slash at the end.
    pub orders_url: String,
}

/// A request with such a payment, as the face has read it.
#[derive(Clone, Debug)]
pub struct LandingPurchase {
    /// What is bought.
    pub product: Product,
    /// Our terms for it.
    pub offer: Offer,
    /// The decoded payment.
    pub payment: BroadcastPayment,
    /// Digest of the request.
    pub request_fp: String,
    /// Id of the request.
    pub request_id: String,
    /// What is asked, or why it is refused however well it is paid.
    pub asked: Result<Asked, Refusal>,
    /// Who writes drafts, for the ledger.
    pub synthesizer: &'static str,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What it is about, as asked.
    pub subject: String,
    /// Who the memo is for.
    pub mode: Mode,
    /// Hops of the inbound call chain.
    pub call_chain_depth: usize,
}

impl Landings {
    fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        self.sold.iter().map(|(product, offer)| Candidate { product: &product.id, offer })
    }

    /// A price of an offer in dollars: the catalogue's, or the same share of it where the price has moved since.
    fn micros(&self, issued: &IssuedOffer) -> UsdMicros {
        let share = self.sold.iter().find(|(product, _)| product.id == issued.product).and_then(|(product, _)| {
            let price = u128::try_from(product.price.0).ok()?;
            i64::try_from(issued.amount.0.checked_mul(price)?.checked_div(product.price_atomic.0)?).ok()
        });
        UsdMicros(share.unwrap_or(i64::MAX).max(1))
    }
}

impl Paywall {
    /// The same paywall with the rail switched on; it needs a chain to read.
    pub fn with_landings(self, landings: Landings) -> Self {
        Self { landings: Some(landings), ..self }
    }

    /// True when payments by a transfer are taken.
    pub fn takes_landings(&self) -> bool {
        self.landings.is_some() && self.chain.is_some()
    }

    /// Finds the transfer, records it, and only then judges the request.
    pub async fn admit_landing(
        self: &Arc<Self>,
        purchase: LandingPurchase,
        home: &Home,
        presence: &Presence,
    ) -> Admission {
        match self.try_land(&purchase, home, presence).await {
            Ok(admission) => admission,
            Err(error) => {
                tracing::error!(%error, tx = %purchase.payment.tx, "the journal failed while a landed payment was admitted");
                self.shed_landing(&purchase, "The payment could not be recorded or read.")
            }
        }
    }

    async fn try_land(
        self: &Arc<Self>,
        purchase: &LandingPurchase,
        home: &Home,
        presence: &Presence,
    ) -> Result<Admission, store::Error> {
        let (Some(rail), Some(chain)) = (&self.landings, &self.chain) else {
            return Ok(unpaid(NOT_SOLD));
        };
        let tx = format!("{:#x}", purchase.payment.tx);
        let nonce = purchase.payment.nonce.map(|nonce| format!("{nonce:#x}"));
        if let Some(known) = self.journal.find_landing(&tx, nonce.as_deref(), &purchase.request_fp).await? {
            return Ok(Admission::Answer(self.answer_known(purchase, known).await?));
        }
        let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() else {
            return Ok(self.shed_landing(purchase, "As many paid requests as the operator allows are being served."));
        };
        let landings = match chain.load_landings(purchase.offer.asset, purchase.payment.tx).await {
            Ok(Some(landings)) => landings,
            Ok(None) => return Ok(Admission::Answer(self.unseen(&tx))),
            Err(error) => {
                tracing::warn!(%error, tx, "a transfer could not be looked up");
                return Ok(self.shed_landing(purchase, "The chain could not be read; the payment is not recorded yet."));
            }
        };
        let (landing, issued) = match pick::pick(rail, &landings, purchase) {
            Ok(picked) => picked,
            Err(reason) => return Ok(unpaid(&reason.to_string())),
        };
        let order_id = new_order_id();
        let payment = self.landed_payment(rail, purchase, landing, &issued);
        let (held, other) = match self.journal.land(&payment, &transfer_of(landing), &order_id).await? {
            Land::Won { held, other } => (held, other),
            Land::Known(known) => return Ok(Admission::Answer(self.answer_known(purchase, known).await?)),
        };
        let money = LandedMoney::of(landing, &order_id, rail);
        let about = purchase.circumstances(order_id, payment.auth_key);
        let mut work = self.landed_work(purchase, held, about, money, landing.key.authorizer, presence);
        work.permit = Some(permit);
        let objection = match self.landing_objection(purchase, landing, &issued) {
            None => other.map(|_| already_paid_for()),
            found => found,
        };
        Ok(match objection {
            Some(refusal) => Admission::Answer(Box::new(work).refuse(refusal, None).await),
            None => Admission::Proceed(Verified::new(work, home.clone())),
        })
    }

    /// Why the money goes back, in the published order of checks.
    fn landing_objection(
        &self,
        purchase: &LandingPurchase,
        landing: &Landing,
        issued: &IssuedOffer,
    ) -> Option<Refusal> {
        if let Err(refusal) = &purchase.asked {
            return Some(refusal.clone());
        }
        if let Err(why) = judge_terms(purchase, landing, issued, self.clock.unix_s()) {
            return Some(Refusal::new(RefusalCode::PaymentReused, why));
        }
        self.payer_objection(&landing.key.authorizer)
    }

    fn landed_payment(
        &self,
        rail: &Landings,
        purchase: &LandingPurchase,
        landing: &Landing,
        issued: &IssuedOffer,
    ) -> NewPayment {
        let (key, offer) = (&landing.key, &purchase.offer);
        NewPayment {
            auth_key: auth_key(&offer.network, &key.asset, &key.authorizer, &key.nonce),
            rail: Rail::ClientBroadcast,
            x402_version: 2,
            network: offer.network.to_string(),
            asset: lower(&key.asset),
            payer: lower(&key.authorizer),
            pay_to: lower(&landing.to),
            auth_nonce: format!("{:#x}", key.nonce),
            payload_sha256: hex(&purchase.payment.payload_sha256()),
            request_fp: purchase.request_fp.clone(),
            product: issued.product.clone(),
            contract_id: self.contract.id().to_owned(),
            amount: issued.amount.to_string(),
            amount_micros: rail.micros(issued),
            valid_after: "0".to_owned(),
            valid_before: issued.ends_at_s().to_string(),
        }
    }

    fn landed_work(
        self: &Arc<Self>,
        purchase: &LandingPurchase,
        held: Held,
        circumstances: Circumstances,
        money: LandedMoney,
        payer: Address,
        presence: &Presence,
    ) -> Work {
        let asked = purchase.asked.as_ref().ok();
        Work {
            paywall: Arc::clone(self),
            held,
            circumstances,
            customer: Customer {
                request_id: purchase.request_id.clone(),
                product: purchase.product.id.clone(),
                subject: asked.map(|asked| asked.subject.clone()).unwrap_or_default(),
                mode: asked.map_or(Mode::Agent, |asked| asked.mode),
                payer,
                payer_class: self.payer_class(&payer),
                call_chain_depth: asked.map_or(0, |asked| asked.call_chain_depth),
            },
            amount: purchase.offer.amount,
            money: Money::Landed(money),
            synthesizer: purchase.synthesizer,
            presence: presence.clone(),
            permit: None,
        }
    }

    /// Nothing is stored, and the same payment can come again.
    fn shed_landing(&self, purchase: &LandingPurchase, detail: &str) -> Admission {
        let refusal = Refusal::new(RefusalCode::Overloaded, detail);
        Admission::Answer(self.refuse_request(purchase, None, &refusal))
    }

    /// A refusal that stores nothing.
    fn refuse_request(&self, purchase: &LandingPurchase, payment_key: Option<String>, refusal: &Refusal) -> Outcome {
        let about = Circumstances { order_id: None, payment_key, request_fp: purchase.request_fp.clone() };
        let body = self.contract.refusal_body(refusal, &about, self.clock.now());
        Outcome::Refused(Refused::new(refusal, body))
    }

    /// The transfer is in no block that counts: nothing is stored, and whether it will be is not known.
    fn unseen(&self, tx: &str) -> Outcome {
        let (status, retry_after_s) = (unknown_outcome::STATUS, Some(unknown_outcome::AFTER_S));
        Outcome::Refused(Refused { status, retry_after_s, body: self.contract.unseen_body(tx) })
    }
}

impl LandingPurchase {
    fn circumstances(&self, order_id: String, payment_key: String) -> Circumstances {
        Circumstances { order_id: Some(order_id), payment_key: Some(payment_key), request_fp: self.request_fp.clone() }
    }
}

/// Whether the transfer pays for what is asked, at the price of its own offer.
fn judge_terms(purchase: &LandingPurchase, landing: &Landing, issued: &IssuedOffer, now_s: u64) -> Result<(), String> {
    if issued.product != purchase.product.id {
        return Err(NonceError::OtherProduct(issued.clone()).to_string());
    }
    if !is_in_time(landing, issued, now_s) {
        return Err(NonceError::Expired(issued.clone()).to_string());
    }
    let landed = Landed { asset: landing.key.asset, to: landing.to, value: landing.value, nonce: landing.key.nonce };
    match_landing(&landed, purchase.payment.nonce.as_ref(), issued, &purchase.offer).map_err(|e| e.to_string())?;
    match_broadcast(&purchase.payment, &purchase.offer, issued).map_err(|e| e.to_string())
}

/// A request may begin as long as the offer lives; one whose transfer was in a block by then may still come within the grace.
fn is_in_time(landing: &Landing, issued: &IssuedOffer, now_s: u64) -> bool {
    issued.is_open(now_s) || (issued.is_open(landing.time_s) && !issued.is_over(now_s))
}

fn already_paid_for() -> Refusal {
    let detail = "Another payment of this payer for the same request is live or was charged a moment ago; send that one again, \
                  it brings the answer. This one goes back.";
    Refusal::new(RefusalCode::PaymentInProgress, detail)
}

fn unpaid(error: &str) -> Admission {
    Admission::Answer(Outcome::Unpaid { error: error.to_owned() })
}
