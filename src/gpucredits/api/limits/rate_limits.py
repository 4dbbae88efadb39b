"""Handlers of credit rate limits: how fast an account may authorise credits."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.reasons import NO_ACCOUNT, NO_LIMIT, SET_ABOVE
from gpucredits.api.http.scope import account_param, org_number, require_wider
from gpucredits.api.http.submit import submit
from gpucredits.api.limits.limit_standing import standing_of
from gpucredits.core.command import EndRateLimit
from gpucredits.core.limit_standing import rate_limit_standing
from gpucredits.core.outcome import RateLimitSaved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.access.permissions import Permission
from gpucredits.wire.rate_limit import (
    RateLimitAnswer,
    RateLimitChange,
    RateLimitRequest,
    RateLimitTerms,
    rate_limit_change_from_wire,
    rate_limit_from_wire,
    rate_limit_saved_to_wire,
    rate_limit_standing_to_wire,
)

PATH = "/v1/accounts/{account}/rate-limit"


async def get_rate_limit(call: ApiRequest[None, NoQuery]) -> RateLimitAnswer:
    """An account's rate limit and how it stands."""
    account = account_param(call)
    found = await standing_of(call, account)
    standing = rate_limit_standing(found.book, found.account, found.now)
    if standing is None:
        text = f"{account} has no rate limit."
        raise RefusedError(Refused(Reason.LIMIT_UNKNOWN, text, {"account": account}))
    return rate_limit_standing_to_wire(found.book.org.org_id, account, standing, found.now)


async def put_rate_limit(call: ApiRequest[RateLimitRequest, NoQuery]) -> RateLimitTerms:
    """Set an account's rate limit; a new one is full, one that exists keeps what fits."""
    account = account_param(call)
    require_wider(call, account)
    org_id = await org_number(call, account)
    command = rate_limit_from_wire(account, call.body, call.principal.authority)
    return rate_limit_saved_to_wire(org_id, await submit(call, org_id, command, RateLimitSaved))


async def patch_rate_limit(call: ApiRequest[RateLimitChange, NoQuery]) -> RateLimitTerms:
    """Change what is named of an account's rate limit; the rest stays as it is."""
    account = account_param(call)
    require_wider(call, account)
    org_id = await org_number(call, account)
    command = rate_limit_change_from_wire(account, call.body, call.principal.authority)
    return rate_limit_saved_to_wire(org_id, await submit(call, org_id, command, RateLimitSaved))


async def delete_rate_limit(call: ApiRequest[None, NoQuery]) -> RateLimitTerms:
    """Take an account's rate limit away."""
    account = account_param(call)
    require_wider(call, account)
    org_id = await org_number(call, account)
    command = EndRateLimit(account=account, by=call.principal.authority)
    outcome = await submit(call, org_id, command, RateLimitSaved)
    return rate_limit_saved_to_wire(org_id, outcome)


ROUTES = [
    Route(
        method="GET",
        path=PATH,
        summary="How fast an account may authorise credits, and how that stands",
        handler=get_rate_limit,
        permission=Permission.READ,
        answer=RateLimitAnswer,
        reasons=(*NO_ACCOUNT, *NO_LIMIT),
        tag="limits",
    ),
    Route(
        method="PUT",
        path=PATH,
        summary="Set how fast an account may authorise credits",
        handler=put_rate_limit,
        permission=Permission.SET_POLICY,
        body=RateLimitRequest,
        answer=RateLimitTerms,
        needs_key=True,
        reasons=(*NO_ACCOUNT, *SET_ABOVE),
        tag="limits",
    ),
    Route(
        method="PATCH",
        path=PATH,
        summary="Change what is named of a rate limit",
        handler=patch_rate_limit,
        permission=Permission.SET_POLICY,
        body=RateLimitChange,
        answer=RateLimitTerms,
        needs_key=True,
        reasons=(*NO_ACCOUNT, *SET_ABOVE, "limit_invalid"),
        tag="limits",
    ),
    Route(
        method="DELETE",
        path=PATH,
        summary="Take an account's rate limit away",
        handler=delete_rate_limit,
        permission=Permission.SET_POLICY,
        answer=RateLimitTerms,
        needs_key=True,
        reasons=(*NO_ACCOUNT, *NO_LIMIT, *SET_ABOVE),
        tag="limits",
    ),
]
