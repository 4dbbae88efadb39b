"""Whether the database's clock runs steadily, as this machine's own steady clock sees it.

Owns: the comparison of the two, and the error for a database whose time has jumped. A wrong time
has lasting effects: leases lapse, grants end, budgets issue. So nothing is decided by it.
Must not: say what time it is (the database does), or correct a clock (the operator does).

The steady clock counts while the machine sleeps, and nobody sets it. Each reading of the database
is known to lie between two of ours, so an answer that comes late is no jump.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from gpucredits.core.bounds import CLOCK_JUMP_US
from gpucredits.store.errors import Unavailable

logger = logging.getLogger(__name__)

DRIFT_PER_MILLION: Final = 1_000  # far more than a clock that is being corrected slowly
ANCHOR_US: Final = 60_000_000  # how long the best reading is better than a newer one
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class ClockJumped(Unavailable):  # the name is what a caller reads
    """The database's time is not where it should be; nothing is decided until it is again."""


def steady_us() -> int:
    """Microseconds of this machine's steady clock."""
    return time.clock_gettime_ns(_CLOCK) // 1_000


class Steadiness:
    """Where the database's time should be, from the readings so far.

    ``_low`` and ``_high`` bound by how much it leads our clock, as read ``_at``. ``off_us`` is by
    how much the last reading was off: 0 while all is well. ``orgs_ahead`` is how many orgs a wrong
    time has left ahead, when they were last counted.
    """

    def __init__(self) -> None:
        self.off_us = 0
        self.jumps = 0
        self.orgs_ahead = 0
        self._low = self._high = self._at = 0

    def check(self, now: int, offset_us: int, asked_at: int) -> None:
        """Compare a reading that was asked for at ``asked_at``; raises ClockJumped.

        ``offset_us`` is by how much a test clock has moved it, which is no jump.
        """
        self.hear(now, offset_us, asked_at)
        self.require()

    def hear(self, now: int, offset_us: int, asked_at: int) -> None:
        """Take in a reading."""
        heard_at = steady_us()
        low, high = now - offset_us - heard_at, now - offset_us - asked_at
        if not self._at:
            self._low, self._high, self._at = low, high, heard_at
        tolerated = CLOCK_JUMP_US + (heard_at - self._at) * DRIFT_PER_MILLION // 1_000_000
        off_us = 0
        if low > self._high + tolerated:
            off_us = low - self._high
        elif high < self._low - tolerated:
            off_us = high - self._low
        elif high - low <= self._high - self._low or heard_at - self._at > ANCHOR_US:
            self._low, self._high, self._at = low, high, heard_at
        if bool(off_us) != bool(self.off_us):
            self._tell(off_us)
        self.off_us = off_us

    def require(self) -> None:
        """Raise while the database's time is wrong."""
        if self.off_us:
            raise ClockJumped(self.explanation)

    def is_off(self) -> bool:
        """Whether the database's time is wrong."""
        return self.off_us != 0

    @property
    def explanation(self) -> str:
        """What is wrong and what to do."""
        way = "ahead of" if self.off_us > 0 else "behind"
        return (
            f"the database's clock is {abs(self.off_us) / 1_000_000:.1f} s {way} where it should "
            "be. Nothing is decided until it is right again; if it is right now, restart the "
            "servers"
        )

    def _tell(self, off_us: int) -> None:
        if off_us:
            self.jumps += 1
            fields = {"off_seconds": off_us / 1_000_000}
            logger.error("the database's clock has jumped", extra={"fields": fields})
        else:
            logger.warning("the database's clock is right again")
