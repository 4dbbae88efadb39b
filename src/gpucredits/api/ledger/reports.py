"""A node's report as heartbeats, and what becomes of them as its answer.

Owns: loops over every beat of a report, and nothing else: it is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.ids import lease_number
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import LEASE_UNKNOWN, InvariantBroken
from gpucredits.service.write.errors import Busy
from gpucredits.service.write.ledger import Undecided
from gpucredits.wire.beat_result import beaten_to_wire
from gpucredits.wire.heartbeat import BeatAnswer, BeatRequest

LeaseNumber = tuple[int, int]  # an org's number, and that of a lease within it


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
