//! What must hold in every database at every moment, as queries that find nothing (V1 to V11).
//!
//! They read rows and nothing else: an auditor can run them by hand. `jim doctor --invariants` runs them against any database,
//! and so does every test.

use sqlx::PgPool;

use super::Error;

/// One invariant.
#[derive(Clone, Copy, Debug)]
pub struct Invariant {
    /// Its name.
    pub id: &'static str,
    /// What each row that the query finds is.
    pub breach: &'static str,
    /// Finds the breaches: one column of text each.
    query: &'static str,
}

/// A row that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The invariant.
    pub id: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The row, as text.
    pub row: String,
}

/// All of them.
pub const INVARIANTS: [Invariant; 14] = [
    Invariant {
        id: "V1",
        breach: "a settle attempt without an answer to settle for",
        query: "select a.payment_id::text from settle_attempts a left join answers w on w.payment_id = a.payment_id and w.kind = 'answer' \
                where w.payment_id is null",
    },
    Invariant {
        id: "V2",
        breach: "a payment that was refused, answered for nothing, superseded or abandoned, and was sent to settle",
        query: "select p.payment_id::text || ' ' || p.state from payment_states p where p.state in ('refused', 'free', 'superseded', \
                'abandoned', 'claimed') and was_sent(p.payment_id)",
    },
    Invariant {
        id: "V3",
        breach: "money that came in more than 15 minutes ago, with neither an answer nor a refund in time",
        query: "select p.payment_id::text || ' ' || p.state from chain_evidence e join payment_states p using (payment_id) \
                left join refund_states r using (payment_id) \
                where e.kind = 'transfer' and e.observed_at < now() - interval '15 minutes' and e.to_addr = p.pay_to \
                and not exists (select 1 from chain_evidence l where l.of_evidence = e.evidence_id) \
                and p.state not in ('settled', 'refunded') and (r.refund_id is null or (r.state <> 'confirmed' and r.due_by < now()))",
    },
    Invariant {
        id: "V4",
        breach: "an answer whose bytes are not those that were decided",
        query: "select w.payment_id::text from answers w where w.body_sha256 <> encode(sha256(w.body), 'hex') or exists ( \
                select 1 from payment_events e where e.payment_id = w.payment_id and e.actor = 'decide' and e.from_state in ('claimed', 'landed') \
                and e.evidence <> w.body_sha256 and not exists (select 1 from successions s where s.payment_id = w.payment_id))",
    },
    Invariant {
        id: "V5",
        breach: "one purchase charged twice within the window",
        query: "select p.payment_id::text || ' ' || q.payment_id::text from payments p join payments q on q.payer = p.payer \
                and q.request_fp = p.request_fp and q.payment_id > p.payment_id join settlements s on s.payment_id = p.payment_id \
                join settlements t on t.payment_id = q.payment_id \
                where abs(extract(epoch from s.settled_at - t.settled_at)) < 120 \
                and payment_state(p.payment_id) = 'settled' and payment_state(q.payment_id) = 'settled'",
    },
    Invariant {
        id: "V6",
        breach: "a refund that went out twice, or is larger than what came in",
        query: "select r.refund_id::text from refunds r where r.amount > r.transferred or \
                (select count(*) from refund_steps s where s.refund_id = r.refund_id and s.kind = 'confirmed') > 1 or \
                (select sum(x.amount) from refunds x where x.payment_id = r.payment_id) > r.transferred",
    },
    Invariant {
        id: "V7",
        breach: "an outcome that is still unknown although its authorization ended long ago (a chain to read would tell: payments.rpc_url)",
        query: "select p.payment_id::text from payment_states p where p.state = 'unknown' \
                and extract(epoch from now()) > p.valid_before + 360",
    },
    Invariant {
        id: "V8",
        // "in progress" is said of a copy from what was read a moment before, and names no end
        breach: "a request that was told it is not charged while the outcome was unknown",
        query: "select v.payment_id::text || ' ' || v.status || ' ' || coalesce(v.code, '') from served v join payment_events e using (payment_id) \
                left join payment_events n on n.payment_id = e.payment_id and n.prev_seq = e.seq \
                where e.to_state in ('settling', 'unknown') and e.at_us <= (extract(epoch from v.at) * 1000000)::bigint \
                and (n.at_us is null or n.at_us > (extract(epoch from v.at) * 1000000)::bigint) \
                and v.status <> 200 and coalesce(v.code, '') not in ('settlement_pending', 'payment_reused') \
                and (v.code <> 'payment_in_progress' or e.at_us < (extract(epoch from v.at) * 1000000)::bigint - 1000000)",
    },
    Invariant {
        id: "V9",
        breach: "books that do not match: revenue by settlement, refund by confirmation, and a charge that is in force counts once",
        query: "select s.payment_id::text || ' settled' from settlements s left join ledger l on l.payment_id = s.payment_id \
                and l.kind = 'revenue' and l.round = 1 join payments p on p.payment_id = s.payment_id \
                where l.entry_id is null or l.amount_micros <> p.amount_micros or l.at::date <> s.settled_at::date \
                union all select l.payment_id::text || ' ' || l.kind from ledger l \
                left join refunds r on r.payment_id = l.payment_id left join refund_steps c on c.refund_id = r.refund_id and c.kind = 'confirmed' \
                where l.kind = 'refund' and (c.refund_id is null or l.amount_micros <> r.amount_micros or l.at::date <> c.at::date) \
                union all select p.payment_id::text || ' net' from payment_states p join ledger l using (payment_id) \
                where l.kind <> 'refund' group by p.payment_id, p.state, p.amount_micros \
                having sum(case l.kind when 'revenue' then l.amount_micros else -l.amount_micros end) <> case \
                when p.state = 'settled' and not exists (select 1 from chain_evidence e where e.payment_id = p.payment_id \
                and e.kind in ('missing', 'cancelled', 'unused_after_expiry')) then p.amount_micros else 0 end",
    },
    Invariant {
        id: "V10",
        breach: "a history with a gap, a broken link, or no beginning",
        query: "select e.payment_id::text || ' ' || e.seq from payment_events e left join payment_events b on b.payment_id = e.payment_id \
                and b.seq = e.seq - 1 where (e.seq > 1 and (b.seq is null or b.hash <> e.prev_hash or b.to_state <> e.from_state)) \
                or e.hash <> sha256(e.prev_hash || convert_to(e.payment_id::text || '|' || e.seq || '|' || e.rail || '|' || e.from_state \
                || '|' || e.to_state || '|' || e.actor || '|' || e.epoch || '|' || e.at_us || '|' || e.evidence, 'UTF8')) \
                union all select p.payment_id::text || ' none' from payments p \
                where not exists (select 1 from payment_events e where e.payment_id = p.payment_id)",
    },
    Invariant {
        id: "V11",
        breach: "a paid answer that was handed out and that nobody paid for",
        query: "select v.payment_id::text || ' ' || p.state from served v join payment_states p using (payment_id) \
                where v.status = 200 and v.code is null and p.state not in ('settled', 'free') and not exists ( \
                select 1 from successions s where s.of_payment = v.payment_id and s.kind = 'supersede' and payment_state(s.payment_id) = 'settled') \
                and not exists (select 1 from settlements s where s.payment_id = v.payment_id) \
                and not exists (select 1 from successions s where s.payment_id = v.payment_id and s.kind = 'free')",
    },
    Invariant {
        id: "N1",
        breach: "order numbers with a gap: an order was deleted",
        query: "select c.last_no::text from order_counter c where c.last_no <> (select count(*) from orders) \
                or c.last_no <> (select coalesce(max(order_no), 0) from orders)",
    },
    Invariant {
        id: "N2",
        breach: "money owed back without the row that pays it",
        query: "select p.payment_id::text from payment_states p left join refunds r using (payment_id) \
                where p.state in ('refund_owed', 'refunded') and r.refund_id is null",
    },
    Invariant {
        id: "N3",
        breach: "a permit that was sent to settle for another amount than was claimed, or for more than was signed",
        query: "select p.payment_id::text || ' ' || t.attempt from payments p join settle_attempts t using (payment_id) cross join lateral (select \
                (t.request::jsonb #>> '{paymentRequirements,amount}')::numeric as asked, \
                (t.request::jsonb #>> '{paymentPayload,payload,permit2Authorization,permitted,amount}')::numeric as signed) x \
                where p.rail in ('exact-permit2', 'upto') and t.request is not null and (x.asked is distinct from p.amount \
                or coalesce(x.signed < p.amount, true) or (p.rail = 'exact-permit2' and x.signed <> p.amount))",
    },
];

/// Runs all of them; an empty list means that they hold.
pub async fn find_breaches(pool: &PgPool) -> Result<Vec<Breach>, Error> {
    let mut breaches = Vec::new();
    for Invariant { id, breach, query } in INVARIANTS {
        let rows: Vec<String> = sqlx::query_scalar(query).fetch_all(pool).await?;
        breaches.extend(rows.into_iter().map(|row| Breach { id, what: breach, row }));
    }
    Ok(breaches)
}
