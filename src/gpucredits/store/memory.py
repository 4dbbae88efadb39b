"""How much memory this process may use, and how much of it is for what.

Owns: the shares of memory that defaults are made of.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LEASE_BYTES = 1_024  # that a lease takes which is kept, with its share of accounts and limits
FIT_MAX = 2_000_000


def memory_bytes() -> int:
    """The memory this process may use: the machine's, or the container's where that is less."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # cgroup v2, then v1
        with suppress(OSError, ValueError):
            limits.append(int(Path("/sys/fs/cgroup", name).read_text(encoding="ascii")))
    return min(limits)


def leases_that_fit() -> int:
    """How many leases to keep: as many as fit in an eighth of the memory."""
    return min(memory_bytes() // 8 // LEASE_BYTES, FIT_MAX)
