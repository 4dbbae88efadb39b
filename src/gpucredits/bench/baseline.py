"""Measuring the textbook: its best of several numbers of connections, and that it stays correct."""

from __future__ import annotations

import time
from collections.abc import Callable

import asyncpg

from gpucredits.bench import textbook
from gpucredits.bench.options import Options, Progress
from gpucredits.bench.server import run_alone

CONNECTIONS = (1, 8, 32)
DATABASE = "textbook"


async def measure(
    address_of: Callable[[str], str], options: Options, progress: Progress
) -> dict[int, float]:
    """Heartbeats per second by number of connections, in a database made for it and dropped."""
    progress("textbook: making its tables")
    await run_alone(address_of("postgres"), f"CREATE DATABASE {DATABASE}")
    url = address_of(DATABASE)
    workload = options.workload
    keeper = await asyncpg.connect(url)
    rates = {}
    try:
        await textbook.create(keeper, workload)
        clock = textbook.Clock(time.monotonic())
        jobs = workload.shuffled()
        for count in CONNECTIONS:
            await keeper.execute("CHECKPOINT")
            opened = [await asyncpg.connect(url) for _ in range(count)]
            pool = [await textbook.prepare(connection) for connection in opened]
            report = await textbook.run(
                pool,
                jobs,
                clock,
                warm_up_s=min(options.warm_up_s, 1.0),
                seconds=options.seconds / 2,
            )
            rates[count] = report.per_second
            progress(f"textbook, {count} connections: {report.per_second:,.0f} heartbeats/s")
            for connection in opened:
                await connection.close()
        sums = await textbook.totals(keeper)
        if not textbook.is_balanced(sums):
            raise RuntimeError(f"the textbook's books do not add up: {sums}")
    finally:
        await keeper.close()
    await run_alone(address_of("postgres"), f"DROP DATABASE {DATABASE}")
    return rates
