"""Whether writes get through: what the last batches came to.

Owns: telling a database that answers questions and takes no writes (a full disk, damaged pages)
from one that works.
Must not: try anything itself, or count what callers did wrong.
"""

from __future__ import annotations

import logging
import time
from typing import Final

logger = logging.getLogger(__name__)

FAILURES_MIN: Final = 3  # batches in a row
TOLD_S: Final = 10.0  # at most one line of the log in so long


class Progress:
    """Batches that failed since the last one that was saved, and why; and all since the start."""

    def __init__(self) -> None:
        self.failures = 0
        self.saved_total = 0
        self.failed_total = 0
        self.cause = ""
        self._told_at = float("-inf")
        self._untold = 0

    def saved(self) -> None:
        """A batch was carried out."""
        if self.failures >= FAILURES_MIN:
            logger.warning("writes get through again", extra={"fields": {"failed": self.failures}})
        self.failures = 0
        self.saved_total += 1

    def failed(self, error: Exception) -> None:
        """A batch could not be carried out; the cause is logged, not for every batch."""
        self.failures += 1
        self.failed_total += 1
        self.cause = str(error) or type(error).__name__
        now = time.monotonic()
        self._untold += 1
        if now - self._told_at >= TOLD_S:
            fields = {"cause": self.cause, "batches": self._untold}
            logger.error("a batch could not be saved", extra={"fields": fields})
            self._told_at, self._untold = now, 0

    @property
    def trouble(self) -> str:
        """What is wrong with writes, or an empty string."""
        if self.failures < FAILURES_MIN:
            return ""
        return f"the last {self.failures} batches of writes failed: {self.cause}"
