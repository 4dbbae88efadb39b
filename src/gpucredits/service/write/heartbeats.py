"""Heartbeats on their way: from a node's report to the jobs of a batch, and back to its answer.

Owns: every loop over the heartbeats of a report, and that each is answered in its caller's place.
Must not: wait or store (batch does), or decide (core does). This module is compiled: every
heartbeat passes through here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from gpucredits.core.book import InvariantBroken
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.ids import lease_number
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import LEASE_UNKNOWN
from gpucredits.core.reservation import Decision, ReservationState
from gpucredits.service.write.batch_record import note_beat
from gpucredits.service.write.errors import Busy, KeyReused, Undecided
from gpucredits.store.book.needs import Needs
from gpucredits.store.book.save import BatchRecord
from gpucredits.wire.ledger.heartbeat import BeatAnswer, BeatRequest
from gpucredits.wire.ledger.reservation import STATE_NAMES, decision_name

BEATS_DECIDED_AT_ONCE = 50  # without letting others run: no job holds more
CONTINUE = Decision.CONTINUE  # looked up once: every heartbeat asks
ACTIVE = ReservationState.ACTIVE
LeaseNumber = tuple[int, int]  # an org's number, and that of a lease within it


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

    def wrote(self, outcomes: list[Outcome]) -> bool:
        """Whether a heartbeat was saved: a duplicate or a refused one is not."""
        return any(isinstance(each, BeatResult) and not each.duplicate for each in outcomes)

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


def numbers_of(reports: list[BeatRequest]) -> list[LeaseNumber | None]:
    """The lease of each beat; None where there cannot be one."""
    return [lease_number(report.reservation_id) for report in reports]


def beats_of(
    reports: list[BeatRequest], numbers: list[LeaseNumber | None]
) -> list[tuple[int, Beat]]:
    """The beats of leases that may be asked about, with their orgs."""
    beats: list[tuple[int, Beat]] = []
    for report, number in zip(reports, numbers, strict=True):
        if number is not None:
            beats.append((number[0], Beat(number[1], report.seq, report.used_ms)))
    return beats


def answers_to(
    reports: list[BeatRequest],
    numbers: list[LeaseNumber | None],
    outcomes: Sequence[Outcome | Undecided],
) -> list[BeatAnswer]:
    """The answer to each beat, in order; ``outcomes`` are those of the beats that were asked."""
    answers: list[BeatAnswer] = []
    place = 0
    for report, number in zip(reports, numbers, strict=True):
        if number is None:
            answers.append(unknown(report.reservation_id))
        else:
            answers.append(answer_of(report.reservation_id, outcomes[place]))
            place += 1
    return answers


def answer_of(text: str, outcome: Outcome | Undecided) -> BeatAnswer:
    """What became of one beat."""
    if isinstance(outcome, BeatResult):
        return beaten_to_wire(text, outcome)
    if isinstance(outcome, InvariantBroken):
        return BeatAnswer(text, None, "0", "0", 0, None, "internal")
    if isinstance(outcome, Exception):
        reason = "busy" if isinstance(outcome, Busy) else "unavailable"
        return BeatAnswer(text, None, "0", "0", 0, None, reason)
    return unknown(text)


def unknown(text: str) -> BeatAnswer:
    """A lease that does not exist, as far as the caller may know."""
    return BeatAnswer(text, "stop", "0", "0", 0, None, LEASE_UNKNOWN.reason.value)


def beaten_to_wire(reservation_id: str, outcome: BeatResult) -> BeatAnswer:
    """The answer to a heartbeat; an answer that says more than to go on is rare, and made apart."""
    decision, state = outcome.decision, outcome.state
    answer = BeatAnswer(
        reservation_id,
        "continue" if decision is CONTINUE else decision_name(decision),
        format_credits(outcome.settled),
        format_credits(outcome.held),
        outcome.expires_in_ms,
        "active" if state is ACTIVE else STATE_NAMES[state],
        outcome.reason,
        outcome.duplicate,
        outcome.flagged,
    )
    if decision is not CONTINUE:
        _add_deadlines(answer, outcome)
    if outcome.last_seq:
        answer.last_seq = outcome.last_seq
    return answer


def _add_deadlines(answer: BeatAnswer, outcome: BeatResult) -> None:
    if outcome.decision is Decision.STOP:
        return
    answer.deadline_in_ms = outcome.expires_in_ms
    if outcome.decision is Decision.DRAIN:
        answer.signal_in_ms = outcome.signal_in_ms
    elif outcome.clears_in_ms:
        answer.clears_in_ms = outcome.clears_in_ms
