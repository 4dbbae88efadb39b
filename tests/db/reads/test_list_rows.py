"""Lists of many accounts and of transfers: rows are read for the page, not for the org."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import asyncpg
import pytest

from gpucredits.core.command import Command, CreateAccount, Issue, Transfer
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.connections import BY_INDEX
from gpucredits.store.ledger import entries
from gpucredits.store.ledger.accounts import AccountFilter, list_accounts
from gpucredits.store.ledger.entries import EntryFilter, list_entries
from gpucredits.store.ledger.transfers import TransferFilter, list_transfers
from support.engines.postgres import TestServer
from support.scenes.scene import CREDIT, Scene, play
from support.waiting import HANGS_S

PEOPLE = 110  # of one project: more than are asked for their entries one by one
SENT = 1_500  # between two other accounts
FEW = 400
READ = """
SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
WHERE relname = $1"""

Ask = Callable[[Connection], Awaitable[list[object]]]


@dataclass
class Past:
    """Where the books are, and when the many transfers began."""

    dsn: str = ""
    began: int = 0


async def do_all(stage: Scene, commands: list[Command]) -> None:
    """Carry commands out, some together."""
    for first in range(0, len(commands), 500):
        requests = [stage.request(each) for each in commands[first : first + 500]]
        await stage.ledger.submit_all("acme", requests, atomic=True)


@pytest.fixture(scope="module")
def past(postgres: TestServer) -> Iterator[Past]:
    """A project of many people with one grant each, then many transfers between two projects."""
    told = Past()

    async def act(stage: Scene) -> None:
        await stage.do(CreateAccount(path="acme"))
        await do_all(stage, [CreateAccount(path=f"acme/{name}") for name in ("a", "b", "many")])
        people = [f"acme/many/u{number}" for number in range(PEOPLE)]
        await do_all(stage, [CreateAccount(path=path) for path in people])
        await do_all(stage, [Issue(account=path, amount=CREDIT) for path in [*people, "acme"]])
        await stage.do(Issue(account="acme/a", amount=SENT * CREDIT))
        await stage.do(Transfer(source="acme", target="acme/many", amount=CREDIT))
        await stage.advance(5)
        told.began = (await stage.balance()).as_of
        send: list[Command] = [
            Transfer(source="acme/a", target="acme/b", amount=1) for _ in range(SENT)
        ]
        await do_all(stage, send)

    with postgres.database() as told.dsn:
        play(told.dsn, act)
        yield told


async def count_read(dsn: str, table: str, ask: Ask, *, statistics: bool) -> tuple[int, int]:
    """How many rows of a table a question reads, and how many it finds."""
    connection = await asyncpg.connect(dsn, timeout=HANGS_S, command_timeout=HANGS_S)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(BY_INDEX)
        if statistics:
            await connection.execute("ANALYZE")
        before: int = await connection.fetchval(READ, table)
        found = len(await ask(connection))
        after: int = await connection.fetchval(READ, table)
    finally:
        await transaction.rollback()
        await connection.close()
    return after - before, found


def rows_read(past: Past, table: str, ask: Ask, *, found: int) -> int:
    """As many as are read in the worse case, whether the planner has statistics or not."""
    counts = [
        asyncio.run(count_read(past.dsn, table, ask, statistics=known)) for known in (False, True)
    ]
    assert {each[1] for each in counts} == {found}
    return max(each[0] for each in counts)


def transfers_wanted(past: Past) -> dict[str, tuple[TransferFilter, int]]:
    """Questions about few of many transfers, and how many they find."""
    return {
        "of an account": (TransferFilter(account="acme/many"), 1),
        "of a subtree": (TransferFilter(account="acme/many", tree=True), 1),
        "of the org, before all others": (
            TransferFilter(account="acme", tree=True, until=past.began),
            1,
        ),
        "the latest": (TransferFilter(account="acme", tree=True, limit=7), 7),
    }


@pytest.mark.parametrize("name", transfers_wanted(Past()))
def test_transfers_read_those_they_list(past: Past, name: str) -> None:
    """Transfers of an account or a time are found without the org's others."""
    wanted, found = transfers_wanted(past)[name]

    async def ask(connection: Connection) -> list[object]:
        return [*await list_transfers(connection, 1, wanted)]

    assert rows_read(past, "audit_log", ask, found=found) < FEW


@pytest.mark.parametrize("until", [False, True], ids=["latest", "until"])
def test_entries_of_many_accounts_read_their_own(past: Past, until: bool) -> None:
    """More accounts than are read one by one: their newest entries say which have the page."""
    wanted = EntryFilter(
        account="acme/many", tree=True, until=past.began if until else None, limit=10
    )

    async def ask(connection: Connection) -> list[object]:
        return [*await list_entries(connection, 1, wanted)]

    assert rows_read(past, "entries", ask, found=10) < FEW


def test_the_count_sees_a_list_that_reads_its_org(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: read in the order of the org, the same list reads the transfers of others."""
    monkeypatch.setattr(entries, "ACCOUNTS_TRIED_MAX", 0)
    wanted = EntryFilter(account="acme/many", tree=True, limit=10)

    async def ask(connection: Connection) -> list[object]:
        return [*await list_entries(connection, 1, wanted)]

    assert rows_read(past, "entries", ask, found=10) >= SENT


def test_a_page_of_accounts_reads_that_page(past: Past) -> None:
    """Accounts come by path, from the cursor on."""
    wanted = AccountFilter(under="acme", after="acme/many/u5", limit=7)

    async def ask(connection: Connection) -> list[object]:
        return [*await list_accounts(connection, 1, wanted)]

    assert rows_read(past, "accounts", ask, found=7) <= wanted.limit + 1
