"""``server.json`` names one server that runs: the first, until it stops."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from gpucredits.agent.guard.guardian import start_of
from gpucredits.cli.main import main
from gpucredits.cli.server.announcement import written
from gpucredits.cli.server.verify import books
from gpucredits.cli.terminal.address import ServerFile, address_in
from support.waiting import HANGS_S

FIRST, SECOND = "http://127.0.0.1:1001", "http://127.0.0.1:1002"


@pytest.fixture
def neighbour() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs, as another server would."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def of(process: subprocess.Popen[bytes]) -> bytes:
    """What that process would have written as a server."""
    return msgspec.json.encode(ServerFile(FIRST, process.pid, start_of(process.pid)))


def test_a_second_server_leaves_the_file_of_the_first(
    tmp_path: Path, neighbour: subprocess.Popen[bytes]
) -> None:
    """Neither its start nor its stop takes the address of a server that runs away."""
    tmp_path.chmod(0o700)
    (tmp_path / "server.json").write_bytes(of(neighbour))
    with written(tmp_path, SECOND) as other:
        assert other is not None
        assert other.url == address_in(tmp_path) == FIRST
    assert address_in(tmp_path) == FIRST


@pytest.mark.parametrize("left", [b"{", b'{"url": "http://127.0.0.1:9"}', None])
def test_a_file_of_no_running_server_is_replaced(
    tmp_path: Path, neighbour: subprocess.Popen[bytes], left: bytes | None
) -> None:
    """Broken, without a process, or of one that was killed: the new server's own comes and goes."""
    tmp_path.chmod(0o700)
    (tmp_path / "server.json").write_bytes(of(neighbour) if left is None else left)
    neighbour.kill()
    neighbour.wait(HANGS_S)
    with written(tmp_path, SECOND) as other:
        assert other is None
        assert address_in(tmp_path) == SECOND
    assert address_in(tmp_path) is None


def test_a_stopping_server_removes_its_own_file_only(
    tmp_path: Path, neighbour: subprocess.Popen[bytes]
) -> None:
    """Whatever another process wrote meanwhile stays."""
    tmp_path.chmod(0o700)
    with written(tmp_path, SECOND):
        (tmp_path / "server.json").write_bytes(of(neighbour))
    assert address_in(tmp_path) == FIRST


def verify(**env: str) -> Result:
    """Run the command where it has to find the books by itself."""
    return CliRunner().invoke(main, ["verify"], env=env)


def test_verify_does_not_check_other_books_than_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that lies about is not checked for the server of GPUCREDITS_URL; both are named."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "gpucredits-data"
    folder.mkdir()
    (folder / "server.json").write_text(json.dumps({"url": FIRST}))
    refused = verify(GPUCREDITS_URL=SECOND)
    assert refused.exit_code == 2
    assert FIRST in refused.stderr
    assert SECOND in refused.stderr
    assert "--database-url" in refused.stderr
    assert "no books" in verify(GPUCREDITS_URL=FIRST).stderr


def test_the_checked_database_is_named_without_its_password(tmp_path: Path) -> None:
    """A folder, a host, or the folder of a socket."""
    assert books(tmp_path, None) == f"embedded, in {tmp_path}"
    assert books(None, "postgresql://u:secret@db.example:5432/c") == "c at db.example:5432"
    assert books(None, "postgresql:///c?host=/run/p&user=u&password=s") == "c at /run/p"
