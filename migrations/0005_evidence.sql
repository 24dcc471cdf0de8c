-- What the chain said about payments, and the money that goes back.

-- One row per thing seen, insert-only.
--   transfer              AuthorizationUsed with the Transfer of the same transaction
--   cancelled             AuthorizationCanceled: never charged
--   unused_after_expiry   unused in a block later than the window and its margin: never charged
--   lost                  the transfer that `of` names is on the chain no longer
--   missing               called settled, its window over, and no transfer: the facilitator lied
create table chain_evidence (
    evidence_id bigint generated always as identity primary key,
    payment_id  uuid not null references payments,
    kind        text not null check (kind in ('transfer', 'cancelled', 'unused_after_expiry', 'lost', 'missing')),
    block       bigint not null check (block >= 0),
    block_hash  text check (block_hash ~ '^0x[0-9a-f]{64}$'),
    tx_hash     text not null default '' check (tx_hash = '' or tx_hash ~ '^0x[0-9a-f]{64}$'),
    log_index   integer not null default -1,
    from_addr   text check (from_addr ~ '^0x[0-9a-f]{40}$'),
    to_addr     text check (to_addr ~ '^0x[0-9a-f]{40}$'),
    value       numeric(78, 0) check (value >= 0),
    of_evidence bigint references chain_evidence,
    observed_at timestamptz not null default now(),
    check ((kind = 'transfer') = (value is not null and from_addr is not null and to_addr is not null)),
    check (kind <> 'transfer' or (tx_hash <> '' and log_index >= 0 and block_hash is not null)),
    check ((kind = 'lost') = (of_evidence is not null)),
    unique (payment_id, kind, tx_hash, log_index, block),
    unique (evidence_id, payment_id, kind, from_addr, value)
);
-- a transfer is the proof of one payment, whatever else its transaction moved
create unique index chain_evidence_log on chain_evidence (tx_hash, log_index, block) where kind = 'transfer';

-- A charge may rest on what the chain said, without any settle call of ours.
alter table settlements alter column attempt drop not null, add column evidence_id bigint references chain_evidence,
    add check (attempt is not null or evidence_id is not null);

alter table ledger add column round integer not null default 1 check (round > 0),
    drop constraint ledger_payment_id_kind_key, add constraint ledger_payment_id_kind_round_key unique (payment_id, kind, round);

-- Money that came in and is owed back. The keys tie each one to the transfer that it returns: same payer, never more than came.
create table refunds (
    refund_id     uuid primary key,
    -- one a payment: the token refuses a second use of the nonce, and this key a second row
    payment_id    uuid not null unique references payments,
    evidence_id   bigint not null,
    evidence_kind text not null default 'transfer' check (evidence_kind = 'transfer'),
    network       text not null,
    asset         text not null,
    -- who paid, as the Transfer log names him
    to_addr       text not null,
    transferred   numeric(78, 0) not null,
    amount        numeric(78, 0) not null check (amount > 0 and amount <= transferred),
    amount_micros bigint not null check (amount_micros >= 0),
    -- refused, failed, orphan, late (nobody owed an answer for it), overpaid
    reason        text not null check (reason in ('refused', 'failed', 'orphan', 'late', 'overpaid')),
    refusal_code  text,
    -- sha256("jim/refund/1" || auth_key): the same in every life of this database
    refund_nonce  text not null unique check (refund_nonce ~ '^0x[0-9a-f]{64}$'),
    due_by        timestamptz not null,
    created_at    timestamptz not null default now(),
    foreign key (evidence_id, payment_id, evidence_kind, to_addr, transferred)
        references chain_evidence (evidence_id, payment_id, kind, from_addr, value)
);

-- What was done about a refund, insert-only: its state is its last step.
--   signed     the authorization is stored, not sent
--   broadcast  the node took the transaction; a hash proves nothing yet
--   failed     the try before it did not work; when to try again
--   parked     too many tries: an operator should look; it is tried again daily
--   confirmed  the token's log says that the money went back
create table refund_steps (
    refund_id    uuid not null references refunds,
    step         integer not null check (step > 0),
    kind         text not null check (kind in ('signed', 'broadcast', 'failed', 'parked', 'confirmed')),
    treasury     text not null check (treasury ~ '^0x[0-9a-f]{40}$'),
    valid_before bigint,
    signature    bytea check (octet_length(signature) = 65),
    tx_hash      text check (tx_hash ~ '^0x[0-9a-f]{64}$'),
    detail       text not null default '',
    next_at      timestamptz not null default now(),
    at           timestamptz not null default now(),
    primary key (refund_id, step),
    check ((kind = 'signed') = (signature is not null)),
    check (kind <> 'signed' or valid_before is not null),
    check (kind not in ('broadcast', 'confirmed') or tx_hash is not null)
);
create unique index refund_steps_confirmed on refund_steps (refund_id) where kind = 'confirmed';

-- Who works on a refund now; updated in place, as a heart is.
create table refund_leases (
    refund_id   uuid primary key references refunds,
    owner       uuid not null references instances,
    lease_until timestamptz not null
);

-- Up to which block a sweep has looked; updated in place.
create table cursors (
    name  text primary key,
    block bigint not null check (block >= 0)
);

-- The state of a refund, and what is shown of it: sent only when the chain has it.
create view refund_states as
select r.*, coalesce(s.kind, 'owed') as state,
       case when s.kind = 'confirmed' then 'sent' else 'pending' end as status,
       s.tx_hash, s.step, s.next_at, (select count(*) from refund_steps f where f.refund_id = r.refund_id and f.kind = 'failed') as failures
from refunds r
left join lateral (select * from refund_steps x where x.refund_id = r.refund_id order by step desc limit 1) s on true;
