//! One signed payment and the way to its end: sent, sent again unchanged, and what each reply says about it.
//!
//! A payment ends when the seller delivers, or says in a way that can be relied on that it is not charged. Everything else
//! leaves it open, and an open payment is only ever sent again: a new one could be charged on top.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{Ask, Buyer, Reply};
use crate::limits;
use crate::x402::{self, OutgoingPayment, REQUIRED_HEADER};

/// How a purchase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Ending {
    /// The answer is here.
    Delivered,
    /// Not charged, and this payment never will be.
    Refused,
    /// Charged or not: nobody has said.
    Unknown,
}

/// The last reply, when there was one, and what it all came to.
#[derive(Debug)]
pub(in crate::cli) struct Course {
    /// None: no reply came at all.
    pub(in crate::cli) reply: Option<Reply>,
    /// How it ended.
    pub(in crate::cli) ending: Ending,
}

/// What one reply says about the payment that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Ended(Ending),
    /// The same payment again may bring the end.
    Again {
        /// Whether this reply leaves it possible that money moves.
        open: bool,
    },
    /// The same payment again brings nothing new.
    Stuck,
}

impl Buyer {
    /// Sends one payment, and the same one again as long as that may help and `budget` lasts. `open` says whether it may have
    /// been sent before.
    pub(in crate::cli) async fn settle(
        &self,
        ask: &Ask,
        payment: &OutgoingPayment,
        budget: Duration,
        mut open: bool,
        mut progress: impl FnMut(&str),
    ) -> Course {
        let until = Instant::now() + budget;
        let mut last = None;
        loop {
            let pause = match self.send(ask, Some(payment)).await {
                Ok(reply) => {
                    let (reading, pause) = (read(&reply, open), reply.retry_after());
                    last = Some(reply);
                    match reading {
                        Reading::Ended(ending) => return Course { reply: last, ending },
                        Reading::Stuck => return Course { reply: last, ending: Ending::Unknown },
                        Reading::Again { open: leaves_open } => open |= leaves_open,
                    }
                    pause
                }
                Err(error) => {
                    // the payment may have arrived before the connection ended
                    open = true;
                    progress(&error.to_string());
                    limits::BUY_RETRY_PAUSE
                }
            };
            if Instant::now() + pause >= until {
                return Course { reply: last, ending: Ending::Unknown };
            }
            progress("not settled yet; sending the same payment again");
            tokio::time::sleep(pause).await;
        }
    }
}

/// `open` is true when an earlier sending of this payment may have moved money: then a "no" counts only when it speaks about the
/// payment, not merely about the request that brought it.
fn read(reply: &Reply, open: bool) -> Reading {
    let body = reply.json().unwrap_or_default();
    let told = body.pointer("/retry/same_payment").and_then(Value::as_bool);
    let free = body.get("charged") == Some(&Value::Bool(false));
    let unspent = body.pointer("/payment/state").and_then(Value::as_str) == Some("none");
    match reply.status {
        200..=299 => Reading::Ended(Ending::Delivered),
        402 | 412 if !open || promises_no_402_while_open(reply) => Reading::Ended(Ending::Refused),
        402 | 412 => Reading::Stuck,
        // a copy of the payment that is being served may be charged yet
        409 if free && told == Some(true) => Reading::Again { open: true },
        _ if free && told == Some(true) => Reading::Again { open: false },
        _ if free && (!open || unspent) => Reading::Ended(Ending::Refused),
        // turned away before the payment was looked at: what was sent earlier is as open as it was
        429 => Reading::Again { open: !free },
        _ if told == Some(false) => Reading::Stuck,
        // an error of something on the way says nothing about the payment, and the same one again is always safe
        408 | 500..=599 => Reading::Again { open: true },
        _ if told == Some(true) => Reading::Again { open: true },
        _ => Reading::Stuck,
    }
}

/// A seller under a refusal contract answers an open payment with 503 and never with new terms. Others answer 402 when a payment
/// that they did settle comes again and its nonce is used.
fn promises_no_402_while_open(reply: &Reply) -> bool {
    let terms = reply.header(REQUIRED_HEADER).and_then(|header| x402::read_required(header).ok());
    terms.is_some_and(|terms| terms.extensions.contains_key("refusal-contract"))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::{Map, json};

    use super::*;
    use crate::x402::{Challenge, fixture};

    fn reply(status: u16, body: &Value) -> Reply {
        Reply { status, headers: HeaderMap::new(), body: body.to_string().into_bytes() }
    }

    const REFUSED: Reading = Reading::Ended(Ending::Refused);

    #[test]
    fn each_reply_is_read_as_a_cautious_buyer_must() {
        let no = json!({"charged": false, "retry": {"safe": true, "same_payment": false}});
        let no_of_it = json!({"charged": false, "payment": {"state": "none"}, "retry": {"same_payment": false}});
        let again = json!({"charged": false, "retry": {"same_payment": true}});
        let pending = json!({"charged": "unknown", "retry": {"same_payment": true}});
        let spent = json!({"charged": false, "payment": {"state": "unknown"}, "retry": {"same_payment": false}});
        let nothing = json!({});
        let (maybe, not_yet) = (Reading::Again { open: true }, Reading::Again { open: false });
        for (status, body, first, later) in [
            (200, &nothing, Reading::Ended(Ending::Delivered), Reading::Ended(Ending::Delivered)),
            (402, &nothing, REFUSED, Reading::Stuck),
            (412, &nothing, REFUSED, Reading::Stuck),
            (502, &no, REFUSED, Reading::Stuck),
            (502, &no_of_it, REFUSED, REFUSED),
            (409, &spent, REFUSED, Reading::Stuck),
            (409, &again, maybe, maybe),
            (503, &again, not_yet, not_yet),
            (503, &pending, maybe, maybe),
            (503, &nothing, maybe, maybe),
            (504, &nothing, maybe, maybe),
            (429, &no, REFUSED, not_yet),
            (429, &nothing, maybe, maybe),
            (302, &nothing, Reading::Stuck, Reading::Stuck),
            (404, &nothing, Reading::Stuck, Reading::Stuck),
            (404, &no, REFUSED, Reading::Stuck),
        ] {
            assert_eq!(read(&reply(status, body), false), first, "{status} {body}");
            assert_eq!(read(&reply(status, body), true), later, "{status} {body}, open");
        }
    }

    #[test]
    fn new_terms_end_an_open_payment_only_under_a_refusal_contract() {
        for (name, want) in [("refusal-contract", REFUSED), ("another", Reading::Stuck)] {
            let mut extensions = Map::new();
            extensions.insert(name.to_owned(), json!({"info": {}}));
            let challenge = Challenge::render(&fixture::offer(), "no", &extensions).expect("small enough");
            let mut reply = reply(402, &json!({}));
            reply.headers.insert(REQUIRED_HEADER, challenge.header.parse().expect("a value"));
            assert_eq!(read(&reply, true), want, "{name}");
        }
    }
}
