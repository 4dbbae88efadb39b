"""Usage of a long history: entries and leases are read for the time, and not for all days."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest

from gpucredits.core.bounds import DAY_US
from gpucredits.core.command import Adjust, CreateAccount, Issue, Refund, Settle
from gpucredits.core.entry import EntryType
from gpucredits.core.reservation import ReservationState
from gpucredits.store.billing.day_edges import by_days
from gpucredits.store.billing.job_spending import list_jobs
from gpucredits.store.billing.lease_spending import lease_time, list_leases
from gpucredits.store.billing.spending import Grouping, sum_groups
from gpucredits.store.database.connection import Connection
from gpucredits.store.ledger.accounts import accounts_under
from gpucredits.store.ledger.entries import EntryFilter
from support.engines.postgres import TestServer
from support.scenes.gated import until_midnight
from support.scenes.long_history import (
    AT_ONCE,
    FEW,
    FEW_DAYS,
    HOUR_MS,
    LEASES,
    History,
    as_usage_is_read,
    job,
    long_history,
    rows_read,
    run_jobs,
)
from support.scenes.scene import CREDIT, Scene, play


@pytest.fixture(scope="module")
def history(postgres: TestServer) -> Iterator[History]:
    """A history all of which lies in the morning of a day."""
    with long_history(postgres, midnight_s=-9 * 3_600) as told:
        yield told


@pytest.fixture(scope="module")
def night(postgres: TestServer) -> Iterator[History]:
    """A history with midnight soon after the eighth of its rounds began."""
    with long_history(postgres, midnight_s=7 * 60 + 30) as told:
        yield told


SIGNS = {EntryType.SETTLE: 1, EntryType.REFUND: -1, EntryType.ADJUST: 1}
SPANS = {"the first": slice(0, 2), "one in the middle": slice(5, 7), "the last": slice(-2, None)}


@pytest.mark.parametrize("table", ["entries", "reservations"])
@pytest.mark.parametrize("path", ["acme", "acme/busy"])
@pytest.mark.parametrize("span", SPANS.values(), ids=SPANS.keys())
def test_usage_reads_the_time_it_is_asked_for(
    history: History, path: str, span: slice, table: str
) -> None:
    """What was spent in one round of many is added up from that round's entries."""
    since, until = history.rounds[span]

    async def ask(connection: Connection, org_id: int) -> int:
        accounts = await accounts_under(connection, org_id, path, tree=True)
        time = await by_days(connection, org_id, since, until)
        spent = await sum_groups(
            connection, org_id, accounts, time, by="account", limit=10, offset=0
        )
        assert [(each.name, each.amount) for each in spent.groups] == [
            ("acme/busy", AT_ONCE * 30 * CREDIT)
        ]
        return len(spent.groups)

    read = rows_read(history, table, ask, prepare=as_usage_is_read)
    assert read < FEW * 2, read


@pytest.mark.parametrize("table", ["entries", "reservations", "spend_hours"])
def test_usage_from_midday_reads_an_hour_of_entries(postgres: TestServer, table: str) -> None:
    """Of a day that is cut in two, what was spent before an hour is read, and its entries since."""
    told = History()

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=2_000_000)
        await until_midnight(stage, before_s=-60)
        for hour in range(8):
            told.rounds.append((await stage.balance()).as_of)
            await run_jobs(stage, [job("acme", f"job-{hour}-{each}") for each in range(AT_ONCE)])
            await stage.advance(3_600)

    with postgres.database() as told.dsn:
        play(told.dsn, act)
        since, until = told.rounds[6], told.rounds[6] + 20 * DAY_US

        async def ask(connection: Connection, org_id: int) -> int:
            time = await by_days(connection, org_id, since, until)
            spent = await sum_groups(
                connection, org_id, None, time, by="account", limit=10, offset=0
            )
            assert spent.amount == 2 * AT_ONCE * 30 * CREDIT
            return len(spent.groups)

        read = rows_read(told, table, ask, prepare=as_usage_is_read)
    assert read < FEW, read


@pytest.mark.parametrize("table", ["entries", "reservations"])
@pytest.mark.parametrize("path", ["acme", "acme/busy"])
@pytest.mark.parametrize("span", SPANS.values(), ids=SPANS.keys())
def test_leases_and_jobs_of_a_time_are_found_without_others(
    history: History, path: str, span: slice, table: str
) -> None:
    """Those that were admitted or paid for in one round, whoever had leases before or after."""
    since, until = history.rounds[span]

    async def ask(connection: Connection, org_id: int) -> int:
        accounts = await accounts_under(connection, org_id, path, tree=True)
        time = await by_days(connection, org_id, since, until)
        which = await lease_time(connection, org_id, accounts, time)
        found = await list_leases(connection, which, before=2**62, limit=10)
        jobs, following = await list_jobs(connection, which, before=2**62, limit=10)
        assert len(found) == len(jobs) == min(10, AT_ONCE)
        assert following == found[-1].reservation_id
        return len(found)

    read = rows_read(history, table, ask, prepare=as_usage_is_read)
    assert read < FEW * 4, read


@pytest.mark.parametrize("name", ["history", "night"])
@pytest.mark.parametrize("place", [1, 6])
def test_leases_until_an_instant_are_listed_without_the_entries_around_it(
    request: pytest.FixtureRequest, name: str, place: int
) -> None:
    """Leases that ended before it need no entry, however many their day has before or after it."""
    told: History = request.getfixturevalue(name)
    until = told.rounds[place]

    async def ask(connection: Connection, org_id: int) -> int:
        time = await by_days(connection, org_id, 0, until)
        which = await lease_time(connection, org_id, None, time)
        leases = await list_leases(connection, which, before=2**62, limit=10)
        jobs, _ = await list_jobs(connection, which, before=2**62, limit=10)
        spent = [each.amount for each in leases] + [each.amount for each in jobs]
        assert spent == [30 * CREDIT] * 20
        return len(leases)

    read = rows_read(told, "entries", ask, prepare=as_usage_is_read)
    assert read < FEW, read


@pytest.mark.parametrize("payer", ["acme/idle", "acme/busy"])
@pytest.mark.parametrize("place", [1, 5], ids=["soon after it began", "late on its day"])
def test_a_lease_across_an_instant_reads_its_payers_entries_on_the_shorter_side(
    database: str, payer: str, place: int
) -> None:
    """What was spent before and after it, where another account or its own has many entries."""
    told, rounds = History(dsn=database), 6

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/busy", "acme/idle", credits_each=2_000_000)
        await until_midnight(stage, before_s=rounds * 60 + 30)
        long = await stage.reserve(payer, job_id="long", window_ms=2 * HOUR_MS)
        told.settled = long.reservation.reservation_id
        for number in range(rounds):
            if number == place:
                told.rounds.append((await stage.balance()).as_of)
            await run_jobs(
                stage, [job("acme/busy", f"j-{number}-{each}") for each in range(AT_ONCE)]
            )
            await stage.beat(long, number + 1, (number + 1) * 10_000)
        await stage.advance(60)  # over midnight
        await stage.beat(long, rounds + 1, (rounds + 1) * 10_000)

    async def ask(connection: Connection, org_id: int) -> int:
        spent = []
        for time in ((0, told.rounds[0]), (told.rounds[0], 2**62)):
            days = await by_days(connection, org_id, *time)
            which = await lease_time(connection, org_id, None, days)
            [lease] = await list_leases(connection, which, before=told.settled + 1, limit=10)
            spent.append(lease.amount)
        assert spent == [place * 10 * CREDIT, (rounds + 1 - place) * 10 * CREDIT]
        return len(spent)

    play(database, act)
    read = rows_read(told, "entries", ask, prepare=as_usage_is_read)
    of_round = 0 if payer == "acme/idle" else 3 * AT_ONCE
    assert read < FEW + 2 * of_round, read


@pytest.mark.parametrize(
    "table", ["entries", "reservations", "spend_days", "lease_days", "spend_hours"]
)
@pytest.mark.parametrize("by", ["account", "gpu_type", "day"])
def test_usage_of_whole_days_reads_no_entries(history: History, by: Grouping, table: str) -> None:
    """The sums of days are all that is read, however many entries and leases they sum up."""

    async def ask(connection: Connection, org_id: int) -> int:
        time = await by_days(connection, org_id, 0, history.over + DAY_US)
        spent = await sum_groups(connection, org_id, None, time, by=by, limit=10, offset=0)
        assert spent.amount == (LEASES + 7) * 30 * CREDIT - CREDIT
        return len(spent.groups)

    read = rows_read(history, table, ask, prepare=as_usage_is_read)
    assert read <= FEW_DAYS, read


def test_leases_that_ended_moved_or_were_corrected_cost_what_their_entries_say(
    database: str,
) -> None:
    """From each instant of their day to each other: settled, corrected, moved and charged late."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)
        for path in ("acme/p", "acme/p/u"):
            await stage.do(CreateAccount(path=path))
        await stage.do(Issue(account="acme/p/u", amount=10 * CREDIT))
        await until_midnight(stage, before_s=3_600)
        moved = await stage.reserve("acme/p/u", job_id="moved")
        late = await stage.reserve(job_id="late")
        kept, corrected = [
            await stage.reserve(job_id=name, window_ms=60_000) for name in ("kept", "corrected")
        ]
        await stage.advance(4)
        for lease in (moved, late, kept, corrected):
            await stage.beat(lease, 1, 4_000)
        await stage.advance(5)
        await stage.beat(moved, 2, 9_000)
        for lease in (kept, corrected):
            number = lease.reservation.reservation_id
            await stage.do(Settle(reservation_id=number, used_ms=8_000))
        await stage.advance(6)
        assert (await stage.beat(late, 2, 13_000)).state is ReservationState.EXPIRED
        await stage.advance(1)
        await stage.do(Refund(reservation_id=number, amount=2 * CREDIT))
        await stage.advance(86_400)
        await stage.do(Adjust(reservation_id=number, amount=CREDIT))
        await check_spent(stage)

    play(database, act)


async def check_spent(stage: Scene) -> None:
    """Leases and jobs of every time cost what the entries of the time come to."""
    whole = await stage.reads.entries("acme", EntryFilter(limit=1_000))
    charges = [row for row in whole if row.entry.type in SIGNS]
    assert {row.account for row in charges if row.job_id == "moved"} == {"acme", "acme/p/u"}
    instants = sorted({row.recorded_at + more for row in charges for more in (0, 1)})
    async with stage.pool.acquire() as connection:
        for since, until in combinations(instants, 2):
            expected: dict[str, int] = {}
            for row in charges:
                if since <= row.recorded_at < until:
                    amount = SIGNS[row.entry.type] * row.entry.amount
                    expected[row.job_id] = expected.get(row.job_id, 0) + amount
            time = await by_days(connection, 1, since, until)
            which = await lease_time(connection, 1, None, time)
            leases = await list_leases(connection, which, before=2**62, limit=10)
            jobs, _ = await list_jobs(connection, which, before=2**62, limit=10)
            assert {each.job_id: each.amount for each in leases} == expected
            assert {each.name: each.amount for each in jobs} == expected
