"""Handler of the overview: every limit that a job of an account meets."""

from __future__ import annotations

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.reasons import NO_ACCOUNT
from gpucredits.api.scope import account_param
from gpucredits.api.standing import standing_of
from gpucredits.service.access import Permission
from gpucredits.wire.limits import LimitsAnswer, limits_to_wire
from gpucredits.wire.scalars import format_instant


async def get_limits(call: Call[None, NoQuery]) -> LimitsAnswer:
    """Every limit of every kind that applies to an account, the org's first."""
    account = account_param(call)
    standing = await standing_of(call, account)
    return LimitsAnswer(
        account=account,
        limits=[
            limit
            for each in (*standing.above, standing.account)
            for limit in limits_to_wire(standing.book, each, standing.now)
        ],
        as_of=format_instant(standing.now),
    )


ROUTES = [
    Route(
        method="GET",
        path="/v1/accounts/{account}/limits",
        summary="Every limit that applies to an account: cap, used, left, resets at",
        handler=get_limits,
        permission=Permission.READ,
        answer=LimitsAnswer,
        reasons=NO_ACCOUNT,
        tag="limits",
    ),
]
