-- Whoever takes a purchase over ends the claims of those who died on it: one that only seemed dead (a process that was stopped or
-- cut off for longer than its lease) comes back with a finished answer, and must not settle it beside its successor's.

-- Writes what time did to a claim as an event. A decision under that claim is refused from here on.
create function end_claim(p_payment_id uuid) returns void language sql as $$
    insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
        select payment_id, seq + 1, rail, 'claimed', 'abandoned', 'claim', epoch, 'its owner is dead', now_us(), hash
        from (select * from payment_events where payment_id = p_payment_id order by seq desc limit 1) last
        where to_state = 'claimed'
$$;

-- Claims a payment before anything is done for it.
--   won        the caller works on it under o_epoch; with o_other, that payment has an answer that was never sent to settle
--   held       another authorization of the same purchase is live (o_other, o_state); nothing was written
--   free       another authorization of the same purchase was charged within the window: its answer is this one's too
--   reused     presented before for another request, or with another signature
--   existing   look at o_state
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
    for other in select q.payment_id, payment_state(q.payment_id) as state, q.valid_before, s.settled_at from payments q
            left join settlements s using (payment_id)
            where q.payer = p.payer and q.request_fp = p.request_fp and q.auth_key <> p.auth_key
            order by s.settled_at desc nulls last loop
        if other.state in ('claimed', 'settling', 'unknown', 'landed') then
            outcome := 'held'; o_payment_id := other.payment_id; o_state := other.state; o_other := other.payment_id;
            return;
        elsif other.state = 'abandoned' then
            perform end_claim(other.payment_id);
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
