"""How far a lease may be renewed: what each gate leaves of the hold that it asks for.

Owns: the decision of a renewal, in one order of precedence: suspension, a limit that was lowered,
credits, windows, and the job's cap. What these leave is asked of the rate limit: a lease that it
cuts further is throttled, since it may go on to where the others end it once there are tokens.
Must not: move money or count; a renewal is settled whatever is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.account import Account
from gpucredits.core.book import Book, NotInBook
from gpucredits.core.limits import NO_CAP, LimitChain
from gpucredits.core.money import cost
from gpucredits.core.reservation import NO_PART, Exhaustion, Reservation, Why, hold_wanted, job_cap
from gpucredits.core.rules.credit.funding import successor, suspension
from gpucredits.core.rules.leases.slices import Plan
from gpucredits.core.rules.limits.clearing import drawn_at
from gpucredits.core.rules.upkeep.counting import (
    GPUS,
    bring_forward,
    is_job_leaving,
    lane_of,
    mark_leaving,
    part_of_cap,
    share_of_slice,
)
from gpucredits.core.rules.upkeep.roll import roll_due


@dataclass(slots=True)
class Renewal:
    """What a lease may hold from here on, and why that is not what it asks for.

    ``promised`` is the overdraft it may use beyond its hold. ``no_longer`` says that it may not run
    longer than it already could, and ``stops`` that it ends now. ``clears_at`` is when a rate limit
    would let it go on. ``payer`` is the account that takes the lease over, if one does.
    """

    held: int
    why: Why = Why.NONE
    throttled: bool = False
    no_longer: bool = False
    stops: bool = False
    promised: int = 0
    clears_at: int = 0
    payer: Account | None = None

    @property
    def drains(self) -> bool:
        """Whether the lease has to end where its hold does."""
        return bool(self.why) and not self.throttled and self.why is not Why.OVERDRAFT


def renewal(  # what is settled as planned, and what is asked for then
    book: Book,
    payer: Account,
    lease: Reservation,
    due: int,
    used_ms: int,
    now: int,
    plan: Plan | None = None,
) -> Renewal:
    """Ask every gate for the hold of one lease ahead, once ``due`` is settled.

    Credits of grants that have ended pay to where they were kept for, and fund no renewal: a lease
    that would need them for a full one drains.
    """
    lane = look_closely(book, lease, now) if book.gated else None
    cap = job_cap(lease, lane.cap if lane else NO_CAP)
    settled = lease.settled + due
    wanted = hold_wanted(lease, used_ms, settled, cap)
    if lane and lease.cap_part != NO_PART:
        cap = min(cap, part_of_cap(book, lease, lane, settled, wanted, now))
        wanted = hold_wanted(lease, used_ms, settled, cap)
    backed = lease.held - (plan.lost if plan else 0)
    kept = min(max(backed - due, 0), wanted)
    free = max(payer.spendable - max(due - backed, 0), 0)
    result = Renewal(min(wanted, kept + free))
    funded = min(result.held, plan.active) if plan else result.held
    if book.suspended and (paused := suspension(book, lease.account, now)):
        return Renewal(min(result.held, kept), Why(paused.reason.value), no_longer=True)
    if lane and told_to_go(book, lease, lane):
        return Renewal(min(result.held, kept), Why.QUOTA_EXCEEDED, no_longer=True)
    room = max(window_room(lane, lease, due, now), kept) if lane else wanted
    short = is_short(book, payer, lease, result, funded, (wanted, room), now)
    if short:
        result.why = Why.INSUFFICIENT_CREDITS
    elif room < wanted:
        result.why = Why.QUOTA_EXCEEDED
    elif cap < NO_CAP and settled + result.held >= cap:
        by_quota = not lease.max_amount or cap < lease.max_amount
        result.why = Why.QUOTA_EXCEEDED if by_quota else Why.MAX_AMOUNT
    result.held = min(result.held, room)
    if short:
        most = min(room, wanted, cap - settled)
        use_overdraft(payer, lease, result, due=due, most=most, funded=min(funded, result.held))
    if lease.exhaustion is Exhaustion.STOP and result.drains:
        return Renewal(0, result.why, stops=True)
    if lane:
        slow_down(book, lane, lease, result, due, now)
    return result


def is_short(  # what active credits fund, what it wants, and what quotas leave of that
    book: Book,
    payer: Account,
    lease: Reservation,
    result: Renewal,
    funded: int,
    wanted: tuple[int, int],
    now: int,
) -> bool:
    """Whether nobody can fund a lease: an account above takes over from a payer that cannot."""
    whole = wanted[0]
    if funded < min(wanted):
        result.payer = successor(book, payer, lease, min(wanted), now)
        if result.payer is not None:
            result.held = whole
            return False
    return funded < whole


def look_closely(book: Book, lease: Reservation, now: int) -> LimitChain:
    """The limits on a lease's way, with everything written down that the clock has made true."""
    roll_due(book, now)
    bring_forward(book, lease, now)
    return lane_of(book, lease, now)


def window_room(lane: LimitChain, lease: Reservation, due: int, now: int) -> int:
    """The most that every window has room for ahead of a lease, once ``due`` is counted."""
    room = NO_CAP
    for counter, limit, quota in lane.windows:
        share = share_of_slice(quota, counter, due, lease.beat_at, now)
        room = min(room, limit - counter.used - share - counter.held + lease.ahead)
    return room


def told_to_go(book: Book, lease: Reservation, lane: LimitChain) -> bool:
    """Whether a limit that was lowered is still exceeded without those already told to go.

    A job goes or stays with all its leases: once one of them was told to go, so are the others.
    """
    if book.partial and lease.leaving:
        raise NotInBook
    over = False
    for counter, limit, quota in lane.counts:
        staying = counter.count - counter.leaving
        if quota.dimension is GPUS:
            staying += lease.milli_gpus * lease.leaving
        elif counter.leaving and staying == limit:  # otherwise it makes no difference
            staying += is_job_leaving(book, lease, quota)
        over = over or staying > limit
    if over is not lease.leaving:
        mark_leaving(book, lease, lane, 1 if over else -1)
    return over


def use_overdraft(
    payer: Account, lease: Reservation, result: Renewal, *, due: int, most: int, funded: int
) -> None:
    """Let a job that is out of credits go on for a while, as was agreed at its admission.

    Active credits pay for ``funded``; what is kept of ended grants may pay for some of the rest.

    What other leases of the payer were promised is theirs, whether or not they have used it.
    """
    uncovered = max(due - lease.held - max(payer.spendable, 0), 0)
    agreed = lease.overdraft
    if lease.exhaustion is Exhaustion.DRAIN:
        agreed = min(agreed, cost(lease.rate, lease.grace_ms))
    left = agreed - lease.overdrawn - uncovered
    others = payer.promised - lease.promised
    left = min(left, payer.overdraft_limit - payer.overrun - uncovered - others)
    result.promised = max(min(left, most - result.held), 0)
    if lease.exhaustion is Exhaustion.FINISH and funded < most <= funded + left:
        result.why = Why.OVERDRAFT


def slow_down(  # what is renewed as planned, and what is settled then
    book: Book, lane: LimitChain, lease: Reservation, result: Renewal, due: int, now: int
) -> None:
    """Go ahead only as far as there are tokens; without them the lease keeps what it has drawn."""
    drawn = lease.ahead - due
    asked = result.held + result.promised - drawn
    if result.held + result.promised <= max(drawn, 0):
        return
    instants: list[int | None] = []
    for bucket, _, _ in lane.buckets:
        if bucket.level >= asked:
            continue
        result.throttled = True
        result.why = Why.RATE_LIMITED
        most = max(drawn + max(bucket.level, 0), 0)
        result.held = min(result.held, most)
        result.promised = min(result.promised, most - result.held)
        boosts = book.limits.boosts_of(bucket)
        instants.append(drawn_at(bucket, boosts, asked, now))
    known = [at for at in instants if at is not None]
    if known and len(known) == len(instants):
        result.clears_at = max(known)
