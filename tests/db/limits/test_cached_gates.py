"""Orgs with limits are decided on cached books too, and exactly as on books that are read anew.

Where a row is missing or the clock has made something due, it is read.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.book import Book
from gpucredits.core.budget import Rollover
from gpucredits.core.command import (
    Cancel,
    Command,
    CreateAccount,
    Issue,
    Reserve,
    SetBudget,
    Settle,
    UpdateAccount,
)
from gpucredits.core.decide import decide
from gpucredits.core.heartbeat import BeatResult
from gpucredits.core.outcome import Closed, Outcome, Reserved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.write import batch
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.book import book_cache
from gpucredits.store.book.book_cache import GuardResult
from gpucredits.store.book.cached_book import BOOK_WEIGHT, CachedBooks
from gpucredits.store.database.connection import Pool
from support.books.gated_parity import GatedShadow, Operators, compare
from support.books.kept import counted_reads, without
from support.books.parity import PATHS
from support.scenes.gated import ALICE, SCOPES, WINDOW, quota, rate, set_up
from support.scenes.scene import CREDIT, PRICE, Scene, list_price, play

STEPS = 120
OTHER = "other"  # an org by which a server learns the time
JOBS, GPUS = Dimension.CONCURRENT_JOBS, Dimension.CONCURRENT_GPUS
DROPPING = (CreateAccount, UpdateAccount)  # the books of their orgs are not kept


async def set_all(stage: Scene) -> None:
    """All gates on, at every scope, and a budget on who pays: wide enough to refuse nothing."""
    await set_up(stage)
    plenty = 10_000 * CREDIT
    for path in SCOPES:
        await quota(stage, path, GPUS, 900_000)
        await quota(stage, path, JOBS, 900)
        await quota(stage, path, WINDOW, plenty)
        await quota(stage, path, WINDOW, plenty, rolling_hours=168)
        await rate(stage, path, plenty, plenty)
    await stage.do(SetBudget(account="acme", allowance=CREDIT, calendar=Calendar.MONTH))


def locked_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of batches that lock before they read, from now on."""
    numbers: list[int] = []
    commit_locked = batch.commit_locked

    async def noted(*everything: Any) -> Any:
        numbers.append(everything[-1])
        return await commit_locked(*everything)

    monkeypatch.setattr(batch, "commit_locked", noted)
    return numbers


def number_of(lease: Reserved) -> int:
    """The number of a lease."""
    return lease.reservation.reservation_id


def test_with_all_gates_on_admissions_and_reports_read_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reserve, report, settle and cancel take one statement each once the org is known."""

    async def act(stage: Scene) -> None:
        await set_all(stage)
        await stage.reserve(ALICE, job_id="first")
        reads, locked = counted_reads(monkeypatch), locked_batches(monkeypatch)
        for turn in range(3):
            lease = await stage.reserve(ALICE, job_id=f"job-{turn}")
            second = await stage.reserve(ALICE, job_id=f"job-{turn}")  # on another node
            assert (await stage.beat(lease, 1, 1)).decision == "continue"
            assert isinstance(await stage.do(Cancel(reservation_id=number_of(second))), Closed)
            assert isinstance(await stage.do(Settle(reservation_id=number_of(lease))), Closed)
        assert (reads, locked) == ([], [])

    play(database, act)


def test_a_refusal_reads_nothing_and_says_the_same(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a rolling window has room again, and when a budget pays, is known of a cached book."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)
        await quota(stage, "acme", WINDOW, 25 * CREDIT, rolling_hours=1)
        lease = await stage.reserve()
        await stage.advance(9)
        await stage.do(Settle(reservation_id=number_of(lease), used_ms=9_000))
        await stage.advance(300)
        await stage.reserve()
        ask = Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000)
        ask = replace(ask, window_ms=10_000)
        read = await stage.do(ask)
        reads = counted_reads(monkeypatch)
        cached = await stage.do(replace(ask, node="n"))
        assert isinstance(read, Refused)
        assert cached == read
        assert read.detail["clears_at"]
        assert reads == []

    play(database, act)


def test_a_budget_that_will_pay_is_known(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal for want of credits names the next period, without reading the budget again."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        terms: dict[str, Any] = {"calendar": Calendar.DAY, "rollover": Rollover.ALL}
        await stage.do(SetBudget(account="acme", allowance=100 * CREDIT, **terms))
        await stage.reserve(window_ms=60_000)
        ask = Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000)
        ask = replace(ask, window_ms=120_000)  # the rest and the next allowance pay for it
        stage.ledger.cache.books.clear()
        read = await stage.do(ask)
        await stage.reserve(window_ms=1_000)
        reads = counted_reads(monkeypatch)
        cached = await stage.do(ask)
        assert reads == []
        assert isinstance(read, Refused)
        assert isinstance(cached, Refused)
        assert cached.reason is read.reason is Reason.INSUFFICIENT_CREDITS
        assert cached.detail["clears_at"] == read.detail["clears_at"]
        assert stage.ledger.cache.books[1].book.periods

    play(database, act)


def test_a_job_that_another_server_runs_takes_one_slot(database: str) -> None:
    """Nothing is known of the job here: the guard finds its lease, and the job is counted once."""

    async def act(stage: Scene) -> Outcome:
        return await second_node(stage)

    assert isinstance(play(database, act), Reserved)


def test_a_job_that_is_not_looked_for_takes_two_slots(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a job that is new to a book is taken to have no lease, and is refused."""
    without(monkeypatch, "(n.node IS NULL OR r.node = n.node)", "(r.node = n.node)")

    async def act(stage: Scene) -> Outcome:
        return await second_node(stage)

    outcome = play(database, act)
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.QUOTA_EXCEEDED


async def second_node(stage: Scene) -> Outcome:
    """Ask for a second node of a job that this server does not know, where no other job may run."""
    await set_up(stage)
    await quota(stage, "acme", JOBS, 2)
    other = Ledger(stage.pool)
    ask = Reserve(account=ALICE, job_id="theirs", gpu_type="h100", milli_gpus=1_000, node="a")
    try:
        await other.submit("acme", stage.request(ask))
    finally:
        await other.stop()
    stage.ledger.cache.books.clear()
    stage.ledger.cache.contested._until.clear()
    await stage.reserve(ALICE, job_id="mine")  # reads the limits, and nothing of the other job
    return await stage.do(replace(ask, node="b"))


def test_a_job_of_another_server_is_read_where_it_ends(database: str) -> None:
    """A lease that was read for its reports only is settled with the leases of its job."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        await quota(stage, "acme", JOBS, 9)
        leases = [await stage.reserve(ALICE, job_id="job") for _ in range(2)]
        stage.ledger.cache.books.clear()
        for lease in leases:
            await stage.beat(lease, 1, 1)
        await stage.reserve(ALICE, job_id="more")
        for lease, left in zip(leases, (2, 1), strict=True):
            assert isinstance(await stage.do(Settle(reservation_id=number_of(lease))), Closed)
            assert await stage.pool.fetchval("SELECT count FROM slots") == left

    play(database, act)


def test_jobs_that_have_ended_are_forgotten(database: str) -> None:
    """A book counts the leases of jobs that run, and weighs no more for those that ran."""

    async def act(stage: Scene) -> None:
        await set_all(stage)
        await stage.reserve(ALICE, job_id="stays")
        [cached] = stage.ledger.cache.books.values()
        known, weight = dict(cached.book.limits.jobs), cached.weight
        assert list(known) == [(4, "stays", "")]
        for turn in range(3):
            lease = await stage.reserve(ALICE, job_id=f"job-{turn}")
            assert cached.weight == weight + 2  # the lease and its job
            await stage.do(Settle(reservation_id=number_of(lease)))
        assert cached.book.limits.jobs == known
        assert cached.weight == stage.ledger.cache.weight == weight > BOOK_WEIGHT

    play(database, act)


def test_a_book_that_comes_due_keeps_limits_jobs_and_budgets(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a lease has lapsed one reading brings the org up to date, and the next takes none."""

    async def act(stage: Scene) -> None:
        await set_all(stage)
        await stage.reserve(ALICE, job_id="silent")
        lease = await stage.reserve(ALICE, job_id="runs", window_ms=60_000)
        await stage.advance(11)
        await stage.fund(OTHER)  # the server learns the time
        reads = counted_reads(monkeypatch)
        assert (await stage.beat(lease, 1, 11_000)).decision == "continue"
        await stage.do(Cancel(reservation_id=number_of(await stage.reserve("acme/vision"))))
        assert reads
        del reads[:]
        more = await stage.reserve(ALICE, job_id="more")
        for each in (lease, more):
            assert isinstance(await stage.do(Settle(reservation_id=number_of(each))), Closed)
        assert reads == []

    play(database, act)


class CachedShadow(GatedShadow):
    """The whole book in memory, beside two servers of which one may not know what the other did.

    What is decided on a book of an old version is not compared: the guard must find it. So it must
    where a job that was taken to have no lease has one. What is done for another org is left alone.
    """

    pool: Pool
    is_old = False
    takes_for_granted = False

    def take_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Decide whatever batches decide on books of the present version."""
        super().take_part(monkeypatch)
        run_all, save_if = vars(batch)["run_all"], vars(batch)["save_if"]

        async def compared(jobs: Any, books: CachedBooks, *rest: Any) -> Any:
            version = await self.pool.fetchval("SELECT version FROM orgs WHERE org_id = 1")
            self.is_old = 1 in books and books[1].book.org.version != version
            self.takes_for_granted = 1 in books and bool(books[1].unread_jobs)
            return await run_all(jobs, books, *rest)

        async def saved(*everything: Any) -> GuardResult:
            verdict: GuardResult = await save_if(*everything)
            assert not (verdict.holds and self.is_old)
            return verdict

        monkeypatch.setattr(batch, "run_all", compared)
        monkeypatch.setattr(batch, "save_if", saved)

    def decide(self, book: Book, command: Command, now: int) -> Outcome:
        """Decide on both."""
        if book.org.org_id != 1 or self.is_old:
            return decide(book, command, now)
        try:
            return super().decide(book, command, now)
        except AssertionError:
            if not self.takes_for_granted:
                raise
            self.is_old = True  # anything may be answered: it must not be saved
            return decide(book, command, now)


class Tenants(Operators):
    """Mostly jobs that start and end; now and then a limit, a boost or a budget is set or ended.

    Some orgs have caps on jobs, whose admissions always read.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.has_caps = seed % 3 == 2

    def command(self, now: int) -> Command:
        """A job that starts or ends, more often than not."""
        dice = self.dice
        if dice.random() < 0.5:
            return Reserve(**self.reserve(dice.choice(PATHS)))
        if dice.random() < 0.7:
            lease = dice.choice([*self.leases[-12:], 999])
            if dice.random() < 0.5:
                return Settle(reservation_id=lease, used_ms=1_000)
            return Cancel(reservation_id=lease)
        command = self.policy(now) if dice.random() < 0.4 else super().command(now)
        return Issue(account="acme", amount=CREDIT) if isinstance(command, DROPPING) else command

    def quota(self) -> dict[str, Any]:
        """A quota that leaves some room."""
        terms = super().quota()
        if terms["dimension"] is Dimension.CREDITS_PER_JOB and not self.has_caps:
            return self.quota()
        return terms


@pytest.mark.parametrize("seed", range(9))
def test_cached_decisions_are_those_of_a_whole_book(
    database: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Boosts, windows and periods come and go, leases lapse, another server sets limits."""
    shadow, tenants = CachedShadow(), Tenants(seed)
    dice = random.Random(seed)
    shadow.book.prices.append(type(shadow.book.prices[0])(2, "a100", "default", PRICE // 3, 0))
    shadow.take_part(monkeypatch)
    monkeypatch.setattr(book_cache, "CONTESTED_S", 0.0)  # nobody locks before reading

    async def act(stage: Scene) -> None:
        shadow.pool = stage.pool
        await list_price(stage.pool, 2, "a100", PRICE // 3)
        for path in PATHS:
            await stage.do(CreateAccount(path=path))
        await stage.do(Issue(account="acme", amount=9_000 * CREDIT))
        await stage.do(CreateAccount(path=OTHER), org=OTHER)
        other = Ledger(stage.pool)
        reads = counted_reads(monkeypatch)
        from_cache = 0

        async def do(server: Ledger, command: Command) -> None:
            nonlocal from_cache
            before = len(reads)
            tenants.note(await server.submit("acme", stage.request(command)))
            is_cached = len(reads) == before and shadow.book.gated
            from_cache += is_cached and isinstance(command, Reserve | Settle | Cancel)

        try:
            for step in range(STEPS):
                server = other if step % 20 == 19 else stage.ledger
                await do(server, tenants.command(shadow.now))
                beats = [(1, tenants.beat()) for _ in range(dice.randrange(5))]
                for answer in await server.beat(beats):
                    assert isinstance(answer, BeatResult | Refused), answer
                if dice.random() < 0.2:
                    await stage.advance(dice.choice([0.5, 3, 12, 90, 4_000, 90_000]))
                    await stage.do(Issue(account=OTHER, amount=CREDIT), org=OTHER)
        finally:
            await other.stop()
        assert from_cache > STEPS // 20
        await compare(stage, shadow)

    play(database, act)
