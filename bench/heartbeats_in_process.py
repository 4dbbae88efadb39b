"""How many heartbeats a second the write path carries, without HTTP.

Reservations of many orgs report in turn through the real funnel into a real PostgreSQL with full
durability. Prints one line for each run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from gpucredits.service.garbage import collect_less_often

from gpucredits.core.command import Beat, CreateAccount, Issue, Reserve
from gpucredits.core.outcome import Beaten, Reserved
from gpucredits.service.funnel import FunnelOptions
from gpucredits.service.ledger import Ledger, Request
from gpucredits.store.connection import Pool
from gpucredits.store.embedded import EmbeddedPostgres
from gpucredits.store.migrate import migrate, read_migrations
from gpucredits.store.pool import PoolOptions, open_pool

SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB"}


@dataclass(slots=True)
class Lease:
    """A running job as its node sees it."""

    org_id: int
    number: int
    seq: int = 0


async def main(options: argparse.Namespace, dsn: str) -> None:
    """Fill the ledger, then measure."""
    pool = await open_pool(dsn, PoolOptions(connections_max=options.lanes + 4))
    async with pool.acquire() as connection:
        await migrate(connection, read_migrations())
    ledger = Ledger(pool, FunnelOptions(lanes=options.lanes, batch_max=options.batch))
    await ledger.start()
    started = time.monotonic()
    leases = await fill(pool, ledger, options)
    print(f"{len(leases)} reservations in {time.monotonic() - started:.1f} s")
    await pool.execute("VACUUM ANALYZE")
    await pool.execute("CHECKPOINT")
    collect_less_often()
    for _ in range(options.rounds):
        await measure(pool, ledger, leases, options)
    await ledger.stop()
    await pool.close()


async def fill(pool: Pool, ledger: Ledger, options: argparse.Namespace) -> list[Lease]:
    """Open the orgs and give every job its lease."""
    await pool.execute(
        "INSERT INTO prices VALUES (0, 1, 'h100', 'default', 36000000, 0, '', 0)"
        " ON CONFLICT DO NOTHING"
    )
    each = options.reservations // options.orgs

    async def fill_org(number: int) -> list[Lease]:
        path = f"org{number}"
        await ledger.submit(path, Request(CreateAccount(path=path)))
        await ledger.submit(path, Request(Issue(account=path, amount=10**14)))
        reserves = [
            Request(Reserve(account=path, job_id=f"job-{job}", gpu_type="h100", gpu_count=8))
            for job in range(each)
        ]
        outcomes = await ledger.submit_all(path, reserves, atomic=False)
        org_id = await ledger.org_id(path)
        assert org_id is not None
        return [
            Lease(org_id, outcome.reservation.reservation_id)
            for outcome in outcomes
            if isinstance(outcome, Reserved)
        ]

    leases: list[Lease] = []
    for start in range(0, options.orgs, 20):
        numbers = range(start, min(start + 20, options.orgs))
        for group in await asyncio.gather(*(fill_org(number) for number in numbers)):
            leases.extend(group)
    return leases


async def measure(
    pool: Pool, ledger: Ledger, leases: list[Lease], options: argparse.Namespace
) -> None:
    """Let callers report one post after the other for the given time; print what they got."""
    posts = [leases[at : at + options.post] for at in range(0, len(leases), options.post)]
    born = time.monotonic()
    deadline = born + options.seconds
    counts = [0] * options.callers
    waits: list[float] = []
    lsn = await pool.fetchval("SELECT pg_current_wal_lsn()")
    own_s, server_s = time.process_time(), await server_time_s(pool)

    async def call(caller: int) -> None:
        at = caller
        while time.monotonic() < deadline:
            post = posts[at % len(posts)]
            at += options.callers
            beats = []
            for lease in post:
                lease.seq += 1
                beats.append((lease.org_id, Beat(lease.number, lease.seq, lease.seq * 10)))
            began = time.monotonic()
            results = await ledger.beat(beats)
            waits.append(time.monotonic() - began)
            for result in results:
                assert isinstance(result, Beaten), result
                assert not result.duplicate
                assert result.decision == "continue"
            counts[caller] += len(results)

    await asyncio.gather(*(call(caller) for caller in range(options.callers)))
    seconds = time.monotonic() - born
    wal = await pool.fetchval("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1)", lsn)
    own_s, server_s = time.process_time() - own_s, await server_time_s(pool) - server_s
    done = sum(counts)
    waits.sort()
    print(
        f"{done / seconds:,.0f} heartbeats/s, {options.lanes} lanes, "
        f"CPU {own_s / done * 1e6:.1f} + {server_s / done * 1e6:.1f} us and "
        f"{wal / done:,.0f} WAL bytes each, post p50 {waits[len(waits) // 2] * 1000:.1f} ms "
        f"p95 {waits[len(waits) * 95 // 100] * 1000:.1f} ms"
    )


async def server_time_s(pool: Pool) -> float:
    """The processor time of the database's sessions so far."""
    rows = await pool.fetch("SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'client%'")
    return sum(processor_time_s(row["pid"]) for row in rows)


def processor_time_s(pid: int) -> float:
    """The processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reservations", type=int, default=20_000)
    parser.add_argument("--orgs", type=int, default=200)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--post", type=int, default=64)
    parser.add_argument("--callers", type=int, default=48)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with (
        TemporaryDirectory(prefix="gcb-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=SETTINGS) as server,
    ):
        uvloop.run(main(arguments, server.dsn("postgres")))
