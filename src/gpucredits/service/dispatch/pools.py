"""Pools for the edge: their settings, their weights, and the shares of their tenants.

Owns: the map of pools that every reserve looks into, acts on pools and weights, and shares.
Must not: let anything into a pool (the dispatcher does).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Final

import msgspec

from gpucredits.core.bounds import WindowBounds
from gpucredits.core.change import Named, merged
from gpucredits.core.fairshare.decisions import Decisions, as_told, shares_of, verdict_of
from gpucredits.core.fairshare.snapshot import PoolSnapshot
from gpucredits.core.gate import FairShareVerdict
from gpucredits.service.dispatch.snapshot import (
    decided,
    granted,
    request_id,
    room_in,
    snapshot_of,
)
from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session, snapshot
from gpucredits.store.database.errors import DRIVER_ERRORS
from gpucredits.store.dispatch import cycle, pools
from gpucredits.store.dispatch.pools import (
    NO_POOL,
    GpuPool,
    KeptSnapshot,
    PoolRows,
    Weight,
    read_pool_rows,
)
from gpucredits.store.dispatch.queue import QueuedRequest

__all__ = [
    "NO_POOL",
    "AccountMissing",
    "GpuPool",
    "GpuPools",
    "NoCapacity",
    "PoolMissing",
    "Reweigh",
    "Weight",
]

GATHER_S: Final = 0.01
LARGE_ROWS: Final = 2_000  # shares of larger pools are not worked out anew for every caller
KEPT_S: Final = 2.0
EXPLAINED_AT_ONCE: Final = 2


Reweigh = Callable[[GpuPool, Sequence[Weight]], Sequence[Weight]]
"""The weights that a pool is to have, from the pool and those it has."""


class PoolMissing(Exception):  # noqa: N818  # it states what happened
    """There is no such pool."""


class NoCapacity(Exception):  # noqa: N818  # it states what happened
    """A pool was given other resources without a capacity in GPUs."""


class AccountMissing(Exception):  # noqa: N818  # it states what happened
    """There is no account at ``path``."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True, slots=True)
class Sharing:
    """A pool at one moment, and the fair shares now; leases that stop count as held."""

    pool: GpuPool
    snapshot: PoolSnapshot
    decisions: Decisions
    dispatcher: str


class GpuPools:
    """The pools of this system; those facts that a reserve needs are in memory.

    ``windows`` tells the ledger the longest leases of each pool.
    """

    def __init__(self, pool: Pool, windows: WindowBounds | None = None) -> None:
        self._pool = pool
        self._windows = WindowBounds() if windows is None else windows
        self._known: dict[tuple[str, str], GpuPool] = {}
        self._begun = self._heard = 0  # readings, and the last one that was begun of those heard
        self._sharings: dict[tuple[str, str], tuple[float, Sharing]] = {}
        self._rows: dict[int, tuple[float, PoolRows]] = {}
        self._explaining = asyncio.Semaphore(EXPLAINED_AT_ONCE)
        self._ringing: asyncio.Task[None] | None = None

    def find(self, gpu_type: str, region: str) -> GpuPool | None:
        """The pool of a GPU type in a region, from memory; it may be a moment old."""
        return self._known.get((gpu_type, region))

    @property
    def any_gates(self) -> bool:
        """Whether any pool has a capacity."""
        return any(each.gates for each in self._known.values())

    async def refresh(self) -> list[GpuPool]:
        """Read the pools into memory again.

        A reading that began before another one may end after it, and then says nothing new.
        """
        self._begun += 1
        number = self._begun
        async with session(self._pool) as db:
            found = await pools.list_pools(db)
        named = [each for each in found if each.pool_id != pools.NO_POOL]
        if number < self._heard:
            return list(self._known.values())
        self._heard = number
        self._known = {(each.gpu_type, each.region): each for each in named}
        self._windows.pools = {
            place: each.window_max_ms for place, each in self._known.items() if each.window_max_ms
        }
        return named

    async def read(self, gpu_type: str, region: str) -> tuple[GpuPool, list[Weight]]:
        """A pool and its weights, from the database."""
        async with session(self._pool) as db:
            found = await _found(db, gpu_type, region)
            return found, await pools.list_weights(db, found.pool_id)

    async def set(self, act: Act, wanted: GpuPool, *, named: Named = None) -> tuple[GpuPool, bool]:
        """Set a pool, or the named terms; also whether this key had done so before.

        Raises NoCapacity if the pool would have other resources without GPUs.
        """

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            before = await pools.find_pool(db, wanted.gpu_type, wanted.region)
            whole = merged(wanted, before, named)
            if whole.milli_gpus is None and (whole.cpus or whole.memory):
                raise NoCapacity
            saved = await pools.save_pool(db, whole)
            old = None if before is None else _shown(before)
            note = act.note("pool.set", f"pool:{wanted.name}", old=old, new=_shown(saved))
            return msgspec.json.encode(saved), note

        done = await perform(self._pool, act, work)
        await self.refresh()
        return msgspec.json.decode(done.answer, type=GpuPool), done.is_replay

    async def remove(self, act: Act, gpu_type: str, region: str) -> tuple[GpuPool, bool]:
        """Remove a pool; also whether this key had done so before."""

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            found = await _found(db, gpu_type, region)
            await pools.remove_pool(db, found.pool_id)
            note = act.note("pool.remove", f"pool:{found.name}", old=_shown(found))
            return msgspec.json.encode(found), note

        done = await perform(self._pool, act, work)
        await self.refresh()
        return msgspec.json.decode(done.answer, type=GpuPool), done.is_replay

    async def weigh(
        self, act: Act, place: tuple[str, str], wanted: Reweigh
    ) -> tuple[tuple[GpuPool, list[Weight]], bool]:
        """Set the weights of a pool; ``wanted`` makes them from the present ones.

        Returns the pool with its weights, and whether this key had done so before. Acts on pools
        run one at a time, so that no change is lost.
        """

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            found = await _found(db, *place)
            before = await pools.list_weights(db, found.pool_id)
            weights = wanted(found, before)
            unknown = await pools.first_unknown(db, [each.path for each in weights])
            if unknown is not None:
                raise AccountMissing(unknown)
            await pools.replace_weights(db, found.pool_id, weights)
            note = act.note(
                "pool.weights",
                f"pool:{found.name}",
                old=[each._asdict() for each in before],
                new=[each._asdict() for each in weights],
            )
            return msgspec.json.encode((found, weights)), note

        done = await perform(self._pool, act, work)
        return msgspec.json.decode(done.answer, type=tuple[GpuPool, list[Weight]]), done.is_replay

    async def sharing(self, gpu_type: str, region: str) -> Sharing:
        """The holdings, shares and demand in a pool now; a moment old for a large pool."""
        made_at, known = self._sharings.get((gpu_type, region), (0.0, None))
        if known is not None and time.monotonic() - made_at < KEPT_S:
            return known
        async with snapshot(self._pool) as db:
            found = await _found(db, gpu_type, region)
            rows = await read_pool_rows(db, found.pool_id)
            holder = await cycle.holder_of(db, found.pool_id)
        if rows is None:
            raise PoolMissing
        frozen = snapshot_of(rows)
        held = tuple(job._replace(stopping_at=None) for job in frozen.running)
        sharing = Sharing(found, frozen, await decided(replace(frozen, running=held)), holder)
        self._sharings.pop((gpu_type, region), None)
        if len(frozen.running) + len(frozen.waiting) > LARGE_ROWS:
            self._sharings[gpu_type, region] = (time.monotonic(), sharing)
        return sharing

    async def last_decision(self, gpu_type: str, region: str) -> KeptSnapshot | None:
        """The last stored decision, with its snapshot."""
        async with session(self._pool) as db:
            found = await _found(db, gpu_type, region)
            return await pools.latest_snapshot(db, found.pool_id)

    def room_came_free(self) -> None:
        """Wake the dispatchers soon after the end of a lease that a pool may count."""
        if self.any_gates and (self._ringing is None or self._ringing.done()):
            self._ringing = asyncio.create_task(self._ring())

    async def _ring(self) -> None:
        await asyncio.sleep(GATHER_S)  # many leases may end within a moment
        with suppress(*DRIVER_ERRORS):
            async with self._pool.acquire() as db:
                await pools.ring(db)

    async def verdict(
        self, pool: GpuPool, requests: Sequence[QueuedRequest]
    ) -> tuple[FairShareVerdict, list[int]]:
        """A pool's verdict on requests that come together now, and their GPUs.

        A large pool's verdict is a moment old. Few verdicts are worked out at once; others wait.
        """
        async with self._explaining:
            rows = await self._pool_rows(pool.pool_id)
            asked = [each._replace(submitted_at=rows.now) for each in requests]
            frozen = snapshot_of(replace(rows, waiting=[*rows.waiting, *asked]))
            decisions = await decided(frozen)
        names = {request_id(each.key) for each in asked}
        row = next((as_told(each) for each in decisions.waiting if each.request_id in names), None)
        milli_gpus = [granted(each, room_in(frozen)) for each in asked]
        account, shares = asked[0].account, shares_of(decisions)
        return verdict_of(frozen, row, account, shares, sum(milli_gpus)), milli_gpus

    async def _pool_rows(self, pool_id: int) -> PoolRows:
        now = time.monotonic()
        self._rows = {each: kept for each, kept in self._rows.items() if now - kept[0] < KEPT_S}
        if pool_id in self._rows:
            return self._rows[pool_id][1]
        async with snapshot(self._pool) as db:
            rows = await read_pool_rows(db, pool_id)
        if rows is None:
            raise PoolMissing
        if len(rows.running) + len(rows.waiting) > LARGE_ROWS:
            self._rows[pool_id] = (now, rows)
        return rows


async def _found(db: Connection, gpu_type: str, region: str) -> GpuPool:
    found = await pools.find_pool(db, gpu_type, region)
    if found is None:
        raise PoolMissing
    return found


def _shown(pool: GpuPool) -> dict[str, object]:
    return {name: value for name, value in asdict(pool).items() if name != "pool_id"}
