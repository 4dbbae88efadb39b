"""A heartbeat and its answer: tens of thousands of both are made each second.

They are apart from other commands and outcomes because they are compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.reservation import Decision, ReservationState


@dataclass(slots=True)  # not frozen, for speed
class Beat:
    """A node's report: settle what was used in all, and renew the lease."""

    reservation_id: int
    seq: int
    used_ms: int


@dataclass(slots=True)
class BeatResult:
    """The answer to a heartbeat: what was charged so far, and whether to go on.

    The lease ends in ``expires_in_ms``. The job of a lease that drains is signalled in
    ``signal_in_ms`` and killed at the end. A throttled lease could go on in ``clears_in_ms``.
    ``last_seq`` is the last seq that was accepted, if that is the reason why nothing was charged.
    """

    decision: Decision
    settled: int
    held: int
    expires_in_ms: int
    state: ReservationState
    reason: str = ""
    duplicate: bool = False
    flagged: str = ""
    signal_in_ms: int = 0
    clears_in_ms: int = 0
    last_seq: int = 0
