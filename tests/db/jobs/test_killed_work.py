"""Work of a server that gets kill -9 between effect and note: whoever is next does it once.

Each has a control: the same kill shows work that is done twice, or never.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from gpucredits.core.reconciliation.lost_work import Cause, LossTerms
from gpucredits.metering.bus import Topic
from gpucredits.service.reconciliation import lost_work
from gpucredits.service.reconciliation.lost_work import OrgFilter, claim, list_claims
from gpucredits.service.reconciliation.terms import LOSS
from gpucredits.service.write.acts import Act
from gpucredits.store.metering.events import release_events
from support.scenes.metering import pipeline_on
from support.scenes.reconciling import QUIET_S, lease_now, look, measure, policy, settled
from support.scenes.scene import CREDIT, Scene, play
from support.servers import mortal_work
from support.waiting import HANGS_S

ACT = Act(org_id=1, actor="key_0_2")


def work(dsn: str, what: str, who: str, where: str) -> int:
    """Let a process of its own do some work; how it ended."""
    words = [sys.executable, mortal_work.__file__, dsn, what, who, where]
    return subprocess.run(words, timeout=HANGS_S, check=False).returncode


def killed_and_carried_on(dsn: str, what: str, who: str, where: str) -> None:
    """One process is killed at a place, the next one finishes; a third finds nothing to do."""
    assert work(dsn, what, who, where) == -signal.SIGKILL
    for _ in range(2):
        assert work(dsn, what, who, "nowhere") == 0


@pytest.mark.parametrize(
    ("who", "where", "charged"),
    [("exact", "before", 20), ("exact", "between", 20), ("naive", "between", 30)],
)
def test_a_reconciler_that_is_killed_posts_once(
    database: str, who: str, where: str, charged: int
) -> None:
    """A naive one, which goes by what was settled, posts again: the control."""

    async def drift(stage: Scene) -> Any:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        leases = [await settled(stage, 10_000, s=30) for _ in range(3)]
        for lease in leases:
            await measure(stage, lease, (0, 20_000))
        await stage.advance(QUIET_S)
        await look(stage)
        return leases

    leases = play(database, drift)
    assert work(database, "reconcile", who, where) == -signal.SIGKILL
    for _ in range(2 if who == "exact" else 1):
        assert work(database, "reconcile", who, "nowhere") == 0

    async def charges(stage: Scene) -> list[int]:
        return [(await lease_now(stage, lease)).charged // CREDIT for lease in leases]

    found = play(database, charges)
    if who == "exact":
        assert found == [charged] * 3
    else:
        assert charged in found


def test_a_claim_of_lost_work_whose_server_is_killed_is_paid_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the refund, before that was noted: the next one notes it and pays nothing."""

    async def claimed(stage: Scene) -> Any:
        await stage.fund("acme", credits_each=900)
        terms = LossTerms(hours_per_job=1, unreported_hours=1)
        assert await LOSS.set(stage.pool, ACT, "acme", terms, None)
        held = await stage.reserve(window_ms=60_000)
        await stage.advance(50)
        await stage.beat(held, 1, 50_000)
        await stage.advance(61)

        async def nothing(*_: Any, **__: Any) -> Any:
            raise ConnectionResetError

        monkeypatch.setattr(lost_work, "carry_out", nothing)
        number = held.reservation.reservation_id
        with pytest.raises(ConnectionResetError):
            await claim(stage.ledger, ACT, number, Cause.NODE_FAILURE, None, "a fan")
        await stage.advance(61)
        return held.reservation

    lease = play(database, claimed)
    killed_and_carried_on(database, "give_back", "exact", "between")

    async def paid(stage: Scene) -> None:
        [row] = await list_claims(stage.pool, OrgFilter(before=(2**62, 0)))
        assert (row.state, row.lost_ms, row.amount) == (1, 50_000, 50 * CREDIT)
        assert (await lease_now(stage, lease)).charged == 0

    play(database, paid)


@pytest.mark.parametrize(
    ("who", "where", "times"), [("exact", "before", 1), ("exact", "between", 2), ("naive", "x", 0)]
)
def test_events_of_a_publisher_that_is_killed_all_leave(
    database: str, who: str, where: str, times: int
) -> None:
    """At least once and in order, with ids to drop repeats by; progress noted first loses them."""

    async def happen(stage: Scene) -> int:
        await stage.fund("acme", credits_each=900)
        await release_events(stage.pool)
        return int(await stage.pool.fetchval("SELECT count(*) FROM outbox"))

    count = play(database, happen)
    assert count > 0
    killed_and_carried_on(database, "publish", who, where)

    async def published(stage: Scene) -> list[str]:
        async with pipeline_on(stage.pool, "postgres") as pipeline:
            places = dict.fromkeys(range(8), 0)
            async with asyncio.timeout(HANGS_S):
                found = await pipeline.bus.read(Topic.EVENTS, places, limit=10_000)
        return [msgspec.json.decode(each.body)["id"] for each in found]

    ids = play(database, published)
    assert len(ids) == times * count
    assert len(set(ids)) == (count if times else 0)
    if times == 2:
        assert ids[:count] == ids[count:]
