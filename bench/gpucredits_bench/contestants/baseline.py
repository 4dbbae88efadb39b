"""Measuring the textbook: its best number of connections, windows on it, and that it stays correct.

Owns: a database for each way of saying a heartbeat, statement by statement and as one call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import asyncpg
import uvloop

from gpucredits_bench.contestants import textbook
from gpucredits_bench.contestants.server import run_alone
from gpucredits_bench.options import Options, Progress

Kind = Literal["statements", "calls"]
KINDS: tuple[Kind, ...] = ("statements", "calls")
CONNECTIONS = (1, 8, 32)
BEATS: dict[Kind, textbook.Heartbeat] = {
    "statements": textbook.heartbeat,
    "calls": textbook.call_heartbeat,
}


class Baseline:
    """One textbook with its database; windows on it run on the event loop that the server has."""

    def __init__(self, kind: Kind, address_of: Callable[[str], str], options: Options) -> None:
        self.kind = kind
        self.connections = CONNECTIONS[0]
        self.by_connections: dict[int, float] = {}
        self._postgres = address_of("postgres")
        self._database = f"textbook_{kind}"
        self._url = address_of(self._database)
        self._work = options.workload
        self._jobs = self._work.shuffled()
        self._clock = textbook.Clock(time.monotonic())

    def create(self) -> None:
        """Make its database with every org and running job."""

        async def make() -> None:
            await run_alone(self._postgres, f"CREATE DATABASE {self._database}")
            connection = await asyncpg.connect(self._url)
            await textbook.create(connection, self._work)
            await connection.close()

        uvloop.run(make())
        self._clock = textbook.Clock(time.monotonic())

    def choose(self, *, warm_up_s: float, seconds: float, progress: Progress) -> None:
        """Try each number of connections, and keep the best."""
        for count in CONNECTIONS:
            self.connections = count
            rate = self.window(warm_up_s=warm_up_s, seconds=seconds)
            self.by_connections[count] = rate
            progress(f"textbook ({self.kind}), {count} connections: {rate:,.0f} heartbeats/s")
        self.connections = max(self.by_connections, key=self.by_connections.__getitem__)

    def window(self, *, warm_up_s: float, seconds: float) -> float:
        """Heartbeats per second in one window."""

        async def run() -> float:
            opened = [await asyncpg.connect(self._url) for _ in range(self.connections)]
            pool = [await textbook.prepare(connection) for connection in opened]
            report = await textbook.run(
                pool,
                self._jobs,
                self._clock,
                warm_up_s=warm_up_s,
                seconds=seconds,
                beat=BEATS[self.kind],
            )
            for connection in opened:
                await connection.close()
            return report.per_second

        return uvloop.run(run())

    def close(self) -> None:
        """See that its books add up, and drop its database."""

        async def end() -> None:
            connection = await asyncpg.connect(self._url)
            sums = await textbook.totals(connection)
            await connection.close()
            if not textbook.is_balanced(sums):
                raise RuntimeError(f"the books of the textbook do not add up: {sums}")
            await run_alone(self._postgres, f"DROP DATABASE {self._database}")

        uvloop.run(end())
