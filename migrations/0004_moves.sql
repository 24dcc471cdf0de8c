-- The moves of a payment as rows, who holds a purchase, and whose answer a payment was given.
--
-- A payment's state is where its last event went (payment_state). Events are insert-only and linked by hash, so the history of
-- each payment is a chain that a stranger can walk; the keys say that it has one line, that it has no gap, that each move
-- starts where the one before ended, and that no move is made that is not in allowed_moves.

-- The same table as MOVES in src/machine.rs, compared when the service starts. 'none' is before the first event.
create table allowed_moves (
    rail       text not null,
    from_state text not null,
    to_state   text not null,
    primary key (rail, from_state, to_state)
);
insert into allowed_moves values
    ('exact', 'none', 'claimed'),
    ('exact', 'none', 'free'),
    ('exact', 'claimed', 'abandoned'),
    ('exact', 'abandoned', 'claimed'),
    ('exact', 'abandoned', 'free'),
    ('exact', 'claimed', 'refused'),
    ('exact', 'claimed', 'ready'),
    ('exact', 'claimed', 'settling'),
    ('exact', 'ready', 'settling'),
    ('exact', 'ready', 'superseded'),
    ('exact', 'settling', 'settled'),
    ('exact', 'settling', 'unknown'),
    ('exact', 'settling', 'denied'),
    ('exact', 'settling', 'ready'),
    ('exact', 'unknown', 'settling'),
    ('exact', 'unknown', 'settled'),
    ('exact', 'unknown', 'dead'),
    ('exact', 'denied', 'dead'),
    ('exact', 'ready', 'dead'),
    ('exact', 'abandoned', 'dead'),
    ('exact', 'ready', 'settled'),
    ('exact', 'denied', 'refund_owed'),
    ('exact', 'abandoned', 'refund_owed'),
    ('exact', 'refused', 'refund_owed'),
    ('exact', 'superseded', 'refund_owed'),
    ('exact', 'free', 'refund_owed'),
    ('exact', 'unknown', 'refund_owed'),
    ('exact', 'ready', 'refund_owed'),
    ('exact', 'settled', 'unknown'),
    ('exact', 'refund_owed', 'refunded'),
    ('client-broadcast', 'none', 'landed'),
    ('client-broadcast', 'none', 'refund_owed'),
    ('client-broadcast', 'landed', 'settled'),
    ('client-broadcast', 'landed', 'refund_owed'),
    ('client-broadcast', 'refund_owed', 'refunded');

create table payment_events (
    payment_id uuid not null references payments,
    seq        integer not null check (seq > 0),
    rail       text not null,
    from_state text not null,
    to_state   text not null,
    -- which part of the service made the move
    actor      text not null check (actor in ('claim', 'decide', 'settle', 'evidence', 'refund', 'upgrade')),
    -- of the claim that it was made under
    epoch      integer not null,
    -- what it rests on: a transaction, a reason, another payment
    evidence   text not null default '',
    -- microseconds since 1970: an integer has one spelling, which a hash needs
    at_us      bigint not null,
    prev_seq   integer generated always as (nullif(seq - 1, 0)) stored,
    prev_hash  bytea not null check (octet_length(prev_hash) = 32),
    -- SHA-256 over the hash before it and over the members, with | between them; a backslash in evidence stands for itself
    hash       bytea not null generated always as (sha256(prev_hash || decode(replace(
        payment_id::text || '|' || seq || '|' || rail || '|' || from_state || '|' || to_state || '|' || actor || '|' || epoch || '|'
        || at_us || '|' || evidence, '\', '\\'), 'escape'))) stored,
    primary key (payment_id, seq),
    unique (payment_id, seq, to_state, hash),
    foreign key (rail, from_state, to_state) references allowed_moves,
    foreign key (payment_id, prev_seq, from_state, prev_hash) references payment_events (payment_id, seq, to_state, hash),
    check (seq > 1 or (from_state = 'none' and prev_hash = decode(repeat('00', 32), 'hex')))
);

-- Who holds a purchase (same payer, same request): the newest generation. Two that take it at one moment meet at the key.
create table purchases (
    payer      text not null,
    request_fp text not null,
    generation integer not null check (generation > 0),
    payment_id uuid not null references payments,
    primary key (payer, request_fp, generation)
);

-- A payment that was given the answer of another one of the same purchase.
--   free       the other one is settled: this one is never charged
--   supersede  the other one was never sent to settle: this one pays for its answer and its order
create table successions (
    payment_id uuid primary key references payments,
    kind       text not null check (kind in ('free', 'supersede')),
    of_payment uuid not null references payments,
    order_id   text not null references orders,
    at         timestamptz not null default now(),
    check (payment_id <> of_payment)
);
create index successions_by_order on successions (order_id);
create index successions_of on successions (of_payment);

alter table payments drop constraint payments_rail_check, add check (rail in ('exact', 'client-broadcast'));
-- which facilitator judged the payment and settles it: never another one for the same authorization
alter table answers add column facilitator text not null default '';
-- the body of the call: where its outcome stays unknown, a later request of the same purchase presents it again
alter table settle_attempts add column request text;
alter table settle_attempts alter column request set compression lz4;

create function now_us() returns bigint language sql stable as $$ select (extract(epoch from now()) * 1000000)::bigint $$;

-- Payments from before there were events get the shortest history that leads to where they stand.
create function upgrade_events() returns void language plpgsql as $$
declare
    p record;
    steps text[];
    i integer;
    last bytea;
begin
    for p in select payment_id, rail, (extract(epoch from created_at) * 1000000)::bigint as at_us, payment_state(payment_id) as state,
                    exists (select 1 from settle_attempts a where a.payment_id = payments.payment_id) as tried,
                    coalesce((select max(c.epoch) from claims c where c.payment_id = payments.payment_id), 1) as epoch
             from payments loop
        steps := case
            when p.state in ('claimed', 'abandoned') then array['none', 'claimed', 'abandoned']
            when p.state = 'ready' and not p.tried then array['none', 'claimed', 'ready']
            when p.state = 'settling' then array['none', 'claimed', 'settling', 'unknown']
            when p.state in ('settled', 'unknown', 'denied', 'ready') then array['none', 'claimed', 'settling', p.state]
            else array['none', 'claimed', p.state] end;
        last := decode(repeat('00', 32), 'hex');
        for i in 1 .. array_length(steps, 1) - 1 loop
            insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, at_us, prev_hash)
                values (p.payment_id, i, p.rail, steps[i], steps[i + 1], 'upgrade', p.epoch, p.at_us, last) returning hash into last;
        end loop;
    end loop;
    insert into purchases select payer, request_fp, row_number() over (partition by payer, request_fp order by created_at, payment_id),
        payment_id from payments;
end $$;
select upgrade_events();
drop function upgrade_events();

-- True while the owner of the newest claim works under it.
create function claim_lives(id uuid) returns boolean language sql stable as
$$ select coalesce((select lease_until > now() and instance_lives(owner) from claims where payment_id = id
    order by epoch desc limit 1), false) $$;

-- True while the owner of the newest settle attempt may still be waiting for its answer.
create function attempt_lives(id uuid) returns boolean language sql stable as
$$ select coalesce((select lease_until > now() and instance_lives(owner) from settle_attempts where payment_id = id
    order by attempt desc limit 1), false) $$;

-- The state of one payment: its last event, and what time has done to it since.
create or replace function payment_state(id uuid) returns text language plpgsql stable as $$
declare
    last text;
begin
    select to_state into last from payment_events where payment_id = id order by seq desc limit 1;
    if last = 'claimed' and not claim_lives(id) then return 'abandoned'; end if;
    if last = 'settling' and not attempt_lives(id) then return 'unknown'; end if;
    return last;
end $$;

-- Makes a move from where the payment stands; what time did to it is written first. Fails when the move is not allowed.
create function move_payment(id uuid, p_to text, p_actor text, p_epoch integer, p_evidence text default '')
returns void language plpgsql as $$
declare
    last payment_events;
    stands text;
    kind text;
begin
    select * into last from payment_events where payment_id = id order by seq desc limit 1;
    stands := coalesce(payment_state(id), 'none');
    select rail into kind from payments where payment_id = id;
    if last.seq is not null and last.to_state <> stands then
        insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
            values (id, last.seq + 1, kind, last.to_state, stands, p_actor, last.epoch, 'its owner is dead', now_us(), last.hash)
            returning * into last;
    end if;
    insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, evidence, at_us, prev_hash)
        values (id, coalesce(last.seq, 0) + 1, kind, stands, p_to, p_actor, coalesce(p_epoch, last.epoch, 0),
                p_evidence, now_us(), coalesce(last.hash, decode(repeat('00', 32), 'hex')));
end $$;
