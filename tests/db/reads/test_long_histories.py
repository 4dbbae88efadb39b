"""What is asked of a long history: rows are read for the answer, not for all that ever was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpucredits.core.entry import EntryType
from gpucredits.core.reservation import ReservationState
from gpucredits.store.database.connection import Connection
from gpucredits.store.ledger import reservations
from gpucredits.store.ledger.accounts import accounts_under
from gpucredits.store.ledger.entries import EntryFilter, list_entries
from gpucredits.store.ledger.history import sums_at, take_snapshots
from gpucredits.store.ledger.reservations import ReservationFilter, list_reservations
from support.engines.postgres import TestServer
from support.scenes.long_history import (
    AT_ONCE,
    FEW,
    History,
    job,
    long_history,
    rows_read,
    run_jobs,
)
from support.scenes.scene import Scene, play


@pytest.fixture(scope="module")
def history(postgres: TestServer) -> Iterator[History]:
    """A history all of which lies in the morning of a day."""
    with long_history(postgres, midnight_s=-9 * 3_600) as told:
        yield told


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


@pytest.mark.parametrize("wanted", LEASES_WANTED.values(), ids=LEASES_WANTED.keys())
def test_statistics_of_a_busy_time_make_lists_read_no_more(
    history: History, wanted: ReservationFilter
) -> None:
    """The planner may have looked when many leases were live that have ended since."""

    async def look_at_a_busy_time(connection: Connection, org_id: int) -> None:
        await connection.execute("SET LOCAL session_replication_role = replica")  # no triggers
        ended = await connection.fetch(
            "UPDATE reservations SET state = 0 WHERE org_id = $1 AND reservation_id % 2 = 0"
            " AND state = 1 RETURNING reservation_id",
            org_id,
        )
        await connection.execute("ANALYZE")
        await connection.execute(
            "UPDATE reservations SET state = 1 WHERE org_id = $1 AND reservation_id = ANY ($2)",
            org_id,
            [row["reservation_id"] for row in ended],
        )

    async def ask(connection: Connection, org_id: int) -> int:
        return len(await list_reservations(connection, org_id, wanted, history.over))

    read = rows_read(history, "reservations", ask, prepare=look_at_a_busy_time)
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
