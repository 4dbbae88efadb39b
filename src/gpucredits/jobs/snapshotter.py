"""Stores sums of accounts now and then, so that balances of the past need few entries."""

from __future__ import annotations

from typing import Final

from gpucredits.jobs.pace import Paced
from gpucredits.store.database.connection import Pool
from gpucredits.store.ledger.history import orgs_behind, take_snapshots

MEASURES_MAX: Final = 10  # between two snapshots of an account, however many others move


class Snapshotter(Paced):
    """Takes snapshots of orgs that have many entries since their last; several may run."""

    def __init__(
        self,
        pool: Pool,
        *,
        rest_s: float = 10.0,
        entries_between: int = 10_000,
        entries_each: int = 100,
        orgs_max: int = 20,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.entries_between = entries_between
        self.entries_each = entries_each
        self.orgs_max = orgs_max

    async def tick(self) -> bool:
        """Take the snapshots of a bounded number of orgs; go on while there were that many."""
        async with self.pool.acquire() as connection:
            org_ids = await orgs_behind(
                connection, entries=self.entries_between, limit=self.orgs_max
            )
            for org_id in org_ids:
                await take_snapshots(
                    connection,
                    org_id,
                    entries_each=self.entries_each,
                    entries_max=MEASURES_MAX * self.entries_between,
                )
        return len(org_ids) == self.orgs_max
