-- Payments that have landed: the buyer moved the money himself (rail client-broadcast), before his request came.
--
-- Such a payment is recorded, with the proof of its transfer and with its order, before anything of the request is refused: money
-- that nobody has written down is money that nobody gives back. From there it has two ends, each one commit: the answer
-- with the charge (settled), or the refusal with the refund (refund_owed). No settle call is made for it, and it is worked on once:
-- a landed payment whose owner is dead is refused, since a database restored from a backup could otherwise deliver and refund.

-- Records a landed payment, claims it, and opens its order.
--   won        the caller works on it under epoch 1; with o_other, that payment holds this purchase or was charged for it within the
--              window, and this one is to go back
--   existing   presented before for this request
--   reused     presented before for another request, or on the other rail
create function journal_land(
    p payments, e chain_evidence, p_order_id text, p_owner uuid, p_lease_s integer, p_window_s integer,
    out outcome text, out o_payment_id uuid, out o_state text, out o_other uuid
) language plpgsql as $$
declare
    found_payment payments;
    number bigint;
begin
    -- one purchase at a time, as in journal_claim
    perform pg_advisory_xact_lock(hashtextextended(p.payer || p.request_fp, 0));
    insert into payments select p.* on conflict (auth_key) do nothing;
    if not found then
        select * into found_payment from payments where auth_key = p.auth_key for update;
        o_payment_id := found_payment.payment_id;
        o_state := payment_state(o_payment_id);
        outcome := case when found_payment.rail = p.rail and found_payment.request_fp = p.request_fp then 'existing' else 'reused' end;
        return;
    end if;
    select q.payment_id into o_other from purchases u join payments q using (payment_id) left join settlements s using (payment_id)
        cross join lateral (select payment_state(q.payment_id) as state) t
        where u.payer = p.payer and u.request_fp = p.request_fp and q.payment_id <> p.payment_id
          and (t.state in ('claimed', 'settling', 'unknown', 'landed')
               or (t.state = 'ready' and q.valid_before > extract(epoch from now()))
               or (t.state = 'settled' and s.settled_at > now() - make_interval(secs => p_window_s)))
        order by s.settled_at nulls first limit 1;
    insert into chain_evidence (payment_id, kind, block, block_hash, tx_hash, log_index, from_addr, to_addr, value)
        values (p.payment_id, 'transfer', e.block, e.block_hash, e.tx_hash, e.log_index, e.from_addr, e.to_addr, e.value);
    insert into purchases select p.payer, p.request_fp, coalesce(max(generation), 0) + 1, p.payment_id
        from purchases where payer = p.payer and request_fp = p.request_fp;
    perform move_payment(p.payment_id, 'landed', 'claim', 1, e.tx_hash);
    insert into claims (payment_id, epoch, owner, lease_until)
        values (p.payment_id, 1, p_owner, now() + make_interval(secs => p_lease_s));
    -- the counter last: it is the one row that all orders share
    update order_counter set last_no = last_no + 1 returning last_no into number;
    insert into orders (order_id, order_no, payment_id) values (p_order_id, number, p.payment_id);
    outcome := 'won'; o_payment_id := p.payment_id; o_state := 'landed';
end $$;

-- Ends a landed payment: an answer is charged and what came above the price is owed back; a refusal owes all of it back.
-- False when somebody else has ended it: then nothing was written.
create function journal_end_landing(a answers, r runs, p_refund_id uuid, p_reason text, p_due_by timestamptz)
returns boolean language plpgsql as $$
declare
    p payments;
    e chain_evidence;
    last payment_events;
begin
    select * into p from payments where payment_id = a.payment_id for update;
    select * into last from payment_events where payment_id = a.payment_id order by seq desc limit 1;
    if last.to_state <> 'landed' or last.epoch <> a.epoch then return false; end if;
    select * into strict e from chain_evidence where payment_id = a.payment_id and kind = 'transfer' order by evidence_id limit 1;
    insert into answers select a.*;
    insert into runs select r.*;
    insert into served (payment_id, status, code) values (a.payment_id, a.status, a.refusal_code);
    if a.kind <> 'answer' then
        perform owe_refund(p_refund_id, e.evidence_id, e.value, p_reason, a.refusal_code, p_due_by);
        return true;
    end if;
    if e.value < p.amount then raise exception 'payment % brought % of %', a.payment_id, e.value, p.amount; end if;
    perform move_payment(a.payment_id, 'settled', 'decide', a.epoch, a.body_sha256);
    perform book_charge(a.payment_id, null, e.tx_hash, e.evidence_id);
    if e.value > p.amount then
        perform owe_refund(p_refund_id, e.evidence_id, e.value - p.amount, 'overpaid', null, p_due_by);
    end if;
    return true;
end $$;

-- A payment by its transfer is looked up by the transaction that a buyer names.
create index chain_evidence_by_tx on chain_evidence (tx_hash) where kind = 'transfer';
