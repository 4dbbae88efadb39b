"""A lease with measured use, and a pipeline on a bus, for tests of the metering pipeline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from gpucredits.metering.address import bus_at
from gpucredits.metering.bus import Bus, Message, Topic
from gpucredits.metering.pipeline import Pipeline
from gpucredits.store.billing.usage_events import Measured, UsageRow, measured
from gpucredits.store.database.connection import Pool
from support.scenes.scene import Scene

USED_MS = 1_000
PROVER = b"p" * 32


async def opened(stage: Scene, job_id: str = "train") -> int:
    """The number of a lease of a new job of ``acme``, which is opened first if need be."""
    if await stage.ledger.org_id("acme") is None:
        await stage.fund("acme")
    lease = await stage.reserve(job_id=job_id, node="n1")
    return lease.reservation.reservation_id


def use(lease: int, seqs: Iterable[int], **others: Any) -> list[UsageRow]:
    """A second of use in each of some events."""
    usual: dict[str, Any] = {"org_id": 1, "job_id": "train", "node": "n1"}
    usual |= {"reservation_id": lease, "account_id": 0, "used_ms": USED_MS, "payload": {}}
    return [UsageRow(**(usual | {"seq": seq} | others)) for seq in seqs]


async def measured_of(pool: Pool, lease: int) -> Measured:
    """What was measured of a lease of ``acme``."""
    async with pool.acquire() as db:
        return (await measured(db, 1, [lease])).get(lease, Measured())


@asynccontextmanager
async def pipeline_on(pool: Pool, address: str) -> AsyncIterator[Pipeline]:
    """A pipeline as a server has it, moved by the test."""
    bus = bus_at(address, pool)
    try:
        yield Pipeline(pool, bus, PROVER)
    finally:
        await bus.close()


async def drain(pipeline: Pipeline) -> None:
    """Use everything that is on the bus."""
    lag = 1
    while lag:
        await pipeline.intake.step()
        pipeline.intake._looked_s = 0.0
        await pipeline.intake.step()
        lag = pipeline.standing.usage.lag


async def publish_raw(bus: Bus, body: bytes, org: int = 1) -> None:
    """A message as somebody else might have written it."""
    await bus.publish(Topic.USAGE, [Message(org, f"raw-{hash(body)}", body)])
