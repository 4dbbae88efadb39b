"""The textbook's admissions: a job is admitted and settled, each in one transaction.

Owns: two ways to say the same. ``Statements`` locks the payer's balance, then sends one statement
after another, as a careful team would write it; ``Calls`` sends one call of a PL/pgSQL function.
Both keep an idempotency key, check the accounts above the job, hold a window and write entries.
Must not: be slowed down on purpose. Rows are read in as few round trips as a transaction allows,
and the driver keeps every statement prepared.
"""

from __future__ import annotations

from importlib import resources
from secrets import token_hex
from typing import Protocol

import asyncpg
from asyncpg import Connection, Pool, Record

from gpucredits.core.money import MILLI_PER_GPU, cost
from gpucredits_bench.contestants.textbook import (
    PERIOD,
    READ_GRANTS,
    SCHEMA,
    WRITE_GRANT,
)
from gpucredits_bench.workload import GPU_TYPE, GRANT, PRICE_PER_GPU_HOUR, org_path, scopes

LOCK_PAYER = """
SELECT b.available, p.rate_per_hour
FROM balances b, prices p
WHERE b.account_id = $1 AND b.period = $3 AND p.gpu_type = $4
    AND (SELECT count(*) FROM accounts a WHERE a.account_id = ANY ($2) AND a.status = 'active')
        = cardinality($2)
FOR UPDATE OF b"""
ADD_LEASE = """
INSERT INTO reservations VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 'active',
    now() + $8 * interval '1 millisecond', $9)
ON CONFLICT (idempotency_key) DO NOTHING RETURNING reservation_id"""
FIND_LEASE = "SELECT reservation_id, amount_held FROM reservations WHERE idempotency_key = $1"
ADD_HOLD = """
INSERT INTO ledger_entries (debit_account_id, credit_account_id, amount, type, job_id,
    reservation_id, idempotency_key)
VALUES ($1 || ':available', $1 || ':reserved', $2, 'reserve', $3, $4, $5)"""
HOLD = """
UPDATE balances SET available = available - $3, reserved = reserved + $3, version = version + 1
WHERE account_id = $1 AND period = $2"""
LOCK_LEASE = """
SELECT r.account_id, r.job_id, r.rate_per_hour, r.amount_held, r.amount_settled, r.state
FROM reservations r JOIN balances b ON b.account_id = r.account_id AND b.period = $2
WHERE r.reservation_id = $1 FOR UPDATE"""
ADD_SETTLEMENT = """
INSERT INTO ledger_entries (debit_account_id, credit_account_id, amount, type, job_id,
    reservation_id, idempotency_key)
VALUES ($1 || ':reserved', $1 || ':spent', $2, 'settle', $4, $5, $6 || ':settle'),
    ($1 || ':reserved', $1 || ':available', $3, 'release', $4, $5, $6 || ':release')"""
RELEASE = """
UPDATE balances SET available = available + $3 - $4, reserved = reserved - $3, spent = spent + $4,
    version = version + 1
WHERE account_id = $1 AND period = $2"""
END_LEASE = """
UPDATE reservations SET amount_held = 0, amount_settled = $2, state = 'settled'
WHERE reservation_id = $1"""
CALL_RESERVE = "SELECT * FROM reserve($1, $2, $3, $4, $5, $6, $7, $8, $9)"
CALL_SETTLE = "SELECT settle($1, $2, $3, $4)"
TOTALS = """
SELECT (SELECT sum(spent) FROM balances)::bigint AS spent,
    (SELECT sum(reserved) FROM balances)::bigint AS reserved,
    (SELECT coalesce(sum(amount_settled), 0) FROM reservations)::bigint AS settled,
    (SELECT coalesce(sum(amount_held), 0) FROM reservations)::bigint AS held,
    (SELECT sum(amount - remaining) FROM grants)::bigint AS granted,
    (SELECT coalesce(sum(amount), 0) FROM ledger_entries WHERE type = 'settle')::bigint AS entered
"""


class RefusedAdmissionError(Exception):
    """No such payer, an account that is not active, or too few credits."""


class Admissions(Protocol):
    """What the bare server asks for: a lease and its hold, and what a settlement charged."""

    async def reserve(
        self, account: str, job_id: str, gpu_type: str, gpus: int, window_ms: int, key: str
    ) -> tuple[str, int]:
        """Admit a job."""
        ...

    async def settle(self, reservation_id: str, used_ms: int, key: str) -> int:
        """End a job."""
        ...


def chain_of(account: str) -> list[str]:
    """An account and those above it, the payer first."""
    parts = account.split("/")
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


class Statements:
    """One transaction of several statements."""

    def __init__(self, pool: Pool[Record]) -> None:
        self._pool = pool

    async def reserve(
        self, account: str, job_id: str, gpu_type: str, gpus: int, window_ms: int, key: str
    ) -> tuple[str, int]:
        """Lock the payer, write the lease, its entry and the balance."""
        chain = chain_of(account)
        payer = chain[0]
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_PAYER, payer, chain, PERIOD, gpu_type)
            if row is None:
                raise RefusedAdmissionError
            rate = row["rate_per_hour"] * gpus
            hold = cost(rate, window_ms)
            if row["available"] < hold:
                raise RefusedAdmissionError
            new_id = f"rsv_{token_hex(10)}"
            lease = (new_id, payer, job_id, gpu_type, gpus, rate, hold, window_ms, key)
            if await connection.fetchval(ADD_LEASE, *lease) is None:
                known = await connection.fetchrow(FIND_LEASE, key)
                return known["reservation_id"], known["amount_held"]
            await connection.execute(ADD_HOLD, payer, hold, job_id, new_id, key)
            await connection.execute(HOLD, payer, PERIOD, hold)
        return new_id, hold

    async def settle(self, reservation_id: str, used_ms: int, key: str) -> int:
        """Lock the lease and its payer, charge the grants, write entries, balance and lease."""
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_LEASE, reservation_id, PERIOD)
            if row is None:
                raise RefusedAdmissionError
            if row["state"] != "active":
                return int(row["amount_settled"])
            payer, held = row["account_id"], row["amount_held"]
            due = min(cost(row["rate_per_hour"], used_ms), held)
            await charge_grants(connection, payer, due)
            values = (payer, due, held - due, row["job_id"], reservation_id, key)
            await connection.execute(ADD_SETTLEMENT, *values)
            await connection.execute(RELEASE, payer, PERIOD, held, due)
            await connection.execute(END_LEASE, reservation_id, due)
        return int(due)


async def charge_grants(connection: Connection[Record], payer: str, due: int) -> None:
    """Let the grants pay in their order; the balance's lock covers them."""
    for lot in await connection.fetch(READ_GRANTS, payer):
        part = min(lot["remaining"], due)
        await connection.execute(WRITE_GRANT, lot["grant_id"], part)
        due -= part
        if not due:
            return


class Calls:
    """One call of a function, which is its own transaction."""

    def __init__(self, pool: Pool[Record]) -> None:
        self._pool = pool

    async def reserve(
        self, account: str, job_id: str, gpu_type: str, gpus: int, window_ms: int, key: str
    ) -> tuple[str, int]:
        """Admit a job."""
        chain = chain_of(account)
        new_id = f"rsv_{token_hex(10)}"
        asked = (chain[0], chain, PERIOD, new_id, job_id, gpu_type, gpus, window_ms, key)
        async with self._pool.acquire() as connection:
            row = await connection.fetchrow(CALL_RESERVE, *asked)
        if row is None:
            raise RefusedAdmissionError
        return row["reservation_id"], row["held"]

    async def settle(self, reservation_id: str, used_ms: int, key: str) -> int:
        """End a job."""
        async with self._pool.acquire() as connection:
            due = await connection.fetchval(CALL_SETTLE, reservation_id, PERIOD, used_ms, key)
        if due is None:
            raise RefusedAdmissionError
        return int(due)


async def create(connection: Connection[Record], orgs: int) -> None:
    """Make the tables, a price, and orgs with a project and a person each; the org pays."""
    await connection.execute(SCHEMA)
    script = resources.files(__package__).joinpath("admission_textbook.sql").read_text()
    await connection.execute(script)
    await connection.execute(
        "INSERT INTO prices VALUES ($1, $2)", GPU_TYPE, MILLI_PER_GPU * PRICE_PER_GPU_HOUR
    )
    chains = [(path, parent) for org in range(orgs) for path, parent in with_parents(org)]
    await connection.executemany(
        "INSERT INTO accounts (account_id, scope_type, scope_ref, parent_account_id, status)"
        " VALUES ($1, 'scope', $1, $2, 'active')",
        chains,
    )
    for table in (
        f"balances SELECT path, '{PERIOD}', $2, 0, 0, 0",
        "grants SELECT 'grant-' || path, path, $2, $2, 100, now(), now() + interval '30 days'",
    ):
        await connection.execute(
            f"INSERT INTO {table} FROM unnest($1::text[]) AS x(path)",  # of ours
            [org_path(org) for org in range(orgs)],
            GRANT,
        )
    await connection.execute("VACUUM ANALYZE")


def with_parents(org: int) -> list[tuple[str, str | None]]:
    """The accounts of an org, each with the one above it."""
    chain = scopes(org)
    return list(zip(chain, (None, *chain), strict=False))


async def is_balanced(url: str) -> bool:
    """Whether balances, leases, grants and entries say the same."""
    connection = await asyncpg.connect(url)
    try:
        sums = await connection.fetchrow(TOTALS)
    finally:
        await connection.close()
    spent = {sums[name] for name in ("spent", "settled", "granted", "entered")}
    return len(spent) == 1 and sums["reserved"] == sums["held"]
