"""What a batch writes of an org's limits, and in which form."""

from __future__ import annotations

import asyncio
import re

import pytest

from gpucredits.core.command import Cancel, EndQuota, EndRateLimit
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Closed
from gpucredits.core.quota import Dimension
from gpucredits.service.write import batch
from gpucredits.service.write.heartbeats import BeatCall, BeatJob
from gpucredits.store.book import book_cache, save
from gpucredits.store.book.table import Part
from support.scenes.gated import ALICE, SCOPES, WINDOW, quota, rate, set_up
from support.scenes.scene import CREDIT, Scene, play

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


def test_what_a_single_command_changes_travels_without_arrays(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits of three scopes take nothing from a statement for single rows but their own part."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        for path in SCOPES:
            await quota(stage, path, Dimension.CONCURRENT_GPUS, 900_000)
            await quota(stage, path, WINDOW, PLENTY)
        await stage.reserve(ALICE, job_id="first")
        texts: list[str] = []
        guarded = vars(save)["guarded_statement"]

        def noted(parts: tuple[Part, ...], *, is_single: bool) -> str:
            texts.append(guarded(parts, is_single=is_single))
            return texts[-1]

        monkeypatch.setattr(save, "guarded_statement", noted)
        lease = await stage.reserve(ALICE, job_id="job")
        assert isinstance(
            await stage.do(Cancel(reservation_id=lease.reservation.reservation_id)), Closed
        )
        for text in texts:
            parts = re.split(r", (?=(?:new|changed|kept)_\w+ AS \()", text)
            with_arrays = {part.partition(" ")[0] for part in parts[1:] if "unnest(" in part}
            assert with_arrays == {"changed_meters", "changed_slots"}
        assert len(texts) == 2

    play(database, act)
