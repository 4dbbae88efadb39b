"""A database that answers questions and takes no writes: health, callers and operators are told."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import asyncpg
import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits.core.command import Issue
from gpucredits.service.reads.health import check_health
from gpucredits.store.database.errors import Damaged, Unavailable
from gpucredits.store.database.migrate import migrate, read_migrations
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.postgres import SMALL, sql
from support.scene import CREDIT, Scene, play

FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON entries FOR EACH STATEMENT EXECUTE FUNCTION full_disk()
"""
PAGE_BYTES = 8_192


async def verdict(stage: Scene) -> tuple[str, str]:
    """What health says."""
    status, why = await check_health(stage.ledger)
    return status, why


async def issue(stage: Scene) -> None:
    """One write."""
    await stage.do(Issue(account="acme", amount=CREDIT))


def test_health_notices_writes_that_fail(database: str, caplog: pytest.LogCaptureFixture) -> None:
    """A disk that is full is told with its cause, logged once, and over with the first write."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        assert await verdict(stage) == ("ok", "")
        await stage.pool.execute(FULL)
        for _ in range(5):
            with pytest.raises(Unavailable, match="No space left"):
                await issue(stage)
        status, why = await verdict(stage)
        assert status == "unavailable"
        assert "the last 5 batches" in why
        assert "No space left on device" in why
        await stage.pool.execute("DROP TRIGGER full_disk ON entries")
        await issue(stage)
        assert await verdict(stage) == ("ok", "")

    with caplog.at_level(logging.INFO):
        play(database, act)
    said = [record.getMessage() for record in caplog.records]
    assert said.count("a batch could not be saved") == 1
    assert said.count("writes get through again") == 1


def test_damaged_pages_are_named_with_what_to_do(data_dir: Path) -> None:
    """Verify ends with a sentence about the damage and the remedy, not with a traceback."""
    assert CliRunner().invoke(main, ["verify", "--data-dir", str(data_dir)]).exit_code != 0
    with EmbeddedPostgres(data_dir, settings=SMALL) as server:
        play(server_with_tables(server), lambda stage: stage.fund("acme"))
        dsn = server.dsn()
        place = sql(dsn, "SELECT pg_relation_filepath('entries')")
    file = data_dir / "postgres" / place
    content = bytearray(file.read_bytes())
    assert len(content) >= PAGE_BYTES
    content[5_000:5_100] = bytes(byte ^ 0xFF for byte in content[5_000:5_100])
    file.write_bytes(content)
    told = CliRunner().invoke(main, ["verify", "--data-dir", str(data_dir)])
    assert told.exit_code != 0
    assert "Traceback" not in told.output
    assert "files are damaged" in told.output
    assert "restore the newest backup" in told.output
    with EmbeddedPostgres(data_dir, settings=SMALL) as server, pytest.raises(Damaged):
        play(server.dsn(), read_all)


def server_with_tables(server: EmbeddedPostgres) -> str:
    """The address of a database with every table."""

    async def run() -> None:
        connection = await asyncpg.connect(server.dsn())
        try:
            await migrate(connection, read_migrations())
        finally:
            await connection.close()

    asyncio.run(run())
    return server.dsn()


async def read_all(stage: Scene) -> None:
    """Read every entry."""
    await stage.assert_sound()
