"""A pool on a ledger, with dispatchers that a test steps by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from gpucredits.core.command import CreateAccount, Issue, Reserve, Settle
from gpucredits.core.outcome import Closed, Queued
from gpucredits.service.dispatch.cycle import Dispatcher
from gpucredits.service.dispatch.pools import GpuPools
from gpucredits.service.dispatch.queue import QueueOptions, RequestQueue
from gpucredits.service.write.acts import Act
from gpucredits.store.dispatch.pools import GpuPool
from gpucredits.store.dispatch.queue import QueuedRequest, QueueState
from support.scenes.scene import CREDIT, Scene

CAPACITY = 8


class Stage:
    """A pool of eight GPUs on a ledger, and dispatchers that the test steps by hand."""

    def __init__(self, base: Scene) -> None:
        self.base = base
        self.line = RequestQueue(base.pool)
        self.pools = GpuPools(base.pool)
        self.pool_id = 0
        self.asked = 0

    async def prepare(self, **settings: Any) -> None:
        """Make the pool, and an org that can pay."""
        usual: dict[str, Any] = {
            "gpu_type": "h100",
            "region": "default",
            "milli_gpus": 1_000 * CAPACITY,
        }
        wanted = GpuPool(**(usual | settings))
        saved, _ = await self.pools.set(Act(org_id=0, actor="tester"), wanted)
        self.pool_id = saved.pool_id

    async def fund(self, *orgs: str, amount: int = 1_000_000) -> None:
        """Open orgs with credits."""
        for org in orgs:
            await self.base.do(CreateAccount(path=org), org=org)
            await self.base.do(Issue(account=org, amount=amount * CREDIT), org=org)

    def dispatcher(self, holder: str, **options: Any) -> Dispatcher:
        """A dispatcher that runs when the test says so."""
        return Dispatcher(self.base.ledger, holder=holder, **options)

    async def ask(self, org: str, gpus: int = 1, **more: Any) -> tuple[int, int]:
        """Join the queue."""
        self.asked += 1
        org_id = await self.base.ledger.org_id(org)
        assert org_id is not None
        reserve = Reserve(
            account=org,
            job_id=f"job-{self.asked}",
            gpu_type="h100",
            milli_gpus=1_000 * gpus,
            window_ms=3_600_000,
        )
        wish = QueueOptions(reserve=reserve, pool_id=self.pool_id, **({"is_patient": True} | more))
        outcome, _ = await self.line.join(Act(org_id=org_id, actor="tester"), [wish])
        assert isinstance(outcome, Queued)
        return org_id, outcome.queue_id

    async def ticket(self, key: tuple[int, int]) -> QueuedRequest:
        """A request as it stands."""
        ticket = await self.line.read(key)
        assert ticket is not None
        return ticket

    async def states(self, keys: Sequence[tuple[int, int]]) -> list[QueueState]:
        """Where requests stand."""
        return [QueueState((await self.ticket(key)).state) for key in keys]

    async def held(self) -> int:
        """GPUs of live leases."""
        return int(
            await self.base.pool.fetchval(
                "SELECT coalesce(sum(milli_gpus), 0) / 1000 FROM reservations WHERE state = 0"
            )
        )

    async def settle(self, key: tuple[int, int]) -> None:
        """End the lease of an admitted request."""
        lease = (await self.ticket(key)).reservation_id
        outcome = await self.base.ledger.submit(
            key[0], self.base.request(Settle(reservation_id=lease))
        )
        assert isinstance(outcome, Closed)


@asynccontextmanager
async def stage_on(base: Scene, **settings: Any) -> AsyncIterator[Stage]:
    """A stage with its pool."""
    stage = Stage(base)
    await stage.prepare(**settings)
    yield stage


async def told_to_stop(stage: Stage) -> int:
    """Leases that have been told to stop."""
    query = "SELECT count(*) FROM reservations WHERE state = 0 AND stopping_at > 0"
    return int(await stage.base.pool.fetchval(query))
