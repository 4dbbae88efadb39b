"""One attempt of a job as its node sees it: the lease, the time used, and when to stop.

Owns: the node's arithmetic of use and trust. Times are microseconds of the server's clock, which
the simulation moves. Must not: talk to a server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gpucredits.simulation.faults import Fault, Mishap
from gpucredits.simulation.workload import SimulatedJob

US_PER_MS: Final = 1_000
PPM: Final = 1_000_000


class End(StrEnum):
    """The end of an attempt."""

    DONE = "done"
    CRASHED = "crashed"
    CUT_OFF = "cut off"  # no answer reached the node before the lease ended
    STOPPED = "stopped"  # the server gave no further time

    @property
    def is_at_the_end_of_the_lease(self) -> bool:
        """Whether the job may have used its lease to the last millisecond."""
        return self in {End.CUT_OFF, End.STOPPED}


@dataclass(slots=True, kw_only=True)
class Attempt:
    """A running attempt; ``reported_ms`` is the use that the server has accepted."""

    job: SimulatedJob
    number: int  # from 0
    reservation_id: str
    admitted_us: int
    expires_us: int  # until when the node trusts its lease
    mishap: Mishap
    seq: int = 0
    reported_ms: int = 0
    beats: int = 0  # times to report that have come, whether or not a report was sent
    is_draining: bool = False
    stale: list[tuple[str, int, int]] = field(default_factory=list)
    end: End | None = None

    @property
    def run_ms(self) -> int:
        """The attempt's run time if nobody stops it."""
        return self.job.attempts_s[self.number] * 1_000

    @property
    def ends_us(self) -> int:
        """When the attempt ends: its job is done, or its lease ends."""
        done_us = self.admitted_us + self.run_ms * US_PER_MS
        return min(done_us, self.expires_us) if self.is_draining else done_us

    def used_ms(self, now_us: int) -> int:
        """The use that the node's clock shows; a job runs no longer than its lease."""
        real_ms = self._real_ms(now_us)
        if self.mishap.fault is Fault.SLOW_CLOCK:
            return real_ms * (PPM - self.mishap.slow_ppm) // PPM
        return real_ms

    def is_done(self, now_us: int) -> bool:
        """Whether the job ran to its own end, and not only to its lease's."""
        return self._real_ms(now_us) == self.run_ms

    def _real_ms(self, now_us: int) -> int:
        until_us = min(now_us, self.expires_us)
        return min(self.run_ms, max(0, until_us - self.admitted_us) // US_PER_MS)

    def is_silent(self) -> bool:
        """Whether the report that is due now is lost."""
        mishap = self.mishap
        if mishap.fault is Fault.CRASH:
            return self.beats >= mishap.beat
        if mishap.fault is Fault.PARTITION:
            return mishap.beat <= self.beats < mishap.beat + mishap.beats
        return False

    def is_dead(self) -> bool:
        """Whether the node has died."""
        return self.mishap.fault is Fault.CRASH and self.beats >= self.mishap.beat

    def next_beat(self, now_us: int) -> tuple[str, int, int]:
        """The report of the use so far."""
        self.seq += 1
        return (self.reservation_id, self.seq, self.used_ms(now_us))
