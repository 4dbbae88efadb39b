"""What is recorded of a batch besides the money: answers by key, refusals, drains, acts.

Owns: what of a decision is worth a row.
Must not: write (store/book/save.py does, with everything else of the batch).
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpucredits.core.command import Command, Explain, UpdateAccount
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Kind, Refused, kind_of
from gpucredits.core.reservation import Decision, ReservationState
from gpucredits.service.write.ledger_audit import State, act_of, became_own
from gpucredits.service.write.stored_answers import encode
from gpucredits.store.book.cached_book import CachedBook
from gpucredits.store.book.save import BatchRecord

ATTEMPT = b"queue"  # the fingerprint of an attempt of the queue's, under a key of its own
ENDED = frozenset(state.name.lower() for state in ReservationState)


@dataclass(frozen=True, slots=True)
class Request:
    """A command with the caller's key, a hash of what was asked, and who asked."""

    command: Command
    key: str | None = None
    fingerprint: bytes = b""
    actor: str = ""
    request_id: str = ""


def note(
    page: CachedBook, request: Request, outcome: Outcome, minutes: BatchRecord, before: State | None
) -> None:
    """Record the answer to a key, a refusal with its reason, and an administrative act.

    A question leaves no trace. An attempt of the queue's is answered once, whatever the answer:
    whoever asks about the same attempt again must not be told anything else.
    """
    if isinstance(request.command, Explain):
        return
    org_id = page.book.org.org_id
    act = act_of(
        org_id,
        page.now,
        request.command,
        outcome,
        before=before,
        actor=request.actor,
        request_id=request.request_id,
    )
    if act is not None:
        minutes.acts.append(act)
    is_told = isinstance(request.command, UpdateAccount)  # its own act says so
    for path in () if is_told else page.book.became_own:
        minutes.acts.append(
            became_own(
                org_id,
                page.now,
                request.command,
                path,
                actor=request.actor,
                request_id=request.request_id,
            )
        )
    page.book.became_own.clear()
    if request.key is not None and (request.fingerprint == ATTEMPT or is_remembered(outcome)):
        stored = encode(outcome)
        page.answers[request.key] = (request.fingerprint, stored)
        minutes.answers.append((org_id, request.key, request.fingerprint, stored, page.now))
    if isinstance(outcome, Refused):
        minutes.decisions.append(
            (
                org_id,
                page.now,
                type(request.command).__name__,
                "refuse",
                outcome.reason.value,
                getattr(request.command, "reservation_id", 0),
                request.actor,
                msgspec.json.encode(outcome.detail).decode(),
            )
        )
    elif isinstance(outcome, BeatResult) and isinstance(request.command, Beat):
        note_beat(org_id, page.now, request.command, outcome, minutes)


def is_remembered(outcome: Outcome | None) -> bool:
    """Whether the same key is to get the same answer: to be asked to wait is no answer yet."""
    return not isinstance(outcome, Refused) or kind_of(outcome.reason) is not Kind.THROTTLED


def note_beat(org_id: int, now: int, beat: Beat, outcome: BeatResult, minutes: BatchRecord) -> None:
    """Record that a running job was told to drain or stop; a job that had ended is no news."""
    if outcome.duplicate or outcome.decision is Decision.CONTINUE or outcome.reason in ENDED:
        return
    lease_id = beat.reservation_id
    minutes.decisions.append(
        (org_id, now, "Beat", outcome.decision.value, outcome.reason, lease_id, "", "{}")
    )
