"""Orgs of which something was noticed of late.

Owns: for how long that is remembered, and the bound on how many orgs are.
Must not: know what was noticed, or be relied on for truth: it is forgotten at any time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

REMEMBERED_MAX = 100_000


class RecentOrgs:
    """Until when each org is remembered."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._until: dict[int, float] = {}

    def add(self, orgs: Iterable[int]) -> None:
        """Remember orgs from now on."""
        if len(self._until) > REMEMBERED_MAX:
            self._until.clear()
        self._until.update(dict.fromkeys(orgs, time.monotonic() + self._lasts_s))

    def among(self, orgs: Iterable[int]) -> set[int]:
        """Those that are remembered."""
        found: set[int] = set()
        if not self._until:
            return found
        now = time.monotonic()
        for org_id in orgs:
            until = self._until.get(org_id)
            if until is None:
                continue
            if until > now:
                found.add(org_id)
            else:
                del self._until[org_id]
        return found
