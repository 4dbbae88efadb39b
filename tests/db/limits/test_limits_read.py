"""Setting limits under the org's lock: what is read does not grow with what runs elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import (
    Command,
    EndQuota,
    ReplaceQuotas,
    Reserve,
    SetQuota,
    SetRateLimit,
)
from gpucredits.core.outcome import QuotaSaved, QuotasReplaced, RateLimitSaved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.service.write import batch, new_windows
from gpucredits.store.book.load import load_and_lock
from gpucredits.store.book.save import save
from gpucredits.store.limits.quotas import spent_in
from support.scenes.scene import CREDIT, Scene, play

ELSEWHERE = 300
FEW = 20
ALICE, MANY = "acme/p/alice", "acme/q/many"
GPUS, JOBS, PER_JOB = (
    Dimension.CONCURRENT_GPUS,
    Dimension.CONCURRENT_JOBS,
    Dimension.CREDITS_PER_JOB,
)
READ = """
SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'reservations'"""


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many leases each transaction that locks has read before it saves."""
    reads: list[int] = []
    before = 0  # what the session has yet to report of earlier transactions

    async def begun(connection: Any, *rest: Any) -> Any:
        nonlocal before
        before = await connection.fetchval(READ)
        return await load_and_lock(connection, *rest)

    async def counted(connection: Any, *rest: Any) -> None:
        reads.append(await connection.fetchval(READ) - before)
        await save(connection, *rest)

    monkeypatch.setattr(batch, "load_and_lock", begun)
    monkeypatch.setattr(batch, "save", counted)
    return reads


async def set_up(stage: Scene) -> None:
    """Three jobs of one user, with two GPUs each, and many of another."""
    await stage.fund("acme", credits_each=1_000_000)
    await stage.fund("acme/p", "acme/q", ALICE, MANY, credits_each=0)
    usual: dict[str, Any] = {"gpu_type": "h100", "window_ms": 100_000}
    asked = [
        Reserve(account=MANY, job_id=f"job-{number}", milli_gpus=1_000, **usual)
        for number in range(ELSEWHERE)
    ]
    asked += [
        Reserve(account=ALICE, job_id=f"job-{n}", milli_gpus=2_000, **usual) for n in range(3)
    ]
    await stage.ledger.submit_all("acme", [stage.request(each) for each in asked], atomic=True)
    await stage.pool.execute("ANALYZE reservations")  # as the server does by itself


async def set_quota(stage: Scene, account: str, dimension: Dimension, limit: int) -> int:
    """Set a quota; its number."""
    outcome = await stage.do(SetQuota(account=account, dimension=dimension, limit=limit))
    assert isinstance(outcome, QuotaSaved), outcome
    return outcome.quota.quota_id


async def counts(stage: Scene) -> list[tuple[int, int]]:
    """Each quota with what it counts, in the order in which they were set."""
    rows = await stage.pool.fetch("SELECT quota_id, count FROM slots ORDER BY quota_id")
    return [tuple(row) for row in rows]


def test_a_limit_that_changes_reads_no_lease(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a quota has counted stays with it, so nobody looks at what runs."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        number = await set_quota(stage, "acme", GPUS, 900_000)
        cap = await set_quota(stage, "acme", PER_JOB, 900 * CREDIT)
        reads = rows_read(monkeypatch)
        assert await set_quota(stage, "acme", GPUS, 800_000) == number
        same = SetQuota(account="acme", dimension=GPUS, limit=700_000)
        outcome = await stage.do(ReplaceQuotas(account="acme", quotas=(same,)))
        assert isinstance(outcome, QuotasReplaced)
        assert [quota.quota_id for quota in outcome.ended] == [cap]
        assert len(reads) == 2
        assert max(reads) < FEW, reads
        assert await counts(stage) == [(number, 1_000 * (ELSEWHERE + 6))]

    play(database, act)


@pytest.mark.parametrize(
    ("account", "dimension", "count"),
    [(ALICE, GPUS, 6_000), ("acme/p", GPUS, 6_000), ("acme/p", JOBS, 3), ("acme/p", PER_JOB, None)],
)
def test_a_new_quota_reads_what_runs_below_its_account(
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    account: str,
    dimension: Dimension,
    count: int | None,
) -> None:
    """It counts all of that and nothing else, whatever else the org runs."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        reads = rows_read(monkeypatch)
        number = await set_quota(stage, account, dimension, 900)
        assert len(reads) == 1
        assert reads[0] < FEW, reads
        assert await counts(stage) == ([] if count is None else [(number, count)])

    play(database, act)


def test_a_quota_of_an_org_counts_all_that_runs(database: str) -> None:
    """The control: it lies above everything."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        gpus = await set_quota(stage, "acme", GPUS, 900_000)
        jobs = await set_quota(stage, "acme/q", JOBS, 900)
        assert await counts(stage) == [(gpus, 1_000 * (ELSEWHERE + 6)), (jobs, ELSEWHERE)]

    play(database, act)


def test_a_rate_limit_reads_no_lease(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket counts nothing that was drawn before it."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        reads = rows_read(monkeypatch)
        for capacity in (9, 8):
            limit = SetRateLimit(account="acme", capacity=capacity, refill_per_hour=CREDIT)
            assert isinstance(await stage.do(limit), RateLimitSaved)
        assert len(reads) == 2
        assert max(reads) < FEW, reads

    play(database, act)


def test_a_quota_may_end_and_begin_in_one_batch(database: str) -> None:
    """It was there when the batch was read, and is new by the time it is set: more is read."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        number = await set_quota(stage, "acme/p", GPUS, 900_000)
        again: list[Command] = [
            EndQuota(quota_id=number),
            SetQuota(account="acme/p", dimension=GPUS, limit=50_000),
        ]
        *_, outcome = await stage.ledger.submit_all(
            "acme", [stage.request(each) for each in again], atomic=True, dry_run=True
        )
        assert isinstance(outcome, QuotaSaved)
        assert outcome.quota.quota_id > number

    play(database, act)


def test_what_was_spent_before_is_asked_for_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the moment at which what runs was read: by then another window may have begun."""
    asked: list[int] = []

    async def counted(*everything: Any) -> list[int]:
        spent = await spent_in(*everything)
        asked.extend(spent)
        return spent

    monkeypatch.setattr(new_windows, "spent_in", counted)

    async def act(stage: Scene) -> None:
        await set_up(stage)
        dimension = Dimension.CREDITS_PER_WINDOW
        quota = SetQuota(account="acme", dimension=dimension, limit=9, calendar=Calendar.DAY)
        assert isinstance(await stage.do(quota), QuotaSaved)
        assert isinstance(await stage.do(replace(quota, limit=8)), QuotaSaved)
        assert asked == [0]

    play(database, act)
