"""Asking the ledger for many orgs: whoever it cannot answer for holds up nobody else.

Owns: how long an answer is waited for, and leaving an org alone for a while that kept us waiting.
Must not: know what is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gpucredits.service.write.errors import Busy
from gpucredits.store.database.errors import Conflict, Unavailable

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

TOLD_WITHIN_S: Final = 2.0  # what leaves no trace
DONE_WITHIN_S: Final = 3.0  # what is done, and found done when it is asked for again
LEFT_ALONE_S: Final = 5.0


class Asking:
    """Asks, and gives None where there is no answer now."""

    def __init__(self) -> None:
        self._silent: dict[int, float] = {}  # orgs, and until when they are left alone

    async def told(
        self, org_id: int, what: object, ask: Callable[[], Awaitable[Answer]]
    ) -> Answer | None:
        """An answer that changes nothing."""
        return await self._answer(org_id, what, ask, TOLD_WITHIN_S)

    async def done(
        self, org_id: int, what: object, ask: Callable[[], Awaitable[Answer]]
    ) -> Answer | None:
        """An answer to what is carried out; without one it may still be."""
        return await self._answer(org_id, what, ask, DONE_WITHIN_S)

    async def _answer(
        self, org_id: int, what: object, ask: Callable[[], Awaitable[Answer]], within_s: float
    ) -> Answer | None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._silent.get(org_id, 0.0):
            return None
        try:
            async with asyncio.timeout(within_s):
                return await ask()
        except TimeoutError:
            logger.warning("org %d has too much to do, and is left alone for a while", org_id)
            now = loop.time()
            self._silent = {org: until for org, until in self._silent.items() if now < until}
            self._silent[org_id] = now + LEFT_ALONE_S
        except (Busy, Conflict, Unavailable) as error:
            logger.warning("org %d: %s is asked again: %s", org_id, what, error)
        except Exception:  # a guard: others must have their turn
            logger.exception("org %d: %s cannot be decided", org_id, what)
        return None
