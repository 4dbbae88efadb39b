"""Measured use beside the bill: what counts as measured, and when the two have drifted apart.

A lease is so many GPUs for so much time, so its measured use is a time: the time in which at least
one of its nodes measured. Intervals of one node that overlap or repeat count once, and nodes that
run side by side are not added up, because the lease's rate covers the GPUs of all of them.

Owns: whose measurements count, the union of intervals, the policy of an account, and the judgement
of drift.
Must not: move money (core/rules/reconciliation.py does).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from gpucredits.core.money import MICROS_PER_CREDIT, cost, format_credits
from gpucredits.core.reservation import Reservation, elapsed_ms

Span = tuple[int, int]  # start and end of measured use, in milliseconds since admission

SPANS_MAX = 2_000  # of one lease, after the union
QUIET_MS_DEFAULT = 15 * 60_000  # how long a lease is quiet before it is compared
QUIET_MS_MAX = 7 * 24 * 3_600_000  # as long as late use is charged
TOLERANCE_MS_DEFAULT = 1_000
ALARM_PERCENT_DEFAULT = 5
ALARM_FLOOR_DEFAULT = MICROS_PER_CREDIT


class Mode(IntEnum):
    """What the reconciler does for an account."""

    OFF = 0
    REPORT = 1
    POST = 2


@dataclass(frozen=True, slots=True)
class ReconcilePolicy:
    """What the reconciler does about drift, and the thresholds for an alarm.

    Drift of a lease up to ``tolerance_ms`` is noise. An alarm needs ``alarm_floor`` credits and
    ``alarm_percent`` of the bill. A lease is compared when it has ended and no event has come for
    ``quiet_ms``.
    """

    mode: Mode = Mode.REPORT
    tolerance_ms: int = TOLERANCE_MS_DEFAULT
    alarm_percent: int = ALARM_PERCENT_DEFAULT
    alarm_floor: int = ALARM_FLOOR_DEFAULT
    quiet_ms: int = QUIET_MS_DEFAULT


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What one node measured for a lease: the number of events, and their union.

    ``is_attested`` says that the lease's own node told it; others only tell in its name.
    """

    node: str
    events: int
    spans: tuple[Span, ...]
    is_attested: bool


def counted(nodes: Sequence[NodeUse]) -> tuple[tuple[NodeUse, ...], bool]:
    """The use that is compared with the bill, and whether the bill may follow it.

    Only measurements of the lease's own node may move money. If that node sent none, the
    measurements of others are compared and shown.
    """
    own = tuple(each for each in nodes if each.is_attested)
    return own or tuple(nodes), bool(own)


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Intervals in order; touching or overlapping ones are joined, empty ones are left out."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def length_ms(spans: Iterable[Span]) -> int:
    """The time in a union of intervals."""
    return sum(end - start for start, end in spans)


def clipped(spans: Iterable[Span], until_ms: int) -> tuple[Span, ...]:
    """The parts of a union of intervals that lie before an instant."""
    return tuple((start, min(end, until_ms)) for start, end in spans if start < until_ms)


def condensed(spans: tuple[Span, ...], most: int = SPANS_MAX) -> tuple[Span, ...]:
    """At most ``most`` intervals with the same total time; the latest ones stay in place.

    Later steps look only at the end of the use, so earlier intervals may move together.
    """
    if len(spans) <= most:
        return spans
    early, late = spans[: len(spans) - most + 1], spans[len(spans) - most + 1 :]
    end = early[-1][1]
    return ((end - length_ms(early), end), *late)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Three records of one lease side by side: heartbeats, measured use and the ledger.

    ``beyond_ms`` was measured after the lease had ended. ``cost`` is the price of the measured use
    inside the lease, ``drift`` that price less what heartbeats settled. ``rest`` is the part of the
    drift that is not posted. ``beyond_cost`` is the price of the use after the end, which is never
    charged.
    """

    used_ms: int
    measured_ms: int
    beyond_ms: int
    settled: int
    cost: int
    reconciled: int
    beyond_cost: int = 0

    @property
    def drift(self) -> int:
        """Positive where the nodes measured more than the heartbeats told."""
        return self.cost - self.settled

    @property
    def rest(self) -> int:
        """The amount still to be charged; negative if it is to be given back."""
        return self.drift - self.reconciled

    @property
    def exposed(self) -> int:
        """The drift for alarms, in which use after the lease's end counts too."""
        return self.drift + self.beyond_cost if self.drift >= 0 else self.drift


def compare(lease: Reservation, spans: Iterable[Span]) -> Comparison:
    """Compare an ended lease with what its nodes measured."""
    whole = union(spans)
    inside = clipped(whole, elapsed_ms(lease, lease.ended_at))
    measured_ms = length_ms(inside)
    return Comparison(
        used_ms=lease.used_ms,
        measured_ms=measured_ms,
        beyond_ms=length_ms(whole) - measured_ms,
        settled=lease.settled,
        cost=measured_cost(lease, measured_ms),
        reconciled=lease.reconciled,
        beyond_cost=cost(lease.rate, length_ms(whole)) - cost(lease.rate, measured_ms),
    )


def measured_cost(lease: Reservation, measured_ms: int) -> int:
    """The price of measured use at the pinned price, never above the most the job may cost."""
    price = cost(lease.rate, measured_ms)
    return min(price, max(lease.max_amount, lease.settled)) if lease.max_amount else price


def is_noise(found: Comparison, policy: ReconcilePolicy) -> bool:
    """Whether measured time and heartbeats agree within the policy's tolerance."""
    return abs(found.measured_ms - found.used_ms) <= policy.tolerance_ms


def is_alarming(drift: int, bill: int, policy: ReconcilePolicy) -> bool:
    """Whether drift has reached both thresholds of a policy; ``bill`` is the larger record."""
    return (
        drift != 0
        and abs(drift) >= policy.alarm_floor
        and abs(drift) * 100 >= policy.alarm_percent * bill
    )


def job_sentence(job_id: str, found: Comparison) -> str:
    """The drift of a job, for people."""
    return (
        f"Heartbeats of {job_id} settled {format_credits(found.settled)} credits for "
        f"{found.used_ms} ms; its nodes measured {found.measured_ms} ms, which cost "
        f"{format_credits(found.cost)}. The drift is {format_credits(found.drift)}."
        + (f" {found.beyond_ms} ms were measured after the end." if found.beyond_ms else "")
    )


def account_sentence(account: str, day: str, leases: int, drift: int, settled: int) -> str:
    """The drift of an account's jobs on one day, for people."""
    return (
        f"{leases} leases of {account} that ended on {day} drifted by "
        f"{format_credits(drift)} credits in all; {format_credits(settled)} were settled."
    )


def governing(path: str, policies: dict[str, ReconcilePolicy]) -> ReconcilePolicy:
    """The policy of the account, or of the nearest account above it that has one."""
    parts = path.split("/")
    for depth in range(len(parts), 0, -1):
        found = policies.get("/".join(parts[:depth]))
        if found is not None:
            return found
    return ReconcilePolicy()


def paths_above(path: str) -> Sequence[str]:
    """An account and the accounts above it."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]
