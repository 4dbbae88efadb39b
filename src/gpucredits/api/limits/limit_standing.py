"""Finding the limits that a request is about, as they stand now.

Owns: turning ids of limits into numbers of limits that the account in the path has. An id of
another account's limit is like one of none; its number is 0, which the rules refuse, so that a
key that was answered before still gets its answer.
"""

from __future__ import annotations

from gpucredits.api.http.scope import AnyCall, unknown_account
from gpucredits.core import ids
from gpucredits.core.limits import TokenBucket
from gpucredits.core.quota import Quota
from gpucredits.core.rules.limits.quotas import open_quotas
from gpucredits.service.limits.limit_standing import LimitStanding, read_standing

UNKNOWN = 0
Limit = Quota | TokenBucket


async def standing_of(call: AnyCall, account: str) -> LimitStanding:
    """A visible account with its limits, as they are now."""
    standing = await call.services.run(read_standing, account)
    if standing is None:
        raise unknown_account(account)
    return standing


def limit_number(prefix: str, text: str, standing: LimitStanding) -> int:
    """The number of a limit of the account by its id."""
    limit = limit_by_id(text, standing)
    is_quota = prefix == ids.QUOTA
    if limit is None or isinstance(limit, Quota) is not is_quota:
        return UNKNOWN
    return number_of(limit)


def limit_by_id(text: str, standing: LimitStanding) -> Limit | None:
    """A quota or the rate limit of the account by its id."""
    limits = {
        ids.format_id(prefix_of(limit), standing.book.org.org_id, number_of(limit)): limit
        for limit in limits_of(standing)
    }
    return limits.get(text)


def limits_of(standing: LimitStanding) -> list[Limit]:
    """The quotas of the account, and its rate limit."""
    book, account = standing.book, standing.account
    limits: list[Limit] = list(open_quotas(book, account))
    bucket = book.limits.buckets.get(account.account_id)
    if bucket is not None and not bucket.ended_at:
        limits.append(bucket)
    return limits


def prefix_of(limit: Limit) -> str:
    """The prefix of the ids of a sort of limit."""
    return ids.QUOTA if isinstance(limit, Quota) else ids.RATE_LIMIT


def number_of(limit: Limit) -> int:
    """The number of a limit within its org."""
    return limit.quota_id if isinstance(limit, Quota) else limit.bucket_id
