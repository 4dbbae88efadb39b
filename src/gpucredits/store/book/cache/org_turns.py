"""Whose turn it is at an org: batches of one process use its book one after the other.

Owns: the order, which is that of arrival at each org, so that nobody waits in a circle.
Must not: be relied on for truth. It only keeps a process from getting in its own way; what another
process does is found out in the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager


class OrgTurns:
    """The last batch in line at each org that has one."""

    def __init__(self) -> None:
        self._last: dict[int, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def at(self, orgs: Collection[int]) -> AsyncIterator[None]:
        """Wait until all who came before at any of the orgs are done."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        last = self._last
        ahead = {last[org_id] for org_id in orgs if org_id in last}
        last.update(dict.fromkeys(orgs, mine))
        try:
            if ahead:
                await asyncio.wait(ahead)
            yield
        finally:
            mine.set_result(None)
            for org_id in orgs:
                if last.get(org_id) is mine:
                    del last[org_id]
