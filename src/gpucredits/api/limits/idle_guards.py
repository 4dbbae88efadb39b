"""Handlers of idle guards: when agents warn and drain jobs that leave their GPUs unused."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import invalid
from gpucredits.api.http.reasons import NO_ACCOUNT, SET_ABOVE
from gpucredits.api.http.scope import (
    AnyCall,
    account_param,
    act_of,
    org_number,
    require_wider,
)
from gpucredits.core.change import Named
from gpucredits.core.rules.leases.idle_guard import WINDOW_MS_MIN, IdleTerms
from gpucredits.service.access.permissions import Permission
from gpucredits.service.limits.idle_guards import GuardRow, change_guard, read_guard
from gpucredits.wire.billing.usage import (
    IdleGuardAnswer,
    IdleGuardChange,
    IdleGuardRequest,
    idle_terms_from_wire,
)
from gpucredits.wire.change import filled, named_in
from gpucredits.wire.words import AUTHORITY_NAMES

route = Routes("limits")


@route(
    "GET /v1/accounts/{account}/idle-guard",
    Permission.READ_LEASES,
    reasons=NO_ACCOUNT,
    client="idle_guard(account)",
)
async def get_idle_guard(call: ApiRequest[None, NoQuery]) -> IdleGuardAnswer:
    """Get the idle guard in force for an account: its own, or that of the nearest account above.

    Agents of nodes ask for it.
    """
    account = account_param(call)
    org_id = await org_number(call, account)
    return to_wire(account, await call.services.run(read_guard, org_id, account))


@route(
    "PUT /v1/accounts/{account}/idle-guard",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *SET_ABOVE),
    client="set_idle_guard(account)",
)
async def put_idle_guard(call: ApiRequest[IdleGuardRequest, NoQuery]) -> IdleGuardAnswer:
    """Replace the idle guard of an account; accounts below without a guard of their own follow.

    A window of 0 switches an inherited guard off. A guard that a key of a wider scope has set holds
    below whatever keys of narrower scopes have set there, before or after.
    """
    return await _change(call, terms_in(call.body))


@route(
    "PATCH /v1/accounts/{account}/idle-guard",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *SET_ABOVE),
    client="set_idle_guard(account)",
)
async def patch_idle_guard(call: ApiRequest[IdleGuardChange, NoQuery]) -> IdleGuardAnswer:
    """Change some terms of an account's idle guard; others stay as the guard in force has them.

    An account that inherited its guard then has one of its own.
    """
    wanted = terms_in(filled(call.body, IdleGuardRequest))
    named = frozenset(name.replace("_seconds", "_ms") for name in named_in(call.body))
    return await _change(call, wanted, named)


@route(
    "DELETE /v1/accounts/{account}/idle-guard",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *SET_ABOVE),
    client="end_idle_guard(account)",
)
async def delete_idle_guard(call: ApiRequest[None, NoQuery]) -> IdleGuardAnswer:
    """End an account's own idle guard: that of the nearest account above holds again."""
    return await _change(call, None)


def terms_in(body: IdleGuardRequest) -> IdleTerms:
    """The terms that a request describes."""
    if 0 < body.window_seconds * 1_000 < WINDOW_MS_MIN:
        raise invalid("window_seconds", "must be 0, or 60 at least")
    return idle_terms_from_wire(body)


async def _change(call: AnyCall, terms: IdleTerms | None, named: Named = None) -> IdleGuardAnswer:
    account = account_param(call)
    require_wider(call, account)
    org_id = await org_number(call, account)
    guard, call.replayed = await call.services.run(
        change_guard,
        act_of(call, org_id),
        account,
        terms,
        by=call.principal.authority,
        named=named,
    )
    return to_wire(account, guard)


def to_wire(account: str, guard: GuardRow | None) -> IdleGuardAnswer:
    """The guard as it is shown."""
    terms = IdleTerms() if guard is None else guard.terms
    return IdleGuardAnswer(
        account=account,
        window_seconds=terms.window_ms // 1_000,
        utilization_percent=terms.utilization_percent,
        memory_percent=terms.memory_percent,
        startup_seconds=terms.startup_ms // 1_000,
        warning_seconds=terms.warning_ms // 1_000,
        grace_seconds=terms.grace_ms // 1_000,
        source=None if guard is None else guard.account,
        set_by_scope=None if guard is None else AUTHORITY_NAMES[guard.set_by],
    )
