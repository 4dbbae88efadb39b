"""What a batch writes of an org's limits, and in which form."""

from __future__ import annotations

import asyncio

from gpucredits.core.command import EndQuota, EndRateLimit
from gpucredits.core.heartbeat import Beat
from gpucredits.service.write import batch
from gpucredits.service.write.heartbeats import BeatCall, BeatJob
from gpucredits.store.book import book_cache
from support.gated import ALICE, WINDOW, quota, rate, set_up
from support.scene import CREDIT, Scene, play

PLENTY = 10_000 * CREDIT


def test_limits_that_end_with_a_beat_are_kept_once(database: str) -> None:
    """One batch moves a window, ends it and its rate limit, and writes what is left of both."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        kept = await quota(stage, ALICE, WINDOW, PLENTY)
        ended = await quota(stage, ALICE, WINDOW, PLENTY, rolling_hours=3)
        await rate(stage, ALICE, PLENTY)
        lease = await stage.reserve(ALICE)
        await stage.advance(2)
        loop = asyncio.get_running_loop()
        call = BeatCall([None], loop.create_future(), 1)
        beats = BeatJob(1, [Beat(lease.reservation.reservation_id, 1, 2_000)], [call], [0])
        commands = (EndQuota(quota_id=ended), EndRateLimit(account=ALICE))
        ends = [
            batch.CommandJob(1, [stage.request(each)], loop.create_future()) for each in commands
        ]
        async with stage.pool.acquire() as connection:
            await batch.commit(connection, [beats, *ends], book_cache.BookCache())
        rows = await stage.pool.fetch(
            "SELECT windows[1] AS quota, windows[2] AS used, cardinality(windows) AS size, level"
            " FROM meters WHERE account_id = (SELECT account_id FROM accounts WHERE path = $1)",
            ALICE,
        )
        assert [tuple(row) for row in rows] == [(kept, 2 * CREDIT, 6, 0)]

    play(database, act)
