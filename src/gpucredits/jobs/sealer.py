"""Seals entries in hash-chained blocks, so that a changed or missing row shows.

Blocks are kept for ever, so an org gets one for many entries, or when its last one is old.
"""

from __future__ import annotations

from gpucredits.core.bounds import MINUTE_US
from gpucredits.jobs.pace import Paced
from gpucredits.store.database.connection import Pool
from gpucredits.store.ledger.blocks import orgs_unsealed, seal


class Sealer(Paced):
    """Seals the orgs that are furthest behind; several may run."""

    def __init__(
        self,
        pool: Pool,
        *,
        rest_s: float = 5.0,
        orgs_max: int = 50,
        entries_min: int = 1_000,
        entries_max: int = 5_000,
        age_us: int = MINUTE_US,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.entries_min = entries_min
        self.age_us = age_us
        self.orgs_max = orgs_max
        self.entries_max = entries_max
        self.entries = 0
        self._queue: list[int] = []

    async def tick(self) -> bool:
        """Seal one block each of the next orgs; a round takes in every org that was behind.

        One whose block is full has more to seal, and has its turn again after the others.
        """
        async with self.pool.acquire() as connection:
            if not self._queue:
                self._queue = await orgs_unsealed(
                    connection, entries_min=self.entries_min, age_us=self.age_us, limit=100_000
                )
            chosen, self._queue = self._queue[: self.orgs_max], self._queue[self.orgs_max :]
            if chosen:
                sealed = await seal(connection, chosen, entries_max=self.entries_max)
                self.entries += sum(sealed.values())
                self._queue += [
                    org_id for org_id, count in sealed.items() if count == self.entries_max
                ]
        return bool(self._queue)
