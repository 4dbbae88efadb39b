"""Which files of the product a request visits: a trace of the calls, without background work."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import gpucredits
from gpucredits.jobs.dispatcher import Dispatching
from gpucredits.jobs.pace import Paced

PACKAGE = Path(gpucredits.__file__).parent
# Loops that run beside any request, and what only they look at.
BESIDE = (
    "jobs/",
    "app.py",
    "store/clock.py",
    "store/outages.py",
    "store/ledger/due.py",
    "store/metering/events.py",
)


class Visited:
    """The files in which something was called, in the order of their first call."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        loops = {kind.__name__ for kind in Paced.__subclasses__()}
        self.beside = loops - {Dispatching.__name__}  # the dispatcher works for requests

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        """What the interpreter tells of every call; loops but the dispatcher's are not heard."""
        if event != "call" or self.is_beside():
            return
        name = frame.f_code.co_filename
        if name.startswith(str(PACKAGE)) and frame.f_code.co_name != "<module>":
            self.files.setdefault(str(Path(name).relative_to(PACKAGE)))

    def is_beside(self) -> bool:
        """Whether a loop is at work that runs beside any request."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # a thread that somebody waits for
            return False
        return task is not None and task.get_name() in self.beside


async def visited(act: Callable[[], Awaitable[None]]) -> list[str]:
    """The files that one act calls, in threads too, without those of loops beside it."""
    trace = Visited()
    threading.setprofile(trace.note)  # of threads that start from now on
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    sys.setprofile(trace.note)
    try:
        await act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [name for name in trace.files if not name.startswith(BESIDE)]


async def usually_visited(act: Callable[[int], Awaitable[None]], times: int = 9) -> list[str]:
    """The files that most of several acts visit: work beside them is in few of the traces."""
    traces = [await visited(partial(act, number)) for number in range(times)]
    counts = Counter(name for trace in traces for name in trace)
    return [name for name, count in counts.items() if count > times // 2]
