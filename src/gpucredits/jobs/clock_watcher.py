"""Looks at the database's clock every second, also when nobody asks for anything."""

from __future__ import annotations

from gpucredits.jobs.pace import Paced
from gpucredits.store.book.cache.clock_check import ClockCheck, steady_us
from gpucredits.store.clock import read_clock_and_offset
from gpucredits.store.database.connection import Pool


class ClockWatcher(Paced):
    """Compares the database's clock with this machine's; notices when it is right again too."""

    def __init__(self, pool: Pool, clock_check: ClockCheck, *, rest_s: float = 1.0) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.clock_check = clock_check

    async def tick(self) -> bool:
        """Take one reading."""
        asked_at = steady_us()
        self.clock_check.hear(*await read_clock_and_offset(self.pool), asked_at)
        return False
