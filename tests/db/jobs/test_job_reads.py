"""Background jobs: what a tick reads does not grow with what there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from gpucredits.core.bounds import DAY_US
from gpucredits.store.access.retention import forget_answers, forget_decisions
from gpucredits.store.billing import budget_requests, statements
from gpucredits.store.billing.anomalies import MARKS_KEPT_HOURS, mark_hour
from gpucredits.store.billing.statements import Step
from gpucredits.store.database.connection import Connection
from gpucredits.store.dispatch import cycle
from gpucredits.store.dispatch.queue import forget_ended
from gpucredits.store.ledger.blocks import chain_heads
from gpucredits.store.ledger.due import DueCursor, find_due
from support.counting import rows_read
from support.scenes.scene import Scene, play

MANY = 5_000
FEW = 100

Forget = Callable[..., Awaitable[int]]

ANSWERS = """
INSERT INTO idempotency (org_id, key, request_hash, outcome, created_at)
SELECT 1, 'key ' || $1::bigint || ' ' || n, '', '', ledger_now() - $1
FROM generate_series(1, $2::integer) AS n"""
DECISIONS = """
INSERT INTO decisions (org_id, decided_at, command, decision, reason, reservation_id, actor, detail)
SELECT 1, ledger_now() - $1::bigint, 'reserve', 'refused', 'x', 0, '', '{}'
FROM generate_series(1, $2::integer) AS n"""
TICKETS = """
INSERT INTO queue (org_id, pool_id, account, command, milli_gpus, cpus, memory, priority, gang,
    gang_size, expected_ms, preemptible, is_patient, allow_partial, submitted_at, deadline, actor,
    request_id, state, ended_at)
SELECT 1, 0, 'acme', '{}', 1, 0, 0, 0, '', 1, 0, true, true, false, 0, 0, '', '', 3,
    ledger_now() - $1::bigint
FROM generate_series(1, $2::integer) AS n"""


@pytest.mark.parametrize(
    ("table", "fill", "forget"),
    [
        ("idempotency", ANSWERS, forget_answers),
        ("decisions", DECISIONS, forget_decisions),
        ("queue", TICKETS, forget_ended),
    ],
)
def test_forgetting_reads_what_is_old(database: str, table: str, fill: str, forget: Forget) -> None:
    """Where nothing is old next to nothing is read, and what is old goes, a measure at a time."""

    async def act(stage: Scene) -> None:
        async with stage.pool.acquire() as db:
            # As after the first cycle: what is new lies where what was forgotten had been.
            for age_us, rows in ((2 * DAY_US, 2 * FEW), (0, MANY), (3 * DAY_US, FEW)):
                await db.execute(fill, age_us, rows)
            await db.execute(f"ANALYZE {table}")
            old = partial(forget, older_us=DAY_US, limit=FEW)
            assert await old(db) == FEW
            left = f"SELECT count(*) FROM {table}"
            assert await db.fetchval(left) == MANY + 2 * FEW
            assert [await old(db) for _ in range(3)] == [FEW, FEW, 0]
            assert await rows_read(db, table, old) < MANY // 10
            assert await db.fetchval(left) == MANY

    play(database, act, stays_sound=False)


HELD = """
UPDATE queue SET state = 0, held_by = 'credits', deadline = ledger_now() * 2, account = queue_id"""
ASKED = """
INSERT INTO requests (org_id, request_id, account, kind, unit, target_id, budget, amount,
    refill_per_hour, ends_at, reason, asked_by, asked_at, expires_at, state, decided_by,
    decided_from, decided_at,
    note, given_amount, given_refill_per_hour, given_ends_at, taken_from, attempt, result, refusal)
SELECT 1, n, 'acme', 0, 0, 0, '', 1, 0, 0, '', '', ledger_now(), ledger_now() * 2, 0, '', 0, 0,
    '', 0, 0, 0, '', 0, '', '' FROM generate_series(1, $1::integer) AS n"""


async def unfinished(db: Connection) -> None:
    """Requests that are to be looked after."""
    assert await budget_requests.unfinished(db, limit=200) == []


async def probes(db: Connection) -> None:
    """Requests in a queue that may be asked about again."""
    assert len(await cycle.probes(db, 0, each=4, limit=200)) == FEW


@pytest.mark.parametrize("look", [unfinished, probes])
def test_the_clock_is_read_once(
    database: str, look: Callable[[Connection], Awaitable[None]]
) -> None:
    """Not once for each row that is compared with it."""

    async def act(stage: Scene) -> None:
        async with stage.pool.acquire() as db:
            await db.execute(ASKED, FEW)
            await db.execute(TICKETS, 0, FEW)
            await db.execute(HELD)
            assert await rows_read(db, "clock", look) == 1

    play(database, act, stays_sound=False)


BLOCKS = """
INSERT INTO blocks (org_id, block_id, first_entry_id, last_entry_id, previous_hash, hash, sealed_at)
SELECT o.org_id, n, n, n, '', int8send(n), 0 FROM orgs o, generate_series(1, $1::bigint) AS n
WHERE o.org_id > 0"""


def test_the_heads_of_chains_are_read_without_the_chains(database: str) -> None:
    """Of each org its newest block, however many came before."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "beta", "gamma", credits_each=0)
        async with stage.pool.acquire() as db:
            await db.execute(BLOCKS, MANY)
            await db.execute("ANALYZE blocks")
            heads = [head for head in await chain_heads(db) if head.chain == "entries"]
            assert [(head.org_id, head.block_id) for head in heads] == [
                (row["org_id"], MANY)
                for row in await db.fetch("SELECT org_id FROM orgs WHERE org_id > 0 ORDER BY 1")
            ]
            assert await rows_read(db, "blocks", chain_heads) < FEW

    play(database, act, stays_sound=False)


ACCOUNTS = """
INSERT INTO accounts (org_id, account_id, parent_id, path, created_at, model, credit_limit,
    credit_limit_max, status, metadata, remaining, reserved, spent, debt, overrun, version, due_at)
SELECT 100 + n % 10, n, 0, 'p' || n, 0, $1, 0, 0, 0, '{}', 0, 0, 0, 0, 0, 0, ledger_now() * 2
FROM generate_series(1, $2::bigint) AS n"""
ORGS = "INSERT INTO orgs (org_id, path) SELECT n, 'o' || n FROM generate_series(100, 109) AS n"


def test_the_sweeper_reads_who_is_due(database: str) -> None:
    """Accounts of which nothing is to be written down are not read, whichever org they are of."""

    async def act(stage: Scene) -> None:
        async with stage.pool.acquire() as db:
            await db.execute(ORGS)
            await db.execute(ACCOUNTS, 0, MANY)
            await db.execute("UPDATE accounts SET due_at = 5 WHERE account_id <= 4")
            await db.execute("ANALYZE accounts")
            bounds = {"orgs_max": 5, "accounts_max": 10, "grace_us": 0}
            found: dict[int, list[int]] = {}
            ends: list[int] = []

            async def walk(db: Connection) -> None:
                last = 0
                while not ends or last:
                    due, last = await find_due(db, last, **bounds)
                    found.update(due)
                    ends.append(last)

            assert await rows_read(db, "accounts", walk) < FEW
        assert (found, ends) == ({100 + n: [n] for n in range(1, 5)}, [104, 109, 0])

    play(database, act, stays_sound=False)


async def open_months(db: Connection, step: Step) -> DueCursor:
    """Months that are to be closed."""
    return (await statements.open_months(db, step, until=0, reached=0))[1]


async def misjudged(db: Connection, step: Step) -> DueCursor:
    """Who is to be paused or resumed."""
    return (await statements.misjudged(db, step))[1]


@pytest.mark.parametrize("look", [open_months, misjudged])
def test_a_step_over_those_who_pay_later_is_bounded(
    database: str, look: Callable[[Connection, Step], Awaitable[DueCursor]]
) -> None:
    """It reads so many of them and nobody else; step by step all of them have their turn."""

    async def act(stage: Scene) -> None:
        async with stage.pool.acquire() as db:
            await db.execute(ORGS)
            await db.execute(ACCOUNTS, 0, MANY)
            await db.execute(f"UPDATE accounts SET model = 1 WHERE account_id <= {4 * FEW}")
            await db.execute("ANALYZE accounts")
            places = [DueCursor()]

            async def one_step(db: Connection) -> None:
                places.append(await look(db, Step(places[-1], FEW, 1)))

            for _ in range(5):
                assert await rows_read(db, "accounts", one_step) < 3 * FEW
            late = await db.fetch(
                "SELECT org_id, account_id FROM accounts WHERE model = 1 ORDER BY 1, 2"
            )
        ends = [DueCursor(*late[end * FEW - 1]) for end in range(1, 5)]
        assert places == [DueCursor(), *ends, DueCursor()]

    play(database, act, stays_sound=False)


MARKS = """
INSERT INTO spend_marks (org_id, account_id, hour, spent)
SELECT a.org_id, a.account_id, n, n FROM accounts a, generate_series(1, $1::integer) AS n"""
HOURS = 200


def test_forgetting_marks_reads_those_that_are_old(database: str) -> None:
    """Of each account the last old one and what is before it; what is kept is not read."""

    async def act(stage: Scene) -> None:
        async with stage.pool.acquire() as db:
            await db.execute(ORGS)
            await db.execute(ACCOUNTS, 0, FEW)
            await db.execute(MARKS, HOURS)
            await db.execute("UPDATE accounts SET spent = 1000")
            await db.execute("ANALYZE")

            async def mark(db: Connection) -> None:
                hour = MARKS_KEPT_HOURS + 3
                await mark_hour(db, DueCursor(), hour=hour, walk_max=FEW)

            assert await rows_read(db, "spend_marks", mark) < 20 * FEW
            left = "SELECT min(hour), count(*) FROM spend_marks"
            assert tuple(await db.fetchrow(left)) == (3, FEW * (HOURS - 2 + 1))

    play(database, act, stays_sound=False)
