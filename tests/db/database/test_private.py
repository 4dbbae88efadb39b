"""Files and directories that nobody else can change: links, owners, modes, and what is synced."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpucredits.service.access.admin_keys import read_token, write_token
from gpucredits.service.access.permissions import new_secret
from gpucredits.store.embedded import private
from gpucredits.store.embedded.cluster import Layout
from gpucredits.store.embedded.private import NotOursError
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits.store.embedded.server import EmbeddedPostgres, lock
from gpucredits.store.embedded.supervisor import open_log
from support.engines.postgres import SMALL
from support.users import SOMEBODY, as_root, hide_own_user


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Another umask for a while."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    """The permission bits of a path itself."""
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_planted_link_is_replaced_and_not_written_through(data_dir: Path) -> None:
    """Neither the final name nor the temporary one leads a write to another file."""
    precious = data_dir / "precious"
    precious.write_text("mine")
    path = data_dir / "postgres.hba"
    for name in (path, data_dir / "postgres.hba.partial"):
        name.symlink_to(precious)
    private.write_file(path, b"new")
    assert (path.read_text(), path.is_symlink()) == ("new", False)
    assert precious.read_text() == "mine"
    control = data_dir / "control"
    control.symlink_to(precious)
    control.write_text("gone")  # what an ordinary write does
    assert precious.read_text() == "gone"


def test_lock_and_log_are_not_opened_through_a_link(data_dir: Path) -> None:
    """A link in place of the lock or the log is refused, and what it names is untouched."""
    precious = data_dir / "precious"
    precious.write_text("mine")
    layout = Layout(data_dir)
    layout.lock.symlink_to(precious)
    layout.log.symlink_to(precious)
    with pytest.raises(NotOursError, match=f"symbolic link.*rm {layout.lock}"):
        lock(layout)
    with pytest.raises(NotOursError, match=f"symbolic link.*rm {layout.log}"):
        open_log(layout.log)
    layout.lock.unlink()
    os.link(precious, layout.lock)
    with pytest.raises(NotOursError, match="one name"):
        lock(layout)
    assert precious.read_text() == "mine"
    layout.lock.unlink()
    os.close(lock(layout))  # without the link it is taken


def test_a_key_is_durable_with_its_name(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is synced first, then it is renamed, then its directory is synced."""
    events = []
    fsync, replace = os.fsync, os.replace

    def note_sync(handle: int) -> None:
        events.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def note_rename(name: str, other: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        events.append("rename")
        replace(name, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    token = write_token(data_dir / "admin.key", new_secret())
    assert events == ["file", "rename", "directory"]
    assert read_token(data_dir / "admin.key") == token


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_modes_do_not_depend_on_the_umask(
    data_dir: Path, mask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything in a new data directory has its own mode, whatever the umask is."""
    hide_own_user(monkeypatch)
    folder = data_dir / "above" / "data"
    with umask(mask):
        with EmbeddedPostgres(folder, settings=SMALL):
            write_token(folder / "admin.key", new_secret())
            assert mode_of(folder / "run") == 0o700
        assert mode_of(folder.parent) == 0o755
    assert mode_of(folder) == 0o700
    assert {path.name: mode_of(path) for path in folder.iterdir()} == {
        "admin.key": 0o600,
        "postgres": 0o700,
        "postgres.hba": 0o644,
        "postgres.ident": 0o644,
        "postgres.lock": 0o600,
        "postgres.log": 0o600,
    }


def test_a_directory_that_others_may_write_to_is_closed(data_dir: Path) -> None:
    """Others lose the right to write to a data directory; a shared directory is refused."""
    folder = data_dir / "data"
    folder.mkdir()
    folder.chmod(0o777)
    private.make_directory(folder)
    assert mode_of(folder) == 0o755
    (folder / "thesis.txt").touch()
    folder.chmod(0o775)
    with pytest.raises(NotOursError, match=f"holds other files.*chmod 755 {folder}"):
        private.make_directory(folder)
    assert mode_of(folder) == 0o775
    folder.chmod(0o1777)
    with pytest.raises(NotOursError, match="all users share"):
        private.make_directory(folder)


def test_a_foreign_data_directory_is_refused(data_dir: Path) -> None:
    """The message names the owner and what to do; our own directory is taken."""
    private.make_directory(data_dir)
    foreign, owner = Path("/usr"), "root"
    if os.geteuid() == 0:
        foreign, owner = data_dir, SOMEBODY.pw_name
        os.chown(foreign, SOMEBODY.pw_uid, SOMEBODY.pw_gid)
    with pytest.raises(EmbeddedPostgresError, match=f"belongs to user {owner}.*chown"):
        EmbeddedPostgres(foreign).start()
    with pytest.raises(NotOursError, match="belongs to user"):
        private.write_file(foreign / "server.json", b"{}")
    assert not (foreign / "server.json").exists()


@as_root
def test_a_link_that_somebody_else_made_is_no_data_directory(data_dir: Path) -> None:
    """A link of another user to a directory of root is refused; one of our own is followed."""
    real, link = data_dir / "real", data_dir / "link"
    real.mkdir()
    link.symlink_to(real)
    private.make_directory(link)
    os.chown(link, SOMEBODY.pw_uid, SOMEBODY.pw_gid, follow_symlinks=False)
    with pytest.raises(NotOursError, match="symbolic link that belongs to user"):
        private.make_directory(link)


def test_a_planted_key_is_not_adopted(data_dir: Path) -> None:
    """A key that others can read or own, or a link to one, is refused with what to do."""
    path = data_dir / "admin.key"
    token = new_secret()
    path.write_text(f"{token}\n")
    path.chmod(0o644)
    with pytest.raises(NotOursError, match=f"mode 0644.*chmod 600 {path}.*rm {path}"):
        read_token(path)
    path.chmod(0o600)
    assert read_token(path) == token
    if os.geteuid() == 0:
        os.chown(path, SOMEBODY.pw_uid, SOMEBODY.pw_gid)
        with pytest.raises(NotOursError, match=f"belongs to user {SOMEBODY.pw_name}"):
            read_token(path)
        os.chown(path, 0, 0)
    elsewhere = path.rename(data_dir / "elsewhere")
    path.symlink_to(elsewhere)
    with pytest.raises(NotOursError, match="symbolic link"):
        read_token(path)


@as_root
def test_a_tree_is_given_away_without_what_links_lead_to(data_dir: Path) -> None:
    """Links in a tree are given away themselves; a file with a second name elsewhere stops it."""
    precious, tree = data_dir / "precious", data_dir / "tree"
    (tree / "base").mkdir(parents=True)
    precious.touch()
    (tree / "base" / "link").symlink_to(precious)
    private.give_tree(tree, SOMEBODY.pw_uid, SOMEBODY.pw_gid)
    owners = {path.lstat().st_uid for path in (tree, *tree.rglob("*"))}
    assert (owners, precious.stat().st_uid) == ({SOMEBODY.pw_uid}, 0)
    os.link(precious, tree / "base" / "second")
    with pytest.raises(NotOursError, match="hard link"):
        private.give_tree(tree, SOMEBODY.pw_uid, SOMEBODY.pw_gid)
    assert precious.stat().st_uid == 0
