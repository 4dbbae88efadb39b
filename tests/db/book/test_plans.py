"""Plans made while tables were empty: what a batch reads does not grow with what runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from gpucredits.core.command import (
    AddBoost,
    Cancel,
    Command,
    Reserve,
    ReverseTopUp,
    SetBudget,
    SetQuota,
    SetRateLimit,
    Settle,
    Sweep,
    TopUp,
    Transfer,
)
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import QuotaSaved, ToppedUp
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.jobs.upkeep import Statistician
from gpucredits.store.book.load import load
from gpucredits.store.book.needs import Needs
from gpucredits.store.book.save import BatchRecord, Guard, open_lane, save_if
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.connections import close_lane
from gpucredits.store.database.statistics import analyze_grown
from support.scenes.scene import CREDIT, Scene, play

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
        milli_gpus=1_000,
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
    verdict = await save_if(connection, guard, {}, BatchRecord())
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


OTHERS = 600
COPY_TO_OTHER_ORGS = """
INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object('org_id', other))).*
FROM {table} t CROSS JOIN generate_series(1001, 1000 + $1) AS other WHERE t.org_id = 1"""
TABLES = (
    "accounts",
    "grants",
    "reservations",
    "quotas",
    "slots",
    "tallies",
    "token_buckets",
    "meters",
    "boosts",
    "budgets",
    "budget_periods",
    "topups",
)
READ_MUCH = """
SELECT relname, seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables
WHERE coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) >= $1"""


async def limit_acme(stage: Scene) -> None:
    """Limits of every kind, a boost and a budget."""
    quota: dict[str, Any] = {"account": "acme", "limit": 1_000_000 * CREDIT}
    for dimension in (Dimension.CONCURRENT_GPUS, Dimension.CONCURRENT_JOBS):
        saved = await stage.do(SetQuota(**quota, dimension=dimension))
    assert isinstance(saved, QuotaSaved)
    for terms in ({"calendar": Calendar.DAY}, {"rolling_hours": 24}):
        await stage.do(SetQuota(**quota, dimension=Dimension.CREDITS_PER_WINDOW, **terms))
    await stage.do(SetQuota(**quota, dimension=Dimension.CREDITS_PER_JOB))
    rate: dict[str, Any] = {"capacity": 1_000_000 * CREDIT, "refill_per_hour": CREDIT}
    await stage.do(SetRateLimit(account="acme", **rate))
    later = await stage.pool.fetchval("SELECT ledger_now()") + 10**12
    await stage.do(AddBoost(target_id=saved.quota.quota_id, amount=1, ends_at=later))
    budget: dict[str, Any] = {"name": "daily", "allowance": CREDIT, "calendar": Calendar.DAY}
    await stage.do(SetBudget(account="acme", **budget))


def asked(commands: Sequence[Command], *, only_renews: bool = False) -> Needs:
    """What commands of acme need."""
    needs = Needs(only_renews=only_renews)
    for command in commands:
        needs.add(1, command)
    return needs


@pytest.mark.parametrize("limited", [False, True])
def test_what_a_batch_reads_is_of_its_orgs(database: str, limited: bool) -> None:
    """Beats, admissions, ends and sweeps read no row for each other org."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)
        if limited:
            await limit_acme(stage)
        leases = [
            (await stage.reserve(job_id=f"job-{each}", window_ms=window_ms)).reservation
            for each, window_ms in enumerate((10_000, 60_000, 60_000))
        ]
        ids = [lease.reservation_id for lease in leases]
        batches = [
            asked([Beat(number, 1, 5) for number in ids], only_renews=True),
            asked([job(number) for number in range(3)]),
            asked([Settle(reservation_id=ids[1], used_ms=0), Cancel(reservation_id=ids[2])]),
            asked([Sweep(account_id=leases[0].payer_id)]),
        ]
        await stage.advance(11)  # the first lease has lapsed: its payer is due
        lane = await open_lane(stage.pool, timeout_s=5.0)
        try:
            for needs in batches:
                assert await load(lane, needs)  # planned here for the first time
            async with stage.pool.acquire() as connection:
                for table in TABLES:
                    await connection.execute(COPY_TO_OTHER_ORGS.format(table=table), OTHERS)
                await connection.execute("SELECT pg_stat_force_next_flush()")
                await Statistician(stage.pool).tick()
                assert await analyze_grown(connection, times=5, rows_min=100) == []
            for needs in batches:
                async with lane.transaction():
                    assert await load(lane, needs)
                    assert await lane.fetch(READ_MUCH, OTHERS) == []
        finally:
            await close_lane(stage.pool, lane)

    play(database, act, stays_sound=False)


CHILDREN = 600
UNRELATED = """
INSERT INTO grants SELECT (jsonb_populate_record(g, jsonb_build_object('grant_id',
    g.grant_id + other * 1000, 'origin_id', 999))).*
FROM grants g CROSS JOIN generate_series(1, $1) AS other WHERE g.org_id = 1 AND g.origin_id <> 0"""


def test_what_a_reversal_reads_is_of_its_payment(database: str) -> None:
    """A payment's lineage is found by its index, however many other grants were moved."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", credits_each=0)
        paid = await stage.do(
            TopUp(account="acme", amount=CREDIT, payment_reference="one", confirmed=True)
        )
        assert isinstance(paid, ToppedUp)
        await stage.do(Transfer(source="acme", target="acme/p", amount=CREDIT))
        needs = asked([ReverseTopUp(topup_id=paid.topup.topup_id)])
        lane = await open_lane(stage.pool, timeout_s=5.0)
        try:
            assert await load(lane, needs)  # planned here for the first time
            async with stage.pool.acquire() as connection:
                await connection.execute(UNRELATED, CHILDREN)
                await connection.execute("UPDATE grants SET is_open = false WHERE origin_id = 999")
                await connection.execute("SELECT pg_stat_force_next_flush()")
                await Statistician(stage.pool).tick()
            async with lane.transaction():
                [page] = (await load(lane, needs)).values()
                assert len(page.book.lots) == 2
                assert await lane.fetch(READ_MUCH, CHILDREN) == []
        finally:
            await close_lane(stage.pool, lane)

    play(database, act, stays_sound=False)
