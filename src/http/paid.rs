//! The order of checks of a route that is sold, and the guard around its handler.
//!
//! Published as `order_of_checks`: body size and type, rate by address, call chain, input with policy, payment header, then what
//! [`crate::paywall`] does. Methods are ruled by the router. The handler gets [`Paid`] and decides it; whatever it
//! does instead (forget, panic, run too long), the payment is refused.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use tracing::Instrument;
use uuid::Uuid;

use super::shelf::Shelf;
use super::stack::RequestId;
use super::{Shop, problem};
use crate::call_chain::{self, CallChain};
use crate::catalog::input::{self, Fundamentals, Input};
use crate::evm::checksummed;
use crate::limits;
use crate::paywall::admission::{Admission, Purchase, request_fp};
use crate::paywall::contract::Circumstances;
use crate::paywall::landing::{self, Asked, LandingPurchase};
use crate::paywall::{Home, Outcome, Presence, Verified};
use crate::pipeline::port::Lookup;
use crate::refusal::{Refusal, RefusalCode};
use crate::strict_json;
use crate::x402::{self, BroadcastPayment, Presented, Version};

/// A route that is sold.
#[derive(Clone)]
pub(super) struct Counter {
    pub(super) shop: Arc<Shop>,
    pub(super) shelf: Arc<Shelf>,
}

/// What a handler of a sold route receives: the payment, once, and what was asked.
pub(super) struct Paid {
    pub(super) verified: Verified,
    pub(super) asked: Fundamentals,
    pub(super) version: Version,
}

/// The take-once cell: extensions must be `Clone`, a payment must not be.
#[derive(Clone)]
struct Slot(Arc<Mutex<Option<Paid>>>);

impl<S: Sync> FromRequestParts<S> for Paid {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let slot = parts.extensions.get::<Slot>();
        let taken = slot.and_then(|slot| slot.0.lock().unwrap_or_else(PoisonError::into_inner).take());
        // not behind the paid layer, or taken twice: there is nothing to sell
        taken.ok_or_else(|| problem::plain(StatusCode::INTERNAL_SERVER_ERROR, "The route is not set up for sale."))
    }
}

/// The checks, in their published order, and then the handler.
pub(super) async fn sell(State(counter): State<Counter>, request: Request, next: Next) -> Response {
    if request.method() == Method::HEAD {
        // the terms, whose body the server leaves out; a payment header is ignored, nothing is worked on or settled
        return problem::challenge(&counter.shop, &counter.shelf);
    }
    match read(&counter, request).await {
        Ok((parts, wanted)) => serve(counter, parts, wanted, next).await,
        Err(response) => *response,
    }
}

/// What is bought, and how it is paid.
struct Wanted {
    payment: Means,
    // None where the request is refused whatever was paid
    asked: Option<Fundamentals>,
    version: Version,
    request_id: String,
}

enum Means {
    Signed(Purchase),
    Landed(LandingPurchase),
}

/// A response instead of service. Boxed: it is large, and the way on is the common one.
type Stop = Box<Response>;

/// Everything that is checked before a payment is acted on.
async fn read(counter: &Counter, request: Request) -> Result<(Parts, Wanted), Stop> {
    let Counter { shop, shelf } = counter;
    let (parts, body) = request.into_parts();
    let body = read_body(&parts, body).await?;
    let document = parse_body(&body)?;
    let query = pairs_of_query(&parts);
    // not made for the terms alone, which most requests ask for
    let fp = || request_fp(parts.method.as_str(), parts.uri.path(), &query, &body, &shelf.product.id);
    let refuse = |refusal: Refusal| {
        let about = Circumstances { request_fp: fp(), ..Circumstances::default() };
        Box::new(problem::refusal(shop, &refusal, &about))
    };
    let ruled = rule_request(shop, &parts, &query, document.as_ref());
    let takes_landings = shop.paywall.takes_landings();
    if let (Err(refusal), false) = (&ruled, takes_landings) {
        return Err(refuse(refusal.clone()));
    }
    let request_id = RequestId::of(&parts.extensions);
    let presented = read_payment(&parts.headers);
    let payment = match presented {
        // money has moved: a request that is refused is recorded all the same
        Ok(Some(Presented::Broadcast(payment))) if takes_landings => {
            let wanted = want_landed(counter, payment, ruled, fp(), request_id);
            return Ok((parts, wanted));
        }
        other => other,
    };
    let (depth, asked) = ruled.map_err(refuse)?;
    let payment = match payment.map_err(refuse)? {
        Some(Presented::Exact(payment)) => payment,
        Some(Presented::Broadcast(_)) => return Err(Box::new(problem::unpaid(shop, shelf, landing::NOT_SOLD))),
        None => return Err(Box::new(problem::challenge(shop, shelf))),
    };
    let asked = asked.ok_or_else(|| refuse(without_subject()))?;
    let version = payment.version;
    let purchase = Purchase {
        product: shelf.product.clone(),
        offer: shelf.offer.clone(),
        payment,
        request_fp: fp(),
        request_id: request_id.clone(),
        subject: asked.ticker.clone(),
        mode: asked.mode,
        call_chain_depth: depth,
        synthesizer: shop.pipeline.synthesizer(),
    };
    Ok((parts, Wanted { payment: Means::Signed(purchase), asked: Some(asked), version, request_id }))
}

/// The checks of the request itself, in their published order. Hops of the call chain, and what is asked.
fn rule_request(
    shop: &Shop,
    parts: &Parts,
    query: &[(String, String)],
    document: Option<&Value>,
) -> Result<(usize, Option<Fundamentals>), Refusal> {
    rate_by_address(shop, parts)?;
    let chain = rule_call_chain(shop, &parts.headers)?;
    let asked = read_input(shop, query, document)?;
    Ok((chain.hops().len(), asked))
}

/// A request whose money has moved.
fn want_landed(
    counter: &Counter,
    payment: BroadcastPayment,
    ruled: Result<(usize, Option<Fundamentals>), Refusal>,
    request_fp: String,
    request_id: String,
) -> Wanted {
    let ruled = ruled.and_then(|(depth, asked)| asked.map(|asked| (depth, asked)).ok_or_else(without_subject));
    let asked = ruled.as_ref().ok().map(|(_, asked)| asked.clone());
    let purchase = LandingPurchase {
        product: counter.shelf.product.clone(),
        offer: counter.shelf.offer.clone(),
        payment,
        request_fp,
        request_id: request_id.clone(),
        asked: ruled.map(|(call_chain_depth, asked)| Asked {
            subject: asked.ticker,
            mode: asked.mode,
            call_chain_depth,
        }),
        synthesizer: counter.shop.pipeline.synthesizer(),
    };
    Wanted { payment: Means::Landed(purchase), asked, version: Version::V2, request_id }
}

fn without_subject() -> Refusal {
    Refusal::new(RefusalCode::InsufficientSubject, "A payment came without a subject: name a ticker.")
}

/// From the claim to the answer, apart from the connection: a buyer who hangs up leaves no payment behind in the middle of a step.
async fn serve(counter: Counter, parts: Parts, wanted: Wanted, next: Next) -> Response {
    let Wanted { payment, asked, version, request_id } = wanted;
    let presence = Presence::default();
    let span = tracing::info_span!("sale", request = %request_id, product = %counter.shelf.product.id);
    let (here, gone) = (counter.clone(), presence.clone());
    let work = counter.shop.work.spawn(
        async move {
            let home = Home::default();
            let admission = match payment {
                Means::Signed(purchase) => here.shop.paywall.admit(purchase, &home, &gone).await,
                Means::Landed(purchase) => here.shop.paywall.admit_landing(purchase, &home, &gone).await,
            };
            let verified = match admission {
                Admission::Proceed(verified) => verified,
                Admission::Answer(outcome) => return problem::outcome(&here.shop, &here.shelf, version, outcome),
            };
            let payment_id = verified.payment_id();
            let mut request = Request::from_parts(parts, Body::empty());
            // without a subject nothing was admitted; were it otherwise, the payment would go home and be refused
            let paid = asked.map(|asked| Paid { verified, asked, version });
            request.extensions_mut().insert(Slot(Arc::new(Mutex::new(paid))));
            let handled = std::panic::AssertUnwindSafe(next.run(request)).catch_unwind().await;
            match (home.refuse_left_over().await, handled) {
                (Some(outcome), _) => problem::outcome(&here.shop, &here.shelf, version, outcome),
                (None, Ok(response)) => response,
                (None, Err(_)) => lost(&here, version, payment_id),
            }
        }
        .instrument(span),
    );
    let mut leaving = Leaving { presence, answered: false };
    let response = work.await;
    leaving.answered = true;
    response.unwrap_or_else(|_| lost(&counter, version, Uuid::nil()))
}

/// Decided, and then the face failed: the rows know how it ended, and the same payment brings it.
fn lost(counter: &Counter, version: Version, payment_id: Uuid) -> Response {
    problem::outcome(&counter.shop, &counter.shelf, version, Outcome::Pending { payment_id, transaction: None })
}

/// Says that the buyer is gone when the connection's future is dropped before it got its response.
struct Leaving {
    presence: Presence,
    answered: bool,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if !self.answered {
            self.presence.leave();
        }
    }
}

/// The body of a POST: JSON, not compressed, within its bound and in time. A GET has none that counts.
async fn read_body(parts: &Parts, body: Body) -> Result<Bytes, Stop> {
    if parts.method != Method::POST {
        return Ok(Bytes::new());
    }
    let stop = |status, detail: &str| Box::new(problem::plain(status, detail));
    if parts.headers.get(CONTENT_ENCODING).is_some_and(|v| !v.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(stop(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send the body without Content-Encoding."));
    }
    let limited = Limited::new(body, limits::REQUEST_BODY_BYTES_MAX).collect();
    let bytes = match tokio::time::timeout(limits::REQUEST_BODY_WAIT, limited).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let detail = format!("The body is longer than {} bytes.", limits::REQUEST_BODY_BYTES_MAX);
            return Err(stop(StatusCode::PAYLOAD_TOO_LARGE, &detail));
        }
        Ok(Err(_)) => return Err(stop(StatusCode::BAD_REQUEST, "The body could not be read.")),
        Err(_) => return Err(stop(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time.")),
    };
    let kind = parts.headers.get(CONTENT_TYPE).map(|v| v.to_str().unwrap_or("").split(';').next().unwrap_or("").trim());
    if !bytes.is_empty() && !kind.is_some_and(|k| k.eq_ignore_ascii_case("application/json")) {
        return Err(stop(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json."));
    }
    Ok(bytes)
}

fn parse_body(body: &[u8]) -> Result<Option<Value>, Stop> {
    if body.is_empty() {
        return Ok(None);
    }
    strict_json::parse(body, limits::REQUEST_BODY_DEPTH_MAX).map(Some).map_err(|error| {
        Box::new(problem::plain(StatusCode::BAD_REQUEST, &format!("The body is not usable JSON: {error}.")))
    })
}

fn pairs_of_query(parts: &Parts) -> Vec<(String, String)> {
    form_urlencoded::parse(parts.uri.query().unwrap_or("").as_bytes()).into_owned().collect()
}

fn rate_by_address(shop: &Shop, parts: &Parts) -> Result<(), Refusal> {
    let address: Option<IpAddr> = parts.extensions.get::<SocketAddr>().map(SocketAddr::ip);
    match (&shop.address_rate, address) {
        (Some(limiter), Some(address)) if limiter.check_key(&address).is_err() => Err(Refusal::new(
            RefusalCode::RateLimited,
            format!("More than {} requests of this address in a minute.", shop.rules.rate_per_minute),
        )),
        _ => Ok(()),
    }
}

fn rule_call_chain(shop: &Shop, headers: &HeaderMap) -> Result<CallChain, Refusal> {
    let lines = headers.get_all(call_chain::HEADER).iter().map(http::HeaderValue::as_bytes);
    call_chain::rule(lines, shop.rules.identity, shop.rules.max_depth).map_err(|violation| {
        let code = match &violation {
            call_chain::Violation::Invalid => RefusalCode::CallChainInvalid,
            call_chain::Violation::Loop { .. } => RefusalCode::CallChainLoop,
            call_chain::Violation::TooDeep { .. } => RefusalCode::CallChainDepth,
        };
        let hops: Vec<String> = violation.hops().iter().map(checksummed).collect();
        Refusal::new(code, format!("{violation}."))
            .with("call_chain", json!({"hops": hops, "max_depth": shop.rules.max_depth}))
    })
}

/// Input with policy and, where the list is in memory, the unknown ticker. None when it is absent.
fn read_input(
    shop: &Shop,
    query: &[(String, String)],
    document: Option<&Value>,
) -> Result<Option<Fundamentals>, Refusal> {
    let invalid = |detail: String| Refusal::new(RefusalCode::InsufficientSubject, detail);
    let mut pairs = query.to_vec();
    if let Some(document) = document {
        pairs.extend(input::pairs_of(document).map_err(invalid)?);
    }
    let asked = match input::read(&pairs) {
        Input::Absent => return Ok(None),
        Input::Invalid(detail) => return Err(invalid(detail)),
        Input::Asked(asked) => asked,
    };
    if shop.rules.denied_subjects.contains(&asked.ticker) {
        let detail = format!("This operator sells no research on {}.", asked.ticker);
        return Err(Refusal::new(RefusalCode::PolicyRefusal, detail));
    }
    match shop.pipeline.get_subject(&asked.ticker) {
        Lookup::Unknown => {
            let detail = format!("{} is not a ticker that this source has filings for.", asked.ticker);
            Err(Refusal::new(RefusalCode::InsufficientSubject, detail))
        }
        Lookup::Known(_) | Lookup::NotLoaded => Ok(Some(asked)),
    }
}

/// The one payment header of a request. Two of them, or one twice, is no payment that we would guess about.
fn read_payment(headers: &HeaderMap) -> Result<Option<Presented>, Refusal> {
    let mut found = None;
    for version in [Version::V1, Version::V2] {
        for value in headers.get_all(version.payment_header()) {
            if found.replace((version, value)).is_some() {
                return Err(Refusal::new(RefusalCode::PaymentMalformed, "More than one payment header; send one."));
            }
        }
    }
    let Some((version, value)) = found else { return Ok(None) };
    let text =
        value.to_str().map_err(|_| Refusal::new(RefusalCode::PaymentMalformed, "The payment header is not ASCII."))?;
    match x402::decode_presented(version, text) {
        Ok(payment) => Ok(Some(payment)),
        Err(error) => {
            Err(Refusal::new(RefusalCode::PaymentMalformed, format!("{}: {error}.", version.payment_header())))
        }
    }
}
