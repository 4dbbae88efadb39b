"""What time the database has, as far as this process can tell without asking.

Owns: an estimate that is never ahead of the database's clock, as long as that does not go back.
Must not: be believed. What was decided by it is saved only if the database finds it close enough.
"""

from __future__ import annotations

import time

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
