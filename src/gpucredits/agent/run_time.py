"""The run time of a job, worked out from its guardian's events.

Owns: the time that a job ran, without the time it was paused.
Must not: read a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SIGNALED: Final = 128  # and the number of the signal, as shells say


@dataclass(slots=True)
class RunTime:
    """A job's life by its guardian's events; instants are milliseconds of the guardian's clock."""

    pid: int = 0
    pid_start: int = 0
    used_before_ms: int = 0
    runs_since_ms: int | None = None
    is_started: bool = False
    is_paused: bool = False
    is_signaled: bool = False
    is_over: bool = False
    exit_status: int = 0
    ended_at_ms: int = 0
    failure: int = 0  # errno of a command that could not be started

    @property
    def exit_code(self) -> int:
        """The exit code of the job, as shells give it."""
        return SIGNALED - self.exit_status if self.exit_status < 0 else self.exit_status

    def hear(self, line: str) -> None:
        """Apply one event of the guardian."""
        word, at, *rest = line.split()
        at_ms = int(at)
        match word:
            case "started":
                self.is_started, self.runs_since_ms = True, at_ms
                self.pid, self.pid_start = int(rest[0]), int(rest[1])
            case "paused":
                self._stop(at_ms)
                self.is_paused = True
            case "slowed":  # by the user's command: nobody knows that it has stopped
                self.is_paused = True
            case "resumed":
                self.used_before_ms = self.used_ms(at_ms)
                self.runs_since_ms, self.is_paused = at_ms, False
            case "signaled":
                self.is_signaled = True
            case "ended":
                self._stop(at_ms)
                self.is_over, self.exit_status, self.ended_at_ms = True, int(rest[0]), at_ms
            case "failed":
                self.is_over, self.failure = True, int(rest[0])
            case _:
                raise ValueError(f"{line!r} is no event of a guardian")

    def used_ms(self, now_ms: int) -> int:
        """How long the job has run until now."""
        running_ms = 0 if self.runs_since_ms is None else max(now_ms - self.runs_since_ms, 0)
        return self.used_before_ms + running_ms

    def _stop(self, at_ms: int) -> None:
        self.used_before_ms = self.used_ms(at_ms)
        self.runs_since_ms = None
