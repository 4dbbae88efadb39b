"""What a caller is told when a request ends with an error.

Owns: the problem for each error that the service raises, and what it says about what was done.
Must not: know requests (asgi does), or word refusals (errors does).
"""

from __future__ import annotations

from typing import Final

from gpucredits.api.http.errors import (
    ProblemError,
    RefusedError,
    problem_of,
    refusal_problem,
    retry_after_of,
)
from gpucredits.core.book import InvariantBroken
from gpucredits.core.duration import format_seconds
from gpucredits.metering.bus import BusSetupError, BusUnavailable
from gpucredits.service.write.errors import (
    Busy,
    ClockJumped,
    Conflict,
    Incomplete,
    KeyReused,
    Unavailable,
)
from gpucredits.wire.problem import Problem

REQUEST_TIMEOUT_S: Final = 30.0
SOON: Final = {"retry-after": "1"}


def answer_to(error: Exception, request_id: str) -> tuple[Problem, dict[str, str]]:
    """The body and the headers for a request that ended with an error."""
    if isinstance(error, RefusedError):
        headers = retry_after_of(error.refused)
        return refusal_problem(error.refused, request_id, index=error.index), headers
    ours = error if isinstance(error, ProblemError) else problem_for(error)
    return problem_of(ours, request_id), ours.headers


def problem_for(error: Exception) -> ProblemError:
    """The problem for what the service raises; anything unforeseen is ours, and says no more."""
    match error:
        case KeyReused():
            told = ProblemError(
                "idempotency_key_reused",
                "This Idempotency-Key was used for a different request; use a new one.",
            )
        case Busy():
            wait = max(1, round(error.retry_after_s))
            told = ProblemError("busy", str(error), headers={"retry-after": str(wait)})
        case ClockJumped():
            told = ProblemError("clock_jumped", f"{str(error).capitalize()}.", headers=SOON)
        case Unavailable() | Conflict():
            told = ProblemError(
                "unavailable",
                "The database cannot serve now. Send the same request with the same key again.",
                headers=SOON,
            )
        case BusUnavailable() | BusSetupError():
            told = ProblemError(
                "unavailable",
                "The bus cannot take measured use now. Send the same events again: each counts "
                "once.",
                headers=SOON,
            )
        case Incomplete():
            told = _incomplete(error)
        case TimeoutError():
            told = ProblemError(
                "timeout",
                f"No answer within {format_seconds(int(REQUEST_TIMEOUT_S))}, and whether it was "
                "done is unknown. Send the same request with the same key again.",
                headers=SOON,
            )
        case InvariantBroken():
            told = ProblemError("internal", "The books contradict themselves; nothing was written.")
        case _:
            told = ProblemError("internal", "Something of ours failed; the log has the request id.")
    return told


def _incomplete(error: Incomplete) -> ProblemError:
    """Some items of a batch were decided, and others were not."""
    stands = f"{error.decided} of {error.items} items are decided, and that stands"
    if isinstance(error.__cause__, Busy | Unavailable | Conflict | ProblemError):
        return ProblemError(
            "batch_incomplete",
            f"{stands}. The rest got no answer. Send the same request with the same key "
            "again: it goes on from there.",
            headers=SOON,
        )
    return ProblemError(
        "internal", f"{stands}. The rest failed by a defect of ours; the log has the request id."
    )
