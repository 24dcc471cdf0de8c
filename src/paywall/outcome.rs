//! How a request with a payment ends. The faces translate this into a response and nothing else.

use uuid::Uuid;

use crate::money::Atomic;
use crate::refusal::Refusal;

/// The end of a request that carried a payment.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Charged once; the stored bytes.
    Delivered(Delivery),
    /// Not charged, final or not as its code says; the bytes as they are stored or were just made.
    Refused(Refused),
    /// Not charged: the payment does not hold, and this is why. Answered with a fresh 402.
    Unpaid {
        /// Reason for the 402's `error`.
        error: String,
    },
    /// Not charged: the buyer has not let Permit2 move his tokens. Answered with 412 and the terms.
    Unapproved {
        /// Reason for the `error`, with what to approve.
        error: String,
    },
    /// Nobody knows yet whether it is charged: send the same payment again.
    Pending {
        /// The payment.
        payment_id: Uuid,
        /// A transaction that was named.
        transaction: Option<String>,
    },
}

/// A delivered answer.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The order.
    pub order_id: String,
    /// Media type of the body.
    pub content_type: String,
    /// The exact bytes.
    pub body: Vec<u8>,
    /// Transaction of the charge; None when it is known only from the used nonce.
    pub transaction: Option<String>,
    /// Who paid, lower case.
    pub payer: String,
    /// What was charged.
    pub charged: Atomic,
    /// True when it was delivered before.
    pub replay: bool,
}

/// A refusal as it is sent.
#[derive(Clone, Debug)]
pub struct Refused {
    /// HTTP status.
    pub status: u16,
    /// Seconds to wait, when that helps.
    pub retry_after_s: Option<u32>,
    /// The problem body with its receipt.
    pub body: Vec<u8>,
}

impl Refused {
    /// From a refusal and its body.
    pub fn new(refusal: &Refusal, body: Vec<u8>) -> Self {
        Self { status: refusal.code.status(), retry_after_s: refusal.retry_after_s(), body }
    }
}
