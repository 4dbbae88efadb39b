"""Heartbeats while they are carried out: the call that sent them, and one org's as a job.

Owns: that every heartbeat is answered in its caller's place.
Must not: wait or store (batch does), or decide (core does). This module is compiled: every
heartbeat passes through here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Outcome
from gpucredits.core.reservation import Decision
from gpucredits.service.write.batch_record import note_beat
from gpucredits.service.write.errors import KeyReused
from gpucredits.store.book.needs import Needs
from gpucredits.store.book.save import BatchRecord

BEATS_DECIDED_AT_ONCE = 50  # without letting others run: no job holds more
CONTINUE = Decision.CONTINUE  # looked up once: every heartbeat asks


@dataclass(slots=True, eq=False)
class BeatCall:
    """The heartbeats of one caller, who is answered when the last of them is decided."""

    results: list[Outcome | Exception | None]
    done: asyncio.Future[None]
    pending: int

    def answer(self, place: int, result: Outcome | Exception) -> None:
        """Put an answer in its place."""
        self.results[place] = result
        self.pending -= 1
        if not self.pending and not self.done.done():
            self.done.set_result(None)


@dataclass(slots=True, eq=False)
class BeatJob:
    """Heartbeats of one org from any callers, each with its caller and its place in the call."""

    org_id: int
    beats: list[Beat]
    calls: list[BeatCall]
    places: list[int]
    queued_at: float = 0.0

    @property
    def size(self) -> int:
        """The number of heartbeats."""
        return len(self.beats)

    @property
    def is_abandoned(self) -> bool:
        """Whether no caller waits for an answer any more."""
        return all(call.done.done() for call in self.calls)

    @property
    def opens_windows(self) -> bool:
        """Heartbeats set no quotas."""
        return False

    def add(self, beat: Beat, call: BeatCall, place: int) -> None:
        """Add a heartbeat."""
        self.beats.append(beat)
        self.calls.append(call)
        self.places.append(place)

    def add_needs(self, needs: Needs) -> None:
        """Add the leases that report."""
        needs.add_beats(self.org_id, self.beats)

    def note(self, outcomes: list[Outcome], now: int, record: BatchRecord) -> None:
        """Record every decision other than ``continue``."""
        for beat, outcome in zip(self.beats, outcomes, strict=True):
            if isinstance(outcome, BeatResult) and outcome.decision is not CONTINUE:
                note_beat(self.org_id, now, beat, outcome, record)

    def deliver(self, result: list[Outcome] | KeyReused) -> None:
        """Put the answers in their places."""
        assert isinstance(result, list)  # heartbeats have no keys
        for call, place, outcome in zip(self.calls, self.places, result, strict=True):
            call.answer(place, outcome)

    def fail(self, error: Exception) -> None:
        """Put the error in every place."""
        for call, place in zip(self.calls, self.places, strict=True):
            call.answer(place, error)

    def split(self) -> list[BeatJob]:
        """One job for each heartbeat, so that a heartbeat that cannot be decided fails alone."""
        return [
            BeatJob(self.org_id, [beat], [call], [place], self.queued_at)
            for beat, call, place in zip(self.beats, self.calls, self.places, strict=True)
        ]
