"""What the last answer of the server lets a job do, in the node's own monotonic time.

Owns: trust. A lease is trusted until the report was sent, plus the granted duration, minus a
margin. A report that gets no answer changes nothing, so trust runs out by itself. Windows of escrow
are part of the granted duration: they are what a job lives on while no server answers.
Must not: read a clock, send anything or touch a process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from gpucredits.wire.ledger.heartbeat import BeatAnswer
from gpucredits.wire.ledger.reservation import SEQ_MAX, ReservationAnswer

MARGIN_PARTS: Final = 100  # a hundredth of the granted time: clocks drift, and killing takes time
MARGIN_MS_MIN: Final = 50
MARGIN_MS_MAX: Final = 2_000
BEATS_IN_WINDOW: Final = 3  # so that two may be lost before a window ends, and escrow begins
BEAT_MS_MIN: Final = 250
BEAT_MS_MAX: Final = 60_000
SEQ_TAKEN: Final = "seq_taken"  # somebody else reports for the lease
SEQ_LEAP: Final = 2**40
SEQ_FREE_MAX: Final = SEQ_MAX // 4  # above it there is no room to report with higher ones
EXPIRED: Final = "expired"  # the reason of a stop where a lease ran to its end


class Act(Enum):
    """What a job has to do now."""

    RUN = "run"
    PAUSE = "pause"
    SIGNAL = "signal"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Until when a job may run, when it is told to drain, and whether it is paused until then.

    All instants are milliseconds of the clock that stamped the report. ``escrow_windows`` are the
    windows that the lease holds beyond the one that runs.
    """

    ends_at_ms: int
    signal_at_ms: int | None = None
    is_paused: bool = False
    beat_at_ms: int = 0
    reason: str = ""
    escrow_windows: int = 0

    def act(self, now_ms: int) -> Act:
        """What the job has to do at an instant."""
        if now_ms >= self.ends_at_ms:
            return Act.END
        if self.signal_at_ms is not None and now_ms >= self.signal_at_ms:
            return Act.SIGNAL
        return Act.PAUSE if self.is_paused else Act.RUN


def admitted(lease: ReservationAnswer, sent_at_ms: int) -> Standing:
    """The standing of a job whose lease was read by a request sent at ``sent_at_ms``."""
    granted_ms = lease.expires_in_ms if lease.state == "active" else 0
    return Standing(
        ends_at_ms=sent_at_ms + granted_ms - margin_ms(granted_ms),
        beat_at_ms=sent_at_ms + beat_every_ms(granted_ms, lease.escrow_windows),
        escrow_windows=lease.escrow_windows,
    )


def heard(before: Standing, answer: BeatAnswer, sent_at_ms: int) -> Standing:
    """The standing of a job after an answer; one without a decision moves only the next beat."""
    if answer.decision is None:
        return replace(before, beat_at_ms=sent_at_ms + BEAT_MS_MIN)
    if answer.decision == "stop":
        return Standing(ends_at_ms=sent_at_ms, reason=_why_stopped(before, answer))
    if (answer.last_seq or 0) > SEQ_FREE_MAX:
        return Standing(ends_at_ms=sent_at_ms, reason=SEQ_TAKEN)
    granted_ms = answer.expires_in_ms
    if answer.deadline_in_ms is not None:
        granted_ms = min(granted_ms, answer.deadline_in_ms)
    ends_at_ms = sent_at_ms + granted_ms - margin_ms(granted_ms)
    every_ms = beat_every_ms(granted_ms, before.escrow_windows)
    signal_at_ms = None
    if answer.decision == "drain":
        signal_at_ms = min(sent_at_ms + (answer.signal_in_ms or 0), ends_at_ms)
    elif answer.decision == "throttle" and answer.clears_in_ms:
        every_ms = min(every_ms, max(answer.clears_in_ms, BEAT_MS_MIN))
    if answer.last_seq:  # nothing was charged
        every_ms = BEAT_MS_MIN
    return Standing(
        ends_at_ms=ends_at_ms,
        signal_at_ms=signal_at_ms,
        is_paused=answer.decision == "throttle",
        beat_at_ms=sent_at_ms + every_ms,
        reason=answer.reason,
        escrow_windows=before.escrow_windows,
    )


def seq_after(seq: int, answer: BeatAnswer) -> int:
    """The last seq that counts as used: those of somebody else who reports are left far behind.

    So such a race ends: a job whose seqs are used up stops and settles.
    """
    return max(seq, min(answer.last_seq, SEQ_FREE_MAX) + SEQ_LEAP) if answer.last_seq else seq


def _why_stopped(before: Standing, answer: BeatAnswer) -> str:
    """A lease that expires where a drain said so has ended for the reason of the drain."""
    was_told = before.signal_at_ms is not None and answer.reason == EXPIRED
    return before.reason if was_told else answer.reason


def margin_ms(granted_ms: int) -> int:
    """How much earlier the trust ends than the lease; never more than half of the time."""
    wanted = min(max(granted_ms // MARGIN_PARTS, MARGIN_MS_MIN), MARGIN_MS_MAX)
    return min(wanted, granted_ms // 2)


def beat_every_ms(granted_ms: int, escrow_windows: int) -> int:
    """How long after a report the next one is due: a third of the window that runs."""
    window_ms = granted_ms // (1 + escrow_windows)
    return min(max(window_ms // BEATS_IN_WINDOW, BEAT_MS_MIN), BEAT_MS_MAX)
