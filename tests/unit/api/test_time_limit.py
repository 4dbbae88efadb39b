"""A request that takes too long ends, and nothing else does."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.api.http import asgi
from gpucredits.api.http.asgi import TimeLimits


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look all the time."""
    monkeypatch.setattr(asgi, "LOOKED_EVERY_S", 0.001)


def test_what_takes_too_long_is_a_timeout() -> None:
    """The task may go on afterwards, as nobody else has cancelled it; one in time is let be."""

    async def act() -> None:
        limits = TimeLimits()
        with pytest.raises(TimeoutError), limits.at_most(0.0):
            await asyncio.Event().wait()
        await asyncio.sleep(0.002)
        with limits.at_most(600.0):
            await asyncio.sleep(0.005)

    asyncio.run(act())


def test_a_limit_can_be_moved() -> None:
    """What was given more time is not ended at the time before."""

    async def act() -> None:
        with TimeLimits().at_most(0.0) as limit:
            limit.until += 600.0
            await asyncio.sleep(0.005)

    asyncio.run(act())


def test_who_is_cancelled_by_others_has_not_timed_out() -> None:
    """Also where the time is over as well."""

    async def wait() -> None:
        with TimeLimits().at_most(600.0):
            await asyncio.Event().wait()

    async def act() -> None:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(act())


def test_an_error_before_the_end_is_told_as_it_is() -> None:
    """A limit hides nothing."""

    async def act() -> None:
        with pytest.raises(KeyError), TimeLimits().at_most(600.0):
            raise KeyError

    asyncio.run(act())
