//! What must agree when a program is over: the chain, the rows, and what the buyer was told.

use jim::evm::{B256, parse_address};
use jim::paywall::evidence::find_evidence;
use jim::store::invariants::find_breaches;
use jim::store::journal::Journal;
use serde_json::Value;
use sqlx::PgPool;
use std::sync::Arc;

use super::run::{Heard, PAY_TO, Scene};
use crate::support::world::{FakeWorld, Fate, ReadWorld};

/// A payment, as the rows have it.
#[derive(Clone, Debug, sqlx::FromRow)]
struct Row {
    state: String,
    proven: Option<bool>,
    /// The nonce of the payment that this one was answered from.
    source: Option<String>,
    refund: Option<String>,
}

impl Heard {
    fn problem(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    fn code(&self) -> String {
        self.problem()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// It says that this payment is not charged, and names no other copy that may yet be.
    fn says_not_charged(&self) -> bool {
        let passing = matches!(self.code().as_str(), "payment_in_progress" | "payment_reused");
        !passing && (self.status == 402 || self.problem()["charged"] == false)
    }

    /// It says so for good.
    fn refuses(&self) -> bool {
        self.says_not_charged() && (self.status == 402 || self.problem()["retry"]["same_payment"] == false)
    }
}

/// Recovery: the chain is asked once about each payment.
pub(super) async fn look_at_all(pool: &PgPool, world: &Arc<FakeWorld>) {
    let journal = Journal::open(pool.clone(), true).await.expect("a journal");
    let chain = ReadWorld { world: Arc::clone(world), pay_to: parse_address(PAY_TO).expect("an address") };
    let all: Vec<uuid::Uuid> =
        sqlx::query_scalar("select payment_id from payments").fetch_all(pool).await.expect("ids");
    for payment_id in all {
        let authorization = journal.load_authorization(payment_id).await.expect("an authorization");
        if let Some(evidence) = find_evidence(&chain, &authorization).await.expect("a chain") {
            journal.store_evidence(payment_id, &evidence).await.expect("stored");
        }
    }
}

async fn load(pool: &PgPool, nonce: B256) -> Option<Row> {
    let text = "select p.state, s.proven, q.auth_nonce as source, r.amount::text as refund from payment_states p \
                left join settlements s using (payment_id) left join successions f on f.payment_id = p.payment_id and f.kind = 'free' \
                left join payments q on q.payment_id = f.of_payment left join refunds r on r.payment_id = p.payment_id \
                where p.auth_nonce = $1";
    sqlx::query_as(text).bind(format!("{nonce:#x}")).fetch_optional(pool).await.expect("rows")
}

/// True when no repeat would bring another answer.
pub(super) async fn is_definite(pool: &PgPool, nonce: B256, heard: &Heard) -> bool {
    // money that goes back is told by another route; a superseded payment is answered once its successor has been charged
    let state = load(pool, nonce).await.map(|row| row.state).unwrap_or_default();
    heard.status == 200 || heard.refuses() || matches!(state.as_str(), "refund_owed" | "refunded" | "superseded")
}

pub(super) async fn check(scene: &Scene) -> Result<(), String> {
    let mut charged = 0;
    for (auth, payment) in scene.payments.iter().enumerate() {
        let Some(payment) = payment else { continue };
        let nonce = payment.authorization.nonce();
        let row = load(&scene.pool, nonce).await;
        let fate = scene.world.fate(nonce);
        let by_us = matches!(fate, Some(Fate::Moved { by_us: true, .. }));
        charged += usize::from(by_us);
        told_the_truth(scene, auth, nonce, by_us)?;
        let answers: Vec<&Heard> = scene.history.iter().filter(|h| h.auth == auth && h.status == 200).collect();
        if answers.windows(2).any(|pair| pair[0].body != pair[1].body) {
            return Err(format!("authorization {auth} was answered with different bytes"));
        }
        if by_us && answers.is_empty() {
            return Err(format!("authorization {auth} was charged and its answer can't be had"));
        }
        if let Some(answer) = answers.first() {
            paid_for(scene, auth, row.as_ref(), fate, answer)?;
        }
        if scene.rpc {
            goes_back(auth, row.as_ref(), fate)?
        }
    }
    if charged > 1 + scene.jumps {
        return Err(format!("{charged} charges for one purchase, with {} jumps of the clock", scene.jumps));
    }
    let breaches = find_breaches(&scene.pool).await.map_err(|error| error.to_string())?;
    if breaches.is_empty() { Ok(()) } else { Err(format!("{breaches:#?}")) }
}

/// Nobody was told "not charged" while a settle call of ours ran or its transfer was open, or for good when we charged.
fn told_the_truth(scene: &Scene, auth: usize, nonce: B256, by_us: bool) -> Result<(), String> {
    for heard in scene.history.iter().filter(|heard| heard.auth == auth && heard.says_not_charged()) {
        if heard.refuses() && by_us {
            return Err(format!("authorization {auth} was refused ({} {}) and charged", heard.status, heard.code()));
        }
        if scene.world.was_exposed(nonce, heard.sent, heard.received) {
            let (status, code) = (heard.status, heard.code());
            return Err(format!("authorization {auth}: {status} {code} says not charged while that was open"));
        }
    }
    Ok(())
}

/// An answer was charged, or comes from one that was; without a chain to read, also when nobody knows.
fn paid_for(scene: &Scene, auth: usize, row: Option<&Row>, fate: Option<Fate>, answer: &Heard) -> Result<(), String> {
    let Some(row) = row else { return Err(format!("authorization {auth} was answered without a row")) };
    let unproven = !scene.rpc && row.proven == Some(false);
    let moved = matches!(fate, Some(Fate::Moved { value, .. }) if value == scene.price);
    let same = |other: usize| {
        let answers = scene.history.iter().filter(|heard| heard.auth == other && heard.status == 200);
        answers.clone().count() > 0 && answers.into_iter().all(|heard| heard.body == answer.body)
    };
    let source = row.source.as_deref().and_then(|source| {
        let nonces = scene.payments.iter().enumerate();
        nonces
            .filter_map(|(at, p)| p.as_ref().map(|p| (at, p)))
            .find(|(_, p)| format!("{:#x}", p.authorization.nonce()) == source)
    });
    let free = source.is_some_and(|(other, _)| same(other))
        || (row.state == "superseded" && (0..scene.payments.len()).any(|other| other != auth && same(other)));
    if (row.state == "settled" && (moved || unproven)) || free {
        return Ok(());
    }
    Err(format!("authorization {auth} was answered and not paid for: {row:?}, on chain {fate:?}"))
}

/// Where a chain is read, money that came is an answer or goes back in full, and nothing else does.
fn goes_back(auth: usize, row: Option<&Row>, fate: Option<Fate>) -> Result<(), String> {
    let Some(row) = row else { return Ok(()) };
    let agrees = match fate {
        Some(Fate::Moved { value, .. }) => row.state == "settled" || row.refund == Some(value.to_string()),
        Some(Fate::Cancelled) | None => row.state != "settled" && row.refund.is_none(),
    };
    if agrees { Ok(()) } else { Err(format!("authorization {auth} is {row:?}, on chain {fate:?}")) }
}

/// All that is known, for whoever reads a failure.
pub(super) async fn tell(scene: &Scene) -> String {
    let mut out = String::new();
    for (auth, payment) in scene.payments.iter().enumerate() {
        let Some(payment) = payment else { continue };
        let nonce = payment.authorization.nonce();
        let events: Vec<String> = sqlx::query_scalar(
            "select from_state || '>' || to_state || ' (' || actor || ' ' || left(evidence, 40) || ')' from payment_events \
             join payments using (payment_id) where auth_nonce = $1 order by seq",
        )
        .bind(format!("{nonce:#x}"))
        .fetch_all(&scene.pool)
        .await
        .unwrap_or_default();
        let fate = scene.world.fate(nonce);
        out.push_str(&format!(
            "authorization {auth}: chain {fate:?}, {:?}\n  {}\n",
            load(&scene.pool, nonce).await,
            events.join(", ")
        ));
    }
    let start = scene.history.iter().map(|heard| heard.sent).min();
    for heard in &scene.history {
        let at = |moment: std::time::Instant| start.map_or(0, |start| moment.duration_since(start).as_millis());
        let (from, to) = (at(heard.sent), at(heard.received));
        out.push_str(&format!("  {from}-{to} ms: {} -> {} {}\n", heard.auth, heard.status, heard.code()));
    }
    out.push_str(&format!("  {} settle calls\n", scene.world.settles()));
    out
}
