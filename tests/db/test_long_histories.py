"""What is asked of a long history: rows are read for the answer, not for all that ever was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import asyncpg
import pytest

from gpucredits.core.command import Command, Refund, Reserve, Settle
from gpucredits.core.entry import EntryType
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.core.reservation import ReservationState
from gpucredits.store.billing.spending import leases_concerned, sum_spent
from gpucredits.store.database.connection import Connection
from gpucredits.store.ledger.accounts import accounts_under
from gpucredits.store.ledger.entries import EntryFilter, list_entries
from gpucredits.store.ledger.history import sums_at, take_snapshots
from gpucredits.store.ledger.orgs import find_org
from gpucredits.store.ledger.reservations import ReservationFilter, list_reservations
from support.postgres import TestServer
from support.scene import CREDIT, Scene, play
from support.waiting import HANGS_S

ROUNDS = 15
AT_ONCE = 100  # leases of a round
LEASES = ROUNDS * AT_ONCE
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
        account=account, job_id=name, gpu_type="h100", gpu_count=1, window_ms=HOUR_MS, node=node
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


@pytest.fixture(scope="module")
def history(postgres: TestServer) -> Iterator[History]:
    """Two accounts: one has been idle since the first hour, the other has been busy ever since."""
    told = History()

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/busy", "acme/idle", credits_each=2_000_000)
        await run_jobs(stage, [job("acme/idle", f"old-{n}", f"shelf-{n}") for n in range(5)])
        [told.settled, told.refunded] = await run_jobs(
            stage, [job("acme/busy", "settled"), job("acme/busy", "refunded")]
        )
        lease = await stage.reserve("acme/busy", job_id="lapsed")
        told.lapsed = lease.reservation.reservation_id
        await stage.advance(4_000)  # the lease lapses, and is written down when others begin
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


async def nothing(connection: Connection, org_id: int) -> None:
    """What most questions need to be there before they are asked."""


async def count_read(dsn: str, table: str, ask: Ask, prepare: Prepare, *, statistics: bool) -> int:
    """How many rows of a table a question reads, that finds something."""
    connection = await asyncpg.connect(dsn, timeout=HANGS_S, command_timeout=HANGS_S)
    transaction = connection.transaction()
    await transaction.start()
    try:
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
        spent = await sum_spent(
            connection, org_id, path, since=since, until=until, by="account", limit=10
        )
        assert [(each.name, each.amount) for each in spent.groups] == [
            ("acme/busy", AT_ONCE * 30 * CREDIT)
        ]
        return len(spent.groups)

    read = rows_read(history, table, ask)
    assert read < FEW * 2, read


@pytest.mark.parametrize("table", ["entries", "reservations"])
@pytest.mark.parametrize("path", ["acme", "acme/busy"])
def test_the_leases_of_lately_are_found_without_older_ones(
    history: History, path: str, table: str
) -> None:
    """Those that ran in the last round, or were paid for in it, whoever had leases before."""
    since, until = history.rounds[-2:]

    async def ask(connection: Connection, org_id: int) -> int:
        found = await leases_concerned(
            connection, org_id, path, since=since, until=until, before=2**62, limit=10
        )
        assert len(found) == min(10, AT_ONCE)
        return len(found)

    read = rows_read(history, table, ask)
    assert read < FEW * 2, read


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


@pytest.mark.parametrize("place", [0, 7, -1])
def test_a_past_balance_reads_around_its_instant(history: History, place: int) -> None:
    """With snapshots, the balance of any instant takes the entries of few segments."""
    at = history.rounds[place]

    async def ask(connection: Connection, org_id: int) -> int:
        busy = await accounts_under(connection, org_id, "acme/busy", tree=False)
        assert busy
        return sum(await sums_at(connection, org_id, busy, at=at))

    async def take(connection: Connection, org_id: int) -> None:
        while await take_snapshots(connection, org_id, entries_each=1, entries_max=AT_ONCE):
            pass

    read = rows_read(history, "entries", ask, prepare=take)
    assert read < FEW * 2, read
