"""What a heartbeat was told is stored: one that is sent again is told it by any server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import ResumeLease, SetRateLimit, StopLease
from gpucredits.service.write.ledger import DEFAULTS
from support.scenes.scene import CREDIT, Scene, play

HOLDING_NOTHING = replace(DEFAULTS, kept_leases_max=0)


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


@pytest.mark.parametrize("options", [DEFAULTS, HOLDING_NOTHING], ids=["kept", "read"])
def test_a_lease_that_is_told_to_stop_ends_with_its_grace(database: str, options: Any) -> None:
    """A node that reports within the grace hears when it ends; a report after it comes too late."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=10_000)
        lease = await stage.reserve(window_ms=600_000)
        number = lease.reservation.reservation_id
        await stage.do(StopLease(reservation_id=number, grace_ms=30_000))
        await stage.advance(20)
        told = await stage.beat(lease, 1, 20_000)
        assert (told.decision, told.reason) == ("drain", "preempted")
        assert 0 < told.expires_in_ms <= 10_000
        await stage.advance(10)
        told = await stage.beat(lease, 2, 30_000)
        assert (told.decision, told.reason) == ("stop", "expired")

    play(database, act, options=options)


@pytest.mark.parametrize("options", [DEFAULTS, HOLDING_NOTHING], ids=["kept", "read"])
def test_a_lease_goes_on_when_its_room_is_not_needed(database: str, options: Any) -> None:
    """An order that is taken back leaves no trace in the lease; the outbox says so."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=10_000)
        lease = await stage.reserve(window_ms=600_000)
        number = lease.reservation.reservation_id
        await stage.do(StopLease(reservation_id=number, grace_ms=30_000, stopping_for=5))
        await stage.advance(20)
        await stage.do(ResumeLease(reservation_id=number, stopping_for=5))
        await stage.assert_sound()
        row = await stage.pool.fetchrow(
            "SELECT expires_at, is_plain, stopping_at, stopping_for FROM reservations"
        )
        assert tuple(row) == (lease.reservation.expires_at, True, 0, 0)
        events = await stage.pool.fetch("SELECT type FROM outbox ORDER BY event_id")
        assert [each["type"] for each in events][-2:] == [
            "reservation.draining",
            "reservation.resumed",
        ]
        await stage.advance(100)
        told = await stage.beat(lease, 1, 120_000)
        assert (told.decision, told.expires_in_ms) == ("continue", 600_000)

    play(database, act, options=options)
