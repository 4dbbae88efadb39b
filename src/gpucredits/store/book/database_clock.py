"""What time the database has without asking, whether its clock runs steadily, and signs of life.

Owns: an estimate that is never ahead of the database's clock; the comparison of that clock with
this machine's own steady clock, and the error for a database whose time has jumped. A wrong time
has lasting effects: leases lapse, grants end, budgets issue. So nothing is decided by it. Also owns
when this process gave its last sign of life, and what it heard of outages and maintenance then.
Must not: be believed (the guard compares), correct a clock (the operator does), or know what an
outage means (core does).

The steady clock counts while the machine sleeps, and nobody sets it. Each reading of the database
is known to lie between two of ours, so an answer that comes late is no jump.

A decision about a lease that has ended must know of an outage before it is made. So a batch that
finds the last sign of life too old gives one first, and hears what happened meanwhile.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from gpucredits.core.bounds import AWAY_US_MIN, CLOCK_JUMP_US, OUTAGE_GRACE_MS_DEFAULT, SECOND_US
from gpucredits.core.reservation import Outage
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.outages import give_sign

logger = logging.getLogger(__name__)

DRIFT_US_PER_S = 100  # by how much two clocks are let run apart before the estimate gives way


class DatabaseClock:
    """Set by every answer that says what time it was, which is a little late when it arrives."""

    def __init__(self) -> None:
        self.offset_us: int | None = None  # by how much a test clock has moved the database's time
        self._lead_us = 0  # of the database's time before ours
        self._set_at = 0.0

    def told(self, now: int, offset_us: int) -> None:
        """The database had this time a moment ago."""
        at = time.monotonic()
        lead = now - int(at * 1_000_000)
        if offset_us == self.offset_us:
            since = int((at - self._set_at) * DRIFT_US_PER_S)
            lead = max(lead, self._lead_us - since)
        self.offset_us, self._lead_us, self._set_at = offset_us, lead, at

    def doubted(self) -> None:
        """The database found the estimate wrong: begin anew with what it says next."""
        self.offset_us = None

    def now(self) -> int | None:
        """Microseconds since 1970 UTC, or None while nothing is known."""
        if self.offset_us is None:
            return None
        return int(time.monotonic() * 1_000_000) + self._lead_us


DRIFT_PER_MILLION: Final = 1_000  # far more than a clock that is being corrected slowly
ANCHOR_US: Final = 60_000_000  # how long the best reading is better than a newer one
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class ClockJumped(Unavailable):  # the name is what a caller reads
    """The database's time is not where it should be; nothing is decided until it is again."""


def steady_us() -> int:
    """Microseconds of this machine's steady clock."""
    return time.clock_gettime_ns(_CLOCK) // 1_000


class ClockCheck:
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

        ``offset_us`` is how far a test clock has moved the time, which is no jump.
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


STALE_US: Final = 3 * SECOND_US  # less than what counts as an outage


class ServerLife:
    """The outages that may matter, the oldest first, and until when leases are extended.

    ``is_watched``: a job gives signs every second. Without one nobody is missed, and no batch asks.
    """

    def __init__(self) -> None:
        self.outages: tuple[Outage, ...] = ()
        self.maintenance_until = 0
        self.grace_ms = OUTAGE_GRACE_MS_DEFAULT
        self.is_watched = False
        self._signed_at = 0

    @property
    def is_stale(self) -> bool:
        """Whether an outage could have begun and ended since the last sign."""
        return self.is_watched and steady_us() - self._signed_at > STALE_US

    async def hear(self, connection: Connection | Pool) -> None:
        """Hear at once of a maintenance that was announced or ended here."""
        if self.is_watched:
            await self.sign(connection)

    async def sign(self, connection: Connection | Pool) -> None:
        """Give a sign of life, and hear of outages and maintenance."""
        asked_at = steady_us()
        told = await give_sign(connection, away_us=AWAY_US_MIN, grace_ms=self.grace_ms)
        if told.was_away:
            since, until, grace_ms = told.outages[-1]
            fields = {"seconds": (until - since) // SECOND_US, "grace_seconds": grace_ms // 1_000}
            logger.warning("no server was alive for a while", extra={"fields": fields})
        self.outages, self.maintenance_until = told.outages, told.maintenance_until
        self._signed_at = asked_at
