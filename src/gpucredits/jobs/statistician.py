"""Keeps plans good while tables grow fast, which the database does too slowly by itself."""

from __future__ import annotations

from gpucredits.jobs.pace import Paced
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.statistics import analyze_grown


class Statistician(Paced):
    """Has tables looked at that have grown fivefold; several may run."""

    def __init__(
        self, pool: Pool, *, rest_s: float = 5.0, times: int = 5, rows_min: int = 100
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.times = times
        self.rows_min = rows_min

    async def tick(self) -> bool:
        """Look at tables that have grown; there is nothing to go on with at once."""
        async with self.pool.acquire() as connection:
            await analyze_grown(connection, times=self.times, rows_min=self.rows_min)
        return False
