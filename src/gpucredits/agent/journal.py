"""The journal of a node: the leases that its agent holds, and the last report of each.

Records: ``start`` (a lease was taken for a job, with its devices), ``beat`` (what a report says,
before it is sent), ``drain`` (the node itself ends a job), ``end`` (a job ended; from here on only
the bill is open), ``paid`` (nothing is open any more).

Owns: the file ``journal``, and what became of a job whose guardian is gone.
Must not: speak to the server.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gpucredits.agent.guard.leftovers import end_leftovers
from gpucredits.agent.run_time import RunTime
from gpucredits.agent.spool import Spool

RECORDS_MAX: Final = 10_000  # then the file is written anew, with what is open only


class NodeJournal:
    """The open bills of a node. ``starts`` and ``used`` (last seq and use) are by reservation."""

    def __init__(self, path: Path) -> None:
        self.starts: dict[str, dict[str, Any]] = {}
        self.used: dict[str, tuple[int, int]] = {}
        self._spool = Spool(path)
        for record in self._spool.records:
            self._replay(record)
        self._spool.records.clear()
        self._count = 0
        self._tidy()

    def write(self, record: dict[str, Any]) -> None:
        """Write a record; it is on disk when this returns."""
        self._spool.append(record)
        self._replay(record)
        self._count += 1
        if self._count > RECORDS_MAX:
            self._tidy()

    def _replay(self, record: dict[str, Any]) -> None:
        """Apply a record that was read."""
        match record["kind"]:
            case "start":
                self.starts[record["id"]] = record
                self.used.setdefault(record["id"], (0, 0))
            case "drain":
                self.starts[record["id"]]["drain"] = record["drain"]
            case "beat":
                beats = {each: (seq, used) for each, seq, used in record["beats"]}
                self.used |= {each: told for each, told in beats.items() if each in self.starts}
            case "paid":
                self.starts.pop(record["id"], None)
                self.used.pop(record["id"], None)
            case _:
                return

    def _tidy(self) -> None:
        """Rewrite the file with open bills only; on a full disk the file stays as it is."""
        with suppress(OSError):
            self._compact()

    def _compact(self) -> None:
        beats = [(each, *self.used[each]) for each in self.starts]
        self._spool.replace([*self.starts.values(), {"kind": "beat", "beats": beats}])
        self._count = 0


def last_words(events: Path, reported_ms: int, mark: str) -> RunTime:
    """The life of a job whose guardian is gone: exact if it told the end, else as last reported.

    The processes that still carry the job's mark are ended.
    """
    life = RunTime()
    text = events.read_text() if events.exists() else ""
    for line in text.splitlines():
        with suppress(ValueError, IndexError):  # the last line may be torn
            life.hear(line)
    if life.is_over:
        return life
    end_leftovers(mark)
    return RunTime(used_before_ms=reported_ms, is_over=True, exit_status=-signal.SIGKILL)
