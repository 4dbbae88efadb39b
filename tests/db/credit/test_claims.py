"""Grants that end under running jobs, in the stored ledger: loaded and saved as the rules say."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpucredits.core.book import Book
from gpucredits.core.budget import Rollover
from gpucredits.core.command import (
    Command,
    CreateAccount,
    Issue,
    Reserve,
    SetBudget,
    SetQuota,
    Settle,
)
from gpucredits.core.grant import GrantState
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Outcome
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.store.book.load import load
from gpucredits.store.book.needs import Needs
from support.books.claims import check_claims
from support.books.parity import Shadow
from support.scenes.scene import CREDIT, Scene, play

STEPS = 60
PATHS = ("acme", "acme/p")


class EndingShadow(Shadow):
    """The whole book in memory; it looks at limits when the loaded one has some to look at."""

    def __init__(self) -> None:
        super().__init__()
        self.book.counts_anew = True

    def decide(self, book: Book, command: Command, now: int) -> Outcome:
        """Decide on both."""
        self.book.gated = book.gated
        return super().decide(book, command, now)

    def live(self) -> list[Reservation]:
        """The leases that run."""
        return [x for x in self.book.reservations.values() if x.state is ReservationState.ACTIVE]


def rows_of(book: Book) -> tuple[object, ...]:
    """Accounts, grants with something left, and leases that run, without what no rule reads."""
    leases = {
        number: replace(lease, region="", node="", price_id=0, metadata={})
        for number, lease in book.reservations.items()
        if lease.state is ReservationState.ACTIVE
    }
    grants = {n: g for n, g in book.lots.items() if g.remaining and g.state != GrantState.ENDED}
    return {a.account_id: a for a in book.accounts.values()}, grants, leases


async def compare(stage: Scene, shadow: Shadow) -> None:
    """Every row, read back, is the row that the rules left in memory, and claims add up."""
    paths = {(1, path) for path in PATHS}
    needs = Needs(orgs={1}, anew={1}, paths=paths, counted={(1, "acme")}, counts_anew=True)
    async with stage.pool.acquire() as connection, connection.transaction():
        page = (await load(connection, needs))[1]
    assert rows_of(page.book) == rows_of(shadow.book)
    check_claims(shadow.book)


def credits_that_end(dice: random.Random, now: int) -> Command:
    """Credits for some seconds, some to be used before others, or a budget that goes on soon."""
    path = dice.choice(PATHS)
    ends_at = now + dice.choice([2, 4, 7, 11]) * CREDIT
    if dice.random() < 0.2:
        return SetBudget(
            account=path,
            name=dice.choice(["x", "y"]),
            allowance=dice.randrange(1, 40 * CREDIT),
            ends_at=ends_at,
            rollover=dice.choice([*Rollover]),
            rollover_cap=5 * CREDIT,
            rollover_us=3 * CREDIT,
        )
    amount = dice.choice([2, 5, 12, 30]) * CREDIT
    return Issue(
        account=path, amount=amount, expires_at=ends_at, priority=dice.choice([1, 100, 100, 500])
    )


@pytest.mark.parametrize("limited", [False, True], ids=["without limits", "with limits"])
@pytest.mark.parametrize("seed", range(3))
def test_claims_in_the_store_agree_with_the_rules(
    database: str, monkeypatch: pytest.MonkeyPatch, seed: int, limited: bool
) -> None:
    """Whatever is loaded of an account where a grant has ended, answers and rows are the same."""
    shadow, dice = EndingShadow(), random.Random(seed)
    shadow.take_part(monkeypatch)

    async def act(stage: Scene) -> None:
        for path in PATHS:
            await stage.do(CreateAccount(path=path))
            await stage.do(Issue(account=path, amount=40 * CREDIT))
        if limited:
            window = {"dimension": Dimension.CREDITS_PER_WINDOW, "calendar": Calendar.DAY}
            await stage.do(SetQuota(account="acme", limit=900 * CREDIT, **window))  # type: ignore[arg-type]
        kept = 0
        for _ in range(STEPS):
            live = shadow.live()
            due = [lease for lease in live if dice.random() < 0.3]
            await stage.ledger.beat(
                [(1, Beat(x.reservation_id, x.seq + 1, used(dice, x, shadow.now))) for x in due]
            )
            kept += sum(len(lease.kept) for lease in shadow.live())
            await stage.do(step(dice, live, shadow.now))
            await stage.advance(dice.choice([0.5, 1, 2.5]))
        assert kept > 5, "grants have ended under jobs"
        await compare(stage, shadow)

    play(database, act)


def used(dice: random.Random, lease: Reservation, now: int) -> int:
    """What a node reports: most often that it ran all the time."""
    elapsed = (now - lease.admitted_at) // 1_000
    return elapsed if dice.random() < 0.7 else lease.used_ms + (elapsed - lease.used_ms) // 3


def step(dice: random.Random, live: list[Reservation], now: int) -> Command:
    """Something beside heartbeats."""
    if live and dice.random() < 0.1:
        return Settle(reservation_id=dice.choice(live).reservation_id)
    if len(live) < 6 and dice.random() < 0.6:
        return Reserve(
            account="acme/p",
            payer=dice.choice(PATHS),
            job_id=f"j{now}",
            gpu_type="h100",
            milli_gpus=1_000 * dice.choice([1, 1, 2]),
            window_ms=dice.choice([4_000, 10_000, 15_000]),
        )
    return credits_that_end(dice, now)
