"""Become a PostgreSQL program that ends when its parent ends; run as a script.

Owns the last steps before ``exec``: giving up root, keeping at most one capability, and asking the
kernel for a signal at the parent's death. A separate program because these steps are not safe
between ``fork`` and ``exec`` of a process with threads. It must import only the standard library,
and little of it: it runs without site-packages at every start.

Usage: launch.py PARENT_PID UID GID CAPABILITY PROGRAM [ARGUMENT...]   (-1 leaves a thing as it is)
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

LIBRARY_PATH = "LD_LIBRARY_PATH"
PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAPABILITY_VERSION_3 = 0x20080522
CAPABILITY_HEADER = "=Ii"  # version, thread (0: this one)
CAPABILITY_SETS = "=6I"  # effective, permitted, inheritable: low words, then high words

libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> None:
    """Give up what is not needed, tie our life to the parent's, and become the program."""
    parent, user, group, capability = (int(text) for text in arguments[:4])
    program = arguments[4:]
    if user >= 0:
        become(user, group, capability)
    # After the change of user, which would clear it. Immediate shutdown: nobody is left to answer,
    # and what was acknowledged is in the write-ahead log.
    prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # what a shell starts with & is told to ignore it
    if os.getppid() != parent:
        raise SystemExit("the process that wanted this server ended before it could start")
    os.umask(0o077)
    if program[0] != sys.executable:  # Python may need the path; others bring their libraries
        os.environ.pop(LIBRARY_PATH, None)
    os.execv(program[0], program)  # noqa: S606 - the program is named by our own supervisor


def become(user: int, group: int, capability: int) -> None:
    """Change to an unprivileged user, keeping one capability across ``exec`` if asked to."""
    if capability >= 0:
        prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    if capability >= 0:
        bit = 1 << capability
        header = struct.pack(CAPABILITY_HEADER, CAPABILITY_VERSION_3, 0)
        sets = struct.pack(CAPABILITY_SETS, bit, bit, bit, 0, 0, 0)
        check(libc.capset(header, sets), "capset")
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)


def prctl(option: int, *values: int) -> None:
    """Call the kernel with every argument spelled out, as the kernel insists for some options."""
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    check(libc.prctl(ctypes.c_int(option), *padded), f"prctl({option})")


def check(result: int, call: str) -> None:
    """Stop with the kernel's reason if a system call failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise SystemExit(f"cannot start PostgreSQL: {call} failed: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1:])
