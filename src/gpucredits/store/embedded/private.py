"""Files and directories that nobody but the user of this process can change.

Owns: making and checking the data directory, and every write that we do in it. A process of root
writes only through a directory that it has opened and found to be its own, never through a symbolic
link, and sets every mode itself, whatever the umask is.
Must not: know what the files mean.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from gpucredits.store.embedded.run_as import EmbeddedPostgresError

OURS: Final = ("postgres.lock", "postgres", "admin.key")  # a directory with one is a data directory
WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A fifo that somebody put there must not hold us up.
PLAIN: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

WRITTEN: Final = os.O_WRONLY | os.O_RDWR


class NotOursError(EmbeddedPostgresError):
    """A file or directory that another user owns or can change; the message says what to do."""


def user_name(uid: int) -> str:
    """The user's name, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def make_directory(path: Path) -> None:
    """Make a data directory of mode 0700, or check that the one there is ours alone to write to."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        mode = 0o700 if folder == path else 0o755
        with suppress(FileExistsError):  # somebody was faster: it is checked below
            folder.mkdir(mode=mode)
            folder.chmod(mode)
    check_directory(path)


def check_directory(path: Path) -> None:
    """Refuse a data directory of somebody else; take the right to write from all others."""
    link = path.lstat()
    if stat.S_ISLNK(link.st_mode) and link.st_uid != os.geteuid():
        raise NotOursError(
            f"{path} is a symbolic link that belongs to user {user_name(link.st_uid)}, and this "
            f"process is user {user_name(os.geteuid())}. Remove the link, or choose another data "
            "directory."
        )
    handle = os.open(path, DIRECTORY)
    try:
        found = os.fstat(handle)
        require_owner(path, found, what="data directory")
        if found.st_mode & WRITABLE_BY_OTHERS:
            set_mode(path, handle, stat.S_IMODE(found.st_mode) & ~WRITABLE_BY_OTHERS)
    finally:
        os.close(handle)


def close_to_others(path: Path) -> None:
    """Let nobody but us pass through a data directory of ours."""
    change_mode(path, take=OF_OTHERS)


def let_through(path: Path) -> None:
    """Let other users pass through a data directory of ours to files of their own."""
    change_mode(path, give=stat.S_IXGRP | stat.S_IXOTH)


def change_mode(path: Path, *, give: int = 0, take: int = 0) -> None:
    """Set and clear permission bits of a data directory of ours, where they are not so yet."""
    handle = open_directory(path)
    try:
        before = stat.S_IMODE(os.fstat(handle).st_mode)
        after = (before | give) & ~take
        if after != before:
            set_mode(path, handle, after)
    finally:
        os.close(handle)


def set_mode(path: Path, handle: int, mode: int) -> None:
    """Change the mode of a data directory, unless it has other things in it."""
    names = os.listdir(handle)
    if mode & stat.S_ISVTX:
        raise NotOursError(f"all users share {path}. Choose a directory of its own.")
    if names and not set(OURS) & set(names):
        raise NotOursError(
            f"{path} holds other files, and its mode would have to be {mode:04o}. Choose a "
            f"directory of its own, or: chmod {mode:o} {shlex.quote(str(path))}"
        )
    os.fchmod(handle, mode)


def require_owner(path: Path, found: os.stat_result, *, what: str) -> None:
    """Refuse what another user owns."""
    us = os.geteuid()
    if found.st_uid == us:
        return
    owner, place = user_name(found.st_uid), shlex.quote(str(path))
    raise NotOursError(
        f"the {what} {path} belongs to user {owner}, and this process is user {user_name(us)}. "
        f"Run as user {owner}, choose another, or, if you trust all that is in it: "
        f"chown {user_name(us)} {place}"
    )


def open_directory(path: Path) -> int:
    """A descriptor of a directory that only we can write to."""
    handle = os.open(path, DIRECTORY)
    try:
        found = os.fstat(handle)
        require_owner(path, found, what="directory")
        require_closed(path, found)
    except BaseException:
        os.close(handle)
        raise
    return handle


def require_closed(path: Path, found: os.stat_result) -> None:
    """Refuse a directory that other users can write to."""
    if found.st_mode & WRITABLE_BY_OTHERS:
        place = shlex.quote(str(path))
        raise NotOursError(f"other users can write to {path}. Close it: chmod go-w {place}")


def open_file(path: Path, flags: int) -> int:
    """A descriptor of a file of ours, made with mode 0600; no link, and nobody else's file."""
    folder = open_directory(path.parent)
    try:
        handle = os.open(path.name, flags | PLAIN, 0o600, dir_fd=folder)
    except OSError as error:
        if path.is_symlink():
            raise NotOursError(
                f"{path} is a symbolic link, and is not followed. Remove the link: "
                f"rm {shlex.quote(str(path))}"
            ) from error
        raise
    finally:
        os.close(folder)
    try:
        check_file(path, os.fstat(handle), is_written=bool(flags & WRITTEN))
        if flags & os.O_CREAT:
            os.fchmod(handle, 0o600)
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_file(path: Path, found: os.stat_result, *, is_written: bool) -> None:
    """Refuse a file of another user, one that is not plain, and writing to one with two names."""
    require_owner(path, found, what="file")
    if not stat.S_ISREG(found.st_mode) or (is_written and found.st_nlink > 1):
        raise NotOursError(
            f"{path} is not a plain file with one name. Remove it: rm {shlex.quote(str(path))}"
        )


def check_secret(path: Path) -> None:
    """Refuse a secret's file that another user owns, reads or put a link in place of."""
    try:
        handle = open_file(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    os.close(handle)
    if mode & OF_OTHERS:
        place = shlex.quote(str(path))
        raise NotOursError(
            f"{path} has mode {mode:04o}: other users can read or change the key in it. If the "
            f"key is yours and nobody has seen it: chmod 600 {place}. If not: rm {place}"
        )


def read_file(path: Path) -> bytes:
    """The content of a file of ours."""
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        return file.read()


def write_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace a file, whole or not at all, and make its name durable as well."""
    folder = open_directory(path.parent)
    fresh = f"{path.name}.partial"
    try:
        with suppress(FileNotFoundError):  # of a process that was killed
            os.unlink(fresh, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN
        with os.fdopen(os.open(fresh, flags, mode, dir_fd=folder), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def give_tree(path: Path, uid: int, gid: int) -> None:
    """Give a directory of ours, and all below it, to another user.

    The outermost directory goes last: until then the other user cannot reach what is being given.
    """
    if path.is_symlink():
        raise NotOursError(f"{path} is a symbolic link, and what it names is not given away.")
    os.chmod(path, 0o700)  # noqa: PTH101 - PostgreSQL demands it, and it keeps others out
    for _, folders, files, handle in os.fwalk(path, topdown=False, follow_symlinks=False):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1:
                raise NotOursError(
                    f"{name} below {path} has a second name elsewhere (a hard link), and is not "
                    "given away. Copy the directory without hard links."
                )
            os.chown(name, uid, gid, dir_fd=handle, follow_symlinks=False)
    os.chown(path, uid, gid, follow_symlinks=False)
