"""The pools that a server knows: what an act has changed is known from the act on."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.service.dispatch.pools import GpuPools
from gpucredits.service.write.acts import Act
from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch import pools
from gpucredits.store.dispatch.pools import GpuPool
from support.scenes.scene import Scene, play

ACT = Act(org_id=0, actor="tester")
POOL = GpuPool(pool_id=0, gpu_type="h100", region="default", milli_gpus=8_000)


def test_a_reading_that_comes_late_hides_no_new_pool(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reserve that follows the setting of a pool does not walk past its capacity.

    The dispatcher reads the pools again and again, and one of these readings may have begun before.
    """
    has_read, may_end = asyncio.Event(), asyncio.Event()
    read = pools.list_pools

    async def slow(db: Connection) -> list[GpuPool]:
        found = await read(db)
        has_read.set()
        await may_end.wait()
        return found

    async def act(stage: Scene) -> None:
        known = GpuPools(stage.pool)
        monkeypatch.setattr(pools, "list_pools", slow)
        late = asyncio.create_task(known.refresh())
        await has_read.wait()
        monkeypatch.setattr(pools, "list_pools", read)
        await known.set(ACT, POOL)
        may_end.set()
        assert [each.name for each in await late] == ["h100/default"]
        assert known.find("h100", "default") is not None

    play(database, act)
