"""Runs the dispatcher whenever something has changed, and at least every second.

Several may run: for each pool the one that holds its lease works, the others look on and take over
when it falls silent.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable
from contextlib import suppress

from gpucredits.jobs.pace import Paced
from gpucredits.service.dispatch.cycle import LEASE_US, USAGE_EVERY_US, Dispatcher
from gpucredits.service.dispatch.pools import GpuPools
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.database.connections import session
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.dispatch.cycle import pools_with_work

REST_MAX_S = 0.5
POOLS_AT_ONCE = 4


def holder_name() -> str:
    """Who we are: no two processes ever have the same name, and the first part is our pid."""
    return f"{os.getpid()}-{secrets.token_hex(8)}"


class Dispatching(Paced):
    """Runs a cycle of every pool that has work; works at most half of the time."""

    def __init__(
        self,
        ledger: Ledger,
        gpu_pools: GpuPools,
        *,
        rest_s: float = 1.0,
        lease_us: int = LEASE_US,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.gpu_pools = gpu_pools
        self.dispatcher = Dispatcher(ledger, holder=holder_name(), lease_us=lease_us)
        self.cycles = 0

    async def stop(self) -> None:
        """Finish the cycle under way, and let another take over at once."""
        await super().stop()
        with suppress(Unavailable):  # then the leases lapse by themselves
            await self.dispatcher.release()

    async def tick(self) -> bool:
        """One cycle of each pool with work."""
        started = time.monotonic()
        await self.gpu_pools.refresh()
        async with session(self.dispatcher.pool) as db:
            pool_ids = await pools_with_work(db, usage_every_us=USAGE_EVERY_US)
        gate = asyncio.Semaphore(POOLS_AT_ONCE)

        async def one(work: Awaitable[bool]) -> bool:
            async with gate:
                self.cycles += 1
                return await work

        done = await asyncio.gather(
            *(one(self.dispatcher.cycle(pool_id)) for pool_id in pool_ids), return_exceptions=True
        )
        for result in done:
            if isinstance(result, BaseException):
                raise result
        if pool_ids:
            await asyncio.sleep(min(time.monotonic() - started, REST_MAX_S))
        return any(done)
