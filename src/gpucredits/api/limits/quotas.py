"""Handlers of quotas: how they stand, setting one or all, ending one."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.reasons import BAD_LIMIT, NO_ACCOUNT, NO_LIMIT, SET_ABOVE
from gpucredits.api.http.scope import account_param, bounded_account, saved, submit
from gpucredits.api.limits.limit_standing import limit_number, standing_of
from gpucredits.core import ids
from gpucredits.core.command import EndQuota
from gpucredits.core.limit_standing import quota_standings
from gpucredits.core.outcome import QuotaSaved, QuotasReplaced
from gpucredits.service.access.permissions import Permission
from gpucredits.wire.limits.quota import (
    QuotaRequest,
    QuotasAnswer,
    QuotasRequest,
    QuotasTerms,
    QuotaTerms,
    quota_from_wire,
    quota_saved_to_wire,
    quota_standing_to_wire,
    quotas_from_wire,
    quotas_replaced_to_wire,
)
from gpucredits.wire.scalars import format_instant

route = Routes("limits")


@route(
    "GET /v1/accounts/{account}/quotas",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="quotas(account)",
)
async def get_quotas(call: ApiRequest[None, NoQuery]) -> QuotasAnswer:
    """List the quotas of an account, with what is used and left."""
    account = account_param(call)
    standing = await standing_of(call, account)
    org_id = standing.book.org.org_id
    return QuotasAnswer(
        account=account,
        quotas=[
            quota_standing_to_wire(org_id, account, each)
            for each in quota_standings(standing.book, standing.account, standing.now)
        ],
        as_of=format_instant(standing.now),
    )


@route(
    "POST /v1/accounts/{account}/quotas",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *BAD_LIMIT, *SET_ABOVE),
    client="set_quota(account, dimension, limit)",
)
async def post_quota(call: ApiRequest[QuotaRequest, NoQuery]) -> QuotaTerms:
    """Set one quota of an account.

    A quota that is the same in everything but the limit gets the new limit.
    """
    account = bounded_account(call)
    command = quota_from_wire(account, call.body, call.principal.authority)
    return await saved(call, account, command, QuotaSaved, quota_saved_to_wire)


@route(
    "PUT /v1/accounts/{account}/quotas",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *BAD_LIMIT, *SET_ABOVE),
    client="replace_quotas(account, quotas)",
)
async def put_quotas(call: ApiRequest[QuotasRequest, NoQuery]) -> QuotasTerms:
    """Replace all quotas of an account at once.

    Each item has the fields of a single quota.
    """
    account = bounded_account(call)
    command = quotas_from_wire(account, call.body, call.principal.authority)
    return await saved(call, account, command, QuotasReplaced, quotas_replaced_to_wire)


@route(
    "DELETE /v1/accounts/{account}/quotas/{quota}",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *NO_LIMIT, *SET_ABOVE),
    client="end_quota(account, quota_id)",
)
async def delete_quota(call: ApiRequest[None, NoQuery]) -> QuotaTerms:
    """End a quota."""
    account = bounded_account(call)
    standing = await standing_of(call, account)
    org_id = standing.book.org.org_id
    number = limit_number(ids.QUOTA, call.params["quota"], standing)
    command = EndQuota(quota_id=number, by=call.principal.authority)
    outcome = await submit(call, org_id, command, QuotaSaved)
    return quota_saved_to_wire(org_id, outcome)
