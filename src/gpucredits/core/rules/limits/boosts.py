"""Rules for boosts: raising a limit for a while, and ending that early.

Owns: when a boost is in force. It lapses by itself; ending it early is the same, now. A boost of a
limit that a wider scope has taken over since has no force (``Limits.boosts_of``).
Must not: change the limit that it raises, or take away what is held.
"""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.core.authority import refuse_from_below
from gpucredits.core.book import Book
from gpucredits.core.command import AddBoost, EndBoost
from gpucredits.core.limit_states import boost_state
from gpucredits.core.limits import Boost, TokenBucket, advance, bucket_terms
from gpucredits.core.outcome import Boosted
from gpucredits.core.quota import Quota, unit_of
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rule import Rule, State, Touches, without_nulls
from gpucredits.core.rules.limits.quotas import find_quota
from gpucredits.core.rules.limits.setting import too_many
from gpucredits.core.rules.upkeep.roll import roll_due


def add_boost(book: Book, command: AddBoost, now: int) -> Boosted | Refused:
    """Raise a limit on [starts_at, ends_at); it lapses by itself."""
    target = find_target(book, command.target_id)
    if target is None:
        return Refused(Reason.LIMIT_UNKNOWN, "There is no such quota or rate limit.")
    account = book.accounts[target.account_id]
    bound = "The rate limit" if isinstance(target, TokenBucket) else "The quota"
    instead = "Ask for a raise instead."
    if refused := refuse_from_below(command.by, target.set_by, account.path, bound, instead):
        return refused
    starts_at = max(now, command.starts_at or now)
    if command.ends_at <= starts_at:
        return Refused(
            Reason.WINDOW_ENDED,
            "The boost would end before it begins: ends_at must be later than now and starts_at.",
            {"account": account.path},
        )
    running = [b for b in book.limits.boosts.get(command.target_id, ()) if b.ends_at > now]
    if full := too_many("boosts of this limit", len(running), bounds.BOOSTS_MAX, account):
        return full
    boost = Boost(
        boost_id=book.next_id(),
        account_id=target.account_id,
        target_id=command.target_id,
        amount=command.amount,
        starts_at=starts_at,
        ends_at=command.ends_at,
        refill_per_hour=command.refill_per_hour,
        note=command.note,
        created_at=now,
        set_by=command.by,
    )
    book.add(boost)
    return told(book, boost, target)


def end_boost(book: Book, command: EndBoost, now: int) -> Boosted | Refused:
    """Let a boost lapse now; one that has not begun never will.

    A bucket has gained by the boosted terms until now; what no longer fits is gone.
    """
    boost = find_boost(book, command.target_id, command.boost_id, now)
    target = find_target(book, command.target_id)
    if boost is None or target is None:
        return Refused(Reason.LIMIT_UNKNOWN, "There is no such boost, or it has ended.")
    path, instead = book.accounts[target.account_id].path, "To allow less, set a quota."
    if refused := refuse_from_below(command.by, boost.set_by, path, "The boost", instead):
        return refused
    roll_due(book, now)
    if isinstance(target, TokenBucket):
        book.touch(target)
        advance(target, bucket_terms(target, book.limits.boosts_of(target)), now)
    book.touch(boost)
    boost.starts_at, boost.ends_at = min(boost.starts_at, now), now
    if isinstance(target, TokenBucket):
        advance(target, bucket_terms(target, book.limits.boosts_of(target)), now)
    book.limits.lanes.clear()
    return told(book, boost, target)


def find_target(book: Book, target_id: int) -> Quota | TokenBucket | None:
    """A quota or a rate limit that has not ended, by its id."""
    buckets = (bucket for bucket in book.limits.buckets.values() if not bucket.ended_at)
    bucket = next((each for each in buckets if each.bucket_id == target_id), None)
    return bucket or find_quota(book, target_id)


def find_boost(book: Book, target_id: int, boost_id: int, now: int) -> Boost | None:
    """A boost of a limit that has not ended, by its id."""
    boosts = book.limits.boosts.get(target_id, ())
    return next((b for b in boosts if b.boost_id == boost_id and b.ends_at > now), None)


def told(book: Book, boost: Boost, target: Quota | TokenBucket) -> Boosted:
    """A boost with what it raises."""
    path = book.accounts[target.account_id].path
    if isinstance(target, TokenBucket):
        return Boosted(boost, path, is_rate_limit=True)
    return Boosted(boost, path, unit_of(target.dimension))


def touches_target(command: AddBoost | EndBoost) -> Touches:
    """The quota or the rate limit that is boosted, with its boosts."""
    return Touches(limits=(command.target_id,))


def boost_before(book: Book, command: EndBoost) -> State | None:
    """The boost that is about to end."""
    target = find_target(book, command.target_id)
    boosts = book.limits.boosts.get(command.target_id, ())
    boost = next((each for each in boosts if each.boost_id == command.boost_id), None)
    if boost is None or target is None:
        return None
    return boost_after(book.org.org_id, told(book, boost, target))[1]


def boost_after(org_id: int, outcome: Boosted) -> tuple[str, State]:
    """The account and its boost."""
    path, unit, is_rate_limit = outcome.path, outcome.unit, outcome.is_rate_limit
    state = boost_state(org_id, path, outcome.boost, unit=unit, is_rate_limit=is_rate_limit)
    return path, without_nulls(state)


RULES: tuple[Rule, ...] = (
    Rule(AddBoost, add_boost, touches_target, "boost.add", after=boost_after),
    Rule(EndBoost, end_boost, touches_target, "boost.end", boost_before, boost_after),
)
