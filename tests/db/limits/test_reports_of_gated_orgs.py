"""Reports are decided with a part of an org's limits, and with all of them once that matters."""

from __future__ import annotations

from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import Decision, Exhaustion
from support.scenes.gated import ALICE, quota, set_up
from support.scenes.scene import CREDIT, Scene, play


async def counters(stage: Scene) -> list[tuple[int, ...]]:
    """(count, leaving) of every quota, in order."""
    rows = await stage.pool.fetch("SELECT count, leaving FROM counters ORDER BY quota_id")
    return [tuple(row) for row in rows]


def test_a_report_that_ends_a_job_frees_its_slots(database: str) -> None:
    """A batch of reports is loaded without quotas on what runs at once, until a job ends in it."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme", Dimension.CONCURRENT_GPUS, 9_000)
        await quota(stage, ALICE, Dimension.CONCURRENT_JOBS, 9)
        window = {"calendar": Calendar.DAY}
        await quota(stage, ALICE, Dimension.CREDITS_PER_WINDOW, 12 * CREDIT, **window)
        stopped = await stage.reserve(ALICE, exhaustion=Exhaustion.STOP)
        await stage.advance(5)
        beaten = await stage.beat(stopped, 1, 5_000)
        assert beaten.decision is Decision.STOP
        assert [row[0] for row in await counters(stage)] == [0, 0, 0]
        await stage.assert_sound()

    play(database, act)


def test_a_report_under_a_lowered_limit_is_looked_at_closely(database: str) -> None:
    """A limit that is exceeded is loaded even for reports, and one of two jobs is told to go."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        number = await quota(stage, "acme", Dimension.CONCURRENT_GPUS, 2_000)
        await quota(stage, "acme", Dimension.CONCURRENT_JOBS, 9)
        leases = [await stage.reserve(ALICE, job_id=f"job-{each}") for each in range(2)]
        assert await quota(stage, "acme", Dimension.CONCURRENT_GPUS, 1_000) == number
        await stage.advance(1)
        told = [(await stage.beat(lease, 1, 1_000)).decision for lease in leases]
        assert told == [Decision.DRAIN, Decision.CONTINUE]
        assert await counters(stage) == [(2_000, 1_000), (2, 1)]
        await stage.assert_sound()

    play(database, act)


def test_a_job_on_two_nodes_is_told_to_go_as_a_whole(database: str) -> None:
    """Which jobs were told to go is read for reports too: one job goes, node by node."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme", Dimension.CONCURRENT_JOBS, 2)
        leases = [await stage.reserve(ALICE, job_id=job) for job in "aabb"]
        await quota(stage, "acme", Dimension.CONCURRENT_JOBS, 1)
        for seq in (1, 2):
            await stage.advance(1)
            told = [(await stage.beat(lease, seq, seq * 1_000)).decision for lease in leases]
            assert told == [Decision.DRAIN] * 2 + [Decision.CONTINUE] * 2
        assert await counters(stage) == [(2, 1)]
        await stage.assert_sound()

    play(database, act)


def test_a_job_ends_with_its_report_while_another_lapses(database: str) -> None:
    """Of an org that is due everything is loaded, the jobs of leases that report as well."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme", Dimension.CONCURRENT_JOBS, 9)
        window = {"calendar": Calendar.DAY}
        await quota(stage, ALICE, Dimension.CREDITS_PER_WINDOW, 72 * CREDIT, **window)
        await stage.reserve(ALICE, job_id="lapses")
        stopped = await stage.reserve(ALICE, exhaustion=Exhaustion.STOP, window_ms=60_000)
        await stage.advance(15)
        assert (await stage.beat(stopped, 1, 15_000)).decision is Decision.STOP
        assert [row[0] for row in await counters(stage)] == [0, 0]
        await stage.assert_sound()

    play(database, act)
