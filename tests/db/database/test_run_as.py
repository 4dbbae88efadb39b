"""Whom the database runs as when root starts it, and what other processes of that user can do."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import asyncpg
import pytest

from gpucredits.store.embedded import run_as
from gpucredits.store.embedded.cluster import binaries
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import SMALL, sql
from support.users import NOBODY, SOMEBODY, act_as, as_root, ask_as, hide_own_user

PROGRAMS = binaries() / "postgres"


@pytest.fixture(autouse=True)
def new_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a user of our own."""
    hide_own_user(monkeypatch)


@as_root
def test_the_user_is_the_owner_then_ours_then_who_called_sudo(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An existing cluster's owner comes first, then gpucredits, sudo's caller, and nobody last."""
    known = {"nobody": NOBODY}
    monkeypatch.setattr(pwd, "getpwnam", known.__getitem__)
    cluster = data_dir / "postgres"
    assert run_as.unprivileged(cluster) == NOBODY
    monkeypatch.setenv("SUDO_UID", str(SOMEBODY.pw_uid))
    assert run_as.unprivileged(cluster) == SOMEBODY
    monkeypatch.setenv("SUDO_UID", "0")
    assert run_as.unprivileged(cluster) == NOBODY
    known["gpucredits"] = pwd.struct_passwd(("gpucredits", "x", 990, 990, "", "/", "/bin/false"))
    assert run_as.unprivileged(cluster).pw_name == "gpucredits"
    cluster.mkdir()
    os.chown(cluster, SOMEBODY.pw_uid, SOMEBODY.pw_gid)
    assert run_as.unprivileged(cluster) == SOMEBODY


@as_root
def test_a_user_of_its_own_keeps_no_capability(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the way is open, the server of such a user has nothing that other users lack."""
    monkeypatch.setattr(run_as, "DEDICATED", SOMEBODY.pw_name)
    data_dir.chmod(0o755)
    folder = data_dir / "data"
    with EmbeddedPostgres(folder, settings=SMALL) as server:
        status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
        assert f"Uid:\t{SOMEBODY.pw_uid}\t" in status
        assert f"CapEff:\t{0:016x}" in status
        assert stat.S_IMODE(folder.stat().st_mode) == 0o711
        assert folder.stat().st_uid == 0
        assert ask_as(SOMEBODY, server.dsn()).stdout == "t\n"
        assert ask_as(NOBODY, server.dsn()).returncode != 0


@as_root
def test_another_process_of_nobody_reaches_neither_socket_nor_files(data_dir: Path) -> None:
    """A database that runs as nobody is sealed; with the seal broken, any nobody is superuser."""
    data_dir.chmod(0o755)
    folder = data_dir / "data"
    folder.mkdir()
    folder.chmod(0o755)  # open until a server has it
    with EmbeddedPostgres(folder, settings=SMALL) as server:
        version = folder / "postgres" / "PG_VERSION"
        assert f"Uid:\t{NOBODY.pw_uid}\t" in Path(f"/proc/{server.pid}/status").read_text()
        assert "Permission denied" in ask_as(NOBODY, server.dsn()).stderr
        assert "Permission denied" in act_as(NOBODY, "/bin/cat", version).stderr
        around = f"/proc/{server.pid}/cwd/PG_VERSION"  # the same file, by another way
        assert "Permission denied" in act_as(NOBODY, "/bin/cat", around).stderr
        assert sql(server.dsn(), "SHOW dynamic_shared_memory_type") == "mmap"
        folder.chmod(0o711)
        assert ask_as(NOBODY, server.dsn()).stdout == "t\n"
        assert act_as(NOBODY, "/bin/cat", version).returncode == 0


@as_root
def test_a_socket_elsewhere_is_sealed_too(data_dir: Path) -> None:
    """A data directory with a long path has its socket behind a closed directory of root."""
    deep = data_dir / ("long" * 20) / ("deep" * 20)
    with EmbeddedPostgres(deep, settings=SMALL) as server:
        outer = server.sockets.parent
        assert (outer.stat().st_uid, stat.S_IMODE(outer.stat().st_mode)) == (0, 0o700)
        assert "Permission denied" in ask_as(NOBODY, server.dsn()).stderr
    assert not outer.exists()


@as_root
def test_links_that_the_databases_user_plants_harm_nobody(data_dir: Path) -> None:
    """Links in the cluster and in the socket directory do not make root write or remove."""
    server = EmbeddedPostgres(data_dir, settings=SMALL)
    with server:
        pass
    precious = data_dir / "precious"
    precious.mkdir()
    for name in ("text", ".s.PGSQL.5432"):
        (precious / name).write_text("mine")
    cluster = data_dir / "postgres"
    for name in ("pg_hba.conf", "pg_ident.conf", "postmaster.pid"):
        (cluster / name).unlink(missing_ok=True)
        (cluster / name).symlink_to(precious / "text")
    (data_dir / "run").symlink_to(precious)
    with pytest.raises(OSError, match="run"):  # what lies in place of our directory is not used
        server.start()
    (data_dir / "run").unlink()
    with server:
        assert sql(server.dsn(), "SELECT 1") == 1
    assert [path.read_text() for path in precious.iterdir()] == ["mine", "mine"]
    (cluster / "pg_hba.conf").write_text("gone")  # what an ordinary write would have done
    assert (precious / "text").read_text() == "gone"


def test_access_files_in_the_cluster_have_no_effect(data_dir: Path) -> None:
    """Who edits pg_hba.conf in the cluster lets nobody in; read by the server, it would."""
    server = EmbeddedPostgres(data_dir, settings=SMALL)
    edited = data_dir / "postgres" / "pg_hba.conf"
    with server:
        sql(server.dsn(), "CREATE ROLE stranger LOGIN")
        edited.write_text("local all all trust\n")
        assert sql(server.dsn(), "SELECT pg_reload_conf()")
        stranger = server.dsn().replace("//gpucredits@", "//stranger@")
        assert sql(server.dsn(), "SHOW hba_file") == str(data_dir / "postgres.hba")
        methods = "SELECT string_agg(DISTINCT auth_method, ' ') FROM pg_hba_file_rules"
        assert sql(server.dsn(), methods) == "peer"
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
            sql(stranger, "SELECT 1")
    with EmbeddedPostgres(data_dir, settings=SMALL | {"hba_file": str(edited)}):
        assert sql(stranger, "SELECT 1") == 1


@as_root
def test_without_the_capability_root_is_told_to_make_a_user(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container with few capabilities gets the commands, and not a stack of retries."""
    monkeypatch.setattr(run_as, "capabilities_held", lambda: 0)
    cluster = data_dir / "data" / "postgres"
    with pytest.raises(EmbeddedPostgresError, match=f"cannot pass through {data_dir}.*chmod o.x"):
        run_as.choose(cluster, programs=PROGRAMS)
    data_dir.chmod(0o755)
    with pytest.raises(EmbeddedPostgresError, match=r"useradd --system gpucredits$"):
        run_as.choose(cluster, programs=PROGRAMS)
    cluster.mkdir(parents=True)
    with pytest.raises(EmbeddedPostgresError, match=f"&& chown -R gpucredits: {cluster}$"):
        run_as.choose(cluster, programs=PROGRAMS)
    monkeypatch.setattr(run_as, "DEDICATED", SOMEBODY.pw_name)
    assert run_as.choose(cluster, programs=PROGRAMS).uid == SOMEBODY.pw_uid


@as_root
def test_programs_below_a_closed_directory_are_said_to_be_so(data_dir: Path) -> None:
    """The error names the closed directory and both ways out; opened, the programs are taken."""
    closed = data_dir / "venv" / "postgres"
    closed.parent.mkdir(mode=0o755)
    closed.touch()
    match = rf"cannot enter {data_dir}, .*venv /opt/gpucredits .*chmod o\+x {data_dir}$"
    with pytest.raises(EmbeddedPostgresError, match=match):
        run_as.choose(Path("/absent/postgres"), programs=closed)
    data_dir.chmod(0o711)
    assert run_as.choose(Path("/absent/postgres"), programs=closed).uid == NOBODY.pw_uid
