"""The fleet: jobs arrive, nodes report and obey, and faults happen, in the order of time.

Owns: the order of events, moving the server's clock, and the nodes' reaction to each answer.
Must not: judge bills (``oracle`` does) or show anything (``summary`` and ``picture`` do).
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from gpucredits.client import Client, Refused, Undecided
from gpucredits.client.calls import ReserveFields
from gpucredits.simulation.faults import Fault, mishap
from gpucredits.simulation.node import US_PER_MS, Attempt, End
from gpucredits.simulation.workload import SimulatedJob, Workload
from gpucredits.wire.ledger.heartbeat import BeatAnswer
from gpucredits.wire.ledger.reservation import ReservationAnswer
from gpucredits.wire.problem import Problem

US: Final = 1_000_000
BEATS_A_REPORT: Final = 1_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

ARRIVAL, END, BEAT, LEAVE = range(4)  # kinds of events, in their order at one instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The settings of a run."""

    seed: int
    interval_s: int
    window_s: int
    with_faults: bool


@dataclass(slots=True, kw_only=True)
class Refusal:
    """A job that was not admitted: the time, and the closed gates or the reason."""

    job: SimulatedJob
    gates: tuple[str, ...]
    reason: str


@dataclass(slots=True, kw_only=True)
class History:
    """All attempts, refusals and waits of a run."""

    attempts: list[Attempt] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    waits_us: list[int] = field(default_factory=list)  # of jobs that waited and were admitted
    left: list[SimulatedJob] = field(default_factory=list)  # jobs that gave up waiting
    faults: Counter[str] = field(default_factory=Counter)
    beats: int = 0
    began_us: int = 0
    ended_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job in the queue, and the number of the attempt that waits."""

    job: SimulatedJob
    number: int
    since_us: int


class ServerClock:
    """The server's clock: moved to each event, and known in between without asking."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._now_us = 0
        self._read_s = 0.0
        self.move(0)

    @property
    def now_us(self) -> int:
        """The server's time; it may be slightly later."""
        return self._now_us + int((time.monotonic() - self._read_s) * US)

    def move(self, seconds: int) -> None:
        """Move the clock on."""
        self._now_us = instant_us(self._client.advance_clock(seconds).now)
        self._read_s = time.monotonic()  # after the answer: the estimate never runs ahead

    def reach(self, target_us: int) -> None:
        """Move the clock on to an instant, unless it has passed."""
        missing_us = target_us - self.now_us
        if missing_us > 0:
            self.move(-(-missing_us // US))


class Fleet:
    """Plays a workload on a server; ``history`` is complete when ``play`` has returned."""

    def __init__(self, client: Client, workload: Workload, terms: Terms) -> None:
        self._client = client
        self._workload = workload
        self._terms = terms
        self._clock = ServerClock(client)
        self._events: list[tuple[int, int, int, SimulatedJob | Attempt | str | None]] = []
        self._count = 0
        self._running: dict[str, Attempt] = {}
        self._waiting: dict[str, Waiting] = {}
        self.history = History(began_us=self._clock.now_us)

    def play(self, tell: Callable[[int, int], None]) -> None:
        """Run from the first arrival to the last end; ``tell`` gets the number of arrived jobs."""
        began_us = self.history.began_us
        for job in self._workload.jobs:
            self._at(began_us + job.arrives_s * US, ARRIVAL, job)
        self._at(began_us + self._terms.interval_s * US, BEAT, None)
        arrived = 0
        while self._events:
            at_us, kind, _, subject = heapq.heappop(self._events)
            self._clock.reach(at_us)
            if kind == ARRIVAL and isinstance(subject, SimulatedJob):
                arrived += 1
                self._ask(subject, 0)
            elif kind == END and isinstance(subject, Attempt):
                self._end(subject)
            elif kind == LEAVE and isinstance(subject, str):
                self._leave(subject)
            elif kind == BEAT:
                self._beat(is_over=arrived == len(self._workload.jobs))
            self._look_at_queue()
            tell(arrived, len(self._workload.jobs))
        self.history.ended_us = self._clock.now_us

    def _at(self, at_us: int, kind: int, subject: SimulatedJob | Attempt | str | None) -> None:
        self._count += 1
        heapq.heappush(self._events, (at_us, kind, self._count, subject))

    def _ask(self, job: SimulatedJob, number: int) -> None:
        """Ask for a lease, and wait in the queue if the job waits."""
        try:
            if job.waits:
                self._enqueue(job, number)
            else:
                lease = self._client.reserve(job.account, **self._fields(job, number))
                self._start(job, number, lease)
        except Refused as refused:
            self._refused(job, refused.problem)
        except Undecided as undecided:
            if undecided.problem is None:
                raise
            self._refused(job, undecided.problem)

    def _fields(self, job: SimulatedJob, number: int) -> ReserveFields:
        return {
            "job_id": job.name,
            "gpu_type": job.gpu_type,
            "gpu_count": gpus_text(job.milli_gpus),
            "node": f"node-of-{job.name}-{number}",
            "window_seconds": self._terms.window_s,
            "expected_seconds": job.attempts_s[number],
        }

    def _enqueue(self, job: SimulatedJob, number: int) -> None:
        leaves_us = None if job.leaves_s is None else self.history.began_us + job.leaves_s * US
        now_us = self._clock.now_us
        answer = self._client.enqueue(job.account, **self._fields(job, number))
        if answer.reservation_id is not None:
            self.history.waits_us.append(0)
            self._start(job, number, self._client.reservation(answer.reservation_id))
            return
        self._waiting[answer.queue_id] = Waiting(job=job, number=number, since_us=now_us)
        if leaves_us is not None:
            self._at(max(leaves_us, now_us), LEAVE, answer.queue_id)

    def _refused(self, job: SimulatedJob, problem: Problem) -> None:
        closed = [gate.gate for gate in problem.gates or () if not gate.passes]
        refusal = Refusal(job=job, gates=tuple(dict.fromkeys(closed)), reason=problem.reason)
        self.history.refusals.append(refusal)

    def _start(self, job: SimulatedJob, number: int, lease: ReservationAnswer) -> None:
        attempt = Attempt(
            job=job,
            number=number,
            reservation_id=lease.reservation_id,
            admitted_us=instant_us(lease.admitted_at),
            expires_us=instant_us(lease.expires_at),
            mishap=mishap(self._terms.seed, job.name, number, with_faults=self._terms.with_faults),
        )
        if attempt.mishap.fault is not Fault.NONE:
            self.history.faults[attempt.mishap.fault] += 1
        self._running[lease.reservation_id] = attempt
        self._at(attempt.ends_us, END, attempt)

    def _look_at_queue(self) -> None:
        """Start the jobs that the queue has admitted since the last look."""
        if not self._waiting:
            return
        still = {row.queue_id for row in self._client.queue(state="waiting")}
        for queue_id in [each for each in self._waiting if each not in still]:
            waited = self._waiting.pop(queue_id)
            answer = self._client.queued(queue_id)
            if answer.reservation_id is not None:
                lease = self._client.reservation(answer.reservation_id)
                waited_us = instant_us(lease.admitted_at) - waited.since_us
                self.history.waits_us.append(max(0, waited_us))
                self._start(waited.job, waited.number, lease)
            elif answer.state == "refused":
                refusal = Refusal(job=waited.job, gates=(), reason=answer.reason or "refused")
                self.history.refusals.append(refusal)
            else:
                self.history.left.append(waited.job)

    def _leave(self, queue_id: str) -> None:
        """Leave the queue; a job that was admitted meanwhile starts instead."""
        if queue_id not in self._waiting:
            return
        try:
            self._client.cancel_queued(queue_id)
        except Refused:
            self._look_at_queue()

    def _beat(self, *, is_over: bool) -> None:
        """Every node reports; the next time to report is one interval later."""
        now_us = self._clock.now_us
        due = []
        for attempt in list(self._running.values()):
            attempt.beats += 1
            if attempt.is_dead():
                self._close(attempt, End.CRASHED)
            elif not attempt.is_silent():
                due.append(attempt)
        for chunk in _chunks(due, BEATS_A_REPORT):
            beats = [attempt.next_beat(now_us) for attempt in chunk]
            answers = self._client.heartbeats(beats).results
            self.history.beats += len(beats)
            for attempt, beat, answer in zip(chunk, beats, answers, strict=True):
                self._obey(attempt, beat, answer, now_us)
            self._repeat(chunk)
        if self._running or self._waiting or not is_over:
            self._at(self._clock.now_us + self._terms.interval_s * US, BEAT, None)

    def _obey(
        self, attempt: Attempt, beat: tuple[str, int, int], answer: BeatAnswer, sent_us: int
    ) -> None:
        """Obey the answer: continue, end at the lease's end, or stop."""
        if answer.decision is None:
            return  # no decision yet: the next report asks again
        attempt.reported_ms = max(attempt.reported_ms, beat[2])
        attempt.stale.append(beat)
        if answer.state != "active":
            end = End.CUT_OFF if attempt.mishap.fault is Fault.PARTITION else End.STOPPED
            self._close(attempt, end)
        elif answer.decision == "stop":
            self._close(attempt, End.STOPPED)
        else:
            # A node trusts a lease from when it sent its report: the answer came later.
            attempt.expires_us = sent_us + answer.expires_in_ms * US_PER_MS
            attempt.is_draining = answer.decision in {"drain", "throttle"}
            if attempt.is_draining:
                self._at(attempt.ends_us, END, attempt)

    def _repeat(self, attempts: list[Attempt]) -> None:
        """Repeat reports, and send old ones late, for nodes with such a network fault."""
        for attempt in attempts:
            if attempt.mishap.fault is Fault.REPEAT and attempt.stale:
                self._client.heartbeats([attempt.stale[-1], attempt.stale[0]])
                self.history.beats += 2

    def _end(self, attempt: Attempt) -> None:
        """The job is done or its time is up: report the last use and settle."""
        if attempt.end is not None or self._clock.now_us < attempt.ends_us:
            return
        if attempt.is_silent():
            self._at(self._clock.now_us + self._terms.interval_s * US, END, attempt)
            return
        attempt.seq += 1
        now_us = self._clock.now_us
        used_ms = attempt.used_ms(now_us)
        self._client.settle(attempt.reservation_id, seq=attempt.seq, used_ms=used_ms)
        attempt.reported_ms = max(attempt.reported_ms, used_ms)
        cut_off = End.STOPPED if attempt.is_draining else End.CUT_OFF
        self._close(attempt, End.DONE if attempt.is_done(now_us) else cut_off)

    def _close(self, attempt: Attempt, end: End) -> None:
        """Note how the attempt ended; the next attempt asks at once."""
        attempt.end = end
        self._running.pop(attempt.reservation_id, None)
        self.history.attempts.append(attempt)
        following = attempt.number + 1
        if end is not End.STOPPED and following < len(attempt.job.attempts_s):
            self._ask(attempt.job, following)


def _chunks(attempts: list[Attempt], size: int) -> Iterator[list[Attempt]]:
    for start in range(0, len(attempts), size):
        yield attempts[start : start + size]


def gpus_text(milli_gpus: int) -> str:
    """Thousandths of GPUs as a decimal number."""
    whole, part = divmod(milli_gpus, 1_000)
    return f"{whole}.{part:03d}".rstrip("0").rstrip(".") if part else str(whole)


def instant_us(text: str) -> int:
    """Microseconds since 1970 of a server's instant."""
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
