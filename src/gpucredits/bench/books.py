"""Whether our books add up after a run, in a few sums; ``verify`` looks at everything else.

Owns: the sums that the textbook is also asked for, so that both can be compared.
"""

from __future__ import annotations

import asyncpg

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
