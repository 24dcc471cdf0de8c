-- The chain that the simulated facilitator stands in for: token balances, and the transfers that were executed.
-- No real money is in here. The tables exist so that balances and used nonces outlive a restart, and so that a payment
-- that was settled once is refused as a chain would refuse it.

-- One row per holder that ever paid or was paid. The check is the rule of every token: nobody spends what is not there.
CREATE TABLE sim_balances (
    network text NOT NULL,                              -- CAIP-2
    asset   text NOT NULL,                              -- token address, lower case
    holder  text NOT NULL,                              -- address, lower case
    amount  numeric(78, 0) NOT NULL CHECK (amount >= 0), -- atomic units
    PRIMARY KEY (network, asset, holder)
);

-- One row per executed EIP-3009 authorization. Nonces are unique per token and authorizer, not globally (EIP-3009).
CREATE TABLE sim_transfers (
    network    text NOT NULL,
    asset      text NOT NULL,
    authorizer text NOT NULL,                           -- who paid, lower case
    nonce      bytea NOT NULL CHECK (octet_length(nonce) = 32),
    payee      text NOT NULL,                           -- who was paid, lower case
    value      numeric(78, 0) NOT NULL CHECK (value >= 0),
    tx_hash    bytea NOT NULL CHECK (octet_length(tx_hash) = 32),
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (network, asset, authorizer, nonce),
    UNIQUE (network, tx_hash)
);
