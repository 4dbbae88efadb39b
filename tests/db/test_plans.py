"""Plans made while tables were empty: what a batch reads does not grow with what runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from gpucredits.core.command import Reserve
from gpucredits.store.book import load
from gpucredits.store.book_save import Minutes, save_if
from gpucredits.store.connection import Connection
from gpucredits.store.guard import Guard
from gpucredits.store.lane import close_lane, open_lane
from gpucredits.store.needs import Needs
from support.scene import Scene, play

ASKING = 20
RUNNING = 600
READ = """
SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'reservations'"""

ACME = """
SELECT o.org_id, a.account_id, o.version, ledger_now()
FROM orgs o JOIN accounts a ON a.org_id = o.org_id WHERE a.path = 'acme'"""

Ask = Callable[[Connection], Awaitable[None]]


def job(number: int) -> Reserve:
    """A job on a node of its own."""
    return Reserve(
        account="acme",
        job_id=f"job-{number}",
        gpu_type="h100",
        gpu_count=1,
        window_ms=10_000,
        node=f"node-{number}",
    )


async def load_jobs(connection: Connection) -> None:
    """What admissions ask of the book: the leases that their jobs have already."""
    needs = Needs()
    [org_id, *_] = await connection.fetchrow(ACME)
    for number in range(ASKING):
        needs.add(org_id, job(number))
    await load(connection, needs)


async def guard_nodes(connection: Connection) -> None:
    """What a statement that saves admissions asks: whether a job has that node already."""
    org_id, account_id, version, now = await connection.fetchrow(ACME)
    nodes = tuple((org_id, account_id, f"job-{number}", "another") for number in range(ASKING))
    guard = Guard((org_id,), (version,), now, nodes=nodes)
    verdict = await save_if(connection, guard, {}, Minutes())
    assert verdict.holds


@pytest.mark.parametrize("ask", [load_jobs, guard_nodes])
def test_what_an_admission_reads_is_its_job(database: str, ask: Ask) -> None:
    """A lane that was opened on an empty database finds each job by its key, however many run."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000_000)
        lane = await open_lane(stage.pool, timeout_s=5.0)
        try:
            await ask(lane)  # planned here, for good
            await stage.ledger.submit_all(
                "acme", [stage.request(job(number)) for number in range(RUNNING)], atomic=True
            )
            async with lane.transaction():
                await ask(lane)
                read = await lane.fetchval(READ)
        finally:
            await close_lane(stage.pool, lane)
        assert ASKING <= read < RUNNING, read

    play(database, act)
