"""Waiting for a condition instead of for a time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_S = 0.02
# A test that waits for so long says that something hangs; a machine that is busy is only slow.
HANGS_S = 120.0
T = TypeVar("T")


def until(condition: Callable[[], T], *, timeout_s: float = HANGS_S) -> T:
    """The condition's first true value; fails the test if there is none before the deadline."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {condition}")
        threading.Event().wait(POLL_S)
    return value
