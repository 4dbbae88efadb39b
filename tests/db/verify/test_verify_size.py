"""What a check of the books reads grows as they do: no rule looks at anything again and again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpucredits.core.command import (
    ConfirmTopUp,
    CreateAccount,
    Issue,
    Refund,
    ReverseTopUp,
    SetQuota,
    SetRateLimit,
    Settle,
    TopUp,
    Transfer,
)
from gpucredits.core.outcome import ToppedUp
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.jobs.upkeep import Sealer, Snapshotter
from gpucredits.service.billing.prices import NewPrice, add_price
from gpucredits.service.write.acts import Act
from gpucredits.store.database.connection import Connection
from gpucredits.store.verify.check import Check
from gpucredits.store.verify.rules import CHECKS, one_moment
from support.engines.postgres import TestServer
from support.scenes.scene import CREDIT, Scene, play

ROUNDS = 4  # few are enough for rows to outnumber what any books begin with; the control says so
GROWTH = 4
GROWTH_MAX = 4.5  # of rows: a little more, for what is looked up in trees and joined level by level
AS_LARGE = "SET LOCAL enable_seqscan = off"  # as on tables of which nobody reads all for a few rows
READ = "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables"

EACH_WITH_EACH = Check(
    "each_with_each",
    "a control that looks at each entry with each other one",
    "SELECT a.entry_id FROM entries a JOIN entries b ON a.org_id + b.org_id < 0",
)

Plan = dict[str, Any]
Work = dict[str, float]


async def do(stage: Scene, command: Any) -> Any:
    """Carry out a command that must not be refused."""
    outcome = await stage.do(command)
    assert not isinstance(outcome, Refused), outcome
    return outcome


async def open_books(stage: Scene, rounds: int) -> None:
    """As many of everything as there are rounds, and a payment that was moved in each of them."""
    await stage.pool.execute("SELECT setval('price_numbers', 1)")  # the scene has one
    await stage.fund("acme", credits_each=1_000_000)
    for path in ("acme/a", "acme/b"):
        await do(stage, CreateAccount(path=path))
    paid: ToppedUp = await do(
        stage, TopUp(account="acme/a", amount=CREDIT, payment_reference="moved")
    )
    await do(stage, ConfirmTopUp(topup_id=paid.topup.topup_id))
    for turn in range(rounds):
        await go_round(stage, turn)
    await do(stage, ReverseTopUp(topup_id=paid.topup.topup_id))
    await stage.pool.execute("ANALYZE")


async def go_round(stage: Scene, turn: int) -> None:
    """A price, an account with limits, a job that it runs, seals and snapshots."""
    new = NewPrice(
        gpu_type="h100", region="default", credits_per_gpu_hour=CREDIT, effective_from=None
    )
    act = Act(org_id=0, key=f"price-{turn}", actor="tester", request_id="r")
    await add_price(stage.pool, act, new)
    await stage.advance(61)
    for source, target in (("acme/a", "acme/b"), ("acme/b", "acme/a")):
        await do(stage, Transfer(source=source, target=target, amount=CREDIT))
    path = f"acme/p{turn}"
    await do(stage, CreateAccount(path=path))
    await do(stage, Issue(account=path, amount=100 * CREDIT))
    soon = (await stage.balance()).as_of + CREDIT
    await do(stage, Issue(account=path, amount=CREDIT, expires_at=soon))
    quota: dict[str, Any] = {"account": path, "limit": 100 * CREDIT}
    await do(
        stage,
        SetQuota(**quota, dimension=Dimension.CREDITS_PER_WINDOW, calendar=Calendar.MONTH),
    )
    await do(stage, SetQuota(**quota, dimension=Dimension.CONCURRENT_GPUS))
    await do(stage, SetRateLimit(account=path, capacity=100 * CREDIT, refill_per_hour=CREDIT))
    lease = await stage.reserve(path)
    await stage.advance(5)
    await stage.beat(lease, 1, 5_000)
    number = lease.reservation.reservation_id
    await do(stage, Settle(reservation_id=number))
    await do(stage, Refund(reservation_id=number, amount=1))
    await stage.reserve(path, window_ms=12 * 3_600_000)
    await Sealer(stage.pool).tick()
    await Snapshotter(stage.pool, entries_between=1).tick()


def nodes(plan: Plan) -> Iterator[Plan]:
    """A plan's steps."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


async def explained(connection: Connection, query: str, how: str) -> Plan:
    """The plan of a query."""
    [[text]] = await connection.fetch(f"EXPLAIN ({how}, FORMAT JSON) {query}")
    plan: Plan = json.loads(text)[0]["Plan"]
    return plan


def rows_of(step: Plan) -> float:
    """How many rows a step of a plan has given on or thrown away."""
    removed = sum(count for name, count in step.items() if name.startswith("Rows Removed by"))
    rows: float = (step["Actual Rows"] + removed) * step["Actual Loops"]
    return rows


async def measure(stage: Scene) -> Work:
    """For each rule the rows that its steps handle, and those that its functions read."""
    work = {}
    for check in (*CHECKS, EACH_WITH_EACH):
        async with one_moment(stage.pool) as connection:
            await connection.execute(AS_LARGE)
            before = await connection.fetchval(READ)
            plan = await explained(connection, check.query, "ANALYZE")
            read = float(await connection.fetchval(READ) - before)
        work[check.name] = sum(map(rows_of, nodes(plan)), read)
    return work


def work_on_books(postgres: TestServer, rounds: int) -> Work:
    """What each rule has to do on books of so many rounds."""

    async def act(stage: Scene) -> Work:
        await open_books(stage, rounds)
        return await measure(stage)

    with postgres.database() as dsn:
        return play(dsn, act)


def test_rules_read_as_much_as_there_is(postgres: TestServer) -> None:
    """Books that have four times as much take four times the rows, not sixteen times.

    The control, which looks at each entry with each other one, is seen to take more.
    """
    small = work_on_books(postgres, ROUNDS)
    large = work_on_books(postgres, ROUNDS * GROWTH)
    grown = {rule: (small[rule], rows) for rule, rows in large.items()}
    over = {rule: each for rule, each in grown.items() if each[1] > GROWTH_MAX * each[0]}
    assert over.pop(EACH_WITH_EACH.name)
    assert over == {}


def test_no_rule_asks_row_by_row(database: str) -> None:
    """No rule has a question in a question: answered by hashing on small books, anew on large."""

    async def act(stage: Scene) -> None:
        async with one_moment(stage.pool) as connection:
            for check in CHECKS:
                plan = await explained(connection, check.query, "COSTS OFF")
                named = [step.get("Subplan Name", "") for step in nodes(plan)]
                assert not [name for name in named if "SubPlan" in name], check.name

    play(database, act)
