//! The quick statements of the journal: a whole group of claims, decisions and settle results in one statement, which is one round
//! trip and one commit, for the case that nobody was there before. What they leave over goes the slow road, one by one, through
//! the functions of migrations 0006 and 0015.
//!
//! Each kind is a list of common table expressions over the arrays of its parameters and ends in one that holds what it wrote, by
//! place in the group. Kinds that are present are put together, with their parameters numbered through; planned once a session.

use std::fmt::Write as _;
use std::sync::LazyLock;

/// A kind of transition, in the order in which a statement has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Claim,
    Decision,
    Record,
}

/// Claims of purchases that are new. Parameters: one array a column of the payment, then owner, lease and purchase window (which the
/// slow road needs).
const CLAIM: &str = "c_done as materialized (select * from unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[], $5::text[], \
     $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[], \
     $16::text[], $17::text[]) with ordinality as x(id, auth_key, version, network, asset, payer, pay_to, nonce, payload, fp, \
     product, contract, amount, micros, after, before, rail, n) where not exists (select 1 from purchases u where u.payer = x.payer and \
     u.request_fp = x.fp) and not exists (select 1 from payments q where q.auth_key = x.auth_key) and $20::integer > 0), \
     c_payments as (insert into payments (payment_id, auth_key, rail, x402_version, network, asset, payer, pay_to, auth_nonce, \
     payload_sha256, request_fp, product, contract_id, amount, amount_micros, valid_after, valid_before) \
     select id, auth_key, rail, version, network, asset, payer, pay_to, nonce, payload, fp, product, contract, amount::numeric, micros, \
     after::numeric, before::numeric from c_done), \
     c_purchases as (insert into purchases (payer, request_fp, generation, payment_id) select payer, fp, 1, id from c_done), \
     c_claims as (insert into claims (payment_id, epoch, owner, lease_until) \
     select id, 1, $18::uuid, now() + make_interval(secs => $19::integer) from c_done)";

const CLAIM_EVENTS: &str =
    "select id, 1, rail, 'none', 'claimed', 'claim', 1, '', now_us(), decode(repeat('00', 32), 'hex') from c_done";

/// Decisions under claims that still hold: the answer or the refusal, its order, its run and, for an answer whose buyer still
/// waits, the intent to settle. Parameters: one array a column, with $6 and $31 (bodies) not as columns but taken by place, and the lease of the settle call ($27).
const DECIDE: &str = "d_done as materialized (select x.*, v.seq, v.hash, v.rail, count(x.order_id) over (order by x.n) as nth \
     from unnest($1::uuid[], $2::text[], $3::integer[], $4::smallint[], $5::text[], $7::text[], $8::text[], $9::text[], $10::uuid[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], \
     $16::text[], $17::text[], $18::text[], $19::integer[], $20::integer[], $21::text[], $22::bigint[], $23::bigint[], $24::integer[], \
     $25::timestamptz[], $26::timestamptz[], $28::uuid[], $29::text[], $30::text[], $32::bigint[], $33::bigint[]) with ordinality as x(id, kind, epoch, \
     status, content_type, body_sha256, code, order_id, run_id, request_id, product, subject, mode, payer, payer_class, \
     synthesizer, verdict, attempts, figures, refused, data_cost, inference_cost, depth, started_at, finished_at, owner, intent, \
     facilitator, input_tokens, output_tokens, n) join lateral (select e.seq, e.hash, e.rail, e.to_state, e.epoch from payment_events e where e.payment_id = x.id \
     order by e.seq desc limit 1) v on v.to_state = 'claimed' and v.epoch = x.epoch), \
     d_number as (update order_counter set last_no = last_no + (select count(order_id) from d_done) \
     where exists (select 1 from d_done where order_id is not null) returning last_no - (select count(order_id) from d_done) as base), \
     d_answers as (insert into answers (payment_id, kind, epoch, status, content_type, body, body_sha256, refusal_code, facilitator) \
     select x.id, x.kind, x.epoch, x.status, x.content_type, ($6::bytea[])[x.n::integer], x.body_sha256, x.code, x.facilitator from d_done x), \
     d_orders as (insert into orders (order_id, order_no, payment_id) \
     select c.order_id, b.base + c.nth, c.id from d_done c, d_number b where c.order_id is not null), \
     d_runs as (insert into runs (run_id, order_id, payment_id, request_id, product, subject, mode, payer, payer_class, synthesizer, \
     gate_verdict, attempts, figures_checked, refusal_code, data_cost_micros, inference_cost_micros, call_chain_depth, started_at, \
     finished_at, input_tokens, output_tokens) select x.run_id, x.order_id, x.id, x.request_id, x.product, x.subject, x.mode, x.payer, x.payer_class, x.synthesizer, \
     x.verdict, x.attempts, x.figures, x.refused, x.data_cost, x.inference_cost, x.depth, x.started_at, x.finished_at, x.input_tokens, x.output_tokens \
     from d_done x where x.run_id is not null), \
     d_attempts as (insert into settle_attempts (payment_id, attempt, owner, lease_until, request_sha256, request) \
     select x.id, 1, x.owner, now() + make_interval(secs => $27::integer), x.intent, ($31::text[])[x.n::integer] \
     from d_done x where x.intent is not null)";

/// What is told when a decision is stored without a settle call: put in only when one of the group is, since an insert costs
/// something even where it inserts nothing.
const DECIDE_SERVED: &str = "d_served as (insert into served (payment_id, status, code) select x.id, case x.kind when 'answer' then 503 else x.status end, \
     case x.kind when 'answer' then 'settlement_pending' else x.code end from d_done x where x.intent is null)";

const DECIDE_EVENTS: &str = "select x.id, x.seq + 1, x.rail, 'claimed', case when x.intent is not null then 'settling' \
     when x.kind = 'answer' then 'ready' else 'refused' end, 'decide', x.epoch, x.body_sha256, now_us(), x.hash from d_done x";

/// First settle calls that ended with a charge: the settlement, its revenue and the move. Parameters: one array a column, and whether
/// a chain is read (which the slow road needs).
const RECORD: &str = "r_done as materialized (select x.n, x.id, x.transaction, v.seq, v.hash, v.rail, v.epoch \
     from unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::text[]) with ordinality as x(id, attempt, class, reason, transaction, n) join lateral \
     (select e.seq, e.hash, e.rail, e.epoch, e.to_state from payment_events e where e.payment_id = x.id order by e.seq desc limit 1) v \
     on v.to_state = 'settling' where x.class = 'settled' and x.attempt = 1 and $6::boolean is not null), \
     r_settlements as (insert into settlements (payment_id, attempt, transaction, proven) select id, 1, transaction, true from r_done), \
     r_ledger as (insert into ledger (payment_id, kind, settled_for, amount_micros) \
     select c.id, 'revenue', c.id, q.amount_micros from r_done c join payments q on q.payment_id = c.id)";

const RECORD_EVENTS: &str =
    "select id, seq + 1, rail, 'settling', 'settled', 'settle', epoch, transaction, now_us(), hash from r_done";

/// The moves of all kinds are one insert: opening a table with its keys costs more than a row of it.
const EVENTS: &str = "events as (insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)";

/// The statement that writes groups of these kinds; `tells` where a decision among them has no settle call. Its rows are what it
/// wrote: kind and place in the group, from one.
pub(super) fn statement(kinds: &[Kind], tells: bool) -> &'static str {
    static ALL: LazyLock<[String; 16]> = LazyLock::new(|| {
        std::array::from_fn(|set| {
            let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| set & kind.bit() != 0).collect();
            joined(&kinds, set & TELLS != 0)
        })
    });
    &ALL[kinds.iter().fold(if tells { TELLS } else { 0 }, |set, kind| set | kind.bit())]
}

/// Stands beside the kinds in a set of them.
const TELLS: usize = 8;

fn joined(kinds: &[Kind], tells: bool) -> String {
    // writing to a String does not fail
    let (mut with, mut events, mut select, mut before) = (String::new(), String::new(), String::new(), 0);
    for kind in kinds {
        let (expressions, moves, done, parameters) = match kind {
            Kind::Claim => (CLAIM, CLAIM_EVENTS, "c_done", 20),
            Kind::Decision => (DECIDE, DECIDE_EVENTS, "d_done", 33),
            Kind::Record => (RECORD, RECORD_EVENTS, "r_done", 6),
        };
        let (separator, union) = if with.is_empty() { ("with ", "") } else { (", ", " union all ") };
        with.push_str(separator);
        number_from(before, expressions, &mut with);
        if *kind == Kind::Decision && tells {
            let _ = write!(with, ", {DECIDE_SERVED}");
        }
        let _ = write!(events, "{union}{moves}");
        let _ = write!(select, "{union}select {}::smallint as kind, n from {done}", *kind as i16);
        before += parameters;
    }
    format!("{with}, {EVENTS} {events}) {select}")
}

/// Appends a text whose parameters are numbered from $1 as if `before` others came first.
fn number_from(before: usize, text: &str, to: &mut String) {
    let mut parts = text.split('$');
    to.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = part[..digits].parse().unwrap_or_default();
        let _ = write!(to, "${}{}", number + before, &part[digits..]);
    }
}

impl Kind {
    const ALL: [Self; 3] = [Self::Claim, Self::Decision, Self::Record];

    /// Its place in a set of kinds.
    fn bit(self) -> usize {
        1 << self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_through_and_none_is_left_out() {
        for (kinds, parameters) in [
            (vec![Kind::Claim], 20),
            (vec![Kind::Decision, Kind::Record], 39),
            (vec![Kind::Claim, Kind::Decision, Kind::Record], 59),
        ] {
            let text = statement(&kinds, true);
            assert!((1..=parameters).all(|n| text.contains(&format!("${n}:"))), "{text}");
            assert!(!text.contains(&format!("${}:", parameters + 1)));
        }
    }
}
