"""Finding orgs, accounts and leases by their names, for the edge's checks of scope.

Owns: the memory of the account and node of leases, which never change. The ledger knows the numbers
of orgs.
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
from gpucredits.store.ledger.orgs import list_orgs

MEMORY_LEASES_MAX: Final = 100_000


class Directory:
    """Numbers of accounts and owners of leases."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._leases: dict[tuple[int, int], MeasuredLease] = {}

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

    async def remembered_leases(
        self, numbers: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], MeasuredLease]:
        """As ``leases``, from memory where it can be: a node reports the same leases."""
        memory = self._leases
        if missing := [number for number in numbers if number not in memory]:
            if len(memory) + len(missing) > MEMORY_LEASES_MAX:
                memory.clear()
            memory |= await self.leases(missing)
        return {number: memory[number] for number in numbers if number in memory}
