"""A program that reads measured use from a bus, and kills itself where a test says.

Arguments: the database, the bus, who reads (``exact`` is the product's own reader; ``effect_first``
and ``progress_first`` are readers as they are often written, with two transactions and no key), and
where to die: ``before_commit``, ``after_commit`` or ``nowhere``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from gpucredits.metering import usage_intake
from gpucredits.metering.address import bus_at
from gpucredits.metering.bus import Bus, Received, Topic
from gpucredits.metering.ingest import ingest
from gpucredits.metering.pipeline import Pipeline
from gpucredits.metering.usage_message import rows_of
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import open_pool
from gpucredits.store.metering import progress

NAIVE = "naive"
PROVER = b"p" * 32
COUNT = """
INSERT INTO measured AS m VALUES ($1, $2, $3, 1, $4, 0)
ON CONFLICT (org_id, reservation_id, node)
DO UPDATE SET events = m.events + 1, used_ms = m.used_ms + excluded.used_ms
"""


def die() -> None:
    """End as by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


async def read_exactly(pipeline: Pipeline, where: str) -> None:
    """The product's reader; it dies around the commit of the first messages."""
    save = progress.save
    used = 0

    async def counted(db: Any, messages: Sequence[Received], _: bytes) -> Any:
        nonlocal used
        used += len(messages)
        return await ingest(db, messages, PROVER)

    async def save_and_die(*given: Any) -> None:
        await save(*given)
        if used and where == "before_commit":
            die()

    async def forget(*_: Any) -> None:
        if used and where == "after_commit":
            die()

    vars(usage_intake)["ingest"] = counted
    vars(progress)["save"] = save_and_die
    vars(pipeline.bus)["forget"] = forget
    while await pipeline.intake.step():
        pass


async def read_naively(pool: Pool, bus: Bus, *, effect_first: bool, where: str) -> None:
    """A reader whose effect and progress are two transactions; it dies between them."""
    partitions = await bus.partitions(Topic.USAGE)
    async with pool.acquire() as db:
        await progress.prepare(db, NAIVE, partitions)
        stands = {each.partition: each.position for each in await progress.read(db, NAIVE)}
    found = await bus.read(Topic.USAGE, stands, limit=1_000)

    async def effect() -> None:
        for row in (row for each in found for row in rows_of(each.body, PROVER)):
            await pool.execute(COUNT, row.org_id, row.reservation_id, row.node, row.used_ms)

    async def move() -> None:
        async with pool.acquire() as db:
            await progress.save(db, NAIVE, {each.partition: each.position for each in found}, {})

    first, second = (effect, move) if effect_first else (move, effect)
    await first()
    if where != "nowhere":
        die()
    await second()


async def main(dsn: str, address: str, reader: str, where: str) -> None:
    """Read until nothing is left, or dead."""
    pool = await open_pool(dsn)
    bus = bus_at(address, pool)
    try:
        if reader == "exact":
            await read_exactly(Pipeline(pool, bus, PROVER), where)
        else:
            await read_naively(pool, bus, effect_first=reader == "effect_first", where=where)
    finally:
        await bus.close()
        await pool.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
