-- Payments, orders, answers, settlements, runs and the ledger.
--
-- The tables are insert-only: which rows exist *is* the state of a payment (view payment_states). What must never happen is
-- therefore a key or a foreign key, not a convention:
--   * one row in answers per payment: an answer or a refusal, never both. A settle attempt points at the answer, so a
--     refused payment cannot have one: declined and charged exclude each other by primary key.
--   * revenue points at a settlement: nothing is booked that was not settled.
--   * an authorization is claimed once: auth_key is unique, and a later claim of it needs a higher epoch.

-- One row per running process. A claim is live while its owner's heart beats; updated in place, nothing else is.
create table instances (
    instance_id uuid primary key,
    started_at  timestamptz not null default now(),
    beat_at     timestamptz not null default now()
);

-- One row per authorization ever presented. auth_key = <caip2>/eip3009/<asset>/<from>/<nonce>, lower case.
create table payments (
    payment_id     uuid primary key,
    auth_key       text not null unique check (auth_key = lower(auth_key)),
    rail           text not null check (rail in ('exact')),
    x402_version   smallint not null check (x402_version in (1, 2)),
    network        text not null,
    asset          text not null check (asset ~ '^0x[0-9a-f]{40}$'),
    payer          text not null check (payer ~ '^0x[0-9a-f]{40}$'),
    pay_to         text not null check (pay_to ~ '^0x[0-9a-f]{40}$'),
    auth_nonce     text not null check (auth_nonce ~ '^0x[0-9a-f]{64}$'),
    -- over the authorization fields and the normalised signature, never over the header: its spelling varies
    payload_sha256 text not null check (payload_sha256 ~ '^[0-9a-f]{64}$'),
    -- over method, path, sorted query, body digest and product: what this payment was presented for
    request_fp     text not null check (request_fp ~ '^[0-9a-f]{64}$'),
    product        text not null,
    contract_id    text not null,
    amount         numeric(78, 0) not null check (amount > 0),
    amount_micros  bigint not null check (amount_micros > 0),
    valid_after    numeric(78, 0) not null,
    valid_before   numeric(78, 0) not null,
    created_at     timestamptz not null default now()
);
-- one live purchase: looked up by payer and request at every claim
create index payments_purchase on payments (payer, request_fp);

-- Who works on a payment. A claim is written before verify is called; a later one of the same payment has the next epoch.
create table claims (
    payment_id  uuid not null references payments,
    epoch       integer not null check (epoch > 0),
    owner       uuid not null references instances,
    claimed_at  timestamptz not null default now(),
    lease_until timestamptz not null,
    primary key (payment_id, epoch)
);

-- A claim given back: verify could not be reached, so the same payment may be claimed again.
create table releases (
    payment_id uuid not null,
    epoch      integer not null,
    reason     text not null,
    at         timestamptz not null default now(),
    primary key (payment_id, epoch),
    foreign key (payment_id, epoch) references claims
);

-- The counter behind dense order numbers: a gap would mean that an order was deleted.
create table order_counter (
    only_row boolean primary key default true check (only_row),
    last_no  bigint not null default 0
);
insert into order_counter default values;

-- An order exists once verify has succeeded. The number is evidence, the id (128 random bits) is the capability to read it.
create table orders (
    order_id   text primary key check (order_id ~ '^[0-9a-f]{32}$'),
    order_no   bigint not null unique check (order_no > 0),
    payment_id uuid not null unique references payments,
    created_at timestamptz not null default now()
);

-- What was decided for a payment: one row, ever.
--   answer         a finished memo; may be settled
--   refusal        a definite refusal; final for this authorization
--   verify_failed  the facilitator said no before any work; body is the reason, shown in the 402
create table answers (
    payment_id   uuid primary key references payments,
    kind         text not null check (kind in ('answer', 'refusal', 'verify_failed')),
    epoch        integer not null,
    status       smallint not null,
    content_type text not null,
    body         bytea not null,
    body_sha256  text not null check (body_sha256 ~ '^[0-9a-f]{64}$'),
    refusal_code text,
    created_at   timestamptz not null default now(),
    unique (payment_id, kind),
    foreign key (payment_id, epoch) references claims,
    check ((kind = 'refusal') = (refusal_code is not null)),
    check (kind <> 'answer' or status = 200),
    check (kind <> 'verify_failed' or status = 402)
);
-- memos are a few kilobytes: kept in line and compressed by the cheaper method
alter table answers alter column body set storage main;
alter table answers alter column body set compression lz4;

-- The intent to settle: committed before settle is called. Only an answer can have one.
create table settle_attempts (
    payment_id     uuid not null,
    attempt        integer not null check (attempt > 0),
    answer_kind    text not null default 'answer' check (answer_kind = 'answer'),
    owner          uuid not null references instances,
    lease_until    timestamptz not null,
    request_sha256 text not null check (request_sha256 ~ '^[0-9a-f]{64}$'),
    started_at     timestamptz not null default now(),
    primary key (payment_id, attempt),
    foreign key (payment_id, answer_kind) references answers (payment_id, kind)
);

-- What the facilitator answered. "Denied" exists only for the first attempt: a later one may have emptied the wallet itself.
create table settle_results (
    payment_id  uuid not null,
    attempt     integer not null,
    class       text not null check (class in ('settled', 'denied', 'nonce_used', 'unknown', 'not_sent')),
    reason      text,
    transaction text,
    finished_at timestamptz not null default now(),
    primary key (payment_id, attempt),
    foreign key (payment_id, attempt) references settle_attempts,
    check (class <> 'denied' or (attempt = 1 and transaction is null)),
    check (class <> 'settled' or transaction is not null)
);

-- The charge. proven: the facilitator named the transaction; otherwise the nonce was used after our own intent.
create table settlements (
    payment_id  uuid primary key,
    attempt     integer not null,
    transaction text,
    proven      boolean not null check (proven = (transaction is not null)),
    settled_at  timestamptz not null default now(),
    foreign key (payment_id, attempt) references settle_results
);

-- One row per run of the pipeline, whatever became of it; costs in millionths of a dollar.
create table runs (
    run_id                uuid primary key,
    order_id              text references orders,
    payment_id            uuid references payments,
    request_id            text not null,
    product               text not null,
    subject               text not null,
    mode                  text not null,
    payer                 text,
    payer_class           text not null check (payer_class in ('organic', 'own', 'test')),
    synthesizer           text not null,
    gate_verdict          text not null check (gate_verdict in ('accepted', 'rejected', 'none')),
    attempts              integer not null check (attempts >= 0),
    figures_checked       integer not null check (figures_checked >= 0),
    refusal_code          text,
    data_cost_micros      bigint not null check (data_cost_micros >= 0),
    inference_cost_micros bigint not null check (inference_cost_micros >= 0),
    call_chain_depth      integer not null check (call_chain_depth >= 0),
    started_at            timestamptz not null,
    finished_at           timestamptz not null
);
create index runs_by_payment on runs (payment_id);
create index runs_by_time on runs (started_at, run_id);

-- Money that was earned or given back, append-only. Revenue needs a settlement.
create table ledger (
    entry_id      bigint generated always as identity primary key,
    payment_id    uuid not null references payments,
    kind          text not null check (kind in ('revenue', 'refund', 'reversal')),
    settled_for   uuid references settlements,
    amount_micros bigint not null check (amount_micros > 0),
    at            timestamptz not null default now(),
    unique (payment_id, kind),
    check (kind <> 'revenue' or (settled_for is not null and settled_for = payment_id))
);

-- One row per answer given to a request that carried a readable payment.
create table served (
    served_id  bigint generated always as identity primary key,
    payment_id uuid not null references payments,
    status     smallint not null,
    code       text,
    at         timestamptz not null default now(),
    -- an unknown outcome is never answered with a challenge to pay again; that rule is checked by a query over this table
    check (status <> 200 or code is null)
);
create index served_by_payment on served (payment_id);

-- The published refusal contract, once per content, so that restarts and replicas agree on when it took effect.
-- content_id is the address of the manifest without its dates; contract_id of the whole, which a buyer recomputes.
create table contracts (
    content_id     text primary key,
    contract_id    text not null unique,
    effective_from timestamptz not null,
    previous       text references contracts (contract_id)
);

-- A heart that has not beaten for ten seconds is dead; beats come every two.
create function instance_lives(id uuid) returns boolean language sql stable as
$$ select exists (select 1 from instances where instance_id = id and beat_at > now() - interval '10 seconds') $$;

-- The state of one payment, from the rows that exist.
create function payment_state(id uuid) returns text language plpgsql stable as $$
declare
    attempt_count integer;
    unsent boolean;
    open_attempt settle_attempts;
    claim claims;
begin
    if exists (select 1 from settlements where payment_id = id) then return 'settled'; end if;
    if exists (select 1 from answers where payment_id = id and kind <> 'answer') then return 'refused'; end if;
    select count(*), bool_and(coalesce(r.class, '') = 'not_sent') into attempt_count, unsent
        from settle_attempts a left join settle_results r using (payment_id, attempt) where a.payment_id = id;
    if attempt_count > 0 then
        if exists (select 1 from settle_results where payment_id = id and class = 'denied') then return 'denied'; end if;
        select a.* into open_attempt from settle_attempts a left join settle_results r using (payment_id, attempt)
            where a.payment_id = id and r.attempt is null order by a.attempt desc limit 1;
        if found and open_attempt.lease_until > now() and instance_lives(open_attempt.owner) then return 'settling'; end if;
        return case when unsent then 'ready' else 'unknown' end;
    end if;
    if exists (select 1 from answers where payment_id = id) then return 'ready'; end if;
    select * into claim from claims where payment_id = id order by epoch desc limit 1;
    if not found or claim.lease_until <= now() or not instance_lives(claim.owner)
        or exists (select 1 from releases where payment_id = id and epoch = claim.epoch) then
        return 'abandoned';
    end if;
    return 'claimed';
end $$;

create view payment_states as select p.*, payment_state(p.payment_id) as state from payments p;

-- Claims a payment before anything is done for it. Returns the outcome and, for an existing payment, what is known.
--   won        the caller works on it now, under the returned epoch
--   held       another authorization of the same purchase is still live; nothing was written
--   reused     the authorization was presented before for another request or with another signature
--   existing   look at state
create function journal_claim(
    p payments, p_owner uuid, p_lease_s integer,
    out outcome text, out o_payment_id uuid, out o_epoch integer, out o_state text
) language plpgsql as $$
declare
    found_payment payments;
    other record;
begin
    -- one purchase at a time: the same payer and request queue here, strangers do not
    perform pg_advisory_xact_lock(hashtextextended(p.payer || p.request_fp, 0));
    select * into found_payment from payments where auth_key = p.auth_key for update;
    if not found then
        select q.payment_id, payment_state(q.payment_id) as state into other from payments q
            where q.payer = p.payer and q.request_fp = p.request_fp
              and (payment_state(q.payment_id) in ('claimed', 'settling', 'unknown')
                   -- an answer that nobody paid for holds the purchase only as long as its authorization can be charged
                   or (payment_state(q.payment_id) = 'ready' and q.valid_before > extract(epoch from now())))
            limit 1;
        if found then
            outcome := 'held'; o_payment_id := other.payment_id; o_state := other.state;
            return;
        end if;
        insert into payments select p.* on conflict (auth_key) do nothing;
        if not found then  -- presented for another request at the same moment
            select * into found_payment from payments where auth_key = p.auth_key for update;
        else
            found_payment := p;
        end if;
    end if;
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
    insert into claims (payment_id, epoch, owner, lease_until)
        select o_payment_id, coalesce(max(epoch), 0) + 1, p_owner, now() + make_interval(secs => p_lease_s)
        from claims where payment_id = o_payment_id
        returning epoch into o_epoch;
    outcome := 'won';
    o_state := 'claimed';
end $$;

-- True when the caller still holds the payment under this epoch and nothing was decided: the fence before every decision.
create function journal_holds(p_payment_id uuid, p_epoch integer) returns boolean language plpgsql as $$
begin
    perform 1 from payments where payment_id = p_payment_id for update;
    return not exists (select 1 from answers where payment_id = p_payment_id)
       and not exists (select 1 from releases where payment_id = p_payment_id and epoch = p_epoch)
       and p_epoch = (select max(epoch) from claims where payment_id = p_payment_id);
end $$;

-- Decides a payment: the answer or the refusal, its order, its run and, for an answer whose buyer still waits, the intent to
-- settle, all in one commit. False when the claim was lost: then nothing was written.
create function journal_decide(
    a answers, p_order_id text, r runs, p_intent boolean, p_owner uuid, p_lease_s integer, p_request_sha256 text
) returns boolean language plpgsql as $$
declare
    number bigint;
begin
    if not journal_holds(a.payment_id, a.epoch) then return false; end if;
    a.created_at := now();
    insert into answers select a.*;
    if p_order_id is not null then
        update order_counter set last_no = last_no + 1 returning last_no into number;
        insert into orders (order_id, order_no, payment_id) values (p_order_id, number, a.payment_id);
    end if;
    if r.run_id is not null then
        insert into runs select r.*;
    end if;
    if p_intent then
        insert into settle_attempts (payment_id, attempt, owner, lease_until, request_sha256)
            values (a.payment_id, 1, p_owner, now() + make_interval(secs => p_lease_s), p_request_sha256);
    elsif a.kind = 'answer' then  -- its buyer has hung up: the memo was not handed out
        insert into served (payment_id, status, code) values (a.payment_id, 503, 'settlement_pending');
    else
        insert into served (payment_id, status, code) values (a.payment_id, a.status, a.refusal_code);
    end if;
    return true;
end $$;

-- The intent to settle an answer that is ready, or to present an unknown one again. 0 when the state does not allow it.
create function journal_intend(p_payment_id uuid, p_owner uuid, p_lease_s integer, p_request_sha256 text)
returns integer language plpgsql as $$
declare
    next_attempt integer;
begin
    perform 1 from payments where payment_id = p_payment_id for update;
    if payment_state(p_payment_id) not in ('ready', 'unknown') then return 0; end if;
    select coalesce(max(attempt), 0) + 1 into next_attempt from settle_attempts where payment_id = p_payment_id;
    insert into settle_attempts (payment_id, attempt, owner, lease_until, request_sha256)
        values (p_payment_id, next_attempt, p_owner, now() + make_interval(secs => p_lease_s), p_request_sha256);
    return next_attempt;
end $$;

-- Records what settle answered and, when that means a charge, the settlement and its revenue in the same commit.
-- A nonce that is used although an earlier attempt of ours was sent means that our own transfer went through: settled, unproven.
-- Returns the state after it.
create function journal_record(p_payment_id uuid, p_attempt integer, p_class text, p_reason text, p_transaction text)
returns text language plpgsql as $$
declare
    class text := p_class;
    earlier_sent boolean;
    after text;
begin
    perform 1 from payments where payment_id = p_payment_id for update;
    select exists (select 1 from settle_attempts a left join settle_results x using (payment_id, attempt)
        where a.payment_id = p_payment_id and a.attempt < p_attempt and coalesce(x.class, '') <> 'not_sent') into earlier_sent;
    if class = 'denied' and p_attempt > 1 then class := 'unknown'; end if;
    insert into settle_results (payment_id, attempt, class, reason, transaction)
        values (p_payment_id, p_attempt, class, p_reason, p_transaction) on conflict do nothing;
    if class = 'settled' or (class = 'nonce_used' and earlier_sent) then
        insert into settlements (payment_id, attempt, transaction, proven)
            values (p_payment_id, p_attempt, case when class = 'settled' then p_transaction end, class = 'settled')
            on conflict do nothing;
        insert into ledger (payment_id, kind, settled_for, amount_micros)
            select payment_id, 'revenue', payment_id, amount_micros from payments where payment_id = p_payment_id
            on conflict do nothing;
    end if;
    after := payment_state(p_payment_id);
    insert into served (payment_id, status, code) select p_payment_id,
        case after when 'settled' then 200 when 'denied' then 402 else 503 end,
        case after when 'settled' then null when 'denied' then 'denied' when 'ready' then 'overloaded' else 'settlement_pending' end;
    return after;
end $$;

-- The margin ledger: every run, with revenue only where a settlement stands behind it.
create view margins as
select r.run_id, r.started_at, r.finished_at, r.request_id, r.order_id, o.order_no, r.product, r.subject, r.mode, r.payer,
       r.payer_class, r.synthesizer, r.gate_verdict, r.attempts, r.figures_checked, r.refusal_code,
       p.network, p.asset, p.amount as price_atomic,
       coalesce(payment_state(p.payment_id), 'none') as settle_state, s.transaction, r.call_chain_depth,
       coalesce((select sum(amount_micros) from ledger l where l.payment_id = r.payment_id and l.kind = 'revenue'), 0)::bigint
           as revenue_micros,
       coalesce((select sum(amount_micros) from ledger l where l.payment_id = r.payment_id and l.kind <> 'revenue'), 0)::bigint
           as refund_micros,
       r.data_cost_micros, r.inference_cost_micros
from runs r
left join orders o on o.order_id = r.order_id
left join payments p on p.payment_id = r.payment_id
left join settlements s on s.payment_id = r.payment_id;
