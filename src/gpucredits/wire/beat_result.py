"""The answer to a heartbeat on the wire. It is compiled: every heartbeat is answered here."""

from __future__ import annotations

from gpucredits.core.heartbeat import BeatResult
from gpucredits.core.money import format_credits
from gpucredits.core.reservation import Decision, ReservationState
from gpucredits.wire.heartbeat import BeatAnswer
from gpucredits.wire.reservation import STATE_NAMES, decision_name

CONTINUE = Decision.CONTINUE  # looked up once: every heartbeat asks
ACTIVE = ReservationState.ACTIVE


def beaten_to_wire(reservation_id: str, outcome: BeatResult) -> BeatAnswer:
    """The answer to a heartbeat; one that says more than to go on is rare, and made apart."""
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
    return answer


def _add_deadlines(answer: BeatAnswer, outcome: BeatResult) -> None:
    if outcome.decision is Decision.STOP:
        return
    answer.deadline_in_ms = outcome.expires_in_ms
    if outcome.decision is Decision.DRAIN:
        answer.signal_in_ms = outcome.signal_in_ms
    elif outcome.clears_in_ms:
        answer.clears_in_ms = outcome.clears_in_ms
