-- Prices. Those of the list hold for everybody; a discount holds for an account and all below it. One
-- numbering serves both, so that the number that a lease has is enough to find its version; the
-- directory gives the numbers out. Leases are pinned to versions, so a version never changes: a new
-- one follows it. A version that is an end has no price: from then on there is none. One without an
-- end of its own has the instant 2^62, which is never.

CREATE TABLE list_prices (
    price_id bigint CONSTRAINT list_prices_pkey PRIMARY KEY,
    gpu_type text NOT NULL,
    region text NOT NULL,
    credits_per_gpu_hour bigint NOT NULL
        CONSTRAINT list_prices_credits_per_gpu_hour CHECK (credits_per_gpu_hour >= 0),
    effective_from bigint NOT NULL,
    created_at bigint NOT NULL,
    effective_to bigint NOT NULL DEFAULT 4611686018427387904
        CONSTRAINT list_prices_effective_to CHECK (effective_to > effective_from),
    is_end boolean NOT NULL DEFAULT false
);
CREATE INDEX list_prices_lookup ON list_prices (gpu_type, region, effective_from);
CREATE INDEX list_prices_to_come ON list_prices (effective_from);
CREATE INDEX list_prices_to_end ON list_prices (effective_to)
    WHERE effective_to < 4611686018427387904;

CREATE TABLE discounts (
    org_id bigint NOT NULL,
    price_id bigint NOT NULL,
    gpu_type text NOT NULL,
    region text NOT NULL,
    credits_per_gpu_hour bigint NOT NULL
        CONSTRAINT discounts_credits_per_gpu_hour CHECK (credits_per_gpu_hour >= 0),
    effective_from bigint NOT NULL,
    account text NOT NULL COLLATE "C" CONSTRAINT discounts_account CHECK (account <> ''),
    created_at bigint NOT NULL,
    effective_to bigint NOT NULL DEFAULT 4611686018427387904
        CONSTRAINT discounts_effective_to CHECK (effective_to > effective_from),
    is_end boolean NOT NULL DEFAULT false,
    CONSTRAINT discounts_pkey PRIMARY KEY (org_id, price_id)
);
CREATE INDEX discounts_lookup ON discounts (org_id, gpu_type, region, account, effective_from);
CREATE INDEX discounts_to_come ON discounts (effective_from);
CREATE INDEX discounts_to_end ON discounts (effective_to) WHERE effective_to < 4611686018427387904;
