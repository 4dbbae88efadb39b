"""The declarations of the tables: a new column is in every statement, and parity compares it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import MISSING, Field, field, fields, make_dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpucredits.core.entry import BUCKETS, Entry, EntryType, moves_of
from gpucredits.core.reservation import Reservation
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book import load
from gpucredits.store.book.entry_moves import entry_move
from gpucredits.store.book.fill import FILL
from gpucredits.store.book.needs import Needs
from gpucredits.store.book.save import parameters, statement
from gpucredits.store.book.table import RARELY, TERM, TEXT, Column, Table
from gpucredits.store.book.tables import LEASE, TABLES, TOPUP
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.migrate import SQL
from support.books.parity import by_key, stored_rows
from support.scenes.scene import Scene, play

TOOLS = Path(__file__).resolve().parents[3] / "tools"
LEDGER = (SQL / "functions" / "open_book.sql").read_text(encoding="utf-8")
OPEN_BOOK = re.compile(r"CREATE OR REPLACE FUNCTION open_book\(.*?\nEND \$\$;", re.DOTALL)
RANK = Column("rank", written=RARELY, read=TERM, plain=0)
MEMO = Column("memo", TEXT)


def with_column(table: Table, row: type, column: Column, default: object) -> Table:
    """A copy of a table with one more column, and of its core row with one more field."""

    def copied(each: Field[Any]) -> tuple[str, object, Any]:
        if each.default_factory is not MISSING:
            return each.name, Any, field(default_factory=each.default_factory)
        if each.default is not MISSING:
            return each.name, Any, field(default=each.default)
        return each.name, Any, field()

    wider = make_dataclass(
        f"Wide{row.__name__}",
        [*map(copied, fields(row)), (column.name, type(default), field(default=default))],
    )
    wider.__module__ = "wider_rows"
    return replace(table, row=wider, columns=(*table.columns, column))


WIDE_LEASE = with_column(LEASE, Reservation, RANK, 0)
WIDE_TOPUP = with_column(TOPUP, TopUpRow, MEMO, "")
WIDER = tuple({LEASE.name: WIDE_LEASE, TOPUP.name: WIDE_TOPUP}.get(t.name, t) for t in TABLES)


class Wider:
    """What the tool writes for the wider tables."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(TOOLS))
        classes = ModuleType("wider_rows")
        for table in (WIDE_LEASE, WIDE_TOPUP):
            assert table.row is not None
            setattr(classes, table.row.__name__, table.row)
        monkeypatch.setitem(sys.modules, "wider_rows", classes)
        self.rows = ModuleType("rows")
        exec(import_module("rows_python").python(WIDER), vars(self.rows))
        self.sql: str = import_module("rows_sql").sql(LEDGER, WIDER)

    async def save(self, connection: Connection, table: Table, name: str, *given: object) -> None:
        """Save one row by a part of the statement."""
        part = table.part(name)
        values = vars(self.rows)[f"{name}_row"](*given)
        await connection.execute(statement((part,)), *parameters(part, [values]))


def wide_lease(**values: object) -> Any:
    """A lease with the further field."""
    assert WIDE_LEASE.row is not None
    return WIDE_LEASE.row(
        7, "acme", 1, 1, "", "h100", 2, "eu", "", 10, 0, 1_000, 5, 1_000_005, beat_at=5, **values
    )


async def loaded(connection: Connection, code: ModuleType) -> Sequence[Any]:
    """The lease and the top-up, as open_book returns them."""
    found: dict[int, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        for table in (WIDE_LEASE, WIDE_TOPUP):
            made = vars(code)[f"{table.singular}_of"]

            def fill(_: object, row: Any, made: Any = made, kind: int = table.kind) -> None:
                found[kind] = made(row)

            patch.setitem(FILL, table.kind, fill)
        await load.load(connection, Needs(orgs={1}, leases={1: {7}}, topups={(1, 8)}))
    return found[LEASE.kind], found[TOPUP.kind]


async def widen(connection: Connection, wider: Wider) -> None:
    """Give the database the further columns, and the function that reads them."""
    await connection.execute("INSERT INTO orgs (org_id, path) VALUES (1, 'acme')")
    await connection.execute("ALTER TABLE reservations ADD COLUMN rank bigint NOT NULL DEFAULT 0")
    await connection.execute("ALTER TABLE topups ADD COLUMN memo text NOT NULL DEFAULT ''")
    found = OPEN_BOOK.search(wider.sql)
    assert found is not None
    await connection.execute(found[0])


def test_a_declared_column_is_saved_loaded_and_compared(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more line in a declaration, and saving, open_book, listings and parity have it."""
    wider = Wider(monkeypatch)

    async def act(stage: Scene) -> None:
        async with stage.pool.acquire() as connection:
            await widen(connection, wider)
            lease = wide_lease(rank=3)
            assert WIDE_TOPUP.row is not None
            topup = WIDE_TOPUP.row(8, 1, 500, "ref", created_at=5, memo="by wire")
            await wider.save(connection, WIDE_LEASE, "new_leases", lease, 1, 1)
            await wider.save(connection, WIDE_TOPUP, "new_topups", topup, 1)
            assert await loaded(connection, wider.rows) == (lease, topup)
            lease.rank = 4
            await wider.save(connection, WIDE_LEASE, "changed_leases", lease, 1)
            assert await loaded(connection, wider.rows) == (lease, topup)
            kept = by_key(WIDE_LEASE, [lease])
            assert await stored_rows(connection, WIDE_LEASE, wider.rows) == kept
            await connection.execute("UPDATE reservations SET rank = 5")  # the control
            assert await stored_rows(connection, WIDE_LEASE, wider.rows) != kept
            assert (await loaded(connection, wider.rows))[0].rank == 5

    play(database, act, stays_sound=False)


def test_a_declared_term_makes_a_lease_special(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saving, renewing and verify agree on which leases are plain, the new column included."""
    wider = Wider(monkeypatch)
    is_plain, is_steady = vars(wider.rows)["is_plain"], vars(wider.rows)["is_steady"]

    async def act(stage: Scene) -> None:
        async with stage.pool.acquire() as connection:
            await widen(connection, wider)
            for rank in (0, 1):
                lease = wide_lease(rank=rank)
                await connection.execute("DELETE FROM reservations")
                await wider.save(connection, WIDE_LEASE, "new_leases", lease, 1, 1)
                stored = await connection.fetchrow(
                    f"SELECT is_plain, {WIDE_LEASE.plain_sql('r')} FROM reservations r"
                )
                assert tuple(stored) == (rank == 0, rank == 0)
                assert is_plain(lease) is is_steady(lease) is (rank == 0)

    play(database, act, stays_sound=False)


def test_a_column_is_in_the_statements_that_its_declaration_says() -> None:
    """What is written rarely is left out of renewals; what is written once, of all changes."""
    writes = {
        write.name
        for table in (WIDE_LEASE, WIDE_TOPUP)
        for write in table.writes
        if re.search(r"\b(rank|memo)\b", table.part(write.name).sql)
    }
    assert writes == {"changed_leases", "new_leases", "new_topups"}


def test_a_column_without_a_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of open_book has so many numbers; the message says what to do with one more."""
    monkeypatch.syspath_prepend(str(TOOLS))
    crowded = with_column(LEASE, Reservation, Column("rank"), 0)
    with pytest.raises(ValueError, match=r"no bigint left for reservations\.rank.*read=TERM"):
        import_module("rows_sql").layout(crowded)


def test_sql_moves_credits_between_buckets_as_the_rules_do(database: str) -> None:
    """What the core says an entry does to its account's buckets is what SQL adds up."""
    entries = [
        Entry(number, 0, kind, 1, 100, reserve, other_id=other)
        for number, kind in enumerate(EntryType)
        for reserve in (0, 7, -7)
        for other in ((0, 2) if kind is EntryType.TRANSFER else (0,))
    ]
    entries.append(Entry(99, 0, EntryType.TRANSFER, 1, 100, other_id=1))
    moves = ", ".join(entry_move(bucket, "e.") for bucket in BUCKETS)
    values = ", ".join(
        f"({e.entry_id}, {e.type}, {e.account_id}, {e.amount}, {e.reserve}, {e.other_id})"
        for e in entries
    )

    async def act(stage: Scene) -> None:
        rows = await stage.pool.fetch(
            f"SELECT {moves} FROM (VALUES {values})"
            " AS e(entry_id, type, account_id, amount, reserve, other_id)"
        )
        assert [tuple(row) for row in rows] == [moves_of(entry) for entry in entries]

    play(database, act, stays_sound=False)
