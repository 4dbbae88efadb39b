"""A program that does a server's background work once, and kills itself where a test says.

Arguments: the database, which work, who does it (``exact`` is the product's own; ``naive`` is as it
is often written: a correction without a memory, or progress that is noted first), and where to die:
``before``, ``between`` or ``nowhere``. Between is after the effect and before it is noted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from gpucredits.core.command import Adjust
from gpucredits.metering.address import bus_at
from gpucredits.metering.pipeline import Pipeline
from gpucredits.service.reconciliation import lost_work, passes
from gpucredits.service.reconciliation.passes import Wanted, run_pass
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import open_pool
from gpucredits.store.metering import events
from gpucredits.store.reconciliation import lost_work as claims

PROVER = b"p" * 32


def dying(work: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
    """Work that is never done, or of which nobody ever hears that it was."""

    async def dies(*given: Any, **named: Any) -> Any:
        if not first:
            await work(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    return dies


async def post_naively(ledger: Ledger, this: Any, *, dry_run: bool) -> int:
    """A correction that remembers nothing of an earlier one."""
    amount = int(this.found.drift)
    command = Adjust(reservation_id=this.lease.reservation_id, amount=amount)
    await ledger.submit(this.due.org_id, Request(command, None, b"", "naive", ""), dry_run=dry_run)
    return amount


async def reconcile(pool: Pool, who: str, where: str) -> None:
    """A pass over every lease with news."""
    post = passes.post if who == "exact" else post_naively
    if where != "nowhere":
        post = dying(post, first=where == "before")
    vars(passes)["post"] = post
    ledger = Ledger(pool)
    try:
        await run_pass(ledger, Wanted(at_once=True, again=True))
    finally:
        await ledger.stop()


async def give_back(pool: Pool, who: str, where: str) -> None:
    """Claims of lost work whose server died."""
    del who
    if where != "nowhere":
        vars(claims)["decide"] = dying(claims.decide, first=True)
    ledger = Ledger(pool)
    try:
        await lost_work.carry_on(ledger, limit=100)
    finally:
        await ledger.stop()


async def publish(pool: Pool, who: str, where: str) -> None:
    """The events that the bus does not have."""
    bus = bus_at("postgres", pool)
    pipeline = Pipeline(pool, bus, PROVER)
    if who == "naive":  # progress first
        async with pool.acquire() as db:
            await events.prepare_consumer(db, events.BUS)
            await events.set_consumer(db, 0, events.BUS, await events.last_position(db))
    if where != "nowhere":
        vars(bus)["publish"] = dying(bus.publish, first=where == "before" or who == "naive")
        if who == "naive":
            await bus.publish(None, None)  # type: ignore[arg-type]
    try:
        while await pipeline.outlet.step():
            pass
    finally:
        await bus.close()


WORK = {"reconcile": reconcile, "give_back": give_back, "publish": publish}


async def main(dsn: str, work: str, who: str, where: str) -> None:
    """Work until nothing is left, or dead."""
    pool = await open_pool(dsn)
    try:
        await WORK[work](pool, who, where)
    finally:
        await pool.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
