"""Reservations: the lease that lets a job run, and the hold that pays for it.

Owns: a lease's rows, the arithmetic of its hold, and until when an outage lets a lease live.
Must not: touch accounts or grants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import NamedTuple

from gpucredits.core.money import cost, time_covered_ms

NO_PART = -1  # of a job's cap: the lease has it to itself
WENT_BACK = "used_ms_went_back"  # why the use that counts is not the one that was reported
BEYOND_ELAPSED = "used_ms_beyond_elapsed"
BEYOND_AUTHORISED = "used_ms_beyond_authorised"
SEQ_TAKEN = "seq_taken"  # somebody else has reported with this seq or a later one


class ReservationState(IntEnum):
    """Active until it is settled, canceled or lapses."""

    ACTIVE = 0
    SETTLED = 1
    CANCELED = 2
    EXPIRED = 3


class Decision(StrEnum):
    """What a renewal tells the node."""

    CONTINUE = "continue"
    THROTTLE = "throttle"
    DRAIN = "drain"
    STOP = "stop"


class Exhaustion(IntEnum):
    """What becomes of a job that can no longer be renewed in full; pinned at admission."""

    STOP = 0  # at once
    DRAIN = 1  # it runs to where its hold ends, with a signal ``grace_ms`` before
    FINISH = 2  # it runs on, on a bounded overdraft


class Why(StrEnum):
    """Why a lease is not simply renewed, as its node is told.

    Stored by their places in this list: new ones come last.
    """

    NONE = ""
    PREEMPTED = "preempted"  # told to stop although it could pay
    ACCOUNT_SUSPENDED = "account_suspended"
    ACCOUNT_DELINQUENT = "account_delinquent"
    INSUFFICIENT_CREDITS = "insufficient_credits"
    QUOTA_EXCEEDED = "quota_exceeded"
    MAX_AMOUNT = "max_amount"
    OVERDRAFT = "overdraft"
    RATE_LIMITED = "rate_limited"


@dataclass(slots=True)
class Reservation:
    """g GPUs of one type for one job, at a pinned price, with a hold, until ``expires_at``.

    ``settled`` is always the cost of ``used_ms``; ``adjusted`` and ``refunded`` are corrections on
    top. ``paid`` lists which grants paid how much, in recorded order; grant 0 is a postpaid debt
    and grant -1 is the house's overrun, ``overdrawn`` the sum of the latter; ``promised`` is what
    it may overdraw beyond its hold before its next beat. ``beat_at`` is when its last beat was
    taken; ``leaving`` says that a lowered limit has told it to go. ``why`` goes with ``decision``
    as last told, and ``clears_at`` with a throttle. One that was told to stop is not renewed beyond
    ``stopping_at``; ``stopping_for`` is the number of the request in the queue that it makes room
    for, 0 for none. One of a job that has or had other leases may cost ``cap_part`` of what its
    quotas allow the job, as given when these allowed ``cap_seen``. ``authorised`` is the most that
    a lapsed lease may have cost. ``kept`` lists (grant, claim, until): what it may still take of
    grants that have ended, for use before an instant. ``payers`` lists (account, number of items of
    ``paid``) for each payer before the present one. A maintenance has moved its end by
    ``extended_ms``, for which it holds credits, and an outage by ``reprieve_ms``, for which it
    does not; its next report ends both. ``reconciled`` is what the reconciler has charged for it
    in addition, negative where it gave credits back; ``lost_ms`` is the use that was refunded as
    lost work. Both are part of ``adjusted`` and ``refunded``.
    """

    reservation_id: int
    account: str
    account_id: int
    payer_id: int
    job_id: str
    gpu_type: str
    milli_gpus: int
    region: str
    node: str
    price: int
    price_id: int
    window_ms: int
    admitted_at: int
    expires_at: int
    escrow_windows: int = 0
    max_amount: int = 0
    held: int = 0
    settled: int = 0
    adjusted: int = 0
    refunded: int = 0
    used_ms: int = 0
    seq: int = 0
    state: ReservationState = ReservationState.ACTIVE
    decision: Decision = Decision.CONTINUE
    ended_at: int = 0
    paid: tuple[tuple[int, int], ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    beat_at: int = 0
    exhaustion: Exhaustion = Exhaustion.DRAIN
    grace_ms: int = 0
    overdraft: int = 0
    overdrawn: int = 0
    leaving: bool = False
    stopping_at: int = 0
    why: Why = Why.NONE
    promised: int = 0
    cap_part: int = NO_PART
    cap_seen: int = 0
    clears_at: int = 0
    stopping_for: int = 0
    authorised: int = 0
    kept: tuple[tuple[int, int, int], ...] = ()
    payers: tuple[tuple[int, int], ...] = ()
    extended_ms: int = 0
    reprieve_ms: int = 0
    reconciled: int = 0
    lost_ms: int = 0

    @property
    def rate(self) -> int:
        """Thousandths of its GPUs times micro-credits per GPU-hour."""
        return self.milli_gpus * self.price

    @property
    def ahead(self) -> int:
        """What it may use before its next beat: its hold, and what it may overdraw beyond it."""
        return self.held + self.promised

    @property
    def charged(self) -> int:
        """What it has cost: what was settled and adjusted, less what was given back."""
        return self.settled + self.adjusted - self.refunded

    @property
    def trusted_until(self) -> int:
        """Until when its node may run the job: an outage gives time to report, not to run."""
        return self.expires_at - self.reprieve_ms * 1_000

    @property
    def lease_ms(self) -> int:
        """One window, and the windows of escrow for which the hold also pays."""
        return self.window_ms * (1 + self.escrow_windows)


class Outage(NamedTuple):
    """No server gave a sign of life from ``since`` on; the first one was back at ``until``.

    A lease that was live at ``since`` lives until ``grace_ms`` after ``until``, or one window if
    that is less.
    """

    since: int
    until: int
    grace_ms: int


def lives_until(lease: Reservation, outages: Sequence[Outage]) -> int:
    """When a lease lapses that was not heard of since: at its end, or when its grace is over.

    A lease that has reported after an outage has no grace of that outage. Of two outages the
    second counts for a lease that lived, by the grace of the first, when the second began.
    """
    end = lease.expires_at
    if not outages or outages[-1].until <= lease.beat_at:
        return end
    for outage in outages:
        grace_ms = min(lease.window_ms, outage.grace_ms)
        if grace_ms and lease.beat_at < outage.until and end > outage.since:
            end = max(end, outage.until + grace_ms * 1_000)
    return end


def as_the_clock_left(lease: Reservation, outages: Sequence[Outage], now: int) -> Reservation:
    """A lease with its lapse, whether or not anybody has written that down yet."""
    more_ms = max(lives_until(lease, outages) - lease.expires_at, 0) // 1_000
    end = lease.expires_at + more_ms * 1_000
    if lease.state is not ReservationState.ACTIVE or now < end:
        return lease
    return replace(lease, state=ReservationState.EXPIRED, ended_at=end)


def job_cap(lease: Reservation, quota_cap: int) -> int:
    """The most the job may cost: its own cap or that of its quotas, whichever is less."""
    return min(lease.max_amount, quota_cap) if lease.max_amount else quota_cap


def hold_wanted(lease: Reservation, used_ms: int, settled: int, cap: int) -> int:
    """The hold of a lease: what it costs up to one lease after ``used_ms``, less what is settled.

    Never above the job's cap. Reserving and renewing both hold this amount.
    """
    ahead = cost(
        lease.milli_gpus * lease.price, used_ms + lease.window_ms * (1 + lease.escrow_windows)
    )
    ahead = min(ahead, cap)
    return ahead - settled if ahead > settled else 0


def lease_end(lease: Reservation, now: int) -> int:
    """When a lease that runs on from ``now`` ends: after its full time, or where funds run out."""
    rate = lease.milli_gpus * lease.price
    lease_ms = lease.lease_ms
    if rate:
        funds = lease.settled + lease.held + lease.promised
        covered = time_covered_ms(rate, funds) - lease.used_ms
        if covered < lease_ms:
            return now + max(covered, 0) * 1_000
    return now + lease_ms * 1_000


def elapsed_ms(lease: Reservation, now: int) -> int:
    """The most use that is charged at ``now``: the server's time since the lease's admission."""
    return (now - lease.admitted_at) // 1_000


def longest_window(bound_ms: int, escrow_windows: int) -> int:
    """The longest window of a lease with so many windows of escrow, in whole seconds as ms.

    Less than a second where the bound is lower than the number of windows.
    """
    longest_ms = bound_ms // (1 + escrow_windows)
    return longest_ms // 1_000 * 1_000 or longest_ms
