-- Documents fetched from the SEC, kept so that it is asked once per document and `freshness.max_age_hours` at most.
-- A cache and nothing more: no answer is proven from it, and emptying it costs one fetch per filer.
CREATE TABLE filing_cache (
    -- company_tickers, or companyfacts/CIK##########. The key spreads evenly enough to shard by.
    key        text        PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 200),
    -- The document, byte for byte as it was sent. Up to 64 MiB (limits.rs); jsonb would lose digits and the original.
    body       bytea       NOT NULL CHECK (octet_length(body) <= 67108864),
    -- When it was retrieved. Whether that is fresh enough is decided by the reader, not here.
    fetched_at timestamptz NOT NULL
);

-- Documents past their age are deleted by this column; they would never be served again.
CREATE INDEX filing_cache_fetched_at ON filing_cache (fetched_at);
