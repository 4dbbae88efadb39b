"""Which files of the product a request visits: a trace of the calls, without background work."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import gpucredits

PACKAGE = Path(gpucredits.__file__).parent
BESIDE = ("jobs/", "app.py")  # loops that run beside any request


class Visited:
    """The files in which something was called, in the order of their first call."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        """What the interpreter tells of every call."""
        if event != "call":
            return
        name = frame.f_code.co_filename
        if name.startswith(str(PACKAGE)) and frame.f_code.co_name != "<module>":
            self.files.setdefault(str(Path(name).relative_to(PACKAGE)))


async def visited(act: Callable[[], Awaitable[None]]) -> list[str]:
    """The files that one act calls, without those of loops beside it."""
    trace = Visited()
    sys.setprofile(trace.note)
    try:
        await act()
    finally:
        sys.setprofile(None)
    return [name for name in trace.files if not name.startswith(BESIDE)]


async def usually_visited(act: Callable[[int], Awaitable[None]], times: int = 9) -> list[str]:
    """The files that most of several acts visit: work beside them is in few of the traces."""
    traces = [await visited(partial(act, number)) for number in range(times)]
    counts = Counter(name for trace in traces for name in trace)
    return [name for name, count in counts.items() if count > times // 2]
