"""How many requests were answered, by status, since the server started.

Must not: know who asked; metrics name no tenant.
"""

from __future__ import annotations

from typing import Final

REFUSED: Final = (401, 403, 429, 503)


class RequestCounts:
    """Answers by HTTP status."""

    def __init__(self) -> None:
        self._by_status: dict[int, int] = {}

    def add(self, status: int) -> None:
        """Count an answer."""
        self._by_status[status] = self._by_status.get(status, 0) + 1

    def by_class(self) -> dict[str, int]:
        """Answers by the first digit of their status; classes without any are there too."""
        found = dict.fromkeys(("2xx", "3xx", "4xx", "5xx"), 0)
        for status, count in self._by_status.items():
            found[f"{status // 100}xx"] += count
        return found

    def refused(self) -> dict[str, int]:
        """Answers that say: no live key, not allowed, too many requests, not now."""
        return {str(status): self._by_status.get(status, 0) for status in REFUSED}
