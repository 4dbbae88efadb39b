"""Reservations: the lease that lets a job run, and the hold that pays for it.

Owns: a lease's rows and the arithmetic of its hold.
Must not: touch accounts or grants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from gpucredits.core.money import cost, time_covered_ms

NO_PART = -1  # of a job's cap: the lease has it to itself
WENT_BACK = "used_ms_went_back"  # why the use that counts is not the one that was reported
BEYOND_ELAPSED = "used_ms_beyond_elapsed"
BEYOND_AUTHORISED = "used_ms_beyond_authorised"


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
    ``paid``) for each payer before the present one.
    """

    reservation_id: int
    account: str
    account_id: int
    payer_id: int
    job_id: str
    gpu_type: str
    gpu_count: int
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

    @property
    def rate_per_hour(self) -> int:
        """Micro-credits per hour for all its GPUs."""
        return self.gpu_count * self.price

    @property
    def ahead(self) -> int:
        """What it may use before its next beat: its hold, and what it may overdraw beyond it."""
        return self.held + self.promised

    @property
    def charged(self) -> int:
        """What it has cost: what was settled and adjusted, less what was given back."""
        return self.settled + self.adjusted - self.refunded

    @property
    def lease_ms(self) -> int:
        """One window, and the windows of escrow for which the hold also pays."""
        return self.window_ms * (1 + self.escrow_windows)


def job_cap(lease: Reservation, quota_cap: int) -> int:
    """The most the job may cost: its own cap or that of its quotas, whichever is less."""
    return min(lease.max_amount, quota_cap) if lease.max_amount else quota_cap


def hold_wanted(lease: Reservation, used_ms: int, settled: int, cap: int) -> int:
    """The hold that covers one lease ahead of ``used_ms``, never above the job's cap."""
    ahead = cost(
        lease.gpu_count * lease.price, used_ms + lease.window_ms * (1 + lease.escrow_windows)
    )
    ahead = min(ahead, cap)
    return ahead - settled if ahead > settled else 0


def lease_end(lease: Reservation, now: int) -> int:
    """When a lease that runs on from ``now`` ends: after its full time, or where funds run out."""
    rate = lease.gpu_count * lease.price
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
