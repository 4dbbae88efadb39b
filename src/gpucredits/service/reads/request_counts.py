"""How many requests were answered, by status, since the server started.

Must not: know who asked; metrics name no tenant.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

REFUSED: Final = (401, 403, 429, 503)


class RequestCounts(Counter[int]):
    """Answers by HTTP status."""

    def by_class(self) -> dict[str, int]:
        """Answers by the first digit of their status; classes without any are there too."""
        found = dict.fromkeys(("2xx", "3xx", "4xx", "5xx"), 0)
        for status, count in self.items():
            found[f"{status // 100}xx"] += count
        return found

    def refused(self) -> dict[str, int]:
        """Answers that say: no live key, not allowed, too many requests, not now."""
        return {str(status): self[status] for status in REFUSED}
