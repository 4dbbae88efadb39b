"""Handlers of boosts: limits raised for a while."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import invalid
from gpucredits.api.http.reasons import NO_ACCOUNT, NO_LIMIT, SET_ABOVE
from gpucredits.api.http.scope import account_param, bounded_account, submit
from gpucredits.api.limits.limit_standing import (
    UNKNOWN,
    Limit,
    limit_by_id,
    limits_of,
    number_of,
    standing_of,
)
from gpucredits.core import ids
from gpucredits.core.authority import Authority
from gpucredits.core.command import AddBoost, EndBoost
from gpucredits.core.gate import GateUnit, quantity_of
from gpucredits.core.limit_standing import coming_boosts
from gpucredits.core.outcome import Boosted
from gpucredits.core.quota import Quota, unit_of
from gpucredits.service.access.permissions import Permission
from gpucredits.service.limits.limit_standing import LimitStanding
from gpucredits.wire.limits.boost import (
    BoostAnswer,
    BoostRequest,
    BoostsAnswer,
    boost_to_wire,
    boosted_to_wire,
)
from gpucredits.wire.limits.quota import CALENDARS, DIMENSIONS, ZONE_DEFAULT
from gpucredits.wire.scalars import format_instant

route = Routes("limits")


@route(
    "GET /v1/accounts/{account}/boosts",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="boosts(account)",
)
async def get_boosts(call: ApiRequest[None, NoQuery]) -> BoostsAnswer:
    """List the boosts of an account's limits that have not ended."""
    account = account_param(call)
    standing = await standing_of(call, account)
    return BoostsAnswer(
        account=account,
        boosts=[
            boost_to_wire(
                standing.book.org.org_id,
                account,
                boost,
                unit=counted(limit),
                is_rate_limit=not isinstance(limit, Quota),
            )
            for limit in limits_of(standing)
            for boost in coming_boosts(standing.book, limit, standing.now)
        ],
        as_of=format_instant(standing.now),
    )


@route(
    "POST /v1/accounts/{account}/boosts",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *NO_LIMIT, *SET_ABOVE, "window_ended", "limit_invalid"),
    status=201,
    client="add_boost(account, amount)",
)
async def post_boost(call: ApiRequest[BoostRequest, NoQuery]) -> BoostAnswer:
    """Raise a limit of an account until ``ends_at``.

    ``target_id`` names the limit, or ``dimension`` with the other terms that the limit was set
    with.
    """
    account = bounded_account(call)
    standing = await standing_of(call, account)
    limit = wanted_limit(call.body, standing, call.principal.authority)
    body = call.body
    unit = GateUnit.CREDITS if limit is None else counted(limit)
    try:
        amount = quantity_of(body.amount, unit)
    except ValueError as error:
        raise invalid("amount", str(error)) from error
    if isinstance(limit, Quota) and body.refill_per_hour:
        raise invalid("refill_per_hour", "is for rate limits only; leave it out for a quota")
    command = AddBoost(
        target_id=UNKNOWN if limit is None else number_of(limit),
        amount=amount,
        ends_at=int(body.ends_at),
        starts_at=None if body.starts_at is None else int(body.starts_at),
        refill_per_hour=int(body.refill_per_hour),
        note=str(body.note),
        by=call.principal.authority,
    )
    org_id = standing.book.org.org_id
    return boosted_to_wire(org_id, await submit(call, org_id, command, Boosted))


@route(
    "DELETE /v1/accounts/{account}/boosts/{boost}",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *NO_LIMIT, *SET_ABOVE),
    client="end_boost(account, boost_id)",
)
async def delete_boost(call: ApiRequest[None, NoQuery]) -> BoostAnswer:
    """End a boost now."""
    account = bounded_account(call)
    standing = await standing_of(call, account)
    org_id = standing.book.org.org_id
    by = call.principal.authority
    command = EndBoost(target_id=UNKNOWN, boost_id=UNKNOWN, by=by)
    for limit in limits_of(standing):
        for boost in coming_boosts(standing.book, limit, standing.now):
            if ids.format_id(ids.BOOST, org_id, boost.boost_id) == call.params["boost"]:
                command = EndBoost(target_id=boost.target_id, boost_id=boost.boost_id, by=by)
    return boosted_to_wire(org_id, await submit(call, org_id, command, Boosted))


def wanted_limit(body: BoostRequest, standing: LimitStanding, by: Authority) -> Limit | None:
    """The limit that a boost is for, if the account has it.

    Among quotas that differ only in the scope that set them, it is the widest one that the key may
    raise.
    """
    if body.target_id is not None:
        return limit_by_id(body.target_id, standing)
    described = [limit for limit in limits_of(standing) if is_described(limit, body)]
    return min(described, key=lambda limit: (limit.set_by < by, limit.set_by), default=None)


def is_described(limit: Limit, body: BoostRequest) -> bool:
    """Whether a limit is the one that a request describes."""
    if not isinstance(limit, Quota):
        return body.dimension == "rate_limit"
    quota = limit
    return (
        body.dimension is not None
        and body.dimension != "rate_limit"
        and quota.dimension is DIMENSIONS[body.dimension]
        and quota.gpu_type == str(body.gpu_type or "")
        and quota.calendar == (None if body.calendar is None else CALENDARS[body.calendar])
        and quota.zone == str(body.zone or ZONE_DEFAULT)
        and quota.rolling_hours == (body.rolling_hours or 0)
    )


def counted(limit: Limit) -> GateUnit:
    """What a limit's numbers count."""
    return unit_of(limit.dimension) if isinstance(limit, Quota) else GateUnit.CREDITS
