-- What a sale pays for its rows, cut once more: the same rules, said in the form that the server checks cheapest.
--
-- For each statement the server parses each CHECK and each generated column anew, and for each row it runs each foreign key as a
-- query. At the four rows of a kind that a group holds under load that was two thirds of what a sale cost the database. So:
--   * the CHECKs of a table that every sale writes are one call of an immutable function, whose body is parsed once a session;
--   * the table of moves is a constant in such a function: a move that is not in it is refused as before, without a look-up;
--   * a settle call that ended with a charge is told by its settlement alone, and the answer that it let out likewise: no row in
--     settle_results and none in served repeats it. Revenue points at the settlement, that at the attempt, and that at the answer;
--   * keys between rows that one function writes in one statement are gone (a claim's payment, an answer's claim, an order's payment).

-- The moves, as text `rail from to`, and the question whether one is among them: two functions with one list. A migration that adds
-- a move makes both anew; the service compares the list with its own table when it starts.
do $$
declare
    list text := (select quote_literal(array_agg(rail || ' ' || from_state || ' ' || to_state order by 1)) from allowed_moves);
begin
    execute format('create function moves() returns text[] language sql immutable as %L', 'select ' || list || '::text[]');
    execute format('create function is_move(rail text, from_state text, to_state text) returns boolean language plpgsql immutable as %L',
        'begin return (rail || '' '' || from_state || '' '' || to_state) = any (' || list || '::text[]); end');
end $$;

-- SHA-256 over the hash before it and over the members, with | between them.
create function event_hash(payment_id uuid, seq integer, rail text, from_state text, to_state text, actor text, epoch integer,
    at_us bigint, evidence text, prev_hash bytea) returns bytea language plpgsql immutable as $$
begin
    return sha256(prev_hash || convert_to(payment_id::text || '|' || seq || '|' || rail || '|' || from_state || '|' || to_state || '|'
        || actor || '|' || epoch || '|' || at_us || '|' || evidence, 'UTF8'));
end $$;

create function is_event(seq integer, rail text, from_state text, to_state text, actor text, prev_hash bytea) returns boolean
language plpgsql immutable as $$
begin
    return seq > 0 and octet_length(prev_hash) = 32
        and actor in ('claim', 'decide', 'settle', 'evidence', 'refund', 'upgrade')
        and (seq > 1 or (from_state = 'none' and prev_hash = '\x0000000000000000000000000000000000000000000000000000000000000000'));
end $$;

alter table payment_events
    drop constraint payment_events_rail_from_state_to_state_fkey,
    drop constraint payment_events_payment_id_prev_seq_from_state_prev_hash_fkey,
    drop constraint payment_events_payment_id_seq_to_state_hash_key,
    drop constraint payment_events_prev_hash_check, drop constraint payment_events_seq_check,
    drop constraint payment_events_actor_check, drop constraint payment_events_check;
drop table allowed_moves;
alter table payment_events drop column hash;
alter table payment_events add column hash bytea not null
    generated always as (event_hash(payment_id, seq, rail, from_state, to_state, actor, epoch, at_us, evidence, prev_hash)) stored;
alter table payment_events
    add unique (payment_id, seq, to_state, hash),
    add foreign key (payment_id, prev_seq, from_state, prev_hash) references payment_events (payment_id, seq, to_state, hash),
    add constraint payment_events_move check (is_move(rail, from_state, to_state)),
    add constraint payment_events_check check (is_event(seq, rail, from_state, to_state, actor, prev_hash));

create function is_payment(auth_key text, x402_version smallint, asset text, payer text, pay_to text, auth_nonce text,
    payload_sha256 text, request_fp text, amount numeric, amount_micros bigint) returns boolean language plpgsql immutable as $$
begin
    return auth_key = lower(auth_key) and x402_version in (1, 2) and length(asset) = 42
        and length(payer) = 42 and length(pay_to) = 42 and length(auth_nonce) = 66 and length(payload_sha256) = 64
        and length(request_fp) = 64 and amount > 0 and amount_micros > 0;
end $$;

alter table payments drop constraint payments_amount_micros_check, drop constraint payments_rail_check, drop constraint payments_x402_version_check,
    drop constraint payments_amount_check, drop constraint payments_auth_key_check, drop constraint payments_check,
    add constraint payments_check check (is_payment(auth_key, x402_version, asset, payer, pay_to, auth_nonce, payload_sha256, request_fp, amount, amount_micros));
alter table purchases drop constraint purchases_generation_check;
alter table claims drop constraint claims_epoch_check, drop constraint claims_payment_id_fkey;

create function is_answer(kind text, status smallint, refusal_code text, body_sha256 text) returns boolean language plpgsql immutable as $$
begin
    return length(body_sha256) = 64 and case kind when 'answer' then status = 200 and refusal_code is null
        when 'refusal' then refusal_code is not null when 'verify_failed' then status = 402 and refusal_code is null else false end;
end $$;

alter table answers drop constraint answers_kind_check, drop constraint answers_check, drop constraint answers_body_sha256_check,
    drop constraint answers_check2, drop constraint answers_check1, drop constraint answers_payment_id_fkey, drop constraint answers_payment_id_epoch_fkey,
    add constraint answers_check check (is_answer(kind, status, refusal_code, body_sha256));
alter table orders drop constraint orders_order_no_check, drop constraint orders_order_id_check, drop constraint orders_payment_id_fkey;

create function is_run(gate_verdict text, payer_class text, attempts integer, figures_checked integer, data_cost_micros bigint,
    inference_cost_micros bigint, call_chain_depth integer) returns boolean language plpgsql immutable as $$
begin
    return gate_verdict in ('accepted', 'rejected', 'none') and payer_class in ('organic', 'own', 'test') and attempts >= 0
        and figures_checked >= 0 and data_cost_micros >= 0 and inference_cost_micros >= 0 and call_chain_depth >= 0;
end $$;

alter table runs drop constraint runs_figures_checked_check, drop constraint runs_attempts_check, drop constraint runs_gate_verdict_check,
    drop constraint runs_data_cost_micros_check, drop constraint runs_inference_cost_micros_check,
    drop constraint runs_call_chain_depth_check, drop constraint runs_payer_class_check,
    add constraint runs_check check (is_run(gate_verdict, payer_class, attempts, figures_checked, data_cost_micros, inference_cost_micros, call_chain_depth));
alter table runs drop constraint runs_pkey;
drop index runs_by_time;
alter table runs add primary key (started_at, run_id);

alter table settle_attempts drop constraint settle_attempts_request_sha256_check, drop constraint settle_attempts_answer_kind_check,
  drop constraint settle_attempts_attempt_check;
create function is_attempt(attempt integer, answer_kind text, request_sha256 text) returns boolean language plpgsql immutable as $$
begin
    return attempt > 0 and answer_kind = 'answer' and length(request_sha256) = 64;
end $$;

alter table settle_attempts add constraint settle_attempts_check check (is_attempt(attempt, answer_kind, request_sha256));

create function is_charge(attempt integer, evidence_id bigint, transaction text, proven boolean) returns boolean
language plpgsql immutable as $$
begin
    return proven = (transaction is not null) and (attempt is not null or evidence_id is not null);
end $$;

alter table settlements drop constraint settlements_payment_id_attempt_fkey, drop constraint settlements_check,
    drop constraint settlements_check1, add constraint settlements_check check (is_charge(attempt, evidence_id, transaction, proven));
alter table settlements add foreign key (payment_id, attempt) references settle_attempts (payment_id, attempt);

create function is_entry(payment_id uuid, kind text, round integer, settled_for uuid, amount_micros bigint) returns boolean language plpgsql immutable as $$
begin
    return kind in ('revenue', 'refund', 'reversal') and round > 0 and amount_micros > 0
        and (kind <> 'revenue' or coalesce(settled_for = payment_id, false));
end $$;

alter table ledger drop constraint ledger_kind_check, drop constraint ledger_round_check, drop constraint ledger_check, drop constraint ledger_amount_micros_check,
  add constraint ledger_check check (is_entry(payment_id, kind, round, settled_for, amount_micros));
alter table ledger drop constraint ledger_pkey;
alter table ledger drop constraint ledger_payment_id_kind_round_key, add primary key (payment_id, kind, round);


-- As before, but a charge is told by its settlement alone. A call that is recorded twice changes nothing the second time.
create or replace function journal_record(p_payment_id uuid, p_attempt integer, p_class text, p_reason text, p_transaction text,
    p_has_chain boolean) returns text language plpgsql as $$
declare
    class text := p_class;
    stands text;
    earlier_sent boolean;
    newest boolean;
    in_doubt boolean;
    books boolean;
    after text;
begin
    perform 1 from payments where payment_id = p_payment_id for update;
    if exists (select 1 from settlements where payment_id = p_payment_id and attempt = p_attempt) then
        return payment_state(p_payment_id);
    end if;
    select exists (select 1 from settle_attempts a left join settle_results x using (payment_id, attempt)
        where a.payment_id = p_payment_id and a.attempt < p_attempt and coalesce(x.class, '') <> 'not_sent') into earlier_sent;
    select not p_has_chain and earlier_sent and valid_before + 60 < extract(epoch from now()) into in_doubt
        from payments where payment_id = p_payment_id;
    select p_attempt = max(attempt) into newest from settle_attempts where payment_id = p_payment_id;
    if class = 'denied' and p_attempt > 1 then class := 'unknown'; end if;
    -- its lease may have lapsed, and somebody may have acted on that: a late answer still counts when it says "charged"
    stands := (select to_state from payment_events where payment_id = p_payment_id order by seq desc limit 1);
    books := stands in ('settling', 'unknown') and (class = 'settled' or (class = 'nonce_used' and earlier_sent and not p_has_chain)
        or (in_doubt and class in ('unknown', 'denied')));
    if not (books and class = 'settled') then
        insert into settle_results (payment_id, attempt, class, reason, transaction)
            values (p_payment_id, p_attempt, class, p_reason, p_transaction) on conflict do nothing;
        if not found then return payment_state(p_payment_id); end if;
    end if;
    if books then
        perform move_payment(p_payment_id, 'settled', 'settle', null, coalesce(p_transaction, 'unproven: ' || class));
        perform book_charge(p_payment_id, p_attempt, case when class = 'settled' then p_transaction end, null);
        return payment_state(p_payment_id);
    end if;
    if stands = 'settling' and newest then
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

-- Groups are written by statements of the service's own (src/store/journal/quick.rs): through arrays of rows, each answer was copied
-- six times on its way.
drop function journal_claims(payments[], uuid, integer, integer);
drop function journal_decisions(decision[], integer);
drop function journal_records(settle_outcome[], boolean);
drop type decision;
drop type settle_outcome;
