"""The overview of an account's limits on the wire: cap, used, left, resets at."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from gpucredits.core import ids
from gpucredits.core.account import Account, Model
from gpucredits.core.book import Book
from gpucredits.core.gate import GateUnit
from gpucredits.core.limit_standing import (
    BudgetStanding,
    QuotaStanding,
    RateLimitStanding,
    budget_standings,
    quota_standings,
    rate_limit_standing,
)
from gpucredits.core.money import format_credits
from gpucredits.core.quota import unit_of
from gpucredits.core.request_limit import Holder, RequestStanding
from gpucredits.wire.documented import ACCOUNT, AS_OF, SCOPE, SET_BY_SCOPE, UNIT, doc
from gpucredits.wire.gate import QuantityText, UnitName, format_quantity, unit_name
from gpucredits.wire.ledger.account import scope_name
from gpucredits.wire.scalars import InstantText, format_instant
from gpucredits.wire.words import AUTHORITY_NAMES, AuthorityName

LimitKind = Literal["quota", "rate_limit", "budget", "credit_limit", "request_limit"]
LimitScopeName = Literal["org", "project", "user", "key"]


class LimitAnswer(Struct, kw_only=True):
    """One limit of one account on the way from the org down.

    ``used`` counts what live leases hold. For a rate limit ``left`` is what could be authorised
    now, and ``resets_at`` when it would be full. Unknown numbers are null. The caller's own key is
    a scope too: ``account`` is then what the key is for, empty for the whole system. An account
    that the key does not see is ``an account above`` with a null id and null numbers.
    """

    kind: Annotated[LimitKind, doc("The kind of limit.")]
    limit_id: Annotated[str | None, doc("The id of the limit; null if it has none.")]
    scope: Annotated[LimitScopeName, SCOPE]
    account: Annotated[str, doc("The account that has the limit.")]
    name: Annotated[str, doc("The limit's name, for people.")]
    unit: Annotated[UnitName, UNIT]
    cap: Annotated[QuantityText | None, doc("The limit including boosts in force.")]
    used: Annotated[
        QuantityText | None,
        doc("The amount that counts against the limit; null if nothing is counted."),
    ]
    left: Annotated[QuantityText | None, doc("The rest; null if it cannot be told.")]
    resets_at: Annotated[
        InstantText | None, doc("When the count starts again, or a bucket is full; null if never.")
    ]
    set_by_scope: Annotated[AuthorityName, SET_BY_SCOPE]


class LimitsAnswer(Struct, kw_only=True):
    """Every limit that a job of an account meets, the org's first."""

    account: Annotated[str, ACCOUNT]
    limits: Annotated[list[LimitAnswer], doc("The limits, the org's first.")]
    as_of: Annotated[InstantText, AS_OF]


def limits_to_wire(book: Book, account: Account, now: int) -> list[LimitAnswer]:
    """Every limit of one account: credits first, then quotas, then speed, as gates are asked."""
    org_id, path = book.org.org_id, account.path
    limits = [_credit_limit(account)] if account.model is Model.POSTPAID else []
    limits += [
        _budget(org_id, path, standing)
        for standing in budget_standings(book, account, now)
        if standing.period is not None or standing.budget.is_open
    ]
    limits += [_quota(org_id, path, standing) for standing in quota_standings(book, account, now)]
    rate_limit = rate_limit_standing(book, account, now)
    if rate_limit is not None:
        limits.append(_rate_limit(org_id, path, rate_limit))
    return limits


def request_limit_to_wire(path: str, standing: RequestStanding, now: int) -> LimitAnswer:
    """A limit on requests, of an org or of a key for ``path``; it counts the request that asks."""
    name, cap, left = standing.ask.name, standing.ask.limit.capacity, standing.left
    is_key = name.holder is Holder.KEY
    key_id = ids.format_id(ids.KEY, name.org_id, name.number) if is_key else None
    full_at = now + standing.full_in_us if standing.full_in_us else None
    return LimitAnswer(
        kind="request_limit",
        limit_id=key_id,
        scope="key" if is_key else "org",
        account=path,
        name=f"requests of {key_id}" if is_key else "requests of all keys",
        unit=unit_name(GateUnit.REQUESTS),
        cap=str(cap),
        used=None if left is None else str(cap - left),
        left=None if left is None else str(left),
        resets_at=None if full_at is None else format_instant(full_at),
        set_by_scope="system",
    )


def _credit_limit(account: Account) -> LimitAnswer:
    used = max(-account.available, 0)
    return LimitAnswer(
        kind="credit_limit",
        limit_id=None,
        scope=scope_name(account.path),
        account=account.path,
        name="credit limit",
        unit="credits",
        cap=format_credits(account.credit_limit),
        used=format_credits(used),
        left=format_credits(max(account.credit_limit - used, 0)),
        resets_at=None,
        set_by_scope="system",
    )


def _budget(org_id: int, path: str, standing: BudgetStanding) -> LimitAnswer:
    budget, period = standing.budget, standing.period
    cap = budget.allowance if period is None else period.allowance
    resets_at = budget.next_at if period is None else period.ends_at
    return LimitAnswer(
        kind="budget",
        limit_id=ids.format_id(ids.BUDGET, org_id, budget.budget_id),
        scope=scope_name(path),
        account=path,
        name=f"budget {budget.name}",
        unit="credits",
        cap=format_credits(cap),
        used=None if period is None else format_credits(cap - standing.left),
        left=None if period is None else format_credits(standing.left),
        resets_at=format_instant(resets_at),
        set_by_scope="system",
    )


def _quota(org_id: int, path: str, standing: QuotaStanding) -> LimitAnswer:
    quota, unit = standing.quota, unit_of(standing.quota.dimension)
    used = None
    if standing.used is not None and standing.held is not None:
        used = format_quantity(standing.used + standing.held, unit)
    return LimitAnswer(
        kind="quota",
        limit_id=ids.format_id(ids.QUOTA, org_id, quota.quota_id),
        scope=scope_name(path),
        account=path,
        name=standing.name,
        unit=unit_name(unit),
        cap=format_quantity(standing.cap, unit),
        used=used,
        left=None if standing.left is None else format_quantity(standing.left, unit),
        resets_at=None if standing.resets_at is None else format_instant(standing.resets_at),
        set_by_scope=AUTHORITY_NAMES[quota.set_by],
    )


def _rate_limit(org_id: int, path: str, standing: RateLimitStanding) -> LimitAnswer:
    return LimitAnswer(
        kind="rate_limit",
        limit_id=ids.format_id(ids.RATE_LIMIT, org_id, standing.bucket.bucket_id),
        scope=scope_name(path),
        account=path,
        name="rate limit",
        unit=unit_name(GateUnit.CREDITS),
        cap=format_credits(standing.cap),
        used=format_credits(standing.cap - standing.level),
        left=format_credits(max(standing.level, 0)),
        resets_at=None if standing.full_at is None else format_instant(standing.full_at),
        set_by_scope=AUTHORITY_NAMES[standing.bucket.set_by],
    )
