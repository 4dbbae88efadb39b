"""Other users of this machine, whom a test as root can act as."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from gpucredits.store.embedded.cluster import binaries
from gpucredits.store.embedded.run_as import DEDICATED, RunAs
from support.waiting import HANGS_S

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as other users")
NOBODY = pwd.getpwnam("nobody")
SOMEBODY = pwd.getpwnam("daemon")  # there is one everywhere, and it has a group of its own


def hide_own_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process see no user of our own and nobody who called sudo, as on a new machine."""
    find = pwd.getpwnam

    def other(name: str) -> pwd.struct_passwd:
        if name == DEDICATED:
            raise KeyError(name)
        return find(name)

    monkeypatch.setattr(pwd, "getpwnam", other)
    monkeypatch.delenv("SUDO_UID", raising=False)


def act_as(user: pwd.struct_passwd, *program: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program as a user without any capability."""
    return subprocess.run(
        RunAs(uid=user.pw_uid, gid=user.pw_gid).command(*program),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
    )


def ask_as(user: pwd.struct_passwd, address: str) -> subprocess.CompletedProcess[str]:
    """Ask the database, as a user, whether it takes the user for its superuser."""
    question = "SELECT usesuper FROM pg_user WHERE usename = current_user"
    psql = (binaries() / "psql", "-X", "-t", "-A", "-w", "-c", question)
    return act_as(user, *psql, address)
