"""A whole book in memory beside the stored ledger, for orgs with limits, and commands by chance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpucredits.core.book import Book
from gpucredits.core.budget import Rollover
from gpucredits.core.command import (
    AddBoost,
    Command,
    EndBoost,
    EndBudget,
    EndQuota,
    EndRateLimit,
    Explain,
    ReplaceBudgets,
    ReplaceQuotas,
    Reserve,
    SetBudget,
    SetQuota,
    SetRateLimit,
    UpdateAccount,
)
from gpucredits.core.limits import tokens
from gpucredits.core.outcome import Boosted, Outcome, QuotaSaved, RateLimitSaved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import Exhaustion, Reservation, ReservationState
from gpucredits.store.book.load import load
from gpucredits.store.book.needs import Needs
from support.books.parity import PATHS, Players, Shadow, core_rows, stored_rows
from support.scenes.scene import CREDIT, HOUR_US, Scene

JOBS = ("a", "b", "c")
TYPES = ("h100", "a100")
WINDOWS: tuple[dict[str, Any], ...] = (
    {"calendar": Calendar.DAY},
    {"calendar": Calendar.DAY, "zone": "Europe/Berlin"},
    {"rolling_hours": 1},
    {"rolling_hours": 2},
)


class GatedShadow(Shadow):
    """The whole book in memory; it looks at limits when the loaded one has some to look at."""

    def __init__(self) -> None:
        super().__init__()
        self.book.counts_anew = True

    def decide(self, book: Book, command: Command, now: int) -> Outcome:
        """Decide on both."""
        self.book.gated = book.gated
        if not isinstance(command, Explain):
            return super().decide(book, command, now)
        self.book.begin()  # as the batch has done, so that nothing is left of a question
        outcome = super().decide(book, command, now)
        self.book.take_back()
        return outcome


class Operators(Players):
    """Commands by chance, most of them about limits or under them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.limits: list[int] = []
        self.boosts: list[tuple[int, int]] = [(999, 999)]

    def note(self, outcome: object) -> None:
        """Remember what was made."""
        super().note(outcome)
        if isinstance(outcome, QuotaSaved):
            self.limits.append(outcome.quota.quota_id)
        if isinstance(outcome, RateLimitSaved):
            self.limits.append(outcome.bucket.bucket_id)
        if isinstance(outcome, Boosted):
            self.boosts.append((outcome.boost.target_id, outcome.boost.boost_id))

    def command(self, now: int) -> Command:
        """Half of the time something that only limits and budgets know."""
        if self.dice.random() < 0.5:
            return super().command(now)
        return self.policy(now)

    def policy(self, now: int) -> Command:
        """Set or end a limit or a budget, or ask about one."""
        dice = self.dice
        path = dice.choice(PATHS)
        limit = dice.choice([*self.limits, 999])
        budget: dict[str, Any] = {
            "account": path,
            "name": dice.choice(["x", "y"]),
            "allowance": dice.randrange(1, 200 * CREDIT),
            "rollover": dice.choice([*Rollover]),
            "rollover_cap": 5 * CREDIT,
            "rollover_us": dice.choice([HOUR_US, 3 * HOUR_US]),
            "warn_percent": (50, 90),
        }
        target_id, boost_id = dice.choice(self.boosts)
        boost: dict[str, Any] = {"target_id": limit, "amount": dice.randrange(1, 50 * CREDIT)}
        choices: list[Command] = [
            SetQuota(account=path, gpu_type=dice.choice(("", "h100")), **self.quota()),
            SetQuota(account=path, gpu_type=dice.choice(("", "h100")), **self.quota()),
            EndQuota(quota_id=limit),
            SetRateLimit(
                account=path,
                capacity=dice.randrange(10 * CREDIT, 200 * CREDIT),
                refill_per_hour=dice.choice([0, 3_600 * CREDIT, 7_200_001_234]),
            ),
            EndRateLimit(account=path),
            AddBoost(**boost, ends_at=now + dice.choice([5, 60, 600]) * CREDIT, refill_per_hour=7),
            AddBoost(**boost, starts_at=now + 20 * CREDIT, ends_at=now + 90 * CREDIT),
            EndBoost(target_id=target_id, boost_id=boost_id),
            SetBudget(**budget, calendar=dice.choice([*Calendar]), zone="Asia/Kathmandu"),
            SetBudget(**budget, ends_at=now + dice.choice([10, 90, 900]) * CREDIT),
            EndBudget(account=path, name=dice.choice(["x", "y"])),
            UpdateAccount(path=path, overdraft_limit=dice.randrange(50 * CREDIT)),
            UpdateAccount(path=path, delinquent=dice.random() < 0.3),
            Explain(reserve=Reserve(**self.reserve(path))),
            ReplaceQuotas(account=path, quotas=(SetQuota(account=path, **self.quota()),)),
            ReplaceBudgets(account=path, budgets=(SetBudget(**budget, calendar=Calendar.DAY),)),
        ]
        return dice.choice(choices)

    def quota(self) -> dict[str, Any]:
        """A quota of some dimension."""
        dice = self.dice
        match dice.choice([*Dimension, Dimension.CREDITS_PER_WINDOW]):
            case Dimension.CREDITS_PER_WINDOW as dimension:
                window = dice.choice(WINDOWS)
                return {"dimension": dimension, "limit": dice.randrange(400 * CREDIT), **window}
            case Dimension.CREDITS_PER_JOB as dimension:
                return {"dimension": dimension, "limit": dice.randrange(CREDIT, 90 * CREDIT)}
            case dimension:
                one = 1_000 if dimension is Dimension.CONCURRENT_GPUS else 1
                return {"dimension": dimension, "limit": one * dice.randrange(1, 9)}

    def reserve(self, path: str) -> dict[str, Any]:
        """A job with an end of its own kind."""
        dice = self.dice
        more = {
            "job_id": dice.choice(JOBS),
            "gpu_type": dice.choice(TYPES),
            "exhaustion": dice.choice([*Exhaustion, Exhaustion.DRAIN]),
            "grace_ms": dice.choice([0, 0, 500]),
            "overdraft": dice.choice([0, 0, CREDIT]),
        }
        return super().reserve(path) | more


def live_leases(book: Book) -> dict[int, Reservation]:
    """Live leases by number, without what no rule reads."""
    return {
        number: replace(lease, region="", node="", price_id=0, metadata={})
        for number, lease in book.reservations.items()
        if lease.state is ReservationState.ACTIVE
    }


async def compare(stage: Scene, shadow: Shadow) -> None:
    """Every row of the org, read back, is the row that the rules left in memory."""
    paths = {(1, path) for path in PATHS}
    needs = Needs(orgs={1}, anew={1}, paths=paths, counted={(1, "acme")}, counts_anew=True)
    known = shadow.book
    async with stage.pool.acquire() as connection, connection.transaction():
        cached = (await load(connection, needs))[1]
        for table, rows in core_rows(known):
            assert await stored_rows(connection, table) == rows, table.name
    stored, now = cached.book, cached.now
    assert {a.account_id: a for a in stored.accounts.values()} == known.accounts
    assert live_leases(known) == live_leases(stored)
    quotas = {
        quota.quota_id: quota
        for every in known.limits.quotas.values()
        for quota in every
        if not quota.ended_at
    }
    assert quotas == {q.quota_id: q for every in stored.limits.quotas.values() for q in every}
    for number, quota in quotas.items():
        if quota.dimension is not Dimension.CREDITS_PER_JOB:
            assert stored.limits.counters[number] == known.limits.counters[number]
    buckets = {b.bucket_id: b for b in known.limits.buckets.values() if not b.ended_at}
    assert set(buckets) == {b.bucket_id for b in stored.limits.buckets.values()}
    for bucket in stored.limits.buckets.values():
        assert tokens(bucket, now) == tokens(buckets[bucket.bucket_id], now)
