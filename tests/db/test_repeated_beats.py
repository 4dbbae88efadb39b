"""What a heartbeat was told is stored: one that is sent again is told it by any server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import SetRateLimit, StopLease
from support.scene import CREDIT, QUICK, Scene, play

HOLDING_NOTHING = replace(QUICK, kept_leases_max=0)


async def run_short(stage: Scene) -> None:
    """The credits of the org end two seconds after the lease."""
    await stage.fund("acme", credits_each=12)


async def slow_down(stage: Scene) -> None:
    """A rate limit lets it have one lease and a little more."""
    await stage.fund("acme")
    await stage.do(SetRateLimit(account="acme", capacity=12 * CREDIT, refill_per_hour=CREDIT))


async def bound(stage: Scene) -> None:
    """Nothing is short but what the job may cost."""
    await stage.fund("acme")


WAYS: dict[str, tuple[Callable[[Scene], Awaitable[None]], str]] = {
    "insufficient_credits": (run_short, "drain"),
    "rate_limited": (slow_down, "throttle"),
    "max_amount": (bound, "drain"),
}


@pytest.mark.parametrize("reason", WAYS)
def test_a_repeated_beat_is_told_the_same_from_the_database(database: str, reason: str) -> None:
    """No page is kept, so that the second answer comes from what was stored."""
    prepare, decision = WAYS[reason]

    async def act(stage: Scene) -> None:
        await prepare(stage)
        lease = await stage.reserve(max_amount=15 * CREDIT)
        await stage.advance(5)
        first = await stage.beat(lease, 1, 5_000)
        assert (first.decision, first.reason) == (decision, reason)
        again = await stage.beat(lease, 1, 5_000)
        assert (again.decision, again.reason, again.duplicate) == (decision, reason, True)
        assert 0 < again.expires_in_ms <= first.expires_in_ms
        assert again.clears_in_ms <= first.clears_in_ms
        assert bool(again.clears_in_ms) is (decision == "throttle")

    play(database, act, options=HOLDING_NOTHING)


@pytest.mark.parametrize("options", [QUICK, HOLDING_NOTHING], ids=["kept", "read"])
def test_a_node_that_reports_late_has_its_grace(database: str, options: Any) -> None:
    """Ordered long ago, told now: it has half a minute from now on, and that stands."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=10_000)
        lease = await stage.reserve(window_ms=600_000)
        now = await stage.pool.fetchval("SELECT ledger_now()")
        number = lease.reservation.reservation_id
        order = StopLease(reservation_id=number, stops_at=now + 30 * CREDIT, grace_ms=30_000)
        await stage.do(order)
        await stage.advance(120)
        told = await stage.beat(lease, 1, 120_000)
        assert (told.decision, told.reason, told.expires_in_ms) == ("drain", "preempted", 30_000)
        await stage.advance(20)
        told = await stage.beat(lease, 2, 140_000)
        assert (told.decision, told.reason) == ("drain", "preempted")
        assert 0 < told.expires_in_ms <= 10_000

    play(database, act, options=options)
