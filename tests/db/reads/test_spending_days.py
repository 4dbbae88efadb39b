"""Spending by day: written with the entries, one row for each payer and day, and verified."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpucredits.core.bounds import DAY_US
from gpucredits.core.command import Adjust, Refund
from gpucredits.core.heartbeat import Beat
from gpucredits.service.reads.verify import verify
from gpucredits.store.database.migrate import SQL
from support.damage.damage import found_by
from support.engines.postgres import TestServer
from support.scenes.gated import until_noon
from support.scenes.scene import CREDIT, Scene, play

LEASES = 20
SPEND = "SELECT day, payer_id, account_id, gpu_type, amount FROM spend_days ORDER BY 1, 2, 3, 4"
HOURS = "SELECT payer_id, account_id, gpu_type, hour, before FROM spend_hours ORDER BY 1, 2, 3, 4"
CARRIED = "SELECT reservation_id, day, charged FROM lease_days ORDER BY 1, 2"
DAMAGE = (
    "UPDATE lease_days SET charged = charged + 1",
    "UPDATE lease_days SET day = day + 7",
    "UPDATE lease_days SET account_id = account_id + 1000",
    "DELETE FROM lease_days",
    "DELETE FROM lease_days WHERE charged = (SELECT max(charged) FROM lease_days)",
)


async def to_morning(stage: Scene, seconds: float = 1) -> int:
    """Let the UTC day end, and some seconds of the next one pass; the next day."""
    now: int = await stage.pool.fetchval("SELECT ledger_now()")
    await stage.advance((DAY_US - now % DAY_US) / 1e6 + seconds)
    return int(await stage.pool.fetchval("SELECT ledger_now()")) // DAY_US


async def run_across_days(stage: Scene) -> tuple[int, int, int]:
    """A lease with beats on two days, a refund and an adjustment on the fourth."""
    await stage.fund("acme", credits_each=1_000_000)
    day = await to_morning(stage, 80_000)
    lease = await stage.reserve(window_ms=24 * 3_600_000)
    await stage.advance(10)
    await stage.beat(lease, 1, 10_000)
    assert await to_morning(stage) == day + 1
    await stage.beat(lease, 2, 15_000)
    await stage.advance(1)
    await stage.beat(lease, 3, 16_000)
    await to_morning(stage)
    await to_morning(stage)  # the lease has lapsed
    number = lease.reservation.reservation_id
    await stage.do(Refund(reservation_id=number, amount=4 * CREDIT))
    await stage.do(Adjust(reservation_id=number, amount=1 * CREDIT))
    return day, number, lease.reservation.account_id


def test_each_day_has_what_was_spent_on_it(database: str) -> None:
    """A settlement, a refund and an adjustment count on the day on which they were recorded."""

    async def act(stage: Scene) -> None:
        day, number, account = await run_across_days(stage)
        key = (account, account, "h100")
        spent = [tuple(row) for row in await stage.pool.fetch(SPEND)]
        assert spent == [
            (day, *key, 10 * CREDIT),
            (day + 1, *key, 6 * CREDIT),
            (day + 3, *key, -3 * CREDIT),
        ]
        carried = [tuple(row) for row in await stage.pool.fetch(CARRIED)]
        assert carried == [(number, day + 1, 10 * CREDIT), (number, day + 3, 16 * CREDIT)]

    play(database, act)


def test_each_hour_has_what_was_spent_on_its_day_before_it(database: str) -> None:
    """One row for each hour in which something was spent, whatever the number of batches."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000_000)
        day = await to_morning(stage)
        lease = await stage.reserve(window_ms=24 * 3_600_000)
        key = (lease.reservation.account_id,) * 2
        for seq, seconds in enumerate((10, 10, 3_600, 7_200, 5), start=1):
            await stage.advance(seconds)
            await stage.beat(lease, seq, seq * 2_000)
        first = day * 24
        assert [tuple(row) for row in await stage.pool.fetch(HOURS)] == [
            (*key, "h100", first, 0),
            (*key, "h100", first + 1, 4 * CREDIT),
            (*key, "h100", first + 3, 6 * CREDIT),
        ]

    play(database, act)


def test_an_upgrade_sums_up_hours(database: str) -> None:
    """The upgrade that makes the table fills it from the entries, as the ledger would have."""
    text = (SQL / "upgrades" / "0019_spending_by_hour.sql").read_text()

    async def act(stage: Scene) -> None:
        await run_across_days(stage)
        written = await stage.pool.fetch(HOURS)
        assert len(written) == 3
        async with stage.pool.acquire() as connection, connection.transaction():
            await connection.execute("TRUNCATE spend_hours")
            await connection.execute(text[text.index("INSERT INTO") :])
        assert await stage.pool.fetch(HOURS) == written

    play(database, act)


def test_an_upgrade_sums_up_what_was_spent_before(database: str) -> None:
    """The upgrade that makes the tables fills them from the entries, as the ledger would have."""
    text = (SQL / "upgrades" / "0010_spending_by_day.sql").read_text()
    fill = text[text.index("CREATE TEMPORARY TABLE") : text.index("-- Indexes for lists")]

    async def act(stage: Scene) -> None:
        await run_across_days(stage)
        written = [await stage.pool.fetch(query) for query in (SPEND, CARRIED)]
        async with stage.pool.acquire() as connection, connection.transaction():
            await connection.execute("TRUNCATE spend_days, lease_days")
            await connection.execute(fill)
        assert [await stage.pool.fetch(query) for query in (SPEND, CARRIED)] == written

    play(database, act)


@pytest.mark.parametrize("first", [1, 2])
def test_a_batch_of_beats_writes_one_row(database: str, first: int) -> None:
    """However many leases report, their payer has one row a day, inserted and then updated."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=100_000)
        await until_noon(stage)
        leases = [
            (await stage.reserve(job_id=f"j{number}", window_ms=3_600_000)).reservation
            for number in range(LEASES)
        ]
        for seq in range(1, first + 3):
            await stage.advance(5)
            beats = [(1, Beat(lease.reservation_id, seq, seq * 1_000)) for lease in leases]
            await stage.ledger.beat(beats)
        row = await stage.pool.fetchrow("SELECT count(*), sum(amount) FROM spend_days")
        assert tuple(row) == (1, LEASES * (first + 2) * CREDIT)
        assert await stage.pool.fetchval("SELECT count(*) FROM lease_days") == 0

    play(database, act)


@pytest.fixture(scope="module")
def books(postgres: TestServer) -> Iterator[str]:
    """Sound books with a lease across days; every damage is taken back."""

    async def act(stage: Scene) -> None:
        await run_across_days(stage)
        assert (await verify(stage.pool)).findings == ()

    with postgres.database() as dsn:
        play(dsn, act)
        yield dsn


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_to_the_days_of_leases_is_found(books: str, damage: str) -> None:
    """Verify names the rule, with rows."""
    assert found_by(books, "lease_days", damage)
