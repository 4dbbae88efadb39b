"""Every gate at every scope through the stored ledger, and what crashes and questions do to it.

Each scenario holds with the rows that the store loads, and does not hold without them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gpucredits.core import bounds
from gpucredits.core.command import (
    EndRateLimit,
    Explain,
    Reserve,
    SetBudget,
    SetQuota,
    SetRateLimit,
    Settle,
)
from gpucredits.core.gate import Gate
from gpucredits.core.outcome import Explained, RateLimitSaved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Decision
from gpucredits.store.book.fill import FILL
from support.scenes.gated import ALICE, SCOPES, WINDOW, counters, quota, rate, refused, set_up
from support.scenes.scene import CREDIT, Scene, play


async def gpus_are_full(stage: Scene, account: str) -> Refused:
    """Two GPUs run, and a third is one too many."""
    await quota(stage, account, Dimension.CONCURRENT_GPUS, 2_000)
    await stage.reserve(ALICE, milli_gpus=2_000)
    return await refused(stage)


async def jobs_are_full(stage: Scene, account: str) -> Refused:
    """One job over two nodes runs, and another is one too many."""
    await quota(stage, account, Dimension.CONCURRENT_JOBS, 1)
    await stage.reserve(ALICE)
    await stage.reserve(ALICE)
    return await refused(stage)


async def window_is_full(stage: Scene, account: str) -> Refused:
    """A day of fifteen credits has room for one hold of ten and not for two."""
    await quota(stage, account, WINDOW, 15 * CREDIT)
    await stage.reserve(ALICE)
    return await refused(stage)


async def job_is_capped(stage: Scene, account: str) -> Refused:
    """No job may cost a micro-credit, so none starts."""
    await quota(stage, account, Dimension.CREDITS_PER_JOB, 0)
    return await refused(stage)


async def rate_is_exceeded(stage: Scene, account: str) -> Refused:
    """A bucket of fifteen pays for one hold of ten and not for two."""
    await rate(stage, account, 15 * CREDIT)
    await stage.reserve(ALICE)
    return await refused(stage)


GATES: dict[str, tuple[Callable[[Scene, str], Awaitable[Refused]], Reason, int]] = {
    "gpus": (gpus_are_full, Reason.QUOTA_EXCEEDED, 8),
    "jobs": (jobs_are_full, Reason.QUOTA_EXCEEDED, 8),
    "window": (window_is_full, Reason.QUOTA_EXCEEDED, 8),
    "job": (job_is_capped, Reason.QUOTA_EXCEEDED, 8),
    "rate": (rate_is_exceeded, Reason.RATE_LIMITED, 11),
}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("gate", GATES)
def test_every_gate_closes_at_every_scope(database: str, gate: str, scope: str) -> None:
    """A refusal names the account whose limit is full, and leaves no lease behind."""
    scenario, reason, _ = GATES[gate]

    async def act(stage: Scene) -> None:
        await set_up(stage)
        outcome = await scenario(stage, scope)
        assert outcome.reason is reason
        assert outcome.detail["account"] == scope
        assert outcome.reports

    play(database, act)


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_that_is_not_loaded_stands_open(
    database: str, monkeypatch: pytest.MonkeyPatch, gate: str
) -> None:
    """The control: without the rows of its limits no scenario is refused."""
    scenario, _, kind = GATES[gate]
    monkeypatch.setitem(FILL, kind, lambda _cached, _row: None)

    async def act(stage: Scene) -> None:
        await set_up(stage)
        with pytest.raises(AssertionError, match="Reserved"):
            await scenario(stage, ALICE)

    play(database, act, stays_sound=False)


def test_renewals_meet_the_gates(database: str) -> None:
    """Heartbeats drain where a window ends, are throttled by a rate, and go when a limit falls."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme/vision", WINDOW, 15 * CREDIT)
        drained = await stage.reserve(ALICE)
        await stage.advance(8)
        beaten = await stage.beat(drained, 1, 8_000)
        assert (beaten.decision, beaten.reason) == (Decision.DRAIN, "quota_exceeded")
        assert beaten.held == 7 * CREDIT
        await stage.do(Settle(reservation_id=drained.reservation.reservation_id))

        await stage.fund("acme/speech", credits_each=1_000)
        await rate(stage, "acme/speech", 12 * CREDIT, 3_600)
        throttled = await stage.reserve("acme/speech", payer="acme/speech", window_ms=5_000)
        await stage.advance(4)
        assert (await stage.beat(throttled, 1, 4_000)).decision is Decision.CONTINUE
        await stage.advance(4)
        beaten = await stage.beat(throttled, 2, 8_000)
        assert (beaten.decision, beaten.reason) == (Decision.THROTTLE, "rate_limited")
        assert beaten.clears_in_ms > 0

        await quota(stage, "acme/speech", Dimension.CONCURRENT_GPUS, 0)
        beaten = await stage.beat(throttled, 3, 8_001)
        assert (beaten.decision, beaten.reason) == (Decision.DRAIN, "quota_exceeded")
        [row] = await stage.pool.fetch("SELECT leaving, is_plain FROM reservations WHERE state = 0")
        assert tuple(row) == (True, False)

    play(database, act)


def test_a_rate_limit_that_is_set_anew_has_what_the_old_one_had(database: str) -> None:
    """Neither taking a limit away nor the end of an older lease hands out a fresh bucket."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await rate(stage, "acme/vision", 50 * CREDIT)
        await stage.do(EndRateLimit(account="acme/vision"))
        terms = SetRateLimit(account="acme/vision", capacity=15 * CREDIT, refill_per_hour=0)
        await stage.do(terms)
        lease = await stage.reserve(ALICE)
        for _ in range(2):
            await stage.do(EndRateLimit(account="acme/vision"))
            assert await stage.pool.fetchval("SELECT gated FROM orgs") is False
            saved = await stage.do(terms)
            assert isinstance(saved, RateLimitSaved)
            assert saved.bucket.level == 5 * CREDIT
        await stage.do(Settle(reservation_id=lease.reservation.reservation_id))
        assert (await refused(stage)).reason is Reason.RATE_LIMITED

    play(database, act)


def test_a_crashed_nodes_slots_free_themselves(database: str) -> None:
    """No sweeper, no word from the node: once its lease has lapsed its slots are free."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme", Dimension.CONCURRENT_GPUS, 2_000)
        await quota(stage, "acme/vision", Dimension.CONCURRENT_JOBS, 1)
        await quota(stage, ALICE, WINDOW, 25 * CREDIT)
        await rate(stage, "acme", 25 * CREDIT)
        await stage.reserve(ALICE, milli_gpus=2_000)
        assert (await refused(stage)).reason is Reason.QUOTA_EXCEEDED
        await stage.advance(10.5)
        await stage.reserve(ALICE, milli_gpus=2_000, job_id="next")
        assert await counters(stage) == [(2_000, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 20 * CREDIT)]

    play(database, act)


def test_a_lapsed_lease_of_another_payer_counts_for_nothing(database: str) -> None:
    """Another account pays for what lapsed; the batch that asks loads it all the same."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await stage.fund("acme/speech", credits_each=1_000)
        await quota(stage, "acme", Dimension.CONCURRENT_GPUS, 2_000)
        await stage.reserve("acme/speech", milli_gpus=2_000)
        await stage.advance(10.5)
        await stage.reserve(ALICE, milli_gpus=2_000)
        assert await counters(stage) == [(2_000, 0, 0, 0)]

    play(database, act)


def test_an_explanation_leaves_no_trace(database: str) -> None:
    """Asking takes the road of the real thing: same answer, and not one row is different after."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme", WINDOW, 25 * CREDIT)
        await rate(stage, "acme/vision", 15 * CREDIT)
        await stage.reserve(ALICE)
        await stage.advance(20)  # something is due, and stays so
        before = await everything(stage)
        wanted: dict[str, Any] = {"account": ALICE, "job_id": "x", "gpu_type": "h100"}
        wanted["window_ms"] = 10_000
        small, large = (Reserve(**wanted, milli_gpus=1_000 * count) for count in (1, 2))
        outcome = await stage.do(Explain(reserve=small))
        assert isinstance(outcome, Explained)
        assert outcome.admitted
        outcome = await stage.do(Explain(reserve=large))
        assert isinstance(outcome, Explained)
        assert not outcome.admitted
        failing = [report for report in outcome.reports if not report.passes]
        assert [report.gate for report in failing] == [Gate.RATE_LIMIT]
        unknown = await stage.do(
            Explain(reserve=Reserve(**wanted | {"account": "acme/x"}, milli_gpus=1_000))
        )
        assert isinstance(unknown, Refused)
        assert await everything(stage) == before
        real = await stage.do(large)
        assert isinstance(real, Refused)
        assert real.reports == outcome.reports

    play(database, act)


async def everything(stage: Scene) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    tables = await stage.pool.fetch(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        " AND table_type = 'BASE TABLE'"
    )
    rows: dict[str, list[str]] = {}
    for [table] in tables:
        found = await stage.pool.fetch(f'SELECT t::text FROM "{table}" t ORDER BY 1')
        rows[table] = [row[0] for row in found]
    return rows


def test_an_account_has_so_many_quotas_and_budgets(database: str) -> None:
    """One more than the bound is refused in words, and one that exists may still be changed."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        for number in range(bounds.QUOTAS_MAX):
            await quota(stage, ALICE, Dimension.CONCURRENT_GPUS, 1_000, gpu_type=f"type-{number}")
        wanted = {"account": ALICE, "dimension": Dimension.CONCURRENT_GPUS, "limit": 1_000}
        outcome = await stage.do(SetQuota(**wanted))  # type: ignore[arg-type]
        assert isinstance(outcome, Refused)
        assert (outcome.reason, outcome.detail["limit"]) == (Reason.LIMIT_INVALID, 100)
        await quota(stage, ALICE, Dimension.CONCURRENT_GPUS, 2_000, gpu_type="type-0")
        budget = {"account": ALICE, "allowance": CREDIT, "calendar": Calendar.MONTH}
        outcomes = [
            await stage.do(SetBudget(**budget, name=f"b-{n}"))  # type: ignore[arg-type]
            for n in range(bounds.BUDGETS_MAX + 1)
        ]
        assert [isinstance(each, Refused) for each in outcomes] == [False] * 20 + [True]

    play(database, act)
