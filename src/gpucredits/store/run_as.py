"""Which user the embedded PostgreSQL runs as, and how to start a program as that user.

PostgreSQL refuses to run as root. When we are root it runs as the owner of its data directory, or
as ``nobody`` for a new one: no account has to be created. Owns that choice and whether that user
can reach the files at all; it must not create or change anything.

Where a directory on the way is closed to others (``/root``, a private data directory), the server
keeps one capability that lets it walk through directories. That opens nothing to any other user,
unlike loosening the modes of the parents, and it is not kept where it is not needed.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
LAUNCHER = Path(__file__).with_name("launch.py")
UNCHANGED = -1


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot run here; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAs:
    """The user a program runs as; ``UNCHANGED`` where it is simply us."""

    uid: int = UNCHANGED
    gid: int = UNCHANGED
    capability: int = UNCHANGED

    def command(self, *program: str | Path) -> list[str]:
        """The command line that starts the program as this user, bound to our life."""
        identity = (os.getpid(), self.uid, self.gid, self.capability)
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), *map(str, identity)]
        return [*launcher, *map(str, program)]

    def own(self, path: Path) -> None:
        """Give one file or directory to this user."""
        if self.uid != UNCHANGED:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def choose(cluster: Path, *, needed: list[Path]) -> RunAs:
    """The user to run as for this cluster directory, able to reach all the ``needed`` paths."""
    require_name(os.geteuid())
    if os.geteuid() != 0:
        if cluster.exists() and cluster.stat().st_uid != os.geteuid():
            owner, us = cluster.stat().st_uid, os.geteuid()
            raise EmbeddedPostgresError(
                f"{cluster} belongs to user {owner}, but this process is user {us}. "
                f"Run as user {owner}, or: chown -R {us} {cluster}"
            )
        return RunAs()
    entry = unprivileged(cluster)
    closed = [path for needs in needed if (path := closed_parent(needs, entry))]
    if not closed:
        return RunAs(uid=entry.pw_uid, gid=entry.pw_gid)
    held = capabilities_held()
    for capability in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):  # the weaker first
        if held >> capability & 1:
            return RunAs(uid=entry.pw_uid, gid=entry.pw_gid, capability=capability)
    raise EmbeddedPostgresError(
        f"PostgreSQL does not run as root, and user {entry.pw_name!r}, which it would run as, "
        f"cannot pass through {closed[0]}. Use a data directory and an installation that others "
        f"can reach (for example under /var/lib and /opt), or: chmod o+x {closed[0]}"
    )


def require_name(uid: int) -> None:
    """Refuse a user id without a name: initdb and peer authentication both look it up."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedPostgresError(
            f"user id {uid} has no entry in the user database (/etc/passwd), and PostgreSQL needs "
            "one. Run as a named user, add an entry, or use --database-url."
        ) from None


def unprivileged(cluster: Path) -> pwd.struct_passwd:
    """Whom to run as instead of root: the owner of an existing cluster, else nobody."""
    if cluster.exists() and (owner := cluster.stat().st_uid) != 0:
        require_name(owner)
        return pwd.getpwuid(owner)
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedPostgresError(
            "PostgreSQL does not run as root, and this system has no user 'nobody' to run it as. "
            "Run as another user, or give the data directory to one with chown."
        ) from None


def closed_parent(path: Path, user: pwd.struct_passwd) -> Path | None:
    """The outermost directory on the way to a path that the user cannot walk through."""
    ways = (path.absolute(), path.resolve())  # through a symbolic link both are walked
    for parent in (folder for way in ways for folder in reversed(way.parents)):
        if not parent.exists():
            continue
        found = parent.stat()
        if found.st_uid == user.pw_uid:
            needed = stat.S_IXUSR
        elif found.st_gid == user.pw_gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not found.st_mode & needed:
            return parent
    return None


def capabilities_held() -> int:
    """The capabilities we may pass on, as the kernel's bit mask."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    masks = {line[:6]: int(line[7:], 16) for line in lines if line.startswith(("CapPrm", "CapBnd"))}
    return masks.get("CapPrm", 0) & masks.get("CapBnd", 0)
