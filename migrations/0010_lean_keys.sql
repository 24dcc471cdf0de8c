-- What each sale pays for keys, cut to those that keep money right. A foreign key costs about as much as an insert; those dropped
-- here say what the one writing function cannot do otherwise (a run of an order that it inserts in the same statement), or
-- what nothing rests on (which process held a lease). Kept: an answer needs a claim, a settle attempt an answer, a result an attempt,
-- a settlement a result or evidence, revenue a settlement, a move the table of moves and the move before it, a refund its transfer.

alter table claims drop constraint claims_owner_fkey;
alter table settle_attempts drop constraint settle_attempts_owner_fkey;
alter table runs drop constraint runs_order_id_fkey, drop constraint runs_payment_id_fkey;
alter table served drop constraint served_payment_id_fkey;
alter table ledger drop constraint ledger_payment_id_fkey;
alter table purchases drop constraint purchases_payment_id_fkey;
alter table payment_events drop constraint payment_events_payment_id_fkey;

-- the shape of an address or a digest is the program's business; its length catches a column that was mixed up
alter table payments
    drop constraint payments_asset_check, drop constraint payments_payer_check, drop constraint payments_pay_to_check,
    drop constraint payments_auth_nonce_check, drop constraint payments_payload_sha256_check, drop constraint payments_request_fp_check,
    add check (length(asset) = 42 and length(payer) = 42 and length(pay_to) = 42 and length(auth_nonce) = 66
        and length(payload_sha256) = 64 and length(request_fp) = 64);
alter table answers drop constraint answers_body_sha256_check, add check (length(body_sha256) = 64);
alter table settle_attempts drop constraint settle_attempts_request_sha256_check, add check (length(request_sha256) = 64);
alter table orders drop constraint orders_order_id_check, add check (length(order_id) = 32);

-- the key of purchases finds all payments of a purchase
drop index payments_purchase;

create or replace function journal_claim(
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

create or replace function journal_claims(p payments[], p_owner uuid, p_lease_s integer, p_window_s integer)
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
