"""Whether our books hold after a run: every rule that ``gpucredits verify`` checks.

Owns: also the few sums that the textbook is asked for, so that both can be compared.
"""

from __future__ import annotations

import asyncpg

from gpucredits.service.verify import Verification
from gpucredits.service.verify import verify as verify_ledger
from gpucredits.store.pool import PoolOptions, open_pool

PATIENT = PoolOptions(statement_timeout_ms=3_600_000, command_timeout_s=3_605.0)

TOTALS = """
SELECT (SELECT sum(spent) FROM accounts)::bigint AS spent,
    (SELECT sum(reserved) FROM accounts)::bigint AS reserved,
    (SELECT sum(settled) FROM reservations)::bigint AS settled,
    (SELECT sum(held) FROM reservations)::bigint AS held,
    (SELECT sum(amount - remaining) FROM grants)::bigint AS granted,
    coalesce((SELECT sum(amount) FROM entries WHERE type = 6), 0)::bigint AS entered
"""


async def totals(url: str) -> dict[str, int]:
    """Sums that must be equal, pair by pair."""
    connection = await asyncpg.connect(url)
    try:
        row = await connection.fetchrow(TOTALS)
    finally:
        await connection.close()
    return dict(row) if row is not None else {}


def is_balanced(sums: dict[str, int]) -> bool:
    """Whether accounts, reservations, grants and entries say the same."""
    spent = {sums[name] for name in ("spent", "settled", "granted", "entered")}
    return len(spent) == 1 and sums["reserved"] == sums["held"]


async def verify(url: str) -> Verification:
    """Check every rule on the benched database."""
    pool = await open_pool(url, PATIENT)
    try:
        return await verify_ledger(pool)
    finally:
        await pool.close()
