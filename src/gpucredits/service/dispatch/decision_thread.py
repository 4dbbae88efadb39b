"""Running a decision on a server: beside the event loop, and without the garbage collector.

Must not: decide (core.fairshare does).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import Decisions
from gpucredits.core.fairshare.snapshot import PoolSnapshot

IN_THREAD_ROWS: Final = 2_000  # larger decisions do not hold up the event loop


async def decided(snapshot: PoolSnapshot) -> Decisions:
    """Decide without the collector, and beside the event loop where that takes long."""
    if len(snapshot.running) + len(snapshot.waiting) < IN_THREAD_ROWS:
        return decided_at_once(snapshot)
    return await asyncio.to_thread(decided_at_once, snapshot)


def decided_at_once(snapshot: PoolSnapshot) -> Decisions:
    """Decide with the garbage collector paused: a decision makes many rows and no cycles."""
    with collector_paused():
        return decide(snapshot)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the garbage collector, if it was on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
