"""Finding orgs, accounts and leases by their names, for the edge's checks of scope.

Owns: the memory of orgs' numbers, which never change once given.
Must not: answer anything about money.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpucredits.store.access import acts
from gpucredits.store.billing import usage_events
from gpucredits.store.billing.usage_events import MeasuredLease
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session
from gpucredits.store.ledger.orgs import find_org, list_orgs

MEMORY_ORGS_MAX: Final = 100_000


class Directory:
    """Numbers and owners of things."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._numbers: dict[str, int] = {}

    async def org_number(self, path: str) -> int | None:
        """The number of an org, or None when there is no such org."""
        number = self._numbers.get(path)
        if number is not None:
            return number
        number = await find_org(self._pool, path)
        if number is not None:
            if len(self._numbers) >= MEMORY_ORGS_MAX:
                self._numbers.clear()
            self._numbers[path] = number
        return number

    async def orgs(self, *, start: str, limit: int) -> list[str]:
        """Paths of orgs in order, from one on."""
        return await list_orgs(self._pool, start=start, limit=limit)

    async def account_number(self, org_id: int, path: str) -> int | None:
        """The number of an account within its org, or None when there is no such account."""
        async with session(self._pool) as db:
            return await acts.find_account(db, org_id, path)

    async def leases(
        self, numbers: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], MeasuredLease]:
        """Account, job and node of reservations given as (org, number)."""
        if not numbers:
            return {}
        async with session(self._pool) as db:
            return await usage_events.leases(db, numbers)
