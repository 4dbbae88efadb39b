"""A backup taken under load restores whole, and a damaged one restores nothing."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpucredits.cli.main import main
from gpucredits.client import Client
from gpucredits.store.embedded.attach import address_in_use
from gpucredits.store.embedded.server import DATABASE
from support.engines.postgres import temporary_directory
from support.faults.writer import ACCOUNT, position, writing
from support.servers.http import running_server
from support.waiting import until

WITHOUT_OTHERS = {"GPUCREDITS_DATA_DIR": None, "GPUCREDITS_DATABASE_URL": None}


def run(*words: str | Path) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, [str(word) for word in words], env=WITHOUT_OTHERS)


def done(*words: str | Path) -> Any:
    """What a command that must succeed prints for scripts."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def books() -> Iterator[Path]:
    """The data directory of a server that had one account and was stopped."""
    with temporary_directory() as folder:
        with running_server(folder) as server, Client(server.url, server.admin_secret) as client:
            client.create_account(ACCOUNT)
        yield folder


@pytest.fixture(scope="module")
def taken(books: Path) -> Iterator[Path]:
    """A sound backup of that directory."""
    with temporary_directory() as folder:
        done("backup", folder / "taken", "--data-dir", books)
        yield folder / "taken"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for copies, with a short path."""
    with temporary_directory() as folder:
        yield folder


def test_a_backup_under_load_restores_with_every_acknowledged_write(
    data_dir: Path, place: Path
) -> None:
    """Each write that was acknowledged before the end of the copy is there, and the books hold."""
    with running_server(data_dir) as server:
        address = address_in_use(data_dir, DATABASE)
        assert address is not None
        with writing(server, address) as writer:
            until(lambda: len(writer.acknowledged) >= 3)

            def some_writes_fell_into_it() -> Any:
                shutil.rmtree(place / "backup", ignore_errors=True)
                rate = ("--max-rate", "16")
                facts = done("backup", place / "backup", "--data-dir", data_dir, *rate)
                return facts if writer.between(facts["start_lsn"], facts["end_lsn"]) else None

            facts = until(some_writes_fell_into_it, timeout_s=120)
            assert server.process.poll() is None
        wanted = writer.between("0/0", facts["end_lsn"])
        restored = done("restore", place / "backup", "--data-dir", place / "data")
    assert restored["books"]["is_clean"]
    assert restored["books"]["entries"] >= len(wanted)
    with (
        running_server(place / "data") as again,
        Client(again.url, (place / "data" / "admin.key").read_text().strip()) as client,
    ):
        found = {grant.metadata["number"] for grant in client.grants(ACCOUNT)}
        assert wanted <= found
        assert len(wanted) > 3
    assert run("verify", "--data-dir", place / "data").exit_code == 0


def flip(path: Path, offset: int) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def damage_a_table(backup: Path) -> None:
    """One bit of the largest table."""
    largest = max((backup / "postgres" / "base").rglob("*"), key=lambda path: path.stat().st_size)
    flip(largest, largest.stat().st_size // 2)


def damage_the_log(backup: Path) -> None:
    """One bit of the first record of the log that makes the copy whole."""
    start = position(json.loads((backup / "backup.json").read_bytes())["start_lsn"])
    segments = sorted(path for path in (backup / "postgres/pg_wal").iterdir() if path.is_file())
    flip(segments[0], start % segments[0].stat().st_size + 20)


def lose_a_file(backup: Path) -> None:
    """A file that is gone."""
    (backup / "postgres" / "global" / "pg_control").unlink()


def change_the_manifest(backup: Path) -> None:
    """A manifest that was made anew for other files."""
    (backup / "postgres" / "backup_manifest").write_text("{}")


def change_the_key(backup: Path) -> None:
    """A key that the backed-up server never had."""
    (backup / "admin.key").write_text("gck_" + "x" * 43 + "\n")


def forget_what_it_is(backup: Path) -> None:
    """A backup whose description is cut off."""
    (backup / "backup.json").write_bytes((backup / "backup.json").read_bytes()[:100])


@pytest.mark.parametrize(
    "damage",
    [
        damage_a_table,
        damage_the_log,
        lose_a_file,
        change_the_manifest,
        change_the_key,
        forget_what_it_is,
    ],
)
def test_a_damaged_backup_is_refused_and_nothing_is_written(
    taken: Path, place: Path, damage: Callable[[Path], None]
) -> None:
    """Whichever part of a backup has changed, restore says so and leaves no data directory."""
    shutil.copytree(taken, place / "backup")
    damage(place / "backup")
    result = run("restore", place / "backup", "--data-dir", place / "data")
    assert result.exit_code == 1, result.output
    assert "damaged" in result.stderr
    assert not (place / "data").exists()


def test_a_sound_copy_of_a_backup_restores(taken: Path, place: Path) -> None:
    """The control: the same copy without damage is restored, with its key for its owner alone."""
    shutil.copytree(taken, place / "backup")
    told = run("restore", place / "backup", "--data-dir", place / "data")
    assert told.exit_code == 0, told.output
    assert "all hold" in told.stdout
    assert "checking checksums" in told.stderr
    key = place / "data" / "admin.key"
    assert key.read_bytes() == (taken / "admin.key").read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_directory_with_data_is_not_overwritten(taken: Path, data_dir: Path) -> None:
    """Restore refuses any directory that holds something, and leaves it as it was."""
    (data_dir / "admin.key").write_text("mine")
    result = run("restore", taken, "--data-dir", data_dir)
    assert result.exit_code == 1
    assert "holds admin.key" in result.stderr
    assert [path.name for path in data_dir.iterdir()] == ["admin.key"]
    assert (data_dir / "admin.key").read_text() == "mine"


def test_a_running_server_is_not_restored_over(taken: Path, data_dir: Path) -> None:
    """Restore names the process that uses the directory."""
    with running_server(data_dir) as server:
        result = run("restore", taken, "--data-dir", data_dir)
        assert result.exit_code == 1
        assert f"process {server.process.pid}" in result.stderr


def test_a_restore_that_was_killed_is_begun_again(taken: Path, data_dir: Path) -> None:
    """What a killed restore left behind is no data: the next one removes it."""
    half = data_dir / "postgres.restored"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    (data_dir / "admin.key").write_text("half")
    assert done("restore", taken, "--data-dir", data_dir, "--skip-verify")["books"] is None
    assert not half.exists()
    assert (data_dir / "admin.key").read_bytes() == (taken / "admin.key").read_bytes()


def test_a_backup_overwrites_nothing(place: Path) -> None:
    """A target that exists, or that another backup is writing to, is refused by name."""
    (place / "books" / "postgres").mkdir(parents=True)
    for there, said in (("backup", "already exists"), ("backup.partial", "is running")):
        (place / there).mkdir()
        (place / there / "kept").touch()
        result = run("backup", place / "backup", "--data-dir", place / "books")
        assert result.exit_code == 1
        assert said in result.stderr
        assert (place / there / "kept").exists()
        shutil.rmtree(place / there)


def test_a_backup_that_fails_leaves_nothing(books: Path, place: Path) -> None:
    """A database that cannot be copied ends the backup, and no half backup stays."""
    broken = place / "books"
    shutil.copytree(books, broken)
    (broken / "admin.key").unlink()
    (broken / "admin.key").mkdir()
    result = run("backup", place / "backup", "--data-dir", broken)
    assert result.exit_code == 3, result.output
    assert sorted(path.name for path in place.iterdir()) == ["books"]


def test_a_backup_without_its_key_holds_no_secret(books: Path, place: Path) -> None:
    """--without-key keeps the secret out, and a restore says whose key is needed then."""
    facts = done("backup", place / "backup", "--data-dir", books, "--without-key")
    assert facts["admin_key_sha256"] is None
    assert not (place / "backup" / "admin.key").exists()
    told = run("restore", place / "backup", "--data-dir", place / "data", "--skip-verify")
    assert "not in the backup" in told.stdout
    assert not (place / "data" / "admin.key").exists()


def test_a_restore_can_let_an_operator_in_whose_keys_are_lost(taken: Path, place: Path) -> None:
    """--new-admin-key makes a key that the restored server takes, and the books still hold."""
    restored = done("restore", taken, "--data-dir", place / "data", "--new-admin-key")
    assert restored["books"]["is_clean"]
    secret = Path(restored["admin_key"]).read_text().strip()
    assert secret != (taken / "admin.key").read_text().strip()
    with running_server(place / "data") as server, Client(server.url, secret) as client:
        assert client.account(ACCOUNT).path == ACCOUNT


@pytest.mark.parametrize(("command", "tool"), [("backup", "pg_dump"), ("restore", "pg_restore")])
def test_a_database_of_ones_own_is_backed_up_with_its_own_tools(
    tmp_path: Path, command: str, tool: str
) -> None:
    """With --database-url the command does nothing and names the tool to use."""
    result = run(command, tmp_path, "--database-url", "postgresql://db.internal/gpucredits")
    assert result.exit_code == 2
    assert tool in result.stderr


def test_a_folder_that_is_no_backup_is_refused(tmp_path: Path) -> None:
    """A folder without backup.json is not restored."""
    result = run("restore", tmp_path, "--data-dir", tmp_path / "data")
    assert result.exit_code == 1
    assert "backup.json" in result.stderr
    assert not any(tmp_path.iterdir())
