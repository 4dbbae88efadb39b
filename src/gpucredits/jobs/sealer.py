"""Seals entries in hash-chained blocks, so that a changed or missing row shows."""

from __future__ import annotations

from gpucredits.jobs.pace import Paced
from gpucredits.store.blocks import orgs_unsealed, seal
from gpucredits.store.connection import Pool


class Sealer(Paced):
    """Seals the orgs that are furthest behind; several may run."""

    def __init__(
        self, pool: Pool, *, rest_s: float = 5.0, orgs_max: int = 50, entries_max: int = 5_000
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.orgs_max = orgs_max
        self.entries_max = entries_max
        self.entries = 0
        self._queue: list[int] = []

    async def tick(self) -> bool:
        """Seal one block each of the next orgs; a round takes in every org that was behind."""
        async with self.pool.acquire() as connection:
            if not self._queue:
                self._queue = await orgs_unsealed(connection, limit=100_000)
            chosen, self._queue = self._queue[: self.orgs_max], self._queue[self.orgs_max :]
            if chosen:
                self.entries += await seal(connection, chosen, entries_max=self.entries_max)
        return bool(self._queue)
