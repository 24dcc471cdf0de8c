-- Recovery: what died with its owner, money that nobody asked an answer for, and evidence that comes, goes and comes again.

-- What recovery looks for. The happy way of a sale (claimed, settling, settled) is in neither index and pays for none.
create index payment_events_unclear on payment_events (at_us, payment_id) where to_state in ('unknown', 'denied', 'landed');
create index payment_events_over on payment_events (at_us, payment_id)
    where to_state in ('refused', 'superseded', 'free', 'ready', 'abandoned');
create index chain_evidence_observed on chain_evidence (observed_at);
-- new leases are at the right edge: cheap to keep, and the lapsed ones are found without walking over every payment
create index claims_lease on claims (lease_until);
create index settle_attempts_lease on settle_attempts (lease_until);

-- A transfer that a reorganisation took may come back in the same block. It is new evidence then: it names, in of_evidence, the
-- loss after which it was seen.
alter table chain_evidence drop constraint chain_evidence_check2, drop constraint chain_evidence_payment_id_kind_tx_hash_log_index_block_key,
    add constraint chain_evidence_of_check check (kind <> 'lost' or of_evidence is not null);
create unique index chain_evidence_once on chain_evidence (payment_id, kind, tx_hash, log_index, block, coalesce(of_evidence, 0));
drop index chain_evidence_log;
create unique index chain_evidence_log on chain_evidence (tx_hash, log_index, block, coalesce(of_evidence, 0)) where kind = 'transfer';

-- Before evidence is kept. While a request works on the payment or waits for settle, evidence could make no move, and stored
-- once it would never be looked at again: it is left out, and found again when that has ended.
create function before_evidence() returns trigger language plpgsql as $$
declare
    stands text;
begin
    if new.kind in ('transfer', 'cancelled', 'unused_after_expiry') then
        stands := payment_state(new.payment_id);
        if stands in ('claimed', 'settling') then return null; end if;
    end if;
    if new.kind <> 'lost' and new.of_evidence is null then
        select max(evidence_id) into new.of_evidence from chain_evidence where payment_id = new.payment_id and kind = 'lost';
    end if;
    return new;
end $$;
create trigger before_evidence before insert on chain_evidence for each row execute function before_evidence();

-- True when the end of a payment's authorization is proven: the money moved, or it never will. The transfer counts while it is
-- not lost.
create function is_proven(id uuid) returns boolean language sql stable as
$$ select exists (select 1 from chain_evidence e where e.payment_id = id and (e.kind in ('cancelled', 'unused_after_expiry', 'missing')
    or (e.kind = 'transfer' and not exists (select 1 from chain_evidence l where l.kind = 'lost' and l.of_evidence = e.evidence_id)))) $$;

-- Writes what time did: a settle call whose owner is dead is unknown, a claim whose owner is dead is abandoned. SQL only, no
-- chain is asked. Returns how many moves were made; fewer than p_limit means that none is left. The cursor `lapse` holds the
-- moment (unix seconds) before which no lease is open any more.
create function journal_lapse(p_limit integer, p_lease_max_s integer) returns integer language plpgsql as $$
declare
    since timestamptz := coalesce((select to_timestamp(block) from cursors where name = 'lapse'), '-infinity');
    p record;
    last payment_events;
    stands text;
    done integer := 0;
    skipped integer := 0;
begin
    for p in select distinct x.payment_id from (
            select payment_id from claims where lease_until >= since
            union all select payment_id from settle_attempts where lease_until >= since) x
        join lateral (select to_state from payment_events v where v.payment_id = x.payment_id order by seq desc limit 1) v
            on v.to_state in ('claimed', 'settling')
        where payment_state(x.payment_id) <> v.to_state limit p_limit loop
        -- who holds the row works on it at this moment: not ours to end
        perform 1 from payments where payment_id = p.payment_id for no key update skip locked;
        if not found then
            skipped := skipped + 1;
            continue;
        end if;
        select * into last from payment_events where payment_id = p.payment_id order by seq desc limit 1;
        stands := payment_state(p.payment_id);
        if last.to_state not in ('claimed', 'settling') or stands = last.to_state then continue; end if;
        begin
            insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
                values (p.payment_id, last.seq + 1, last.rail, last.to_state, stands,
                    case last.to_state when 'claimed' then 'claim' else 'settle' end, last.epoch, 'its owner is dead', now_us(), last.hash);
            done := done + 1;
        exception when unique_violation then
            -- its owner was only slow, and wrote his end first
            null;
        end;
    end loop;
    if done + skipped = 0 then
        insert into cursors values ('lapse', extract(epoch from now())::bigint - p_lease_max_s)
            on conflict (name) do update set block = greatest(cursors.block, excluded.block);
    end if;
    return done;
end $$;

-- Landed money whose request died before an answer was stored: it goes back, and nothing is worked again. False when somebody
-- works on it, or when it was ended meanwhile.
create function journal_strand(p_payment_id uuid, p_due_s integer) returns boolean language plpgsql as $$
declare
    e chain_evidence;
begin
    perform 1 from payments where payment_id = p_payment_id for update;
    if payment_state(p_payment_id) <> 'landed' or claim_lives(p_payment_id) then return false; end if;
    select x.* into e from chain_evidence x join payments p using (payment_id)
        where x.payment_id = p_payment_id and x.kind = 'transfer' and x.to_addr = p.pay_to order by x.evidence_id desc limit 1;
    if e.evidence_id is null then return false; end if;
    perform owe_refund(gen_random_uuid(), e.evidence_id, e.value, 'failed', null, now() + make_interval(secs => p_due_s));
    return true;
end $$;

-- Money under an offer of ours whose request never came: the payment, the evidence, and the refund that is owed, in one commit.
-- False when the payment is known: then nothing was written.
create function journal_orphan(p_payment_id uuid, p_auth_key text, p_network text, p_asset text, p_payer text, p_pay_to text,
    p_nonce text, p_payload_sha256 text, p_request_fp text, p_product text, p_contract_id text, p_amount numeric, p_amount_micros bigint,
    p_valid_before bigint, p_block bigint, p_block_hash text, p_tx text, p_log_index integer, p_value numeric,
    p_due_s integer) returns boolean language plpgsql as $$
declare
    seen bigint;
begin
    insert into payments (payment_id, auth_key, rail, x402_version, network, asset, payer, pay_to, auth_nonce, payload_sha256,
            request_fp, product, contract_id, amount, amount_micros, valid_after, valid_before)
        values (p_payment_id, p_auth_key, 'client-broadcast', 2, p_network, p_asset, p_payer, p_pay_to, p_nonce, p_payload_sha256,
            p_request_fp, p_product, p_contract_id, p_amount, p_amount_micros, 0, p_valid_before)
        on conflict (auth_key) do nothing;
    if not found then return false; end if;
    insert into chain_evidence (payment_id, kind, block, block_hash, tx_hash, log_index, from_addr, to_addr, value)
        values (p_payment_id, 'transfer', p_block, p_block_hash, p_tx, p_log_index, p_payer, p_pay_to, p_value)
        returning evidence_id into seen;
    perform owe_refund(gen_random_uuid(), seen, p_value, 'orphan', null, now() + make_interval(secs => p_due_s));
    return true;
end $$;

-- Transfers to us under authorizations that are no offer of ours and belong to no payment: insert-only, shown to operators,
-- never sent back by themselves.
create table unidentified_transfers (
    network   text not null,
    tx_hash   text not null check (tx_hash ~ '^0x[0-9a-f]{64}$'),
    log_index integer not null check (log_index >= 0),
    from_addr text not null check (from_addr ~ '^0x[0-9a-f]{40}$'),
    value     numeric(78, 0) not null check (value >= 0),
    block     bigint not null check (block >= 0),
    at        timestamptz not null default now(),
    primary key (network, tx_hash, log_index)
);
