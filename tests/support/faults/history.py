"""What clients asked and what they were told, written down where no fault of the server reaches.

Every call is noted before it is sent and after each attempt, and each line is on disk before the
client goes on. A call ends accepted, refused, unavailable (nothing was done) or unresolved; on the
way there an attempt may have been ambiguous.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

INVOKED = "invoked"
ACCEPTED = "accepted"
REFUSED = "refused"
UNAVAILABLE = "unavailable"
AMBIGUOUS = "ambiguous"
UNRESOLVED = "unresolved"


@dataclass(slots=True)
class Asked:
    """One call: what was asked, how each attempt ended, and the answer if there was one."""

    kind: str
    key: str | None
    path: str
    request: str
    ends: list[str] = field(default_factory=list)
    answer: str = ""
    sent_s: float = 0.0  # the last attempt, on the monotonic clock that all processes share
    ended_s: float = 0.0
    sent_at: float = 0.0  # the same moment on the clock of the world
    failed_s: list[float] = field(default_factory=list)  # when an attempt got no decision
    undecided: list[str] = field(default_factory=list)  # "status reason" of each of these

    @property
    def end(self) -> str:
        """How it ended in the end."""
        return self.ends[-1] if self.ends else UNRESOLVED

    @property
    def was_ambiguous(self) -> bool:
        """Whether an answer was lost on the way."""
        return AMBIGUOUS in self.ends

    @property
    def body(self) -> Any:
        """The accepted answer."""
        return json.loads(self.answer)


class HistoryWriter:
    """Appends to one client's file; each line is synced before the call goes on."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._handle)

    def invoke(self, kind: str, key: str | None, path: str, request: str) -> int:
        """Note a call before it is sent; its number."""
        self._number += 1
        self._write([self._number, INVOKED, kind, key, path, request])
        return self._number

    def ended(self, number: int, end: str, sent_s: float, answer: str = "") -> None:
        """Note how an attempt ended."""
        now_s = time.monotonic()
        self._write([number, end, sent_s, now_s, time.time() - (now_s - sent_s), answer])

    def _write(self, line: list[Any]) -> None:
        os.write(self._handle, json.dumps(line).encode() + b"\n")
        os.fdatasync(self._handle)


def read_history(paths: Iterable[Path]) -> list[Asked]:
    """Every call of every client, each client's in order."""
    calls: list[Asked] = []
    for path in paths:
        of_client: dict[int, Asked] = {}
        for text in path.read_text().splitlines():
            number, event, *facts = json.loads(text)
            if event == INVOKED:
                kind, key, where, request = facts
                of_client[number] = Asked(kind, key, where, request)
                continue
            call = of_client[number]
            call.sent_s, call.ended_s, call.sent_at, call.answer = facts
            call.ends.append(event)
            if event in (AMBIGUOUS, UNAVAILABLE):
                call.failed_s.append(call.ended_s)
                call.undecided.append(" ".join(call.answer.split()[:2]))
        calls += of_client.values()
    return calls


def accepted_count(paths: Iterable[Path]) -> int:
    """How many calls were accepted so far, read while the clients write."""
    mark = f'"{ACCEPTED}"'.encode()
    return sum(path.read_bytes().count(mark) for path in paths if path.exists())
