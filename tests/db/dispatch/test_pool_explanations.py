"""Explanations of a large pool: bounded work, however many ask."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpucredits.core.command import Reserve
from gpucredits.service.dispatch import pools as gpu_pools
from gpucredits.service.dispatch.queue import QueueOptions, queued
from gpucredits.service.dispatch.snapshot import decided
from gpucredits.store.dispatch.pools import read_pool_rows
from support.scenes.scene import Scene, play
from support.scenes.stage import Stage, stage_on
from support.waiting import HANGS_S


async def ask(stage: Stage) -> list[int]:
    """What the pool would say to a job of one GPU: how many it would get."""
    org_id = await stage.base.ledger.org_id("acme")
    assert org_id is not None
    pool, _ = await stage.pools.read("h100", "default")
    reserve = Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000)
    request = queued(org_id, QueueOptions(reserve=reserve, pool_id=pool.pool_id))
    verdict, gpus = await stage.pools.verdict(pool, [request])
    assert verdict.passes
    return [each // 1_000 for each in gpus]


@pytest.mark.parametrize(("rows", "kept_s", "read"), [(0, 60.0, 1), (0, 0.0, 3), (9, 60.0, 3)])
def test_a_large_pool_is_read_once_in_a_while(
    database: str, monkeypatch: pytest.MonkeyPatch, rows: int, kept_s: float, read: int
) -> None:
    """Its picture serves several; that of a small pool, or an old one, does not."""
    taken = []

    async def counted(*args: Any) -> Any:
        taken.append(args)
        return await read_pool_rows(*args)

    monkeypatch.setattr(gpu_pools, "read_pool_rows", counted)
    monkeypatch.setattr(gpu_pools, "LARGE_ROWS", rows)
    monkeypatch.setattr(gpu_pools, "KEPT_S", kept_s)

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            await stage.ask("acme")
            for _ in range(3):
                assert await ask(stage) == [1]
            assert len(taken) == read

    play(database, act)


def test_only_few_are_worked_out_at_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten that ask together two are answered at a time, and all in the end."""
    begun = []
    may_end = asyncio.Event()

    async def watched(*args: Any) -> Any:
        begun.append(args)
        await may_end.wait()
        return await decided(*args)

    monkeypatch.setattr(gpu_pools, "decided", watched)

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            asking = [asyncio.create_task(ask(stage)) for _ in range(10)]
            waiting = stage.pools._explaining
            async with asyncio.timeout(HANGS_S):
                while len(begun) < 2 or len(waiting._waiters or ()) < 8:  # noqa: ASYNC110  # nobody is told of it
                    await asyncio.sleep(0.01)
            assert len(begun) == 2
            may_end.set()
            assert await asyncio.gather(*asking) == [[1]] * 10

    play(database, act)
