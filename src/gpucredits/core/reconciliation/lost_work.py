"""Lost work: what a job used after its last checkpoint when its node failed or it was preempted.

Owns: the terms of an account, the causes that count, the evidence for them, and the caps.
Must not: move money (core/rules/credit/lost_work.py does).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from gpucredits.core.bounds import HOUR_US
from gpucredits.core.money import MS_PER_HOUR, time_covered_ms
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Decision, Reservation, ReservationState, Why

HOURS_MAX = 24 * 31  # of every term
HOURS_PER_ACCOUNT_DEFAULT = 24
ACCOUNT_DAYS = 30  # in which an account is given back so many hours


class Cause(IntEnum):
    """Why the work was lost."""

    NODE_FAILURE = 0
    PREEMPTION = 1


@dataclass(frozen=True, slots=True)
class LossTerms:
    """The terms by which an account is refunded lost work; with 0 hours per job, never.

    A claim must come within ``window_hours`` of the lease's end. If no checkpoint was reported
    while the job ran, at most ``unreported_hours`` of the job are refunded. All jobs of the account
    and below are together refunded at most ``hours_per_account`` in any 30 days.
    """

    hours_per_job: int = 0
    window_hours: int = 72
    unreported_hours: int = 0
    hours_per_account: int = HOURS_PER_ACCOUNT_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class LossEvidence:
    """The evidence about a loss besides the lease.

    ``reported_ms`` is the last checkpoint reported while the lease ran, ``claimed_ms`` the
    checkpoint in the claim; None if there is none. ``node_lived`` means that the node reported
    another lease after this one had ended. ``job_ms`` is the use refunded to the job before, and
    ``account_ms`` the use refunded in 30 days to ``owner``, the account that the terms were set
    for.
    """

    cause: Cause
    reported_ms: int | None = None
    claimed_ms: int | None = None
    node_lived: bool = False
    job_ms: int = 0
    account_ms: int = 0
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Loss:
    """The refund that is allowed: the use after a checkpoint, up to a limit."""

    checkpoint_ms: int
    limit_ms: int
    is_reported: bool


def billed_ms(lease: Reservation) -> int:
    """The use in a lease's bill: by heartbeats, or as reconciled."""
    if not lease.reconciled or not lease.rate:
        return lease.used_ms
    return time_covered_ms(lease.rate, lease.settled + lease.reconciled)


def judge_loss(
    lease: Reservation, terms: LossTerms, known: LossEvidence, now: int
) -> Loss | Refused:
    """The loss that counts for a lease, or the refusal."""
    if lease.state is ReservationState.ACTIVE:
        return Refused(
            Reason.RESERVATION_ACTIVE,
            "The reservation is active. Lost work can be claimed after it has ended.",
        )
    checkpoint_ms = max(known.reported_ms or 0, known.claimed_ms or 0)  # the later: less was lost
    lost_ms = billed_ms(lease) - checkpoint_ms
    hours = believed_hours(terms, known)
    limit_ms = hours * MS_PER_HOUR - known.job_ms
    account_ms = terms.hours_per_account * MS_PER_HOUR - known.account_ms
    wrong = overdue(lease, terms, now) or disproof(lease, known)
    if not wrong and not hours:
        wrong = "No checkpoint of the job was reported while it ran."
    if not wrong and limit_ms <= 0:
        wrong = f"This job was refunded {known.job_ms} ms before; its cap is {hours} h."
    if not wrong and account_ms <= 0:
        wrong = (
            f"{known.account_ms} ms were refunded to {known.owner} and accounts below it in"
            f" {ACCOUNT_DAYS} days; its cap is {terms.hours_per_account} h. Claim later, or ask"
            " staff of the system to raise hours_per_account."
        )
    if not wrong and lost_ms <= 0:
        wrong = (
            f"The bill covers {billed_ms(lease)} ms and the last checkpoint is at "
            f"{checkpoint_ms} ms: nothing was lost."
        )
    if wrong:
        return Refused(Reason.LOSS_REFUSED, wrong)
    limit_ms = min(lost_ms, limit_ms, account_ms)
    return Loss(checkpoint_ms, limit_ms, known.reported_ms is not None)


def believed_hours(terms: LossTerms, known: LossEvidence) -> int:
    """The most hours that a job is refunded in all, by the evidence."""
    if known.reported_ms is not None:
        return terms.hours_per_job
    return min(terms.hours_per_job, terms.unreported_hours)


def overdue(lease: Reservation, terms: LossTerms, now: int) -> str:
    """Why the terms exclude every claim for the lease; empty if they do not."""
    if not terms.hours_per_job:
        return f"Lost work of {lease.account} is not refunded: no terms are set for it."
    if now - lease.ended_at > terms.window_hours * HOUR_US:
        return f"The lease ended more than {terms.window_hours} h ago: the time for claims is over."
    return ""


def disproof(lease: Reservation, known: LossEvidence) -> str:
    """Why the lease contradicts the claim; empty if it does not."""
    if known.cause is Cause.PREEMPTION:
        if not lease.stopping_at and lease.why is not Why.PREEMPTED:
            return "The lease was not preempted."
        return ""
    if lease.state is not ReservationState.EXPIRED or lease.decision is not Decision.CONTINUE:
        return "The lease ended by a report or an order, not by the silence of a failed node."
    if not lease.node:
        return "The lease names no node, so a failure of its node cannot be checked."
    if known.node_lived:
        return f"The node {lease.node} reported other leases after this one had ended."
    return ""
