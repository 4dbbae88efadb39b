"""A database that an older version made becomes the same as a new one, with its rows whole."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import gpucredits.store
from gpucredits.core.command import Issue
from gpucredits.core.reasons import Refused
from gpucredits.store.database.migrate import migrate, read_schema
from support.catalog import catalog
from support.engines.postgres import TestServer, sql
from support.scenes.scene import CREDIT, Scene, play
from support.waiting import HANGS_S

SCHEMAS = Path(gpucredits.store.__file__).parent / "sql"
OLD = Path(__file__).with_name("upgrade") / "schema_0005.sql"


@pytest.fixture
def old(postgres: TestServer) -> str:
    """The address of a database as an older version left it."""
    name = f"old_{next(postgres._numbers)}"
    sql(postgres.server.dsn("postgres"), f"CREATE DATABASE {name} TEMPLATE template0")
    dsn = postgres.server.dsn(name)
    on(dsn, OLD.read_text(encoding="utf-8"))
    return dsn


def on(dsn: str, text: str = "SELECT 1", *, upgraded: bool = False) -> dict[str, dict[str, str]]:
    """Carry out SQL, upgrade, and say what the database is made of."""

    async def run() -> dict[str, dict[str, str]]:
        connection: Any = await asyncpg.connect(dsn, timeout=HANGS_S)
        try:
            await connection.execute(text)
            if upgraded:
                await migrate(connection, read_schema())
            return await catalog(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def test_upgraded_database_is_made_of_the_same_as_a_new_one(old: str, database: str) -> None:
    """Proves that upgrades/ ends where schema/ begins: columns, constraints, indexes, functions."""
    made, upgraded = on(database), on(old, upgraded=True)
    for kind, named in made.items():
        assert upgraded[kind] == named, kind


def test_rows_are_whole_after_an_upgrade(old: str) -> None:
    """Proves that every rule holds for the rows of an older version, and that they go on."""
    rows = "SELECT count(*) FROM entries"
    before = sql(old, rows)
    on(old, upgraded=True)
    assert sql(old, rows) == before

    async def act(stage: Scene) -> None:
        await stage.assert_sound()
        outcome = await stage.do(Issue(account="acme", amount=CREDIT), key="after the upgrade")
        assert not isinstance(outcome, Refused), outcome

    play(old, act)
    assert sql(old, rows) > before


EVENTS_WITH_POSITIONS = """
CREATE TABLE outbox (org_id bigint, event_id bigint, recorded_at bigint, position bigint);
CREATE INDEX outbox_age ON outbox (recorded_at);
CREATE TABLE event_stream (position bigint);
CREATE TABLE event_consumers (org_id bigint, name text, position bigint);
INSERT INTO outbox VALUES (1, 10, 0, 1), (2, 12, 0, 2), (1, 11, 0, 3), (2, 15, 0, 0);
INSERT INTO event_stream VALUES (3);
INSERT INTO event_consumers VALUES (0, 'none', 0), (0, 'two', 2), (0, 'three', 3), (1, 'acme', 3),
    (2, 'globex', 1)"""


def test_readers_of_events_go_on_where_they_were(postgres: TestServer) -> None:
    """A reader may see an event again, and misses none: 11 was committed after 12."""
    name = f"old_{next(postgres._numbers)}"
    sql(postgres.server.dsn("postgres"), f"CREATE DATABASE {name} TEMPLATE template0")
    dsn = postgres.server.dsn(name)
    text = (SCHEMAS / "upgrades" / "0017_events_by_number.sql").read_text(encoding="utf-8")
    on(dsn, f"{EVENTS_WITH_POSITIONS}; BEGIN; {text} COMMIT")
    places = sql(dsn, "SELECT string_agg(name || ' ' || position, ', ') FROM event_consumers")
    assert places == "none 9, two 10, three 14, acme 15, globex 11"
    assert sql(dsn, "SELECT position FROM event_stream") == 15
