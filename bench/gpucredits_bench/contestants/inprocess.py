"""Ours without HTTP: the ledger's one door driven directly, to see what the edge costs.

Owns: seeding through the service, and a closed loop of callers in one process.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass

import msgspec

from gpucredits.core.command import Command, CreateAccount, Issue, Reserve
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.core.reasons import Refused
from gpucredits.core.reservation import Decision
from gpucredits.service.billing.prices import NewPrice, add_price
from gpucredits.service.write.acts import Act
from gpucredits.service.write.ledger import Ledger, Request, Undecided
from gpucredits.store.access.audit import SYSTEM
from gpucredits.store.database.connections import open_pool
from gpucredits.store.database.migrate import migrate, read_schema
from gpucredits_bench.options import Options, Progress
from gpucredits_bench.traffic.beating import Tally
from gpucredits_bench.traffic.load import quantile
from gpucredits_bench.workload import (
    GPU_TYPE,
    GRANT,
    PRICE_PER_GPU_HOUR,
    REGION,
    WINDOW_S,
    Job,
    Workload,
    dealt,
    job_path,
    org_path,
    scopes,
)

RESERVE_CHUNK = 500
SEEDERS = 8
COUNT_COMMITS = """
SELECT count(*) AS beats, count(DISTINCT recorded_at) AS commits FROM entries WHERE type = 6"""


@dataclass(frozen=True, slots=True)
class Running:
    """A job with the lease that it runs on."""

    job: Job
    org_id: int
    reservation_id: int


class InProcess(msgspec.Struct, kw_only=True):
    """What the ledger's door did without HTTP."""

    reservations: int
    orgs: int
    in_process_per_second: float
    call_p50_ms: float
    call_p95_ms: float
    client_cpu_us_per_heartbeat: float
    beats_per_commit: float


async def measure(url: str, options: Options, progress: Progress) -> InProcess:
    """Seed a fresh database and report its jobs from callers in this process."""
    pool = await open_pool(url)
    try:
        async with pool.acquire() as connection:
            await migrate(connection, read_schema())
        ledger = Ledger(pool)
        progress("in process: seeding")
        running = await seed(ledger, options.workload)
        began = time.monotonic()
        await pool.execute("VACUUM ANALYZE")
        await pool.execute("CHECKPOINT")
        progress(f"in process: {options.nodes} callers")
        used_before = time.process_time()
        tally = await run(
            ledger,
            running,
            began=began,
            callers=options.nodes,
            beats_per_call=options.beats_per_post,
            warm_up_s=options.warm_up_s,
            seconds=options.seconds,
        )
        used_s = time.process_time() - used_before
        await ledger.stop()
        counts = await pool.fetchrow(COUNT_COMMITS)
    finally:
        await pool.close()
    if tally.problems or counts is None:
        raise RuntimeError("; ".join(tally.problems))
    ordered = sorted(tally.latencies)
    return InProcess(
        reservations=options.reservations,
        orgs=options.workload.orgs,
        in_process_per_second=tally.beats / options.seconds,
        call_p50_ms=quantile(ordered, 0.5) * 1e3,
        call_p95_ms=quantile(ordered, 0.95) * 1e3,
        client_cpu_us_per_heartbeat=used_s / counts["beats"] * 1e6,
        beats_per_commit=counts["beats"] / counts["commits"],
    )


async def seed(ledger: Ledger, workload: Workload) -> list[Running]:
    """Open the orgs, grant them credits and admit every job; in the workload's order."""
    await seed_price(ledger)
    by_org: dict[int, list[Job]] = defaultdict(list)
    for job in workload.jobs:
        by_org[job.org].append(job)
    found: dict[int, Running] = {}
    turns = asyncio.Semaphore(SEEDERS)

    async def admit(org: int) -> None:
        async with turns:
            for running in await seed_org(ledger, org, by_org[org]):
                found[running.job.number] = running

    await asyncio.gather(*[admit(org) for org in range(workload.orgs)])
    return [found[job.number] for job in workload.shuffled()]


async def seed_price(ledger: Ledger) -> None:
    """What a GPU costs, set as the API sets it."""
    price = NewPrice(
        gpu_type=GPU_TYPE,
        region=REGION,
        credits_per_gpu_hour=PRICE_PER_GPU_HOUR,
        effective_from=None,
    )
    await add_price(ledger.pool, Act(org_id=0, actor=SYSTEM), price)


async def seed_org(ledger: Ledger, org: int, jobs: list[Job]) -> list[Running]:
    """One org with its project, its grant and its running jobs."""
    path = org_path(org)
    opening: list[Command] = [CreateAccount(path=scope) for scope in scopes(org)]
    opening.append(Issue(account=path, amount=GRANT))
    for command in opening:
        await carried_out(ledger, path, [command])
    org_id = await ledger.org_id(path)
    running = []
    for first in range(0, len(jobs), RESERVE_CHUNK):
        chunk = jobs[first : first + RESERVE_CHUNK]
        outcomes = await carried_out(ledger, path, [reserve(job) for job in chunk])
        for job, outcome in zip(chunk, outcomes, strict=True):
            assert isinstance(outcome, Reserved)
            assert org_id is not None
            running.append(Running(job, org_id, outcome.reservation.reservation_id))
    return running


def reserve(job: Job) -> Reserve:
    """The admission of a job."""
    return Reserve(
        account=job_path(job.org),
        job_id=f"job-{job.number}",
        gpu_type=GPU_TYPE,
        milli_gpus=1_000 * job.gpus,
        window_ms=WINDOW_S * 1_000,
    )


async def carried_out(ledger: Ledger, org: str, commands: list[Command]) -> list[Outcome]:
    """Outcomes of commands of which none may be refused."""
    outcomes = await ledger.submit_all(org, [Request(each) for each in commands], atomic=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    if refused:
        raise RuntimeError(f"seeding was refused: {refused[0]}")
    return outcomes


async def run(
    ledger: Ledger,
    running: list[Running],
    *,
    began: float,
    callers: int,
    beats_per_call: int,
    warm_up_s: float,
    seconds: float,
) -> Tally:
    """Report the jobs round and round from every caller at once."""
    counting_from = time.monotonic() + warm_up_s
    tally = Tally(counting_from, counting_from + seconds)

    async def call(hand: list[Running]) -> None:
        seq = 0
        while True:
            seq += 1
            for first in range(0, len(hand), beats_per_call):
                asked_at = time.monotonic()
                used_ms = int((asked_at - began) * 1_000)
                some = hand[first : first + beats_per_call]
                beats = [(each.org_id, Beat(each.reservation_id, seq, used_ms)) for each in some]
                check(tally, some, used_ms, await ledger.beat(beats))
                now = time.monotonic()
                tally.add(len(some), asked_at, now)
                if now >= tally.until or tally.problems:
                    return

    await asyncio.gather(*[call(hand) for hand in dealt(running, callers) if hand])
    return tally


def check(
    tally: Tally, some: list[Running], used_ms: int, outcomes: list[Outcome | Undecided]
) -> None:
    """Complain about an answer that is not what the formula says."""
    first = outcomes[0]
    due = some[0].job.charge(used_ms)
    if not isinstance(first, BeatResult) or first.settled != due:
        tally.complain(f"{first} for {used_ms} ms of {some[0]}: {due} is due")
    for outcome in outcomes:
        if not isinstance(outcome, BeatResult) or outcome.decision is not Decision.CONTINUE:
            tally.complain(str(outcome))
