"""A database that answers questions and takes no writes: health, callers and operators are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import asyncpg
import httpx
import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits.core.command import Issue
from gpucredits.service.reads import health
from gpucredits.service.reads.health import check_health
from gpucredits.service.write.batch_worker import FAILURES_MIN
from gpucredits.store.database.errors import Damaged, Unavailable
from gpucredits.store.database.migrate import migrate, read_schema
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import SMALL, sql
from support.scenes.scene import CREDIT, Scene, play
from support.servers.http import Caller, fresh_name, problem, running_server
from support.waiting import HANGS_S

FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON entries FOR EACH STATEMENT EXECUTE FUNCTION full_disk()
"""
FAILS = """
CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'no space for this' USING ERRCODE = '53100';
END $$
"""
HANGS = """
CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(600);
    RETURN NULL;
END $$;
CREATE TRIGGER hang BEFORE INSERT ON entries FOR EACH STATEMENT EXECUTE FUNCTION hang()
"""
CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
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


def test_what_changes_nothing_does_not_hide_writes_that_fail(database: str) -> None:
    """Rehearsals, replays and repeated heartbeats go well on a full disk; health is not fooled."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        known = stage.request(Issue(account="acme", amount=CREDIT))
        await stage.ledger.submit("acme", known)
        lease = await stage.reserve()
        assert not (await stage.beat(lease, 1, 1)).duplicate
        await stage.pool.execute(FULL)
        for _ in range(FAILURES_MIN):
            with pytest.raises(Unavailable):
                await issue(stage)
        wish = stage.request(Issue(account="acme", amount=CREDIT))
        await stage.ledger.submit("acme", wish, dry_run=True)
        await stage.ledger.submit("acme", known)
        assert (await stage.beat(lease, 1, 1)).duplicate
        assert (await verdict(stage))[0] == "unavailable"
        await stage.pool.execute("DROP TRIGGER full_disk ON entries")
        await issue(stage)
        assert await verdict(stage) == ("ok", "")

    play(database, act)


def test_a_batch_that_does_not_end_is_told(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that hangs in the database holds nothing else up, and health says that it waits."""
    monkeypatch.setattr(health, "STALLED_S", 0.2)

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        assert await verdict(stage) == ("ok", "")
        await stage.pool.execute(HANGS)
        write = asyncio.ensure_future(issue(stage))
        async with asyncio.timeout(HANGS_S):
            while (await verdict(stage))[0] == "ok":  # noqa: ASYNC110  # nobody is told of it
                await asyncio.sleep(0.01)
        assert await verdict(stage) == ("stalled", mock.ANY)
        assert stage.ledger.commands.waiting == 0
        await stage.pool.fetch(CANCEL)
        with pytest.raises(Unavailable):
            await write
        assert await verdict(stage) == ("ok", "")

    play(database, act, stays_sound=False)


def test_health_hears_of_writes_that_never_reach_a_batch(data_dir: Path) -> None:
    """Orgs and acts that cannot be saved are told with the cause; only a saved write ends that."""
    with running_server(data_dir) as server, httpx.Client(base_url=server.url) as http:
        admin = Caller(http, server.admin_secret)
        dsn = f"postgresql://gpucredits@/gpucredits?host={data_dir / 'run'}"
        sql(dsn, FAILS)
        tried: dict[str, Callable[[], httpx.Response]] = {
            "orgs": lambda: admin.post("/v1/accounts", {"path": fresh_name("org")}),
            "system_keys": lambda: admin.post("/v1/keys", {"role": "member"}),
        }
        for table, write in tried.items():
            assert write().status_code == 201, table
            assert (health_of(http)["status"], write().status_code) == ("ok", 201)
            sql(dsn, f"CREATE TRIGGER fails BEFORE INSERT ON {table} EXECUTE FUNCTION fails()")
            for _ in range(FAILURES_MIN):
                assert problem(write()) == (503, "unavailable"), table
            # What is read, or rehearsed, does not show that writes get through.
            admin.read("/v1/keys/self")
            rehearsal = {"account": "nobody", "amount": "1"}
            assert admin.post("/v1/credits/issue?dry_run=true", rehearsal).status_code == 404
            told = health_of(http)
            assert (told["status"], told["alarms"][0]["name"]) == ("unavailable", "writes_fail")
            assert "writes were turned away" in told["detail"]
            assert "no space for this" in told["detail"]
            sql(dsn, f"DROP TRIGGER fails ON {table}")
            assert write().status_code == 201, table
            assert health_of(http)["status"] == "ok"
        assert 'turned_away_total{reason="unavailable"} 6\n' in admin.get("/metrics").text


def health_of(http: httpx.Client) -> Any:
    """What health says, whatever its status."""
    return http.get("/healthz").json()


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
            await migrate(connection, read_schema())
        finally:
            await connection.close()

    asyncio.run(run())
    return server.dsn()


async def read_all(stage: Scene) -> None:
    """Read every entry."""
    await stage.assert_sound()
