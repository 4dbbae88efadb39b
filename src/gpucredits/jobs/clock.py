"""Checks the database's clock and gives a sign of life, both every second.

Several servers write the same sign of life: an outage is a time without a sign of any server. Each
sign also brings news of outages and of maintenance that another server has recorded.
"""

from __future__ import annotations

import logging
from typing import Final

from gpucredits.core.bounds import CLOCK_JUMP_US
from gpucredits.jobs.pace import Paced
from gpucredits.store.book.database_clock import ClockCheck, ServerLife, steady_us
from gpucredits.store.clock import read_clock_and_offset
from gpucredits.store.database.connection import Pool
from gpucredits.store.ledger.clock_repairs import count_ahead

logger = logging.getLogger(__name__)

COUNTED_EVERY: Final = 10  # ticks


class ClockWatcher(Paced):
    """Compares the database's clock with this machine's, also while it is known to be wrong.

    Now and then it counts the orgs whose clock is ahead because of an unnoticed jump.
    """

    def __init__(self, pool: Pool, clock_check: ClockCheck, *, rest_s: float = 1.0) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.clock_check = clock_check
        self._ticks = 0

    async def tick(self) -> bool:
        """Take one reading."""
        asked_at = steady_us()
        self.clock_check.hear(*await read_clock_and_offset(self.pool), asked_at)
        if self._ticks % COUNTED_EVERY == 0 and not self.clock_check.is_off():
            self._tell(await count_ahead(self.pool, tolerance_us=CLOCK_JUMP_US))
        self._ticks += 1
        return False

    def _tell(self, orgs: int) -> None:
        if orgs and not self.clock_check.orgs_ahead:
            fields = {"orgs": orgs, "do": "gpucredits clock status"}
            logger.error("clocks of orgs are ahead of the database's", extra={"fields": fields})
        self.clock_check.orgs_ahead = orgs


class SignOfLife(Paced):
    """Gives a sign of life in each tick. The first sign comes before any decision."""

    def __init__(self, pool: Pool, life: ServerLife, *, rest_s: float = 1.0) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.life = life
        life.is_watched = True

    async def tick(self) -> bool:
        """Give one sign."""
        await self.life.sign(self.pool)
        return False
