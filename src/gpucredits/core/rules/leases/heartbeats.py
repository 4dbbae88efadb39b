"""Rules of the heartbeat: settle what was used, and renew the lease.

A heartbeat inside its lease is always settled, never refused. This is the hottest path of the
product: ``renew_in_full`` is the common case of ``charge`` done in one go.
"""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.core.account import Account
from gpucredits.core.book import Book, LateUse
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import OVERRUN, GrantState
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.money import RATE_PER_MS, cost
from gpucredits.core.reasons import LEASE_UNKNOWN, Refused
from gpucredits.core.reservation import (
    BEYOND_ELAPSED,
    SEQ_TAKEN,
    WENT_BACK,
    Decision,
    Reservation,
    ReservationState,
    Why,
    elapsed_ms,
    lease_end,
    longest_window,
)
from gpucredits.core.rule import Rule, touches_lease
from gpucredits.core.rules.credit.funding import own_since, suspended_above, take_over
from gpucredits.core.rules.leases.authorised import within_authorised
from gpucredits.core.rules.leases.extensions import extend
from gpucredits.core.rules.leases.late_use import late_ms, tell_job
from gpucredits.core.rules.leases.renewals import Renewal, renewal
from gpucredits.core.rules.leases.slices import Plan, carry_out, keep_needed, plan_slice
from gpucredits.core.rules.upkeep.claims import drop_claims
from gpucredits.core.rules.upkeep.counting import count_slice, pass_in_full
from gpucredits.core.rules.upkeep.lots import collect, consume, join_paid
from gpucredits.core.rules.upkeep.roll import lapse, roll

# Looked up once: reading a member off its class costs more than the arithmetic around it.
LIVE = ReservationState.ACTIVE
CONTINUE = Decision.CONTINUE
OPEN = GrantState.ACTIVE


def beat(book: Book, command: Beat, now: int) -> BeatResult | Refused:
    """Settle what was used, and renew the lease as far as its payer can fund it."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    payer = book.accounts[lease.payer_id]
    if now >= payer.due_at:
        roll(book, payer, now)
    if lease.state is not LIVE:
        charge_late(book, payer, lease, command.seq, command.used_ms, now)
        return over(lease)
    if command.seq <= lease.seq:
        return repeated(lease, command.used_ms, now)
    used_ms, flag = believable(lease, command.used_ms, now)
    if renew_in_full(book, payer, lease, command.seq, used_ms, now):
        return BeatResult(
            CONTINUE,
            lease.settled,
            lease.held,
            (lease.expires_at - now) // 1_000,
            LIVE,
            "",
            False,
            flag,
        )
    book.touch(lease)
    book.touch(payer)
    lease.seq = command.seq
    shrink(book, lease)
    used_ms, flag = within_authorised(book, payer, lease, used_ms, flag, now)
    renewed = charge(book, payer, lease, used_ms, now)
    payer = book.accounts[lease.payer_id]
    lease.extended_ms = lease.reprieve_ms = 0
    end = now if renewed.stops else lease_end(lease, now)
    if renewed.no_longer:
        end = min(end, lease.expires_at)
    if lease.stopping_at:
        end = max(min(end, lease.stopping_at), now)  # it may have passed during an outage
        let_go(renewed)
    if now < book.maintenance_until and not (renewed.why or lease.stopping_at or lease.kept):
        end = extend(book, payer, lease, end, now)
    lease.expires_at = end
    lease.why, lease.clears_at = renewed.why, renewed.clears_at
    if end <= now:
        lease.decision = Decision.STOP
        lapse(book, payer, lease, now, seq=lease.seq)
    else:
        lease.decision = decision_of(renewed)
        payer.due_at = min(payer.due_at, end)
    return answer(lease, now, flag=flag)


def renew_in_full(
    book: Book, payer: Account, lease: Reservation, seq: int, used_ms: int, now: int
) -> bool:
    """Charge and renew when one open grant pays and the hold is renewed for a full lease.

    The same as ``charge`` wherever it applies; otherwise changes nothing and returns False.
    """
    lots = book.grants[payer.account_id]
    if (
        not lots
        or (book.suspended and suspended_above(book, lease.account))
        or lease.max_amount
        or lease.decision is not CONTINUE
        or (lease.promised or lease.kept or lease.extended_ms or lease.reprieve_ms)
        or (book.savepoint is not None or now < book.maintenance_until)
    ):
        return False
    grant = lots[0]
    rate = lease.milli_gpus * lease.price
    lease_ms = lease.window_ms * (1 + lease.escrow_windows)
    settled = rate * used_ms // RATE_PER_MS
    held = rate * (used_ms + lease_ms) // RATE_PER_MS - settled
    due = settled - lease.settled
    reserve = held - lease.held + due
    if (
        due <= 0
        or reserve < 0
        or grant.remaining <= due
        or grant.state is not OPEN
        or not grant.starts_at <= lease.beat_at >= grant.created_at  # it pays for some of the slice
        or payer.remaining - payer.reserved - payer.debt < reserve
        or (lease_ms > book.window_floor and outlasts(book, lease))
    ):
        return False
    if book.gated and not pass_in_full(book, lease, due, reserve, settled + held, now):
        return False
    grant.remaining -= due
    payer.remaining -= due
    payer.reserved += reserve - due
    payer.spent += due
    payer.version += 1
    grant_id, paid = grant.grant_id, lease.paid
    if len(paid) == 1 and paid[0][0] == grant_id:
        lease.paid = ((grant_id, paid[0][1] + due),)
    else:
        lease.paid = join_paid(paid, [(grant_id, due)])
    lease.seq = seq
    lease.used_ms = used_ms
    lease.settled = settled
    lease.held = held
    lease.beat_at = now
    lease.expires_at = end = now + lease_ms * 1_000
    payer.due_at = min(payer.due_at, end)
    changed = book.changed
    changed[id(lease)] = lease
    changed[id(payer)] = payer
    changed[id(grant)] = grant
    book.post_settlement(now, payer.account_id, due, reserve, grant_id, lease.reservation_id, seq)
    return True


def charge(book: Book, payer: Account, lease: Reservation, used_ms: int, now: int) -> Renewal:
    """Settle use up to ``used_ms`` and renew the hold as far as every gate lets it."""
    due = cost(lease.milli_gpus * lease.price, used_ms) - lease.settled
    covered = min(due, lease.held + max(payer.spendable, 0))
    plan = plan_slice(book, payer, lease, used_ms, covered, now)
    renewed = renewal(book, payer, lease, due, used_ms, now, plan)
    ahead = (renewed.held, renewed.promised)
    if renewed.payer is None:
        if book.gated:
            count_slice(book, lease, due, sum(ahead), now, now)
        post_charge(book, payer, lease, due=due, covered=covered, ahead=ahead, now=now, plan=plan)
        if plan is not None:
            keep_needed(book, payer, lease, plan, now)
    else:
        hand_over(book, payer, lease, renewed, plan, due=due, covered=covered, now=now)
    lease.used_ms = used_ms
    lease.beat_at = now
    return renewed


def hand_over(  # who pays until now, and from here on
    book: Book,
    payer: Account,
    lease: Reservation,
    renewed: Renewal,
    plan: Plan | None,
    *,
    due: int,
    covered: int,
    now: int,
) -> None:
    """Settle what is due with the payer and release its hold; another account holds the window.

    Claims on grants of the payer that have ended go with its hold.
    """
    if book.gated:
        count_slice(book, lease, due, renewed.held, now, now)
    nothing = (0, 0)
    post_charge(book, payer, lease, due=due, covered=covered, ahead=nothing, now=now, plan=plan)
    drop_claims(book, payer, lease, now)
    collect(book, payer, now)
    assert renewed.payer is not None  # for the type checker
    take_over(book, payer, lease, renewed.payer, renewed.held, now)


def let_go(renewed: Renewal) -> None:
    """A lease that was told to stop drains, for that reason unless another ends it as well."""
    if not renewed.drains:
        renewed.why = Why.PREEMPTED
        renewed.throttled = False
        renewed.clears_at = 0


def decision_of(renewed: Renewal) -> Decision:
    """What the node is told of a lease that goes on for now."""
    if renewed.throttled:
        return Decision.THROTTLE
    return Decision.DRAIN if renewed.drains else Decision.CONTINUE


def post_charge(
    book: Book,
    payer: Account,
    lease: Reservation,
    *,
    due: int,
    covered: int,
    ahead: tuple[int, int],
    now: int,
    plan: Plan | None = None,
) -> None:
    """Move the money of a charge: grants pay, the house covers the rest.

    ``ahead`` is what the lease holds from here on, and what it is promised beyond that. The first
    row carries the renewal of the hold beside its settlement. ``plan`` says which grants pay, where
    that is not simply the first in the order. The caller has counted the slice.
    """
    held, promised = ahead
    overrun = due - covered
    reserve_change = held - lease.held + due
    if plan is not None:
        taken = carry_out(book, payer, lease, plan)
    else:
        taken = consume(book, payer, covered) if covered else []
    if overrun:
        post_overrun(book, payer, lease, overrun, now)
        taken.append((OVERRUN, overrun))
    if not taken and reserve_change:
        kind = EntryType.RESERVE if reserve_change > 0 else EntryType.RELEASE
        book.post(
            kind,
            payer,
            abs(reserve_change),
            at=now,
            reservation_id=lease.reservation_id,
            seq=lease.seq,
        )
    for grant_id, amount in taken:
        book.post(
            EntryType.SETTLE,
            payer,
            amount,
            at=now,
            reserve=reserve_change,
            grant_id=grant_id,
            reservation_id=lease.reservation_id,
            seq=lease.seq,
        )
        reserve_change = 0
    payer.reserved += held - lease.held
    payer.spent += due
    payer.version += 1
    payer.promised += promised - lease.promised
    lease.held, lease.promised = held, promised
    lease.settled += due
    if taken:
        lease.paid = join_paid(lease.paid, taken, own_since(lease))


def post_overrun(book: Book, payer: Account, lease: Reservation, overrun: int, now: int) -> None:
    """The house covers what neither the hold nor the balance could."""
    book.post(
        EntryType.OVERRUN,
        payer,
        overrun,
        at=now,
        grant_id=OVERRUN,
        reservation_id=lease.reservation_id,
        seq=lease.seq,
    )
    payer.overrun += overrun
    lease.overdrawn += overrun


def believable(lease: Reservation, used_ms: int, now: int) -> tuple[int, str]:
    """The use that can be true, and a flag when that is not what was reported.

    Clocks of nodes differ a little from the server's, so a report may be ahead of the server's time
    by a tolerance without a flag. It is charged for the server's time only.
    """
    if used_ms < lease.used_ms:
        return lease.used_ms, WENT_BACK
    elapsed = elapsed_ms(lease, now)
    if used_ms > elapsed:
        return elapsed, BEYOND_ELAPSED if used_ms > elapsed + bounds.CLOCK_TOLERANCE_MS else ""
    return used_ms, ""


def repeated(lease: Reservation, used_ms: int, now: int) -> BeatResult:
    """The answer to a report whose seq was used before: the same again, and nothing is charged.

    A report with more use than was accepted may be no repetition: somebody else may have used the
    seq. So the node is told the last seq, and reports again with a higher one. Use that was cut to
    the server's time is left out: such a report is repeated as it is.
    """
    result = answer(lease, now, duplicate=True)
    if used_ms > lease.used_ms < elapsed_ms(lease, lease.beat_at):
        result.flagged, result.last_seq = SEQ_TAKEN, lease.seq
    return result


def answer(lease: Reservation, now: int, *, duplicate: bool = False, flag: str = "") -> BeatResult:
    """What the node is told, now or again.

    The signal comes a grace before the end of a lease that drains, and at once to one that was told
    to stop.
    """
    left_ms = max(lease.trusted_until - now, 0) // 1_000
    signals_later = lease.decision is Decision.DRAIN and not lease.stopping_at
    return BeatResult(
        lease.decision,
        lease.settled,
        lease.held,
        left_ms,
        lease.state,
        lease.why.value,
        duplicate,
        flag,
        max(left_ms - lease.grace_ms, 0) if signals_later else 0,
        max(-((now - lease.clears_at) // 1_000), 0) if lease.clears_at else 0,
    )


def over(lease: Reservation) -> BeatResult:
    """The answer for a lease that has ended: how it ended."""
    return BeatResult(
        Decision.STOP, lease.settled, lease.held, 0, lease.state, lease.state.name.lower()
    )


def charge_late(  # a report, and whose
    book: Book, payer: Account, lease: Reservation, seq: int, used_ms: int, now: int
) -> None:
    """Charge use that was reported after a lease lapsed, and keep the report."""
    told_ms, used_ms = late_ms(book, lease, seq, used_ms, now)
    if told_ms > lease.used_ms:
        book.late_use.append(LateUse(lease.reservation_id, seq, told_ms))
    if used_ms <= lease.used_ms:
        return
    book.touch(lease)
    book.touch(payer)
    lease.seq = seq
    due = cost(lease.rate, used_ms) - lease.settled
    covered = min(due, max(payer.spendable, 0))
    if book.gated:
        count_slice(book, lease, due, 0, now, lease.ended_at)
    post_charge(book, payer, lease, due=due, covered=covered, ahead=(0, 0), now=now)
    if book.gated:
        tell_job(book, lease, due, now)
    lease.used_ms = used_ms
    lease.beat_at = lease.ended_at


def outlasts(book: Book, lease: Reservation) -> bool:
    """Whether a lease is longer than the bounds that hold now allow."""
    return lease.lease_ms > book.lease_bound(lease.account, lease.gpu_type, lease.region)[0]


def shrink(book: Book, lease: Reservation) -> None:
    """Make the window of a lease that is renewed as short as the bounds that hold now."""
    bound, _ = book.lease_bound(lease.account, lease.gpu_type, lease.region)
    if lease.lease_ms > bound:
        book.touch(lease)
        book.reshaped.add(lease.reservation_id)
        lease.window_ms = longest_window(bound, lease.escrow_windows)


RULES: tuple[Rule, ...] = (Rule(Beat, beat, touches_lease),)
