"""Handler of the overview: every limit that a job of an account, and whoever asks, meets."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import account_param
from gpucredits.api.limits.limit_standing import standing_of
from gpucredits.core.account import org_of
from gpucredits.service.access.permissions import Permission
from gpucredits.service.limits.request_limits import key_standing, org_standing
from gpucredits.wire.limits.limits import (
    LimitAnswer,
    LimitsAnswer,
    limits_to_wire,
    request_limit_to_wire,
)
from gpucredits.wire.scalars import format_instant

route = Routes("limits")


@route(
    "GET /v1/accounts/{account}/limits",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="limits(account)",
)
async def get_limits(call: ApiRequest[None, NoQuery]) -> LimitsAnswer:
    """List every limit that a job of an account meets: cap, used, left, resets at.

    The org's limits come first, the request limit of the key last.
    """
    account = account_param(call)
    standing = await standing_of(call, account)
    services, org, now = call.services, standing.book.org, standing.now
    of_org = await services.run(
        org_standing, services.keyring, services.limiter, org.org_id, org_of(account)
    )
    of_key = await key_standing(services.limiter, call.principal)
    limits: list[LimitAnswer] = []
    for each in (*standing.above, standing.account):
        limits += limits_to_wire(standing.book, each, now)
        if of_org is not None and each.path == org_of(account):
            limits.append(request_limit_to_wire(each.path, of_org, now))
    if of_key is not None:
        limits.append(request_limit_to_wire(call.principal.scope, of_key, now))
    return LimitsAnswer(account=account, limits=limits, as_of=format_instant(now))
