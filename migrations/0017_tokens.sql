-- What models read and wrote for a run, beside what that cost. Null: no model was asked, or none said.
alter table runs add column input_tokens bigint, add column output_tokens bigint,
    add constraint runs_tokens check ((input_tokens is null) = (output_tokens is null) and coalesce(input_tokens, 0) >= 0 and coalesce(output_tokens, 0) >= 0);

create or replace view margins as
select r.run_id, r.started_at, r.finished_at, r.request_id, r.order_id, o.order_no, r.product, r.subject, r.mode, r.payer,
       r.payer_class, r.synthesizer, r.gate_verdict, r.attempts, r.figures_checked, r.refusal_code,
       p.network, p.asset, p.amount as price_atomic,
       coalesce(payment_state(p.payment_id), 'none') as settle_state, s.transaction, r.call_chain_depth,
       coalesce((select sum(case kind when 'revenue' then amount_micros when 'reversal' then -amount_micros end) from ledger l
           where l.payment_id = p.payment_id), 0)::bigint as revenue_micros,
       coalesce((select sum(amount_micros) from ledger l where l.payment_id = p.payment_id and l.kind = 'refund'), 0)::bigint
           as refund_micros,
       r.data_cost_micros, r.inference_cost_micros, r.input_tokens, r.output_tokens
from runs r
left join orders o on o.order_id = r.order_id
left join payments p on p.payment_id = coalesce(payer_of(r.order_id), r.payment_id)
left join settlements s on s.payment_id = p.payment_id;
