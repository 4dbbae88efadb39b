"""A ledger that is deaf to one org: it is too busy, cannot decide, breaks, or never answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gpucredits.core.book import InvariantBroken
from gpucredits.service.dispatch.admission import Asking
from gpucredits.service.write.errors import Busy
from gpucredits.service.write.ledger import Ledger
from support.waiting import HANGS_S


async def never() -> None:
    """No answer, ever."""
    await asyncio.Event().wait()


def raising(error: Exception) -> Callable[[], Any]:
    """An answer that is an error."""

    async def fail() -> None:
        raise error

    return fail


WAYS: dict[str, Callable[[], Any]] = {
    "busy": raising(Busy(1.0)),
    "undecidable": raising(InvariantBroken("the rows contradict themselves")),
    "broken": raising(KeyError("price")),
    "silent": never,
}


SILENCE_S = 0.1


class Deaf:
    """How often an org was asked about in vain.

    That org is not waited for long; all others are, because a busy machine is not deaf.
    """

    def __init__(self, ledger: Ledger, org_id: int, way: str, patch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        for name in ("submit_all", "sweep"):
            patch.setattr(ledger, name, self._instead(getattr(ledger, name), org_id, WAYS[way]))
        answer = Asking._answer

        async def bounded(asking: Asking, org: int, what: object, ask: Any, _: float) -> Any:
            within_s = SILENCE_S if org == org_id else HANGS_S
            return await answer(asking, org, what, ask, within_s)

        patch.setattr(Asking, "_answer", bounded)

    def _instead(self, answer: Any, org_id: int, way: Callable[[], Any]) -> Any:
        async def instead(org: int, *args: Any, **options: Any) -> Any:
            if org != org_id:
                return await answer(org, *args, **options)
            self.asked += 1
            return await way()

        return instead
