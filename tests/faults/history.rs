//! What buyers were told, and whether it was true: the client's view of I1, I4 and I5.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Instant;

use super::books::Entries;

/// What an answer says about the charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charged {
    /// `charged: false`.
    No,
    /// `charged: "unknown"`.
    Unknown,
    /// Nothing: a memo, or new terms.
    Unsaid,
}

/// One request with a payment and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Purchases are numbered; one may have several payments.
    pub(crate) purchase: usize,
    pub(crate) nonce: String,
    pub(crate) sent: Instant,
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) charged: Charged,
    pub(crate) body: Vec<u8>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Vec<Exchange>>);

impl Exchange {
    /// The payment's end, as the buyer understands it: a memo, or a refusal that no repeat changes.
    pub(crate) fn is_final(&self) -> bool {
        let come_again = ["overloaded", "settlement_pending", "payment_in_progress", "rate_limited"];
        self.status == 200 || (!come_again.contains(&self.code.as_str()) && self.charged != Charged::Unknown)
    }

    /// The buyer may take it as "you were not charged".
    fn denies(&self) -> bool {
        self.status == 402 || self.charged == Charged::No
    }
}

impl History {
    pub(crate) fn add(&self, exchange: Exchange) {
        self.0.lock().expect("no panic").push(exchange);
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.0.lock().expect("no panic").clone()
    }

    /// Everything that buyers were told and that the facilitator's books contradict.
    pub(crate) fn find_lies(&self, books: &Entries) -> Vec<String> {
        let exchanges = self.exchanges();
        let mut payments: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for exchange in &exchanges {
            payments.entry(exchange.purchase).or_default().insert(&exchange.nonce);
        }
        let moved = |nonce: &str| books.get(nonce).is_some_and(|entry| entry.moved);
        let began = |nonce: &str| books.get(nonce).and_then(|entry| entry.began);
        let mut lies = Vec::new();
        let mut tell = |id: &str, x: &Exchange, what: &str| {
            lies.push(format!("{id}: {what}: {} {} {:?} for {}", x.status, x.code, x.charged, x.nonce));
        };
        for x in &exchanges {
            let others = &payments[&x.purchase];
            if x.status == 200 && !others.iter().any(|nonce| moved(nonce)) {
                tell("I1", x, "a memo that nobody paid for");
            }
            // one that was taken over or reused names another payment, and says nothing about the end of this one
            let passing = x.status == 503 || ["payment_in_progress", "payment_reused"].contains(&x.code.as_str());
            if x.denies() && !passing && moved(&x.nonce) {
                tell("I4", x, "told that it is not charged, and charged");
            }
            if x.denies() && began(&x.nonce).is_some_and(|began| began <= x.sent) {
                tell("I5", x, "told that it is not charged while a settle call was open");
            }
            if x.status == 402 && others.iter().any(|nonce| began(nonce).is_some_and(|began| began <= x.sent)) {
                tell("I5", x, "new terms while another payment of the purchase was open");
            }
        }
        for (purchase, nonces) in &payments {
            let charges = nonces.iter().filter(|nonce| moved(nonce)).count();
            if charges > 1 {
                lies.push(format!("I3: purchase {purchase} was charged {charges} times"));
            }
            let bodies: BTreeSet<&[u8]> = exchanges
                .iter()
                .filter(|x| x.purchase == *purchase && x.status == 200)
                .map(|x| x.body.as_slice())
                .collect();
            if bodies.len() > 1 {
                lies.push(format!("G2: purchase {purchase} has {} different memos", bodies.len()));
            }
        }
        lies
    }
}

#[test]
fn each_lie_is_found() {
    use super::books::Entry;
    let began = Instant::now();
    let sent = began + std::time::Duration::from_millis(5);
    let books: Entries = [
        ("open".to_owned(), Entry { began: Some(began), calls: 1, moved: false }),
        ("moved".to_owned(), Entry { began: Some(began), calls: 1, moved: true }),
    ]
    .into();
    let told = |nonce: &str, status, code: &str, charged, sent| Exchange {
        purchase: 1,
        nonce: nonce.to_owned(),
        sent,
        status,
        code: code.to_owned(),
        charged,
        body: Vec::new(),
    };
    let lies = |exchange: Exchange| {
        let history = History::default();
        history.add(exchange);
        let lies = history.find_lies(&books);
        lies.iter().map(|lie| lie.split(':').next().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lies(told("fresh", 200, "", Charged::Unsaid, sent)), ["I1"]);
    assert_eq!(lies(told("open", 503, "overloaded", Charged::No, sent)), ["I5"]);
    assert_eq!(lies(told("open", 402, "", Charged::Unsaid, sent)), ["I5", "I5"]);
    assert_eq!(lies(told("moved", 502, "execution_failed", Charged::No, sent)), ["I4", "I5"]);
    assert!(lies(told("open", 503, "settlement_pending", Charged::Unknown, sent)).is_empty());
    assert!(lies(told("open", 503, "overloaded", Charged::No, began - (sent - began))).is_empty());
    assert!(lies(told("moved", 200, "", Charged::Unsaid, sent)).is_empty());
}
