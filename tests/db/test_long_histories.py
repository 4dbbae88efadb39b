"""What is asked of a long history: rows are read for the answer, not for all that ever was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import asyncpg
import pytest

from gpucredits.core.bounds import DAY_US
from gpucredits.core.command import Command, Refund, Reserve, Settle
from gpucredits.core.entry import EntryType
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.core.reservation import ReservationState
from gpucredits.store.billing.day_edges import by_days
from gpucredits.store.billing.job_spending import list_jobs
from gpucredits.store.billing.lease_spending import lease_time, list_leases
from gpucredits.store.billing.spending import Grouping, sum_groups
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.connections import BY_INDEX
from gpucredits.store.ledger import reservations
from gpucredits.store.ledger.accounts import accounts_under
from gpucredits.store.ledger.entries import EntryFilter, list_entries
from gpucredits.store.ledger.history import sums_at, take_snapshots
from gpucredits.store.ledger.orgs import find_org
from gpucredits.store.ledger.reservations import ReservationFilter, list_reservations
from support.gated import until_midnight
from support.postgres import TestServer
from support.scene import CREDIT, Scene, play
from support.waiting import HANGS_S

ROUNDS = 15
AT_ONCE = 100  # leases of a round
LEASES = ROUNDS * AT_ONCE
FEW_DAYS = 40  # rows: days and accounts of the history, and where its bounds are looked up
FEW = AT_ONCE * 2  # rows: less than two rounds have of leases, or one of entries
READ = """
SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = $1"""
HOUR_MS = 3_600_000

Ask = Callable[[Connection, int], Awaitable[int]]
Prepare = Callable[[Connection, int], Awaitable[None]]


@dataclass
class History:
    """A ledger in which much has happened, and when."""

    dsn: str = ""
    rounds: list[int] = field(default_factory=list)  # when each began
    over: int = 0
    settled: int = 0  # leases of the first hour
    lapsed: int = 0
    refunded: int = 0


def job(account: str, name: str, node: str = "") -> Reserve:
    """A job for an hour ahead."""
    return Reserve(
        account=account,
        job_id=name,
        gpu_type="h100",
        milli_gpus=1_000,
        window_ms=HOUR_MS,
        node=node,
    )


async def do_all(stage: Scene, commands: list[Command]) -> list[Outcome]:
    """Carry them out together."""
    return await stage.ledger.submit_all(
        "acme", [stage.request(command) for command in commands], atomic=True
    )


async def run_jobs(stage: Scene, jobs: list[Reserve]) -> list[int]:
    """Jobs that run for a minute and end; the numbers of their leases."""
    given = [
        reserved for reserved in await do_all(stage, [*jobs]) if isinstance(reserved, Reserved)
    ]
    assert len(given) == len(jobs)
    numbers = [reserved.reservation.reservation_id for reserved in given]
    await stage.advance(60)
    await do_all(stage, [Settle(reservation_id=number, used_ms=30_000) for number in numbers])
    return numbers


@contextmanager
def long_history(postgres: TestServer, *, midnight_s: float) -> Iterator[History]:
    """Two accounts: one has been idle since the first hour, the other has been busy ever since.

    The first of the rounds begins so long before midnight, or after it if negative.
    """
    told = History()

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/busy", "acme/idle", credits_each=2_000_000)
        old = [job("acme/idle", f"old-{n}", f"shelf-{n}") for n in range(5)]
        await run_jobs(stage, [replace(old[0], metadata={"team": "few"}), *old[1:]])
        [told.settled, told.refunded] = await run_jobs(
            stage, [job("acme/busy", "settled"), job("acme/busy", "refunded")]
        )
        lease = await stage.reserve("acme/busy", job_id="lapsed")
        told.lapsed = lease.reservation.reservation_id
        await stage.advance(4_000)  # the lease lapses, and is written down when others begin
        await until_midnight(stage, before_s=midnight_s)
        for number in range(ROUNDS):
            told.rounds.append((await stage.balance()).as_of)
            await run_jobs(
                stage,
                [
                    job("acme/busy", f"job-{number}-{each}", f"node-{each % 4}")
                    for each in range(AT_ONCE)
                ],
            )
        told.over = (await stage.balance()).as_of
        await stage.do(Refund(reservation_id=told.refunded, amount=CREDIT))
        await do_all(stage, [job("acme/busy", f"live-{each}") for each in range(3)])

    with postgres.database() as told.dsn:
        play(told.dsn, act)
        yield told


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


async def nothing(connection: Connection, org_id: int) -> None:
    """What most questions need to be there before they are asked."""


async def count_read(dsn: str, table: str, ask: Ask, prepare: Prepare, *, statistics: bool) -> int:
    """How many rows of a table a question reads, that finds something."""
    connection = await asyncpg.connect(dsn, timeout=HANGS_S, command_timeout=HANGS_S)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(BY_INDEX)
        org_id = await find_org(connection, "acme")
        assert org_id is not None
        await prepare(connection, org_id)
        if statistics:
            await connection.execute("ANALYZE")
        before: int = await connection.fetchval(READ, table)
        assert await ask(connection, org_id), "there is something to find"
        after: int = await connection.fetchval(READ, table)
    finally:
        await transaction.rollback()  # statistics and all
        await connection.close()
    return after - before


def rows_read(history: History, table: str, ask: Ask, prepare: Prepare = nothing) -> int:
    """As many as are read in the worse case, whether the planner has statistics or not."""
    return max(
        asyncio.run(count_read(history.dsn, table, ask, prepare, statistics=statistics))
        for statistics in (False, True)
    )


LEASES_WANTED = {
    "of an idle account": ReservationFilter(account="acme/idle"),
    "of an idle subtree": ReservationFilter(account="acme/idle", tree=True),
    "of an idle account, of two more than it has": ReservationFilter(account="acme/idle", limit=7),
    "that began long ago": ReservationFilter(account="acme/busy", before=500, limit=10),
    "that run": ReservationFilter(account="acme/busy", state=ReservationState.ACTIVE),
    "with a label": ReservationFilter(account="acme", tree=True, metadata={"team": "few"}),
    "with a label, of an account": ReservationFilter(account="acme/idle", metadata={"team": "few"}),
    "that lapsed": ReservationFilter(account="acme", tree=True, state=ReservationState.EXPIRED),
    "that run in the org": ReservationFilter(
        account="acme", tree=True, state=ReservationState.ACTIVE
    ),
    "on an old node": ReservationFilter(account="acme", tree=True, node="shelf-1"),
    "of an old job": ReservationFilter(account="acme", tree=True, job_id="old-1"),
}


@pytest.mark.parametrize("wanted", LEASES_WANTED.values(), ids=LEASES_WANTED.keys())
def test_listing_leases_reads_those_it_lists(history: History, wanted: ReservationFilter) -> None:
    """Leases of an account, a job or a node are found without the org's others."""

    async def ask(connection: Connection, org_id: int) -> int:
        return len(await list_reservations(connection, org_id, wanted, history.over))

    read = rows_read(history, "reservations", ask)
    assert read < FEW, read


@pytest.mark.parametrize("each", [None, 1], ids=["as it is", "control: one lease of each"])
def test_a_page_of_many_accounts_reads_about_a_page(
    database: str, monkeypatch: pytest.MonkeyPatch, each: int | None
) -> None:
    """Some leases of each account say down to which number a page reaches, and few more are read.

    Control: one of each says nothing, and as many leases as a page has are read of each account.
    """
    if each is not None:
        monkeypatch.setattr(reservations, "each_of", lambda limit, accounts: each)
    paths = [f"acme/busy/u{number}" for number in range(10)]
    wanted = ReservationFilter(account="acme/busy", tree=True, limit=20)

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/busy", *paths, credits_each=2_000_000)
        await run_jobs(stage, [job(path, f"j-{n}") for n in range(20) for path in paths])

    async def ask(connection: Connection, org_id: int) -> int:
        return len(await list_reservations(connection, org_id, wanted, 0))

    play(database, act)
    read = rows_read(History(dsn=database), "reservations", ask)
    assert (read <= 4 * wanted.limit) is (each is None), read


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

    read = rows_read(history, table, ask)
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

        read = rows_read(told, table, ask)
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

    read = rows_read(history, table, ask)
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
        assert [each.amount for each in (*leases, *jobs)] == [30 * CREDIT] * 20
        return len(leases)

    read = rows_read(told, "entries", ask)
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
    read = rows_read(told, "entries", ask)
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

    read = rows_read(history, table, ask)
    assert read <= FEW_DAYS, read


def entries_wanted(history: History) -> dict[str, EntryFilter]:
    """What is asked of the ledger, each about a small part of the time."""
    [first, second, *_], last = history.rounds, history.rounds[-1]
    reserve = (EntryType.RESERVE,)
    return {
        "since lately": EntryFilter(account="acme/busy", types=reserve, since=history.over),
        "since lately, of an org": EntryFilter(
            account="acme", tree=True, types=reserve, since=history.over
        ),
        "of long ago": EntryFilter(account="acme/busy", since=first, until=second, limit=10),
        "until long ago": EntryFilter(account="acme/busy", until=first),
        "until long ago, of an org": EntryFilter(account="acme", tree=True, until=first, limit=10),
        "settled long ago, of an org": EntryFilter(
            account="acme", tree=True, types=(EntryType.SETTLE,), until=second, limit=10
        ),
        "of a lease that was settled": EntryFilter(reservation_id=history.settled),
        "of a job that was settled": EntryFilter(account="acme", tree=True, job_id="settled"),
        "of a job that lapsed": EntryFilter(job_id="lapsed"),
        "of a lease that runs": EntryFilter(account="acme/busy", job_id="live-1", since=last),
    }


@pytest.mark.parametrize("name", entries_wanted(History(rounds=[0, 0])).keys())
def test_listing_entries_reads_those_around_them(history: History, name: str) -> None:
    """Entries of a time, a job or a lease are found without what happened at other times."""
    wanted = entries_wanted(history)[name]

    async def ask(connection: Connection, org_id: int) -> int:
        return len(await list_entries(connection, org_id, wanted))

    read = rows_read(history, "entries", ask)
    assert read < FEW * 2, read


@pytest.mark.parametrize(("table", "most"), [("entries", FEW * 2), ("snapshots", 4)])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_a_past_balance_reads_around_its_instant(
    history: History, place: int, table: str, most: int
) -> None:
    """With snapshots, the balance of any instant takes the last one and the entries since."""
    at = history.rounds[place]

    async def ask(connection: Connection, org_id: int) -> int:
        busy = await accounts_under(connection, org_id, "acme/busy", tree=False)
        assert busy
        return sum(await sums_at(connection, org_id, busy, at=at))

    async def take(connection: Connection, org_id: int) -> None:
        while await take_snapshots(connection, org_id, entries_each=1, entries_max=AT_ONCE):
            pass

    read = rows_read(history, table, ask, prepare=take)
    assert read < most, read
