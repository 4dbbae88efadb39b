"""Handlers of limits on requests, for keys and for whole orgs."""

from __future__ import annotations

from fractions import Fraction

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import invalid
from gpucredits.api.http.scope import (
    AnyCall,
    account_exists,
    account_param,
    act_of,
    key_param,
    org_number,
    unknown_key,
)
from gpucredits.core import ids
from gpucredits.core.change import Named
from gpucredits.core.request_limit import HOUR_S, Holder, RequestLimit, limit_of
from gpucredits.service.access.key_acts import KeyUnknown
from gpucredits.service.access.permissions import Permission
from gpucredits.service.limits.request_limits import InForce, LimitTarget, change_limit, read_limit
from gpucredits.wire.change import given, named_in
from gpucredits.wire.request_limit import (
    RequestLimitAnswer,
    RequestLimitChange,
    RequestLimitRequest,
    RequestLimitTerms,
)

route = Routes("access")


@route(
    "GET /v1/keys/{key}/limit",
    Permission.MANAGE_KEYS,
    reasons=("key_unknown",),
    client="key_limit(key_id)",
)
async def get_key_limit(call: ApiRequest[None, NoQuery]) -> RequestLimitAnswer:
    """Get the request limit in force for a key.

    A key without a limit of its own has the server's default.
    """
    return await _read(call, key_target(call))


@route(
    "PUT /v1/keys/{key}/limit",
    Permission.LIMIT_REQUESTS,
    reasons=("key_unknown",),
    client="set_key_limit(key_id)",
)
async def put_key_limit(call: ApiRequest[RequestLimitRequest, NoQuery]) -> RequestLimitAnswer:
    """Replace a key's request limit.

    The limit holds at once on this server, and within five seconds on others.
    """
    return await _change(call, key_target(call), limit_in(call.body))


@route(
    "PATCH /v1/keys/{key}/limit",
    Permission.LIMIT_REQUESTS,
    reasons=("key_unknown",),
    client="set_key_limit(key_id)",
)
async def patch_key_limit(call: ApiRequest[RequestLimitChange, NoQuery]) -> RequestLimitAnswer:
    """Change some terms of a key's request limit.

    Other terms stay as the limit in force has them.
    """
    return await _change(call, key_target(call), *change_in(call.body))


@route(
    "DELETE /v1/keys/{key}/limit",
    Permission.LIMIT_REQUESTS,
    reasons=("key_unknown",),
    client="end_key_limit(key_id)",
)
async def delete_key_limit(call: ApiRequest[None, NoQuery]) -> RequestLimitAnswer:
    """End a key's own request limit: the server's default holds again."""
    return await _change(call, key_target(call), None)


@route(
    "GET /v1/accounts/{account}/request-limit",
    Permission.READ,
    reasons=("account_unknown",),
    client="org_request_limit(org:account)",
)
async def get_org_request_limit(call: ApiRequest[None, NoQuery]) -> RequestLimitAnswer:
    """Get the limit on the requests of all keys of an org together."""
    return await _read(call, await org_target(call))


@route(
    "PUT /v1/accounts/{account}/request-limit",
    Permission.LIMIT_REQUESTS,
    reasons=("account_unknown",),
    client="set_org_request_limit(org:account)",
)
async def put_org_request_limit(
    call: ApiRequest[RequestLimitRequest, NoQuery],
) -> RequestLimitAnswer:
    """Replace the limit on the requests of all keys of an org together."""
    return await _change(call, await org_target(call), limit_in(call.body))


@route(
    "PATCH /v1/accounts/{account}/request-limit",
    Permission.LIMIT_REQUESTS,
    reasons=("account_unknown",),
    client="set_org_request_limit(org:account)",
)
async def patch_org_request_limit(
    call: ApiRequest[RequestLimitChange, NoQuery],
) -> RequestLimitAnswer:
    """Change some terms of the limit on all keys of an org together.

    Other terms stay as the limit in force has them.
    """
    return await _change(call, await org_target(call), *change_in(call.body))


@route(
    "DELETE /v1/accounts/{account}/request-limit",
    Permission.LIMIT_REQUESTS,
    reasons=("account_unknown",),
    client="end_org_request_limit(org:account)",
)
async def delete_org_request_limit(call: ApiRequest[None, NoQuery]) -> RequestLimitAnswer:
    """End an org's own request limit: the server's default holds again."""
    return await _change(call, await org_target(call), None)


def limit_in(body: RequestLimitRequest) -> RequestLimit:
    """The limit that a request describes."""
    by_second, by_hour = body.refill_per_second, body.refill_per_hour
    if (by_second is None) == (by_hour is None):
        raise invalid("refill_per_second", "must be given, or refill_per_hour instead of it")
    speed = Fraction(by_second or 0) if by_hour is None else Fraction(by_hour, HOUR_S)
    return limit_of(speed, body.capacity)


def change_in(body: RequestLimitChange) -> tuple[RequestLimit, Named]:
    """(limit, what is named of it) that a change describes; a capacity of 0 is the usual one."""
    named = named_in(body)
    if {"refill_per_second", "refill_per_hour"} <= named:
        raise invalid("refill_per_second", "must be given alone, without refill_per_hour")
    speed = given(body.refill_per_hour, HOUR_S * given(body.refill_per_second, 0))
    terms = {"capacity"} & named | ({"refill_per_hour"} if named - {"capacity"} else set())
    return RequestLimit(given(body.capacity, 0), speed), frozenset(terms)


def key_target(call: AnyCall) -> LimitTarget:
    """The key in the request's path, if it could be one that the caller sees."""
    org_id, number = key_param(call)
    resource = ids.format_id(ids.KEY, org_id, number)
    return LimitTarget(
        org_id=org_id,
        holder=Holder.KEY,
        number=number,
        resource=resource,
        scope=call.principal.scope,
    )


async def org_target(call: AnyCall) -> LimitTarget:
    """The org in the request's path."""
    path = account_param(call)
    if "/" in path:
        raise invalid("account", "must be an org; requests are limited for keys and for whole orgs")
    org_id = await org_number(call, path)
    await account_exists(call, org_id, path)
    return LimitTarget(org_id=org_id, holder=Holder.ORG, number=0, resource=path, scope=path)


async def _read(call: AnyCall, target: LimitTarget) -> RequestLimitAnswer:
    services = call.services
    try:
        found = await services.run(read_limit, services.keyring, target)
    except KeyUnknown as error:
        raise unknown_key() from error
    return to_wire(target, found)


async def _change(
    call: AnyCall, target: LimitTarget, wanted: RequestLimit | None, named: Named = None
) -> RequestLimitAnswer:
    services = call.services
    act = act_of(call, target.org_id)
    try:
        changed = await services.run(
            change_limit, services.keyring, act, target, wanted=wanted, named=named
        )
    except KeyUnknown as error:
        raise unknown_key() from error
    except ValueError as error:
        raise invalid("refill_per_second", str(error)) from error
    call.replayed = changed.is_replay
    return to_wire(target, changed)


def to_wire(target: LimitTarget, found: InForce) -> RequestLimitAnswer:
    """The limit as it is shown."""
    limit = found.limit
    is_key = target.holder is Holder.KEY
    return RequestLimitAnswer(
        holder="key" if is_key else "org",
        key_id=target.resource if is_key else None,
        account=None if is_key else target.resource,
        limit=None
        if limit is None
        else RequestLimitTerms(capacity=limit.capacity, refill_per_hour=limit.refill_per_hour),
        source="own" if found.is_own else "default",
        set_by_scope="system" if found.is_own else None,
    )
