-- The slow roads of the journal: whoever meets rows that are there already. A first claim, its decision and its settlement are
-- written for many payments at once by the functions at the end of this file; what those leave over comes here, one by one.

drop view payment_states;
drop function journal_claim(payments, uuid, integer);
drop function journal_decide(answers, text, runs, boolean, uuid, integer, text);
drop function journal_holds(uuid, integer);
drop function journal_intend(uuid, uuid, integer, text);
drop function journal_record(uuid, integer, text, text, text);

create view payment_states as select p.*, payment_state(p.payment_id) as state from payments p;

-- The order that a payment pays for or was answered with.
create function order_of(id uuid) returns text language sql stable as
$$ select coalesce((select order_id from successions where payment_id = id), (select order_id from orders where payment_id = id)) $$;

-- The payment that pays for an order: the one it was made for, or the last one that took its answer over.
create function payer_of(id text) returns uuid language sql stable as
$$ select coalesce((select s.payment_id from successions s where s.order_id = id and s.kind = 'supersede' order by s.at desc limit 1),
                   (select payment_id from orders where order_id = id)) $$;

-- True when a settle call of this payment may have reached a facilitator: all but those whose connection was refused.
create function was_sent(id uuid) returns boolean language sql stable as
$$ select exists (select 1 from settle_attempts a left join settle_results r using (payment_id, attempt)
    where a.payment_id = id and coalesce(r.class, '') <> 'not_sent') $$;

-- Writes what time has done to a claim whose purchase goes to another authorization: a process that was only slow must not
-- decide under it any more; without this both were settled. Whoever decides under it at this moment writes the same event number, and one of the two fails.
create function fence_claim(id uuid) returns void language plpgsql as $$
declare
    last payment_events;
begin
    select * into last from payment_events where payment_id = id order by seq desc limit 1;
    if last.to_state <> 'claimed' then return; end if;
    insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
        values (id, last.seq + 1, last.rail, 'claimed', 'abandoned', 'claim', last.epoch, 'its purchase went to another', now_us(), last.hash);
end $$;

-- Claims a payment before anything is done for it.
--   won        the caller works on it under o_epoch; with o_other, that payment has an answer that was never sent to settle
--   held       another authorization of the same purchase is live (o_other, o_state); nothing was written
--   free       another authorization of the same purchase was charged within the window: its answer is this one's too
--   reused     presented before for another request, or with another signature
--   existing   look at o_state
create function journal_claim(
    p payments, p_owner uuid, p_lease_s integer, p_window_s integer,
    out outcome text, out o_payment_id uuid, out o_epoch integer, out o_state text, out o_other uuid
) language plpgsql as $$
declare
    found_payment payments;
    other record;
    ready_payment uuid;
    n integer;
begin
    -- one purchase at a time: copies and other authorizations of it queue here, strangers do not
    perform pg_advisory_xact_lock(hashtextextended(p.payer || p.request_fp, 0));
    select * into found_payment from payments where auth_key = p.auth_key for update;
    if found then
        o_payment_id := found_payment.payment_id;
        o_state := payment_state(o_payment_id);
        if found_payment.request_fp <> p.request_fp or found_payment.payload_sha256 <> p.payload_sha256 then
            outcome := 'reused';
            return;
        end if;
        if o_state <> 'abandoned' then
            outcome := 'existing';
            return;
        end if;
    end if;
    -- who else wanted the same: what may still be charged comes first, then what was charged a moment ago
    for other in select distinct q.payment_id, payment_state(q.payment_id) as state, q.valid_before, s.settled_at from purchases u
            join payments q using (payment_id) left join settlements s using (payment_id)
            where u.payer = p.payer and u.request_fp = p.request_fp and q.auth_key <> p.auth_key
            order by s.settled_at desc nulls last loop
        if other.state in ('claimed', 'settling', 'unknown', 'landed') then
            outcome := 'held'; o_payment_id := other.payment_id; o_state := other.state; o_other := other.payment_id;
            return;
        elsif other.state = 'ready' and other.valid_before > extract(epoch from now()) then
            if was_sent(other.payment_id) then
                outcome := 'held'; o_payment_id := other.payment_id; o_state := other.state; o_other := other.payment_id;
                return;
            end if;
            ready_payment := other.payment_id;
        elsif other.state = 'abandoned' then
            perform fence_claim(other.payment_id);
        elsif other.state = 'settled' and other.settled_at > now() - make_interval(secs => p_window_s) and o_other is null then
            o_other := other.payment_id;
        end if;
    end loop;
    if found_payment.payment_id is null then
        insert into payments select p.*;
        o_payment_id := p.payment_id;
    end if;
    select coalesce(max(generation), 0) + 1 into n from purchases where payer = p.payer and request_fp = p.request_fp;
    insert into purchases values (p.payer, p.request_fp, n, o_payment_id);
    if o_other is not null then
        insert into successions (payment_id, kind, of_payment, order_id)
            values (o_payment_id, 'free', o_other, order_of(o_other));
        perform move_payment(o_payment_id, 'free', 'claim', 0, o_other::text);
        outcome := 'free'; o_state := 'free';
        return;
    end if;
    select coalesce(max(epoch), 0) + 1 into o_epoch from claims where payment_id = o_payment_id;
    -- the move comes first: with the new claim in place, the dead one would read as alive
    perform move_payment(o_payment_id, 'claimed', 'claim', o_epoch);
    insert into claims (payment_id, epoch, owner, lease_until)
        values (o_payment_id, o_epoch, p_owner, now() + make_interval(secs => p_lease_s));
    outcome := 'won'; o_state := 'claimed'; o_other := ready_payment;
end $$;

-- Gives a claim back: nothing was done and nothing decided.
create function journal_give_back(p_payment_id uuid, p_epoch integer, p_reason text) returns boolean language plpgsql as $$
declare
    last payment_events;
begin
    perform 1 from payments where payment_id = p_payment_id for update;
    select * into last from payment_events where payment_id = p_payment_id order by seq desc limit 1;
    if last.to_state <> 'claimed' or last.epoch <> p_epoch then return false; end if;
    insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
        values (p_payment_id, last.seq + 1, last.rail, 'claimed', 'abandoned', 'claim', p_epoch, p_reason, now_us(), last.hash);
    return true;
end $$;

-- A verified payment takes over the answer of another one that was never sent to settle, with the intent to settle it.
-- False when either has moved on meanwhile: then nothing was written.
create function journal_take_over(p_payment_id uuid, p_epoch integer, p_other uuid, p_owner uuid, p_lease_s integer,
    p_request_sha256 text, p_request text, p_facilitator text) returns boolean language plpgsql as $$
declare
    last payment_events;
begin
    perform 1 from payments where payment_id in (p_payment_id, p_other) order by payment_id for update;
    select * into last from payment_events where payment_id = p_payment_id order by seq desc limit 1;
    if last.to_state <> 'claimed' or last.epoch <> p_epoch or payment_state(p_other) <> 'ready'
        or was_sent(p_other) then return false; end if;
    perform move_payment(p_other, 'superseded', 'decide', null, p_payment_id::text);
    insert into successions (payment_id, kind, of_payment, order_id)
        values (p_payment_id, 'supersede', p_other, order_of(p_other));
    insert into answers (payment_id, kind, epoch, status, content_type, body, body_sha256, facilitator)
        select p_payment_id, kind, p_epoch, status, content_type, body, body_sha256, p_facilitator from answers where payment_id = p_other;
    insert into settle_attempts (payment_id, attempt, owner, lease_until, request_sha256, request)
        values (p_payment_id, 1, p_owner, now() + make_interval(secs => p_lease_s), p_request_sha256, p_request);
    perform move_payment(p_payment_id, 'settling', 'decide', p_epoch, p_other::text);
    return true;
end $$;

-- The intent to settle an answer that is ready, or to present an unknown one again. 0 when the state does not allow it.
create function journal_intend(p_payment_id uuid, p_owner uuid, p_lease_s integer, p_request_sha256 text, p_request text)
returns integer language plpgsql as $$
declare
    next_attempt integer;
begin
    perform 1 from payments where payment_id = p_payment_id for update;
    if payment_state(p_payment_id) not in ('ready', 'unknown') then return 0; end if;
    select coalesce(max(attempt), 0) + 1 into next_attempt from settle_attempts where payment_id = p_payment_id;
    -- the move comes first: with the new attempt in place, the lapsed one would read as running
    perform move_payment(p_payment_id, 'settling', 'settle', null, 'attempt ' || next_attempt);
    insert into settle_attempts (payment_id, attempt, owner, lease_until, request_sha256, request)
        values (p_payment_id, next_attempt, p_owner, now() + make_interval(secs => p_lease_s), p_request_sha256, p_request);
    return next_attempt;
end $$;

-- Books a charge: the settlement and its revenue. Revenue that was taken back is booked again in the next round.
create function book_charge(p_payment_id uuid, p_attempt integer, p_transaction text, p_evidence bigint) returns void
language plpgsql as $$
begin
    insert into settlements (payment_id, attempt, transaction, proven, evidence_id)
        values (p_payment_id, p_attempt, p_transaction, p_transaction is not null, p_evidence) on conflict do nothing;
    insert into ledger (payment_id, kind, round, settled_for, amount_micros)
        select payment_id, 'revenue', 1 + (select count(*) from ledger l where l.payment_id = p_payment_id and l.kind = 'reversal'),
            payment_id, amount_micros from payments where payment_id = p_payment_id
        on conflict do nothing;
end $$;

-- Records what settle answered and, when that means a charge, the settlement and its revenue in the same commit.
-- A nonce that is used although an earlier attempt of ours was sent means that our own transfer went through: settled,
-- unproven. Where a chain is read, that is left to the chain; where none is, and the authorization has ended with its outcome
-- never known, the buyer has the benefit of the doubt: he may have been charged, so he gets the answer. Returns the state after it.
create function journal_record(p_payment_id uuid, p_attempt integer, p_class text, p_reason text, p_transaction text,
    p_has_chain boolean) returns text language plpgsql as $$
declare
    class text := p_class;
    stands text;
    earlier_sent boolean;
    newest boolean;
    in_doubt boolean;
    after text;
begin
    perform 1 from payments where payment_id = p_payment_id for update;
    select exists (select 1 from settle_attempts a left join settle_results x using (payment_id, attempt)
        where a.payment_id = p_payment_id and a.attempt < p_attempt and coalesce(x.class, '') <> 'not_sent') into earlier_sent;
    select not p_has_chain and earlier_sent and valid_before + 60 < extract(epoch from now()) into in_doubt
        from payments where payment_id = p_payment_id;
    select p_attempt = max(attempt) into newest from settle_attempts where payment_id = p_payment_id;
    if class = 'denied' and p_attempt > 1 then class := 'unknown'; end if;
    insert into settle_results (payment_id, attempt, class, reason, transaction)
        values (p_payment_id, p_attempt, class, p_reason, p_transaction) on conflict do nothing;
    if not found then return payment_state(p_payment_id); end if;
    -- its lease may have lapsed, and somebody may have acted on that: a late answer still counts when it says "charged"
    stands := (select to_state from payment_events where payment_id = p_payment_id order by seq desc limit 1);
    if class = 'settled' or (class = 'nonce_used' and earlier_sent and not p_has_chain)
        or (in_doubt and class in ('unknown', 'denied')) then
        if stands in ('settling', 'unknown') then
            perform move_payment(p_payment_id, 'settled', 'settle', null, coalesce(p_transaction, 'unproven: ' || class));
            perform book_charge(p_payment_id, p_attempt, case when class = 'settled' then p_transaction end, null);
        end if;
    elsif stands = 'settling' and newest then
        -- written from the event, not from the clock: this move is the end of the lease
        perform move_from_settling(p_payment_id, case class when 'denied' then 'denied' when 'not_sent' then
            case when earlier_sent then 'unknown' else 'ready' end else 'unknown' end, coalesce(p_reason, class));
    end if;
    after := payment_state(p_payment_id);
    insert into served (payment_id, status, code) select p_payment_id,
        case after when 'settled' then 200 when 'denied' then 402 else 503 end,
        case after when 'settled' then null when 'denied' then 'denied' when 'ready' then 'overloaded' else 'settlement_pending' end;
    return after;
end $$;

-- Ends a settle call whose lease may or may not have lapsed by now.
create function move_from_settling(id uuid, p_to text, p_evidence text) returns void language plpgsql as $$
declare
    last payment_events;
begin
    select * into last from payment_events where payment_id = id order by seq desc limit 1;
    insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
        values (id, last.seq + 1, last.rail, last.to_state, p_to, 'settle', last.epoch, p_evidence, now_us(), last.hash);
end $$;

-- What the chain said about a payment, and the move that follows from it. Returns the state after it.
--   transfer   an answer that is stored is charged; money that nobody owes an answer for goes back
--   cancelled, unused_after_expiry   never charged: what was unknown is known now
--   lost       a charge that rested on it is unknown again
--   missing    the revenue is taken back: the loss is the seller's
create function journal_evidence(e chain_evidence, p_due_s integer) returns text language plpgsql as $$
declare
    p payments;
    stands text;
    seen bigint;
begin
    select * into p from payments where payment_id = e.payment_id for update;
    stands := payment_state(e.payment_id);
    insert into chain_evidence (payment_id, kind, block, block_hash, tx_hash, log_index, from_addr, to_addr, value, of_evidence)
        values (e.payment_id, e.kind, e.block, e.block_hash, e.tx_hash, e.log_index, e.from_addr, e.to_addr, e.value, e.of_evidence)
        on conflict do nothing returning evidence_id into seen;
    if seen is null then return stands; end if;
    if e.kind = 'transfer' then
        if stands in ('unknown', 'ready') and e.to_addr = p.pay_to and e.value = p.amount then
            perform move_payment(e.payment_id, 'settled', 'evidence', null, e.tx_hash);
            perform book_charge(e.payment_id, null, e.tx_hash, seen);
        elsif stands in ('unknown', 'ready', 'denied', 'abandoned', 'refused', 'superseded', 'free') and e.to_addr = p.pay_to
            and e.value > 0 then
            perform owe_refund(gen_random_uuid(), seen, e.value, 'late', null, now() + make_interval(secs => p_due_s));
        end if;
    elsif e.kind in ('cancelled', 'unused_after_expiry') then
        if stands in ('unknown', 'denied', 'ready', 'abandoned') then
            perform move_payment(e.payment_id, 'dead', 'evidence', null, e.kind);
        elsif stands = 'settled' then
            perform take_back_revenue(e.payment_id);
        end if;
    elsif e.kind = 'lost' and stands = 'settled' then
        perform move_payment(e.payment_id, 'unknown', 'evidence', null, 'the transfer went away with its block');
        perform take_back_revenue(e.payment_id);
    elsif e.kind = 'missing' then
        perform take_back_revenue(e.payment_id);
    end if;
    return payment_state(e.payment_id);
end $$;

create function take_back_revenue(p_payment_id uuid) returns void language sql as $$
    insert into ledger (payment_id, kind, round, amount_micros)
        select payment_id, 'reversal', round, amount_micros from ledger where payment_id = p_payment_id and kind = 'revenue'
        order by round desc limit 1
        on conflict do nothing
$$;

-- The nonce of a payout comes from the authorization itself, not from the number of a row: in every life of this database, also
-- one that was restored to before the payment, it is the same, and the token refuses a second payout.
-- Owes the money of a transfer back: the refund and, unless the rest of it was a sale, the move in the same commit.
create function owe_refund(p_refund_id uuid, p_evidence_id bigint, p_amount numeric, p_reason text, p_code text,
    p_due_by timestamptz) returns void language plpgsql as $$
declare
    e chain_evidence;
    p payments;
begin
    select * into e from chain_evidence where evidence_id = p_evidence_id;
    select * into p from payments where payment_id = e.payment_id;
    insert into refunds (refund_id, payment_id, evidence_id, network, asset, to_addr, transferred, amount, amount_micros, reason,
            refusal_code, refund_nonce, due_by)
        values (p_refund_id, p.payment_id, p_evidence_id, p.network, p.asset, e.from_addr, e.value, p_amount,
            (p_amount * p.amount_micros / p.amount)::bigint, p_reason, p_code,
            '0x' || encode(sha256(convert_to('jim/refund/1' || p.auth_key, 'UTF8')), 'hex'), p_due_by);
    if p_reason <> 'overpaid' then
        perform move_payment(p.payment_id, 'refund_owed', 'refund', null, p_refund_id::text);
    end if;
end $$;

-- The money of a refund is seen to have gone back.
create function journal_refund_confirmed(p_refund_id uuid, p_treasury text, p_tx_hash text) returns boolean language plpgsql as $$
declare
    r refunds;
begin
    select * into r from refunds where refund_id = p_refund_id for update;
    if exists (select 1 from refund_steps where refund_id = p_refund_id and kind = 'confirmed') then return false; end if;
    insert into refund_steps (refund_id, step, kind, treasury, tx_hash)
        select p_refund_id, coalesce(max(step), 0) + 1, 'confirmed', p_treasury, p_tx_hash from refund_steps where refund_id = p_refund_id;
    insert into ledger (payment_id, kind, amount_micros) select r.payment_id, 'refund', r.amount_micros where r.amount_micros > 0;
    if payment_state(r.payment_id) = 'refund_owed' then
        perform move_payment(r.payment_id, 'refunded', 'refund', null, p_tx_hash);
    end if;
    return true;
end $$;

-- The quick roads: many payments in one statement, for the case that nobody was there before.

-- Claims many payments of different purchases. Those of a payer and request that are new are claimed at once.
create function journal_claims(p payments[], p_owner uuid, p_lease_s integer, p_window_s integer)
returns table (outcome text, o_payment_id uuid, o_epoch integer, o_state text, o_other uuid) language plpgsql as $$
declare
    done bigint[];
    i integer;
begin
    with fresh as materialized (
        select x.n, (x.p).payment_id, (x.p).payer, (x.p).request_fp, (x.p).rail, x.p
        from (select u as p, row_number() over () as n from unnest(p) u) x
        where not exists (select 1 from purchases u where u.payer = (x.p).payer and u.request_fp = (x.p).request_fp)
          and not exists (select 1 from payments q where q.auth_key = (x.p).auth_key)),
    p_ as (insert into payments select (f.p).* from fresh f),
    u_ as (insert into purchases select f.payer, f.request_fp, 1, f.payment_id from fresh f),
    c_ as (insert into claims (payment_id, epoch, owner, lease_until)
        select f.payment_id, 1, p_owner, now() + make_interval(secs => p_lease_s) from fresh f),
    e_ as (insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, at_us, prev_hash)
        select f.payment_id, 1, f.rail, 'none', 'claimed', 'claim', 1, now_us(), decode(repeat('00', 32), 'hex') from fresh f)
    select array_agg(f.n) into done from fresh f;
    for i in 1 .. array_length(p, 1) loop
        if i = any (done) then
            return query select 'won', p[i].payment_id, 1, 'claimed', null::uuid;
        else
            return query select c.outcome, c.o_payment_id, c.o_epoch, c.o_state, c.o_other
                from journal_claim(p[i], p_owner, p_lease_s, p_window_s) c;
        end if;
    end loop;
end $$;

-- What is decided for a claimed payment: with an intent, the settle call follows at once.
create type decision as (answer answers, order_id text, run runs, owner uuid, intent text, request text);

-- Decides many payments: the answer or the refusal, its order, its run and, for an answer whose buyer still waits, the intent
-- to settle, all in one commit. False for those whose claim was lost: nothing was written for them.
create function journal_decisions(d decision[], p_lease_s integer) returns setof boolean language plpgsql as $$
declare
    done bigint[];
begin
    with input as materialized (
        select x.n, (x.d).answer as a, (x.d).order_id, (x.d).run as r, (x.d).owner, (x.d).intent, (x.d).request
        from (select u as d, row_number() over () as n from unnest(d) u) x),
    cur as materialized (
        select i.*, (i.a).payment_id, v.seq, v.hash, v.rail, count(i.order_id) over (order by i.n) as nth
        from input i
        join lateral (select e.seq, e.hash, e.rail, e.to_state, e.epoch from payment_events e
            where e.payment_id = (i.a).payment_id order by e.seq desc limit 1) v
        on v.to_state = 'claimed' and v.epoch = (i.a).epoch),
    num as (update order_counter set last_no = last_no + (select count(order_id) from cur)
        where exists (select 1 from cur where order_id is not null) returning last_no - (select count(order_id) from cur) as base),
    a_ as (insert into answers select (c.a).* from cur c),
    o_ as (insert into orders (order_id, order_no, payment_id)
        select c.order_id, num.base + c.nth, c.payment_id from cur c, num where c.order_id is not null),
    r_ as (insert into runs select (c.r).* from cur c where (c.r).run_id is not null),
    s_ as (insert into settle_attempts (payment_id, attempt, owner, lease_until, request_sha256, request)
        select c.payment_id, 1, c.owner, now() + make_interval(secs => p_lease_s), c.intent, c.request from cur c where c.intent is not null),
    -- the buyer of an answer without intent has hung up: the memo was not handed out
    v_ as (insert into served (payment_id, status, code)
        select c.payment_id, case (c.a).kind when 'answer' then 503 else (c.a).status end,
            case (c.a).kind when 'answer' then 'settlement_pending' else (c.a).refusal_code end
        from cur c where c.intent is null),
    e_ as (insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
        select c.payment_id, c.seq + 1, c.rail, 'claimed',
            case when c.intent is not null then 'settling' when (c.a).kind = 'answer' then 'ready' else 'refused' end,
            'decide', (c.a).epoch, (c.a).body_sha256, now_us(), c.hash from cur c)
    select array_agg(c.n) into done from cur c;
    return query select coalesce(i = any (done), false) from generate_series(1, array_length(d, 1)) i order by i;
end $$;

-- What settle answered for a payment.
create type settle_outcome as (payment_id uuid, attempt integer, class text, reason text, transaction text);

-- Records many outcomes; first attempts that settled are booked at once. The states after it, in the order of the group.
create function journal_records(r settle_outcome[], p_has_chain boolean) returns table (o_payment_id uuid, o_state text, n bigint)
language plpgsql as $$
declare
    done bigint[];
    i integer;
begin
    with cur as materialized (
        select x.n, (x.r).payment_id, (x.r).transaction, v.seq, v.hash, v.rail, v.epoch
        from (select u as r, row_number() over () as n from unnest(r) u) x
        join lateral (select e.seq, e.hash, e.rail, e.epoch, e.to_state from payment_events e
            where e.payment_id = (x.r).payment_id order by e.seq desc limit 1) v on v.to_state = 'settling'
        where (x.r).class = 'settled' and (x.r).attempt = 1),
    r_ as (insert into settle_results (payment_id, attempt, class, transaction)
        select c.payment_id, 1, 'settled', c.transaction from cur c),
    s_ as (insert into settlements (payment_id, attempt, transaction, proven) select c.payment_id, 1, c.transaction, true from cur c),
    l_ as (insert into ledger (payment_id, kind, settled_for, amount_micros)
        select c.payment_id, 'revenue', c.payment_id, q.amount_micros from cur c join payments q using (payment_id)),
    v_ as (insert into served (payment_id, status) select c.payment_id, 200 from cur c),
    e_ as (insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
        select c.payment_id, c.seq + 1, c.rail, 'settling', 'settled', 'settle', c.epoch, c.transaction, now_us(), c.hash from cur c)
    select array_agg(c.n) into done from cur c;
    for i in 1 .. array_length(r, 1) loop
        o_payment_id := r[i].payment_id; n := i;
        if i = any (done) then
            o_state := 'settled';
        else
            o_state := journal_record(r[i].payment_id, r[i].attempt, r[i].class, r[i].reason, r[i].transaction, p_has_chain);
        end if;
        return next;
    end loop;
end $$;

-- The margin ledger: every run, with revenue only where a settlement stands behind it. A run whose order another payment
-- took over earns what that payment paid.
drop view margins;
create view margins as
select r.run_id, r.started_at, r.finished_at, r.request_id, r.order_id, o.order_no, r.product, r.subject, r.mode, r.payer,
       r.payer_class, r.synthesizer, r.gate_verdict, r.attempts, r.figures_checked, r.refusal_code,
       p.network, p.asset, p.amount as price_atomic,
       coalesce(payment_state(p.payment_id), 'none') as settle_state, s.transaction, r.call_chain_depth,
       coalesce((select sum(case kind when 'revenue' then amount_micros when 'reversal' then -amount_micros end) from ledger l
           where l.payment_id = p.payment_id), 0)::bigint as revenue_micros,
       coalesce((select sum(amount_micros) from ledger l where l.payment_id = p.payment_id and l.kind = 'refund'), 0)::bigint
           as refund_micros,
       r.data_cost_micros, r.inference_cost_micros
from runs r
left join orders o on o.order_id = r.order_id
left join payments p on p.payment_id = coalesce(payer_of(r.order_id), r.payment_id)
left join settlements s on s.payment_id = p.payment_id;

drop table releases;
