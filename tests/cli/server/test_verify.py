"""Broken books are found on the command line, whether a server runs on them or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpucredits.cli.main import main
from gpucredits.cli.server import verify as command
from gpucredits.client import Client
from gpucredits.store.embedded.attach import address_in_use
from gpucredits.store.embedded.server import DATABASE, EmbeddedPostgres
from support.engines.postgres import sql
from support.servers.http import running_server
from support.terminal import Terminal
from support.waiting import until

DAMAGE = "UPDATE accounts SET spent = spent + 1 WHERE path = 'acme'"
# The system's acts, with all that they are about.
UNTOLD = [
    "DELETE FROM audit_log WHERE org_id = 0",
    "DELETE FROM audit_heads WHERE org_id = 0",
    "DELETE FROM list_prices",
    "DELETE FROM system_keys",
]


@contextmanager
def keeping_books(data_dir: Path) -> Iterator[None]:
    """A server has kept books in a data directory, and still runs."""
    with running_server(data_dir) as server:
        with Client(server.url, server.admin_secret) as client:
            client.create_account("acme")
            client.issue("acme", "100")
            client.set_price("h100", "36")
        yield


@pytest.fixture
def books(data_dir: Path) -> Iterator[Path]:
    """A data directory in which a server has kept books, while the server still runs."""
    with keeping_books(data_dir):
        yield data_dir


def verify(data_dir: Path, *words: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["verify", "--data-dir", str(data_dir), *words])


def test_damage_is_found_while_a_server_runs(books: Path) -> None:
    """A balance that does not follow from the entries is shown with its row, and exits with 1."""
    assert verify(books).exit_code == 0
    address = address_in_use(books, DATABASE)
    assert address is not None
    sql(address, DAMAGE)
    result = verify(books)
    assert result.exit_code == 1
    assert "BROKEN" in result.stdout
    found = json.loads(verify(books, "--json").stdout)
    assert not found["is_clean"]
    assert found["findings"][0]["rows"]


def test_damage_is_found_when_no_server_runs(data_dir: Path) -> None:
    """The database is started for the while of the check, and stopped again."""
    with EmbeddedPostgres(data_dir):
        assert address_in_use(data_dir, DATABASE)
    assert address_in_use(data_dir, DATABASE) is None
    with running_server(data_dir) as server, Client(server.url, server.admin_secret) as client:
        client.create_account("acme")
    assert verify(data_dir).exit_code == 0
    with EmbeddedPostgres(data_dir) as postgres:
        sql(postgres.dsn(), DAMAGE)
    assert verify(data_dir).exit_code == 1
    assert address_in_use(data_dir, DATABASE) is None


def test_a_tail_that_was_cut_off_is_missed_by_exported_heads(
    data_dir: Path, tmp_path: Path
) -> None:
    """A chain that is whole in itself but shorter than its exported head is found out."""
    heads = tmp_path / "heads.json"

    def is_sealed() -> bool:
        verify(data_dir, "--export-heads", str(heads))
        chains = {head["chain"] for head in json.loads(heads.read_bytes())}
        return chains == {"entries", "audit"}

    with keeping_books(data_dir):
        until(is_sealed)
    guarded = ("blocks", "audit_log", "list_prices")
    guards = [f"ALTER TABLE {table} HOW TRIGGER ALL" for table in guarded]
    with EmbeddedPostgres(data_dir) as database:  # no server, which would seal again what is cut
        assert verify(data_dir, "--heads", str(heads)).exit_code == 0
        for name, cut in {"sealed": ["DELETE FROM blocks"], "untold": UNTOLD}.items():
            sql(database.dsn("postgres"), f"CREATE DATABASE {name} TEMPLATE {DATABASE}")
            for statement in (
                *(guard.replace("HOW", "DISABLE") for guard in guards),
                *cut,
                *(guard.replace("HOW", "ENABLE") for guard in guards),
            ):
                sql(database.dsn(name), statement)
            books = ["verify", "--database-url", database.dsn(name)]
            whole = CliRunner().invoke(main, books)
            assert whole.exit_code == 0, (name, whole.output)
            result = CliRunner().invoke(main, [*books, "--heads", str(heads)])
            assert result.exit_code == 1, name
            assert "chain_heads" in result.stdout


def test_heads_that_are_none_are_wrong_usage(terminal: Terminal, tmp_path: Path) -> None:
    """A file that does not hold chain heads is refused by name."""
    wrong = tmp_path / "wrong.json"
    wrong.write_text('[{"org": 1}]')
    result = verify(terminal.server.data_dir, "--heads", str(wrong))
    assert result.exit_code == 2
    assert "wrong.json" in result.stderr


def test_no_books_is_wrong_usage(tmp_path: Path) -> None:
    """A directory without books exits with 2."""
    result = verify(tmp_path)
    assert result.exit_code == 2
    assert "no books" in result.stderr


def test_a_database_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that cannot be reached exits with 3."""
    assert command.POOL.connect_deadline_s > 1  # one that is starting is waited for
    monkeypatch.setattr(command, "POOL", replace(command.POOL, connect_deadline_s=0.1))
    url = "postgresql://nobody@127.0.0.1:1/none?connect_timeout=2"
    result = CliRunner().invoke(main, ["verify", "--database-url", url])
    assert result.exit_code == 3
    assert "Unavailable" in result.stderr


def test_the_books_of_a_running_server_hold(terminal: Terminal) -> None:
    """The books of a running server are checked in its database."""
    data_dir = str(terminal.server.data_dir)
    text = terminal.text("verify", "--data-dir", data_dir)
    assert text.startswith(f"Database: embedded, in {data_dir}.")
    assert text.rstrip().endswith("all hold.")
    found = terminal.json("verify", "--data-dir", data_dir)
    assert found["database"] == f"embedded, in {data_dir}"
    assert found["is_clean"]
    assert found["findings"] == []
    assert len(found["rules"]) > 5
