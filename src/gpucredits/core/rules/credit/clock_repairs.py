"""Rules for an org whose clock stood ahead of the database's: bringing it back to the present.

An org's clock never goes back by itself. If the database's time was ahead unnoticed, the org stays
at that time: leases do not lapse, use is not charged, and grants have ended early. A repair moves
every stamp in the future back to now.

Owns: the changes of a repair, with new entries for credits that move, and the list of damage that
stays.
Must not: change an entry, or take credits that a hold counts on.
"""

from __future__ import annotations

from gpucredits.core.book import Book
from gpucredits.core.bounds import CLOCK_JUMP_US
from gpucredits.core.clock_repair import (
    ClockRepair,
    Left,
    LeftAsItIs,
    Mend,
    MendedGrant,
    MendedLease,
    Traces,
)
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.limits import TokenBucket
from gpucredits.core.quota import Counter, Dimension, Quota, reach, window_at
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.rules.upkeep.lots import absorb
from gpucredits.core.rules.upkeep.roll import next_due


def is_ahead(clock: int, now: int) -> bool:
    """Whether an org's clock needs a repair; real time soon catches up with a smaller lead."""
    return clock > now + CLOCK_JUMP_US


def repair(book: Book, traces: Traces, now: int) -> ClockRepair | None:
    """Bring the org's clock and all stamps in the future back to ``now``; None if there are none.

    The book holds every row with such a stamp: live leases, grants, and limits with their counters.
    """
    org = book.org
    if not is_ahead(org.clock, now):
        return None
    done = ClockRepair(org.path, org.clock, now)
    mend_grants(book, traces, done)
    for lease in book.reservations.values():
        if lease.state is ReservationState.ACTIVE:
            bring_back(book, lease, done)
    mend_limits(book, done)
    for account in book.accounts.values():
        soonest = next_due(book, account)
        if soonest < account.due_at:
            book.touch(account)
            account.due_at = soonest
            account.version += 1
    org.clock = now
    return done


def mend_grants(book: Book, traces: Traces, done: ClockRepair) -> None:
    """Reopen grants that ended early; then withdraw grants that started early, if they are free."""
    grants = sorted(book.lots.values(), key=number_of)
    for grant in grants:
        if grant.state in (GrantState.ENDED, GrantState.HELD_OVER) and grant.expires_at > done.now:
            reopen(book, grant, traces, done)
    restamp(book, grants, done)
    for grant in grants:
        if grant.state is GrantState.ACTIVE and grant.starts_at > done.now:
            withdraw(book, grant, done)


def mend_limits(book: Book, done: ClockRepair) -> None:
    """Bring back quota windows and rate limits whose stamps are in the future."""
    for quotas in book.limits.quotas.values():
        for quota in quotas:
            if quota.dimension is Dimension.CREDITS_PER_WINDOW and not quota.ended_at:
                reopen_window(book, quota, done)
    for bucket in book.limits.buckets.values():
        bring_back_bucket(book, bucket, done)


def number_of(grant: Grant) -> int:
    """The order in which grants were made: a grant comes after the one it was moved from."""
    return grant.grant_id


def reopen(book: Book, grant: Grant, traces: Traces, done: ClockRepair) -> None:
    """Reopen a grant that ended early, with its expired credits."""
    account = book.accounts[grant.account_id]
    expired = traces.expired.get(grant.grant_id, 0)
    if grant.grant_id in traces.rolled or grant.grant_id in traces.reversed:
        rolled = grant.grant_id in traces.rolled
        kind = Left.ALLOWANCE_ROLLED_OVER if rolled else Left.GRANT_REVERSED
        done.left.append(LeftAsItIs(kind, grant.grant_id, account.path, expired))
        return
    drop_claims_on(book, grant)
    book.touch(grant)
    book.touch(account)
    grant.state = GrantState.ACTIVE
    grant.claims = 0
    grant.remaining += expired
    account.remaining += expired
    book.place(grant)
    book.post(EntryType.RESTORE, account, expired, at=done.now, grant_id=grant.grant_id)
    absorb(book, account, grant, done.now)
    done.grants.append(MendedGrant(grant.grant_id, account.path, Mend.RESTORED, expired))


def drop_claims_on(book: Book, grant: Grant) -> None:
    """Drop the claims on a reopened grant: it pays for running leases as before."""
    if grant.state is not GrantState.HELD_OVER:
        return
    for lease in book.reservations.values():
        kept = tuple(item for item in lease.kept if item[0] != grant.grant_id)
        if len(kept) < len(lease.kept):
            book.touch(lease)
            lease.kept = kept


def restamp(book: Book, grants: list[Grant], done: ClockRepair) -> None:
    """Stamp grants that were made while the clock was ahead as made now.

    A grant that was to start at once starts now, and so do the grants moved out of it. The
    allowance of a period, and credits that rolled over, start with the period.
    """
    now = done.now
    moved: set[int] = set()
    for grant in grants:
        at_once = not grant.origin_id and not grant.budget_id
        at_once = at_once and grant.starts_at == grant.created_at
        if grant.starts_at > now and (at_once or has_moved(book, grant, moved)):
            book.touch(grant)
            moved.add(grant.grant_id)
            grant.starts_at = now
            path = book.accounts[grant.account_id].path
            done.grants.append(MendedGrant(grant.grant_id, path, Mend.RESTAMPED, 0))
        if grant.created_at > now:
            book.touch(grant)
            grant.created_at = now
        book.place(grant)


def has_moved(book: Book, grant: Grant, moved: set[int]) -> bool:
    """Whether a grant came by a transfer from a grant whose start has moved."""
    if grant.origin_id not in moved:
        return False
    return book.lots[grant.origin_id].account_id != grant.account_id


def withdraw(book: Book, grant: Grant, done: ClockRepair) -> None:
    """Withdraw an unused grant that started early, so that it waits for its start again."""
    account = book.accounts[grant.account_id]
    is_whole = grant.remaining == grant.amount and not grant.origin_id
    if not is_whole or account.available < grant.amount:
        left = LeftAsItIs(Left.GRANT_STARTED, grant.grant_id, account.path, grant.remaining)
        done.left.append(left)
        return
    book.touch(grant)
    book.touch(account)
    grant.state = GrantState.PENDING
    account.remaining -= grant.amount
    book.place(grant)
    book.post(EntryType.WITHDRAW, account, grant.amount, at=done.now, grant_id=grant.grant_id)
    mended = MendedGrant(grant.grant_id, account.path, Mend.WITHDRAWN, grant.amount)
    done.grants.append(mended)


def bring_back(book: Book, lease: Reservation, done: ClockRepair) -> None:
    """Stamp a lease that was renewed while the clock was ahead as renewed now, for as long."""
    now = done.now
    ahead = lease.beat_at - now
    if ahead <= 0 and lease.admitted_at <= now:
        return
    book.touch(lease)
    admitted_before, expires_before = lease.admitted_at, lease.expires_at
    lease.admitted_at = min(lease.admitted_at, now)
    if ahead > 0:
        lease.beat_at = now
        lease.expires_at -= ahead
        lease.stopping_at = max(lease.stopping_at - ahead, now) if lease.stopping_at else 0
        lease.clears_at = max(lease.clears_at - ahead, now) if lease.clears_at else 0
        lease.kept = tuple(
            (number, claim, max(until - ahead, ended_at(book, number, until)))
            for number, claim, until in lease.kept
        )
    done.leases.append(
        MendedLease(
            lease.reservation_id,
            lease.account,
            admitted_before,
            lease.admitted_at,
            expires_before,
            lease.expires_at,
        )
    )


def ended_at(book: Book, grant_id: int, otherwise: int) -> int:
    """When a claimed grant has ended."""
    grant = book.lots.get(grant_id)
    return otherwise if grant is None else grant.expires_at


def reopen_window(book: Book, quota: Quota, done: ClockRepair) -> None:
    """Reopen a quota's present window, with everything that later windows have counted."""
    counter: Counter = book.limits.counters[quota.quota_id]
    if counter.starts_at <= done.now:
        return
    starts_at, ends_at = window_at(quota, done.now)
    tallies = book.limits.tallies.get(quota.quota_id, {})
    used, base = counter.used - counter.base, 0
    for tally in tallies.values():
        if tally.starts_at >= starts_at:
            used += tally.used
            book.touch(tally)
            tally.used = 0
        elif tally.starts_at >= starts_at - reach(quota):
            base += tally.used
    book.touch(counter)
    counter.starts_at, counter.ends_at = starts_at, ends_at
    counter.base = base
    counter.used = base + used
    done.windows.append(quota.quota_id)


def bring_back_bucket(book: Book, bucket: TokenBucket, done: ClockRepair) -> None:
    """Let a rate limit refill from now on; it keeps credits that it gained early."""
    if bucket.level_at > done.now:
        book.touch(bucket)
        bucket.level_at = done.now
        done.rate_limits.append(bucket.bucket_id)
