"""No row can be changed, moved or taken out so that money changes and nobody finds out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, get_args

import pytest

from gpucredits.core.budget import Rollover
from gpucredits.core.command import (
    AddBoost,
    Cancel,
    Command,
    CreateAccount,
    EndBoost,
    EndBudget,
    EndQuota,
    EndRateLimit,
    Explain,
    Issue,
    ReplaceBudgets,
    ReplaceQuotas,
    Reserve,
    ResumeLease,
    ReviewStanding,
    SetBudget,
    SetQuota,
    SetRateLimit,
    StopLease,
)
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Boosted, QuotaSaved, Reserved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.service.reads.verify import verify
from gpucredits.store.verify import answers
from gpucredits.store.verify.answers import Thing
from support.books.parity import PATHS, Players
from support.damage.damage import FOUND_MAX, found_by, open_books
from support.damage.row_damage import ROW_DAMAGE
from support.engines.postgres import TestServer
from support.scenes.scene import CREDIT, HOUR_US, Scene, play

STEPS = 60
CASES = [(rule, damage) for rule, every in ROW_DAMAGE.items() for damage in every]


@pytest.fixture(scope="module")
def books(postgres: TestServer) -> Iterator[str]:
    """Sound books with something of everything; whoever damages them takes it back."""
    with postgres.database() as dsn:
        play(dsn, open_books)
        yield dsn


@pytest.mark.parametrize(("rule", "damage"), CASES)
def test_damage_to_one_row_is_found(books: str, rule: str, damage: str) -> None:
    """The rule finds the damage, and finds nothing without it."""
    assert found_by(books, rule) == []
    assert found_by(books, rule, damage)


def test_books_on_which_every_command_was_played_are_sound(database: str) -> None:
    """No rule cries wolf, whatever was done and however it ended."""
    players = Players(11)

    async def act(stage: Scene) -> None:
        done: set[type] = {Beat}

        async def play_one(command: Command) -> Any:
            outcome = await stage.do(command)
            players.note(outcome)
            if not isinstance(outcome, Refused):
                done.add(type(command))
            return outcome

        for path in PATHS:
            await play_one(CreateAccount(path=path))
        await play_one(Issue(account="acme", amount=900 * CREDIT))
        stopped = (await play_one(Reserve(**players.reserve("acme")))).reservation.reservation_id
        await play_one(StopLease(reservation_id=stopped, grace_ms=500))
        await play_one(ResumeLease(reservation_id=stopped, stopping_for=0))
        for step in range(STEPS):
            now = (await stage.balance()).as_of
            for _ in range(players.dice.randrange(1, 6)):
                await play_one(players.command(now))
            await stage.ledger.beat([(1, players.beat()) for _ in range(6)])
            await play_one(players.dice.choice(others(players, now)))
            await stage.advance(players.dice.choice([0, 0.5, 3, 20]))
            if step == STEPS // 2:
                await play_limits(play_one, now)
                await stage.advance(4_000)
        assert set(get_args(Command)) - done == set()
        assert (await verify(stage.pool)).findings == ()

    play(database, act)


def others(players: Players, now: int) -> list[Command]:
    """What the players do not think of, as long as there are no limits."""
    lease = players.dice.choice([*players.leases, 999])
    path = players.dice.choice(PATHS)
    budget: dict[str, Any] = {"account": path, "allowance": 9 * CREDIT, "ends_at": now + 9 * CREDIT}
    return [
        StopLease(reservation_id=lease, grace_ms=1_000),
        ResumeLease(reservation_id=lease, stopping_for=0),
        ReviewStanding(path=path, bills=(), refunded=0),
        Explain(reserve=Reserve(**players.reserve(path))),
        SetBudget(**budget, rollover=Rollover.ALL, rollover_us=HOUR_US),
        EndBudget(account=path),
    ]


async def play_limits(play_one: Callable[[Command], Awaitable[Any]], now: int) -> None:
    """Set and end limits of every kind."""
    gpus: dict[str, Any] = {"account": "acme", "dimension": Dimension.CONCURRENT_GPUS}
    made = await play_one(SetQuota(**gpus, limit=9_000))
    assert isinstance(made, QuotaSaved)
    number = made.quota.quota_id
    boosted = await play_one(AddBoost(target_id=number, amount=1, ends_at=now + HOUR_US))
    assert isinstance(boosted, Boosted)
    await play_one(EndBoost(target_id=number, boost_id=boosted.boost.boost_id))
    await play_one(EndQuota(quota_id=number))
    window: dict[str, Any] = {"dimension": Dimension.CREDITS_PER_WINDOW, "calendar": Calendar.DAY}
    wanted = SetQuota(account="acme/p", limit=400 * CREDIT, **window)
    await play_one(ReplaceQuotas(account="acme/p", quotas=(wanted,)))
    await play_one(SetRateLimit(account="acme/p", capacity=99 * CREDIT, refill_per_hour=CREDIT))
    await play_one(SetRateLimit(account="acme", capacity=99 * CREDIT, refill_per_hour=CREDIT))
    await play_one(EndRateLimit(account="acme"))
    monthly = SetBudget(account="acme/q", allowance=CREDIT, calendar=Calendar.MONTH, name="m")
    await play_one(ReplaceBudgets(account="acme/q", budgets=(monthly,)))
    await play_one(EndBudget(account="acme/q", name="m"))
    one: dict[str, Any] = {"job_id": "j", "gpu_type": "h100", "milli_gpus": 1_000}
    lease = await play_one(Reserve(account="acme", window_ms=1_000, **one))
    assert isinstance(lease, Reserved)
    await play_one(Cancel(reservation_id=lease.reservation.reservation_id))


def test_of_very_many_answers_a_sample_is_looked_at(
    books: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound holds for what is looked at, and all are looked at below it."""
    damage = "UPDATE idempotency SET outcome = '\\x00'"
    assert len(found_by(books, "answers", damage)) == FOUND_MAX
    monkeypatch.setattr(answers, "ANSWERS_MAX", 0)
    assert found_by(books, "answers", damage) == []


def test_what_was_told_is_compared_in_columns_that_are_there(database: str) -> None:
    """Every sort of row that answers tell of can be asked for."""
    things = [each for each in vars(answers).values() if isinstance(each, Thing)]

    async def act(stage: Scene) -> None:
        async with stage.pool.acquire() as connection:
            for thing in things:
                told = [answers.Told(1, 1, "")]
                assert await answers.otherwise(connection, thing, told) == [0]

    assert len(things) > 5
    play(database, act)
