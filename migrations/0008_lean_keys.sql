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
