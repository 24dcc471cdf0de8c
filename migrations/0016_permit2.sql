-- The rails by Permit2: `exact-permit2` and `upto`. They have the moves of `exact`, since on all three our settle call moves the money.

do $$
declare
    list text := (select quote_literal(array_agg(m order by m)) from (
        select unnest(moves()) as m
        union select regexp_replace(m, '^exact ', r || ' ') from unnest(moves()) m, unnest(array['exact-permit2', 'upto']) r
            where m like 'exact %') x);
begin
    execute format('create or replace function moves() returns text[] language sql immutable as %L', 'select ' || list || '::text[]');
    execute format('create or replace function is_move(rail text, from_state text, to_state text) returns boolean language plpgsql immutable as %L',
        'begin return (rail || '' '' || from_state || '' '' || to_state) = any (' || list || '::text[]); end');
end $$;

-- A buyer who has not let Permit2 move his tokens is answered 412, as the scheme says, and the answer is kept like any failed verify.
create or replace function is_answer(kind text, status smallint, refusal_code text, body_sha256 text) returns boolean language plpgsql immutable as $$
begin
    return length(body_sha256) = 64 and case kind when 'answer' then status = 200 and refusal_code is null
        when 'refusal' then refusal_code is not null when 'verify_failed' then status in (402, 412) and refusal_code is null else false end;
end $$;
