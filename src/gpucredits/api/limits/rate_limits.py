"""Handlers of credit rate limits: how fast an account may authorise credits."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.reasons import NO_ACCOUNT, NO_LIMIT, SET_ABOVE
from gpucredits.api.http.scope import account_param, bounded_account, saved
from gpucredits.api.limits.limit_standing import standing_of
from gpucredits.core.command import EndRateLimit
from gpucredits.core.limit_standing import rate_limit_standing
from gpucredits.core.outcome import RateLimitSaved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.access.permissions import Permission
from gpucredits.wire.limits.rate_limit import (
    RateLimitAnswer,
    RateLimitChange,
    RateLimitRequest,
    RateLimitTerms,
    rate_limit_change_from_wire,
    rate_limit_from_wire,
    rate_limit_saved_to_wire,
    rate_limit_standing_to_wire,
)

route = Routes("limits")


@route(
    "GET /v1/accounts/{account}/rate-limit",
    Permission.READ,
    reasons=(*NO_ACCOUNT, *NO_LIMIT),
    client="rate_limit(account)",
)
async def get_rate_limit(call: ApiRequest[None, NoQuery]) -> RateLimitAnswer:
    """Get an account's rate limit, with what can be authorised now."""
    account = account_param(call)
    found = await standing_of(call, account)
    standing = rate_limit_standing(found.book, found.account, found.now)
    if standing is None:
        text = f"{account} has no rate limit."
        raise RefusedError(Refused(Reason.LIMIT_UNKNOWN, text, {"account": account}))
    return rate_limit_standing_to_wire(found.book.org.org_id, account, standing, found.now)


@route(
    "PUT /v1/accounts/{account}/rate-limit",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *SET_ABOVE),
    client="set_rate_limit(account)",
)
async def put_rate_limit(call: ApiRequest[RateLimitRequest, NoQuery]) -> RateLimitTerms:
    """Replace an account's rate limit.

    A new bucket is full. An existing bucket keeps the tokens that fit.
    """
    account = bounded_account(call)
    command = rate_limit_from_wire(account, call.body, call.principal.authority)
    return await saved(call, account, command, RateLimitSaved, rate_limit_saved_to_wire)


@route(
    "PATCH /v1/accounts/{account}/rate-limit",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *SET_ABOVE, "limit_invalid"),
    client="set_rate_limit(account)",
)
async def patch_rate_limit(call: ApiRequest[RateLimitChange, NoQuery]) -> RateLimitTerms:
    """Change some terms of an account's rate limit.

    An account authorises at most ``capacity`` credits at once, and ``refill_per_hour`` more each
    hour.
    """
    account = bounded_account(call)
    command = rate_limit_change_from_wire(account, call.body, call.principal.authority)
    return await saved(call, account, command, RateLimitSaved, rate_limit_saved_to_wire)


@route(
    "DELETE /v1/accounts/{account}/rate-limit",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *NO_LIMIT, *SET_ABOVE),
    client="end_rate_limit(account)",
)
async def delete_rate_limit(call: ApiRequest[None, NoQuery]) -> RateLimitTerms:
    """End an account's rate limit."""
    account = bounded_account(call)
    command = EndRateLimit(account=account, by=call.principal.authority)
    return await saved(call, account, command, RateLimitSaved, rate_limit_saved_to_wire)
