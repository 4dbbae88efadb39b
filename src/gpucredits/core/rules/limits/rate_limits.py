"""Rules for rate limits: setting and ending an account's bucket.

Owns: what a bucket begins with. A bucket that is set anew gives back nothing that was drawn before.
Must not: end or refuse anything that runs; the next renewal sees the new limit.
"""

from __future__ import annotations

from copy import copy

from gpucredits.core.account import Account
from gpucredits.core.authority import Authority, refuse_from_below
from gpucredits.core.book import Book
from gpucredits.core.change import is_named, merged
from gpucredits.core.command import EndRateLimit, SetRateLimit
from gpucredits.core.limit_states import rate_limit_state
from gpucredits.core.limits import TokenBucket, advance, bucket_terms
from gpucredits.core.outcome import RateLimitSaved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rule import Rule, State, Touches, touches_account, without_nulls
from gpucredits.core.rules.credit.funding import find
from gpucredits.core.rules.upkeep.roll import roll_due


def set_rate_limit(book: Book, command: SetRateLimit, now: int) -> RateLimitSaved | Refused:
    """Set a bucket's terms; an account's first is full, and one that exists keeps what fits."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    bucket = book.limits.buckets.get(account.account_id)
    if refused := set_above(account, bucket, command.by):
        return refused
    roll_due(book, now)
    if bucket is None or bucket.ended_at:
        named = command.named
        if not (is_named("capacity", named) and is_named("refill_per_hour", named)):
            return Refused(
                Reason.LIMIT_INVALID,
                f"{account.path} has no rate limit: name capacity and refill_per_hour to set one.",
                {"account": account.path},
            )
        bucket = TokenBucket(
            bucket_id=book.next_id(),
            account_id=account.account_id,
            capacity=command.capacity,
            refill_per_hour=command.refill_per_hour,
            level=first_level(book, account, command.capacity, now),
            level_at=now,
            set_by=command.by,
        )
        book.add(bucket)
        return RateLimitSaved(bucket, account.path)
    book.touch(bucket)
    advance(bucket, bucket_terms(bucket, book.limits.boosts_of(bucket)), now)
    terms = merged(command, bucket, command.named)
    bucket.capacity = terms.capacity
    bucket.refill_per_hour = terms.refill_per_hour
    bucket.set_by = command.by
    boosts = book.limits.boosts_of(bucket)  # without those from below its new scope
    advance(bucket, bucket_terms(bucket, boosts), now)  # what no longer fits is gone
    book.limits.lanes.clear()
    return RateLimitSaved(bucket, account.path)


def set_above(account: Account, bucket: TokenBucket | None, by: Authority) -> Refused | None:
    """Refuse a key below the scope that set the rate limit: an account has only one."""
    if bucket is None or bucket.ended_at:
        return None
    instead = (
        "An account has one rate limit. To allow less, set a quota, or rate limits on the accounts "
        "below it."
    )
    return refuse_from_below(by, bucket.set_by, account.path, "The rate limit", instead)


def first_level(book: Book, account: Account, capacity: int, now: int) -> int:
    """What a new bucket begins with: no more than the one before it would hold by now."""
    before = book.limits.last_ended(account.account_id)
    if before is None:
        return capacity
    before = copy(before)
    boosts = book.limits.boosts_of(before)
    advance(before, bucket_terms(before, boosts), now)
    return min(before.level, capacity)


def end_rate_limit(book: Book, command: EndRateLimit, now: int) -> RateLimitSaved | Refused:
    """Take an account's rate limit away."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    bucket = book.limits.buckets.get(account.account_id)
    if bucket is None or bucket.ended_at:
        return Refused(
            Reason.LIMIT_UNKNOWN, f"{account.path} has no rate limit.", {"account": account.path}
        )
    if refused := set_above(account, bucket, command.by):
        return refused
    book.touch(bucket)
    bucket.ended_at = now
    book.limits.lanes.clear()
    return RateLimitSaved(bucket, account.path)


def touches_bucket(command: SetRateLimit) -> Touches:
    """The account with its bucket."""
    return Touches(paths=(command.account,), sets_limits=True)


def rate_limit_before(book: Book, command: SetRateLimit | EndRateLimit) -> State | None:
    """The rate limit that is about to change."""
    account = book.paths.get(command.account)
    bucket = None if account is None else book.limits.buckets.get(account.account_id)
    if bucket is None:
        return None
    return without_nulls(rate_limit_state(book.org.org_id, command.account, bucket))


def rate_limit_after(org_id: int, outcome: RateLimitSaved) -> tuple[str, State]:
    """The account and its rate limit."""
    return outcome.path, without_nulls(rate_limit_state(org_id, outcome.path, outcome.bucket))


RULES: tuple[Rule, ...] = (
    Rule(
        SetRateLimit,
        decide=set_rate_limit,
        touches=touches_bucket,
        audit="rate_limit.set",
        before=rate_limit_before,
        after=rate_limit_after,
    ),
    Rule(
        EndRateLimit,
        decide=end_rate_limit,
        touches=touches_account,
        audit="rate_limit.end",
        before=rate_limit_before,
        after=rate_limit_after,
    ),
)
