"""Looks at the database's clock every second, also when nobody asks for anything.

Now and then it counts the orgs whose clock is ahead: a time that nobody noticed was wrong.
"""

from __future__ import annotations

import logging
from typing import Final

from gpucredits.core.bounds import CLOCK_JUMP_US
from gpucredits.jobs.pace import Paced
from gpucredits.store.clock import read_clock_and_offset
from gpucredits.store.clock_repairs import count_ahead
from gpucredits.store.connection import Pool
from gpucredits.store.steadiness import Steadiness, steady_us

logger = logging.getLogger(__name__)

COUNTED_EVERY: Final = 10  # ticks


class ClockWatcher(Paced):
    """Compares the database's clock with this machine's; notices when it is right again too."""

    def __init__(self, pool: Pool, steadiness: Steadiness, *, rest_s: float = 1.0) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.steadiness = steadiness
        self._ticks = 0

    async def tick(self) -> bool:
        """Take one reading."""
        asked_at = steady_us()
        self.steadiness.hear(*await read_clock_and_offset(self.pool), asked_at)
        if self._ticks % COUNTED_EVERY == 0 and not self.steadiness.is_off():
            self._tell(await count_ahead(self.pool, tolerance_us=CLOCK_JUMP_US))
        self._ticks += 1
        return False

    def _tell(self, orgs: int) -> None:
        if orgs and not self.steadiness.orgs_ahead:
            fields = {"orgs": orgs, "do": "gpucredits clock status"}
            logger.error("clocks of orgs are ahead of the database's", extra={"fields": fields})
        self.steadiness.orgs_ahead = orgs
